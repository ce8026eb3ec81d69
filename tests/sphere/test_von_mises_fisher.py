"""Densities against quadrature and closed forms, samples against the cosine's distribution."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import i0, i1
from scipy.stats import kstest, vonmises

from meanfield.sphere.funk_hecke import eigenvalues
from meanfield.sphere.geometry import circle_points, geodesic_distance, normalise
from meanfield.sphere.grids import regular_grid
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture


def mean_direction(dim):
    return normalise(np.arange(1.0, dim + 1)[None])


def test_density_on_the_circle_is_the_von_mises_density():
    angles = np.linspace(-3, 3, 50)
    mixture = VonMisesFisherMixture([[1.0, 0.0]], [7.0])
    expected = 2 * np.pi * vonmises.pdf(angles, 7.0)
    assert np.allclose(mixture.density(circle_points(angles)), expected, rtol=1e-13)


def test_density_on_the_sphere_has_its_closed_form():
    kappa, mean = 9.0, mean_direction(3)
    points = normalise(np.random.default_rng(0).normal(size=(50, 3)))
    expected = kappa / np.sinh(kappa) * np.exp(kappa * points @ mean[0])
    density = VonMisesFisherMixture(mean, [kappa]).density(points)
    assert np.allclose(density, expected, rtol=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 4, 7])
@pytest.mark.parametrize("kappa", [0.0, 1e-3, 1.0, 80.0])
def test_density_integrates_to_one(dim, kappa):
    mixture = VonMisesFisherMixture(np.eye(dim)[:1], [kappa])

    def integrand(angle):
        point = np.zeros((1, dim))
        point[0, :2] = np.cos(angle), np.sin(angle)
        return mixture.density(point)[0] * np.sin(angle) ** (dim - 2)

    area = quad(lambda angle: np.sin(angle) ** (dim - 2), 0, np.pi)[0]
    total = quad(integrand, 0, np.pi, epsabs=1e-12, limit=200)[0]
    assert np.isclose(total / area, 1, rtol=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
def test_moments_are_ratios_of_bessel_functions(dim):
    # For every harmonic of degree j: ∫ Y_j dvMF = λ_j(κ)/λ_0(κ) Y_j(m), by Funk–Hecke.
    kappa, weight, degree = np.array([3.0, 12.0]), np.array([0.3, 0.7]), 40
    means = normalise(np.random.default_rng(1).normal(size=(2, dim)))
    mixture = VonMisesFisherMixture(means, kappa, weight)
    grid = regular_grid(dim, degree)
    harmonics = scattered_harmonics(dim, degree)
    expected = 0
    for k in range(2):
        ratio = eigenvalues(kappa[k], dim, degree) / eigenvalues(kappa[k], dim, 0)
        atom = harmonics.coefficients(means[k : k + 1], weight[k : k + 1])
        expected = expected + harmonics.multiply(atom, ratio)
    found = grid.analyse(mixture.density(grid.nodes))
    assert np.allclose(found, expected, atol=1e-11)


def test_density_survives_great_concentration():
    mixture = VonMisesFisherMixture([[0.0, 0.0, 1.0]], [1e5])
    tilt = 1e-3
    points = np.array([[0.0, 0.0, 1.0], [np.sin(tilt), 0.0, np.cos(tilt)], [0.0, 0.0, -1.0]])
    # κ/sinh κ · e^κ is 2κ here, and the exponent is −κ tilt²/2 up to tilt⁴.
    assert np.allclose(
        mixture.density(points), [2e5, 2e5 * np.exp(1e5 * (np.cos(tilt) - 1)), 0], rtol=1e-9
    )


@pytest.mark.parametrize("kappa", [0.0, 1e-3, 2.0, 1e3, 1e5])
def test_angles_on_the_circle_follow_the_von_mises_law(kappa):
    mixture = VonMisesFisherMixture([[1.0, 0.0]], [kappa])
    points = mixture.sample(20_000, seed=4)
    law = vonmises(kappa).cdf if kappa > 0 else lambda t: (t + np.pi) / (2 * np.pi)
    assert kstest(np.arctan2(points[:, 1], points[:, 0]), law).pvalue > 1e-3


@pytest.mark.parametrize("kappa", [1e-3, 2.0, 1e3, 1e5])
def test_heights_on_the_sphere_are_exponential(kappa):
    mean = mean_direction(3)
    points = VonMisesFisherMixture(mean, [kappa]).sample(20_000, seed=5)
    # 1 − m·x = 2 sin²(angle/2), without cancellation.
    versine = 2 * np.sin(geodesic_distance(points, mean) / 2) ** 2

    def law(s):
        return np.expm1(-kappa * s) / np.expm1(-2 * kappa)

    assert kstest(versine, law).pvalue > 1e-3


@pytest.mark.parametrize("dim", [2, 3, 5, 50])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 300.0, 1e5])
def test_mean_of_samples_is_the_ratio_of_bessel_functions(dim, kappa):
    mean = mean_direction(dim)
    points = VonMisesFisherMixture(mean, [kappa]).sample(20_000, seed=6)
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-15 * 4)
    versine = 2 * np.sin(geodesic_distance(points, mean) / 2) ** 2
    expected = 1.0
    if kappa > 0:
        values = eigenvalues(kappa, dim, 1)
        expected = 1 - values[1] / values[0]
    assert abs(versine.mean() - expected) < 4 * versine.std() / np.sqrt(20_000)


def test_samples_turn_about_the_mean_evenly():
    mean = mean_direction(4)
    points = VonMisesFisherMixture(mean, [10.0]).sample(20_000, seed=7)
    tangent = normalise(points - points @ mean.T * mean)
    # Uniform on the unit sphere of a 3-space: second moments are 1/3 of the projection.
    second = tangent.T @ tangent / len(tangent)
    assert np.allclose(second, (np.eye(4) - mean.T @ mean) / 3, atol=4 / np.sqrt(20_000))
    assert np.allclose(tangent.mean(axis=0), 0, atol=4 / np.sqrt(20_000))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_means_on_the_first_axis_are_reached(sign):
    points = VonMisesFisherMixture([[sign, 0.0, 0.0]], [1e5]).sample(100, seed=1)
    assert np.all(sign * points[:, 0] > 0.999)


def test_components_carry_their_weights():
    mixture = VonMisesFisherMixture(np.eye(3), [1e4] * 3, [0.2, 0.0, 0.8])
    nearest = np.argmax(mixture.sample(20_000, seed=8), axis=1)
    shares = np.bincount(nearest, minlength=3) / 20_000
    assert shares[1] == 0
    assert abs(shares[0] - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 20_000)


def test_mean_resultant_length_on_the_circle():
    points = VonMisesFisherMixture([[0.6, 0.8]], [2.0]).sample(50_000, seed=9)
    expected = i1(2.0) / i0(2.0) * np.array([0.6, 0.8])
    assert np.allclose(points.mean(axis=0), expected, atol=4 / np.sqrt(50_000))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([[1.0, 0.0]], [-1.0]), "concentrations"),
        (([[1.0, 0.0]], [np.inf]), "concentrations"),
        (([[1.0, 0.0]], [1.0, 2.0]), "concentrations"),
        (([[1.0, 1.0]], [1.0]), "mean 0"),
        (([[np.nan, 1.0]], [1.0]), "mean 0"),
        (([1.0, 0.0], [1.0]), "means"),
        (([[1.0, 0.0]], [1.0], [0.5]), "weights sum to 0.5"),
        (([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], [1.5, -0.5]), "weights"),
    ],
)
def test_what_is_no_mixture_is_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        VonMisesFisherMixture(*arguments)
