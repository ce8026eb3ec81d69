"""The map of uniform variates to a density carries mass where the density has it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import vonmises

from meanfield.sphere.geometry import circle_angles, sphere_angles
from meanfield.sphere.quantiles import quantile_map
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture

fractions = st.floats(0, 1)


def away(first, second):
    """Distance of two fractions of a turn."""
    return abs((first - second + 0.5) % 1 - 0.5)


@pytest.fixture(scope="module")
def von_mises():
    # The mean lies at angle π, so that the law's cut is the map's.
    return {
        kappa: quantile_map(VonMisesFisherMixture([[-1.0, 0.0]], [kappa]).density, 2)
        for kappa in (0.1, 3.0, 15.0)
    }


@pytest.fixture(scope="module")
def linear():
    return {axis: quantile_map(lambda x, axis=axis: 1 + x[:, axis], 3) for axis in (0, 2)}


@given(fraction=fractions, kappa=st.sampled_from([0.1, 3.0, 15.0]))
def test_circle_quantiles_invert_the_von_mises_law(von_mises, fraction, kappa):
    angle = circle_angles(von_mises[kappa](np.array([[fraction]])))[0]
    assert away(vonmises.cdf(angle, kappa, loc=np.pi), fraction) < 1e-12


@given(first=fractions, second=fractions)
def test_sphere_quantiles_of_a_linear_density(linear, first, second):
    # 1 + z has mass (1 − z)(3 + z)/4 north of height z, and does not depend on longitude.
    colatitude, longitude = sphere_angles(linear[2](np.array([[first, second]])))
    height = np.cos(colatitude[0])
    assert abs((1 - height) * (3 + height) / 4 - first) < 1e-12
    # At the poles, where longitude means nothing, rounding makes it what it likes.
    assert away(longitude[0] / (2 * np.pi), second) * np.sin(colatitude[0]) < 1e-12


@given(second=fractions)
def test_longitude_follows_its_law_on_a_parallel(linear, second):
    # On the equator the density 1 + x is 1 + cos φ.
    point = linear[0](np.array([[0.5, second]]))
    assert abs(point[0, 2]) < 1e-12
    longitude = circle_angles(point[:, :2])[0]
    assert away((longitude + np.sin(longitude)) / (2 * np.pi), second) < 1e-11


@pytest.mark.parametrize("kappa", [1.0, 100.0, 1e5])
def test_heights_about_a_peak_between_the_cells(kappa):
    mean = np.array([[2.0, -1.0, 2.0]]) / 3
    to_density = quantile_map(VonMisesFisherMixture(mean, [kappa]).density, 3)
    assert to_density.error < 1e-10
    grid = (np.arange(300) + 0.5) / 300
    variates = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    offset = to_density(variates) - mean
    versine = np.sort(np.einsum("ij,ij->i", offset, offset) / 2)
    # The mass within each point's distance is its rank, up to the lattice's discrepancy.
    mass = np.expm1(-kappa * versine) / np.expm1(-2 * kappa)
    rank = (np.arange(len(mass)) + 0.5) / len(mass)
    assert np.abs(mass - rank).max() < 0.02


def test_jumps_of_a_density_on_the_circle_are_found():
    to_density = quantile_map(lambda x: 2.0 * (x @ [0.6, 0.8] > 0), 2)
    assert to_density.error < 1e-10
    points = to_density(np.linspace(0.001, 0.999, 1001)[:, None])
    assert np.all(points @ [0.6, 0.8] > -1e-9)


def test_kinks_of_a_density_on_the_sphere_are_resolved():
    axis = np.array([1.0, 2.0, 2.0]) / 3
    to_density = quantile_map(lambda x: 4 * np.maximum(x @ axis, 0), 3)
    grid = (np.arange(400) + 0.5) / 400
    height = to_density(np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)) @ axis
    # Heights above the kink have density 2h on [0, 1].
    assert height.min() > -1e-2
    assert abs(height.mean() - 2 / 3) < 1e-4
    assert abs((height**2).mean() - 1 / 2) < 1e-4


def test_what_stays_unresolved_is_refused():
    axis = np.array([1.0, 2.0, 2.0]) / 3
    with pytest.raises(ValueError, match="raise the tolerance"):
        quantile_map(lambda x: 2.0 * (x @ axis > 0), 3)
    assert quantile_map(lambda x: 2.0 * (x @ axis > 0), 3, tolerance=0.1).error < 0.1


@pytest.mark.parametrize(
    ("density", "named"),
    [
        (lambda x: 1 + 2 * x[:, 0], "expected values >= 0"),
        (lambda x: np.where(x[:, 0] > 0, np.nan, 1.0), "not finite"),
        (lambda x: 2 + x[:, 0], "integrates to 2"),
        (lambda x: x, "shape"),
    ],
)
@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_no_density_is_refused(density, named, dim):
    with pytest.raises(ValueError, match=named):
        quantile_map(density, dim)


def test_other_dimensions_are_refused():
    with pytest.raises(ValueError, match="ambient_dim=4"):
        quantile_map(lambda x: np.ones(len(x)), 4)
