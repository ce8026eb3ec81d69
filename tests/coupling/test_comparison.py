import numpy as np
import pytest

import meanfield as mf
from meanfield.coupling.comparison import DensityComparison, longitude_marginal, separation
from meanfield.coupling.distance import great_circles
from meanfield.density.spectral import SpectralDensity
from meanfield.sphere.geometry import circle_points, exponential_map, normalise
from meanfield.sphere.sampling import even_from_density
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture


def bump(ambient_dim):
    mean = np.eye(ambient_dim)[:1]
    return VonMisesFisherMixture(mean, [3.0])


def spectral(ambient_dim, start):
    model = mf.Model(mf.Attention(beta=2.0))
    return SpectralDensity(model, start, ambient_dim=ambient_dim, degree=40)


def test_an_atom_against_the_uniform_density_on_the_circle():
    # Each point of the circle goes to the atom: W2² = ∫ θ² dθ/2π = π²/3.
    comparison = DensityComparison(spectral(2, lambda x: np.ones(len(x))), beta=2.0)
    distance = comparison.wasserstein(mf.Measure([[0.6, 0.8]], [1.0]))
    assert distance.value == pytest.approx(np.pi / np.sqrt(3), abs=distance.error)
    assert distance.error < 1e-3


def test_an_atom_against_the_uniform_density_on_the_sphere():
    # All longitudes are uniform, so that every great circle sees the same as above.
    comparison = DensityComparison(spectral(3, lambda x: np.ones(len(x))), beta=2.0)
    distance = comparison.wasserstein(mf.Measure([[0.6, 0.0, 0.8]], [1.0]))
    assert distance.value == pytest.approx(np.pi / np.sqrt(3), abs=1e-3)


def test_transport_of_the_densitys_own_points_costs_no_more_than_they_are_off():
    start = bump(3)
    comparison = DensityComparison(spectral(3, start.density), beta=2.0)
    nodes = even_from_density(start.density, 1000, 3)
    distance = comparison.transport(mf.Measure(nodes, np.full(1000, 1e-3)))
    # A hexagon's share for 1000 points, and for the 2000 that stand for the density.
    share = np.sqrt(5 / (18 * np.sqrt(3)) * 4 * np.pi / np.array([1000, 2000]))
    assert distance.error == pytest.approx(share[1])
    assert share[0] - share[1] < distance.value < share.sum()


def test_transport_to_an_atom_is_the_closed_form():
    # Uniform on S² to a point: ∫ θ² sin θ/2 dθ = (π² − 4)/2.
    comparison = DensityComparison(spectral(3, lambda x: np.ones(len(x))), beta=2.0)
    distance = comparison.transport(mf.Measure([[0.6, 0.0, 0.8]], [1.0]))
    assert distance.value == pytest.approx(np.sqrt((np.pi**2 - 4) / 2), abs=1e-3)


def test_marginals_against_a_cloud():
    start = bump(3)
    points = start.sample(200_000, seed=2)
    density = spectral(3, start.density)
    for circle in great_circles(1, 3, 3):
        coefficients = longitude_marginal(density.density, density.degree, circle)
        longitude = np.arctan2(*(points @ circle.T).T[::-1])
        k = np.arange(4)
        sampled = np.exp(-1j * k * longitude[:, None]).mean(axis=0)
        np.testing.assert_allclose(coefficients[:4], sampled, atol=5 / np.sqrt(len(points)))


def test_kernel_distance_against_the_double_sum():
    density = spectral(3, lambda x: 1 + 0.5 * x[:, 2])
    nodes = normalise(np.random.default_rng(1).normal(size=(20, 3)))
    measure = mf.Measure(nodes, np.full(20, 1 / 20))
    grid, weights = density.measure()
    both = np.vstack([nodes, grid])
    signed = np.append(measure.masses, -weights)
    squared = signed @ np.exp(2.0 * (both @ both.T - 1)) @ signed
    distance = DensityComparison(density, beta=2.0).kernel_distance(measure)
    assert distance.value == pytest.approx(np.sqrt(squared), rel=1e-9)


def test_separation_is_the_angle_between_partners():
    points = circle_points([0.0, 1.0, 2.0])
    tangents = np.stack([-points[:, 1], points[:, 0]], axis=1) * np.array([[0.1], [0.0], [-0.3]])
    masses = np.array([0.5, 0.25, 0.25])
    mean, largest = separation(
        mf.Measure(points, masses), mf.Measure(exponential_map(points, tangents), masses)
    )
    assert mean == pytest.approx(0.5 * 0.1 + 0.25 * 0.3)
    assert largest == pytest.approx(0.3)
