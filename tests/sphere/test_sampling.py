"""Starting clouds have the moments of what they sample, at the rate that is claimed."""

import numpy as np
import pytest
from scipy.stats import kstest

from meanfield.sphere.geometry import circle_angles
from meanfield.sphere.grids import regular_grid
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.sampling import (
    even_from_density,
    even_uniform,
    random_from_density,
    random_uniform,
)
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture


def moment_error(points, density, degree=6):
    """Largest error of a moment's size, over degrees."""
    dim = points.shape[1]
    harmonics = scattered_harmonics(dim, degree)
    # A fine grid's quadrature is exact to rounding for the densities used here.
    grid = regular_grid(dim, degree, 120)
    exact = grid.analyse(density(grid.nodes))
    found = harmonics.coefficients(points, np.full(len(points), 1 / len(points)))
    return np.sqrt(harmonics.power(found - exact).max())


def flat(points):
    return np.ones(len(points))


def broad(points):
    return 1 + 0.5 * points[:, 0] + 0.4 * points[:, 0] * points[:, 1]


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_uniform_points_have_uniform_moments(dim):
    points = random_uniform(40_000, dim, seed=1)
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-15 * 4)
    assert np.allclose(points.mean(axis=0), 0, atol=4 / np.sqrt(40_000 * dim))
    assert np.allclose(points.T @ points / 40_000, np.eye(dim) / dim, atol=4 / np.sqrt(40_000))


def test_uniform_heights_are_uniform():
    # Archimedes: on S² every coordinate is uniform in [−1, 1].
    points = random_uniform(40_000, 3, seed=2)
    for height in points.T:
        assert kstest((height + 1) / 2, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dim", [2, 3])
def test_random_points_of_a_density(dim):
    # A moment's error is about √(multiplicity / n).
    points = random_from_density(broad, 40_000, dim, seed=3)
    assert moment_error(points, broad) < 3 * np.sqrt(7 / 40_000)
    assert moment_error(points, flat) > 0.1


def test_random_points_depend_on_the_seed():
    first, second = (random_from_density(broad, 100, 2, seed=seed) for seed in (1, 2))
    assert not np.any(np.all(first == second, axis=1))


def test_even_points_of_the_circle_integrate_polynomials_exactly():
    assert moment_error(even_uniform(50, 2), flat) < 1e-14


def test_even_points_of_a_smooth_density_converge_faster_than_any_power():
    density = VonMisesFisherMixture([[0.6, 0.8]], [1.0]).density
    errors = [moment_error(even_from_density(density, n, 2), density) for n in (25, 50, 100, 200)]
    slopes = -np.diff(np.log2(errors))
    assert errors[-1] < 1e-13
    assert np.all(np.diff(slopes[:2]) > 2)


def test_even_points_carry_equal_masses_of_the_circle():
    density = VonMisesFisherMixture([[1.0, 0.0], [0.0, -1.0]], [30.0, 5.0], [0.4, 0.6]).density
    angles = circle_angles(even_from_density(density, 64, 2))
    # Half of 1/64 before the first point, then 1/64 between neighbours, by the midpoint rule.
    fine = (np.arange(2**20) + 0.5) * 2 * np.pi / 2**20
    mass = np.cumsum(density(np.stack([np.cos(fine), np.sin(fine)], axis=1))) / 2**20
    found = np.interp(angles, fine + np.pi / 2**20, mass)
    assert np.allclose(found, (np.arange(64) + 0.5) / 64, atol=1e-9)


def test_the_spiral_converges_as_claimed():
    errors = [moment_error(even_uniform(n, 3), flat) for n in (1000, 4000, 16000)]
    assert np.log(errors[0] / errors[-1]) / np.log(16) > 1.4


def test_the_spiral_keeps_points_apart():
    from scipy.spatial import cKDTree

    points = even_uniform(4000, 3)
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    # Equal-area hexagons would be at distance √(8π/(√3 n)).
    assert nearest.min() > 0.5 * np.sqrt(8 * np.pi / (np.sqrt(3) * 4000))


@pytest.mark.parametrize(
    ("density", "slope"),
    [(broad, 1.2), (VonMisesFisherMixture([[0.6, 0.0, 0.8]], [50.0]).density, 0.85)],
)
def test_even_points_of_a_density_on_the_sphere_converge_as_claimed(density, slope):
    errors = [moment_error(even_from_density(density, n, 3), density) for n in (500, 32_000)]
    assert np.log(errors[0] / errors[1]) / np.log(64) > slope


@pytest.mark.parametrize("dim", [2, 3])
def test_even_points_of_the_flat_density_are_the_uniform_ones(dim):
    assert np.allclose(even_from_density(flat, 500, dim), even_uniform(500, dim), atol=1e-12)


@pytest.mark.parametrize("count", [0, -3, 2.5])
def test_a_cloud_needs_points(count):
    with pytest.raises(ValueError, match="count"):
        random_uniform(count, 3, seed=1)
    with pytest.raises(ValueError, match="count"):
        even_uniform(count, 3)


def test_even_points_in_higher_dimension_are_refused():
    with pytest.raises(ValueError, match="ambient_dim=5"):
        even_uniform(10, 5)
