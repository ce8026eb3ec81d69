"""Regular grids against scattered sums, exact integrals and the Laplacian."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive, sph_harm_y

from meanfield.sphere.grids import (
    change_degree,
    degree_of,
    regular_grid,
    to_ambient,
    to_frame,
)
from meanfield.sphere.harmonics import scattered_harmonics

DIMENSIONS = [2, 3]


def random_coefficients(ambient_dim, degree, seed=0):
    rng = np.random.default_rng(seed)
    count = degree + 1 if ambient_dim == 2 else (degree + 1) * (degree + 2) // 2
    coefficients = rng.normal(size=count) + 1j * rng.normal(size=count)
    real = 1 if ambient_dim == 2 else degree + 1
    coefficients[:real] = coefficients[:real].real
    return coefficients


@given(st.sampled_from(DIMENSIONS), st.integers(0, 12), st.integers(0, 12), st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_analysis_inverts_synthesis(ambient_dim, degree, extra, seed):
    coefficients = random_coefficients(ambient_dim, degree, seed)
    grid = regular_grid(ambient_dim, degree, 2 * degree + extra)
    assert np.allclose(grid.analyse(grid.value(coefficients)), coefficients, atol=1e-13)


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_values_and_gradients_are_those_at_scattered_points(ambient_dim):
    coefficients = random_coefficients(ambient_dim, 9)
    grid = regular_grid(ambient_dim, 9)
    scattered = scattered_harmonics(ambient_dim, 9)
    assert np.allclose(grid.value(coefficients), scattered.value(coefficients, grid.nodes))
    gradient = to_ambient(grid, grid.gradient(coefficients))
    assert np.allclose(gradient, scattered.gradient(coefficients, grid.nodes), atol=1e-11)
    assert np.allclose(to_frame(grid, gradient), grid.gradient(coefficients), atol=1e-12)


def test_the_layout_on_the_sphere_is_that_of_scipy_harmonics():
    """scipy's Y_lm have unit norm for the area 4π and the Condon–Shortley sign, as ours."""
    grid = regular_grid(3, 4)
    colatitude = np.arccos(grid.nodes[:, 2])
    longitude = np.arctan2(grid.nodes[:, 1], grid.nodes[:, 0])
    values = sph_harm_y(3, 2, colatitude, longitude).real
    found = grid.analyse(values)
    place = 2 * 5 - 1 + (3 - 2)
    expected = np.zeros(15)
    expected[place] = 0.5
    assert np.allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_weights_integrate_exponentials_exactly(ambient_dim):
    grid = regular_grid(ambient_dim, 20)
    direction = np.array([0.6, 0.0, 0.8])[-ambient_dim:]
    direction /= np.linalg.norm(direction)
    assert grid.weights.sum() == pytest.approx(1, abs=1e-15)
    integral = grid.weights @ np.exp(3 * grid.nodes @ direction)
    exact = ive(0, 3.0) * np.exp(3) if ambient_dim == 2 else np.sinh(3) / 3
    assert integral == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_quadrature_is_exact_up_to_the_product_degree_and_not_far_beyond(ambient_dim):
    """∫ x₁² and ∫ x₁^{2k}: on S¹ (2k)!/(4^k k!²), on S² 1/(2k+1)."""
    grid = regular_grid(ambient_dim, 2, 6)

    def error(k):
        on_circle = np.prod((2 * np.arange(1, k + 1) - 1) / (2 * np.arange(1, k + 1)))
        exact = on_circle if ambient_dim == 2 else 1 / (2 * k + 1)
        return abs(grid.weights @ grid.nodes[:, -1] ** (2 * k) - exact)

    assert error(1) < 1e-15 and error(3) < 1e-15
    assert error(8) > 1e-8


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_divergence_of_the_gradient_is_the_laplacian(ambient_dim):
    coefficients = random_coefficients(ambient_dim, 8)
    grid = regular_grid(ambient_dim, 8)
    j = np.arange(9)
    expected = scattered_harmonics(ambient_dim, 8).multiply(
        coefficients, -j * (j + ambient_dim - 2.0)
    )
    found = grid.divergence(grid.gradient(coefficients))
    assert found[0] == 0
    assert np.allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_rotations_have_no_divergence(ambient_dim):
    generator = np.zeros((ambient_dim, ambient_dim))
    generator[0, 1], generator[1, 0] = -1, 1
    if ambient_dim == 3:
        generator[1, 2], generator[2, 1] = 0.5, -0.5
    grid = regular_grid(ambient_dim, 6)
    divergence = grid.divergence(to_frame(grid, grid.nodes @ generator.T))
    assert np.abs(divergence).max() < 1e-14


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_three_halves_rule_finds_products_without_aliasing(ambient_dim):
    degree = 7
    first = random_coefficients(ambient_dim, degree, 1)
    second = random_coefficients(ambient_dim, degree, 2)
    ample = regular_grid(ambient_dim, degree, 8 * degree)
    exact = ample.analyse(ample.value(first) * ample.value(second))

    def error(product_degree):
        grid = regular_grid(ambient_dim, degree, product_degree)
        return np.abs(grid.analyse(grid.value(first) * grid.value(second)) - exact).max()

    assert error(3 * degree) < 1e-12
    assert error(2 * degree) > 1e-3


@given(st.sampled_from(DIMENSIONS), st.integers(0, 10), st.integers(0, 10))
@settings(deadline=None, max_examples=25)
def test_changing_the_degree_pads_or_cuts(ambient_dim, degree, other):
    coefficients = random_coefficients(ambient_dim, degree)
    changed = change_degree(coefficients, ambient_dim, other)
    assert degree_of(changed, ambient_dim) == other
    power = scattered_harmonics(ambient_dim, degree).power(coefficients)
    changed_power = scattered_harmonics(ambient_dim, other).power(changed)
    common = min(degree, other) + 1
    assert np.allclose(changed_power[:common], power[:common])
    assert np.all(changed_power[common:] == 0)
    if other >= degree:
        assert np.array_equal(change_degree(changed, ambient_dim, degree), coefficients)


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="ambient_dim=4"):
        regular_grid(4, 3)
    with pytest.raises(ValueError, match="degree=-1"):
        regular_grid(2, -1)
    with pytest.raises(ValueError, match="product_degree=5"):
        regular_grid(2, 3, 5)
    with pytest.raises(ValueError, match="5 coefficients"):
        degree_of(np.zeros(5), 3)
    with pytest.raises(ValueError, match="ambient_dim=5"):
        degree_of(np.zeros(6), 5)
