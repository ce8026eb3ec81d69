"""Transforms between scattered points and coefficients, against closed forms and scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import sph_harm_y

from meanfield.sphere.funk_hecke import multiplicities
from meanfield.sphere.geometry import circle_angles, sphere_angles
from meanfield.sphere.harmonics import scattered_harmonics
from tests.strategies import measures, random_measure, random_points, unit_rows

BOTH_DIMENSIONS = pytest.mark.parametrize("ambient_dim", [2, 3])
POLES = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-0.0, -0.0, 1.0]])


def exact_coefficients(measure, degree):
    """∫ e^{−ikθ} dμ, or 4π ∫ conj(Y_lm) dμ by m and then l, from their definitions."""
    if measure.ambient_dim == 2:
        angles = circle_angles(measure.nodes)
        return np.exp(-1j * np.outer(np.arange(degree + 1), angles)) @ measure.masses
    angles = sphere_angles(measure.nodes)
    return np.array(
        [
            4 * np.pi * sph_harm_y(l, m, *angles).conj() @ measure.masses
            for m in range(degree + 1)
            for l in range(m, degree + 1)  # noqa: E741
        ]
    )


def plane_wave(x, direction):
    """A smooth function with its tangent gradient and Riemannian Hessian: exp(x·p)."""
    value = np.exp(x @ direction)
    projection = np.eye(x.shape[1]) - x[:, :, None] * x[:, None, :]
    tangent = projection @ direction
    ambient = np.outer(direction, direction) - (x @ direction)[:, None, None] * np.eye(x.shape[1])
    hessian = projection @ ambient @ projection
    return value, value[:, None] * tangent, value[:, None, None] * hessian


def coefficients_of(function, ambient_dim, degree):
    """By quadrature that is exact for this degree twice over."""
    harmonics = scattered_harmonics(ambient_dim, degree)
    count = 2 * degree + 2
    angles = 2 * np.pi * np.arange(count) / count
    if ambient_dim == 2:
        nodes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return harmonics.coefficients(nodes, function(nodes) / count)
    height, weight = np.polynomial.legendre.leggauss(degree + 1)
    radius = np.sqrt(1 - height**2)
    nodes = np.stack(
        [
            np.outer(radius, np.cos(angles)),
            np.outer(radius, np.sin(angles)),
            np.outer(height, np.ones(count)),
        ],
        axis=-1,
    ).reshape(-1, 3)
    masses = function(nodes) * np.repeat(weight / (2 * count), count)
    return harmonics.coefficients(nodes, masses)


@given(st.data(), st.sampled_from([2, 3]), st.integers(0, 12))
@settings(max_examples=30)
def test_coefficients_by_definition(data, ambient_dim, degree):
    measure = data.draw(measures(ambient_dim))
    found = scattered_harmonics(ambient_dim, degree).coefficients(measure.nodes, measure.masses)
    exact = exact_coefficients(measure, degree)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * (1 + degree))


@BOTH_DIMENSIONS
def test_coefficients_of_high_degree(ambient_dim):
    degree = 60
    measure = random_measure(50, ambient_dim, seed=2)
    found = scattered_harmonics(ambient_dim, degree).coefficients(measure.nodes, measure.masses)
    np.testing.assert_allclose(found, exact_coefficients(measure, degree), rtol=0, atol=1e-11)


@BOTH_DIMENSIONS
def test_value_gradient_and_hessian_of_a_plane_wave(ambient_dim):
    direction = np.array([0.7, -1.1, 0.4])[:ambient_dim]
    x = random_points(40, ambient_dim, seed=1)
    x = np.concatenate([x, np.eye(ambient_dim), -np.eye(ambient_dim)])
    if ambient_dim == 3:
        near_pole = np.array([[1e-9, -1e-9, 1.0], [-1e-4, 3e-4, -1.0]])
        x = np.concatenate([x, POLES, near_pole / np.linalg.norm(near_pole, axis=1)[:, None]])
    degree = 24
    c = coefficients_of(lambda y: plane_wave(y, direction)[0], ambient_dim, degree)
    harmonics = scattered_harmonics(ambient_dim, degree)
    value, gradient, hessian = plane_wave(x, direction)
    np.testing.assert_allclose(harmonics.value(c, x), value, rtol=1e-12)
    np.testing.assert_allclose(harmonics.gradient(c, x), gradient, rtol=0, atol=1e-11)
    np.testing.assert_allclose(harmonics.hessian(c, x), hessian, rtol=0, atol=1e-10)


@BOTH_DIMENSIONS
@given(st.data())
@settings(max_examples=20)
def test_synthesis_is_the_adjoint_of_analysis(ambient_dim, data):
    """∫ f dμ = Σ_j Σ_ℓ f_jℓ m_jℓ for f of a finite degree."""
    degree = 9
    harmonics = scattered_harmonics(ambient_dim, degree)
    measure = data.draw(measures(ambient_dim))
    other = random_measure(4, ambient_dim, seed=data.draw(st.integers(0, 99)))
    c = harmonics.coefficients(other.nodes, other.masses)
    mean = measure.masses @ harmonics.value(c, measure.nodes)
    product = harmonics.inner_by_degree(
        c, harmonics.coefficients(measure.nodes, measure.masses)
    ).sum()
    assert mean == pytest.approx(product, abs=1e-11)


@BOTH_DIMENSIONS
def test_addition_theorem(ambient_dim):
    """Σ_ℓ Y_jℓ(x) Y_jℓ(y) = N_j P_j(x·y), P_j the cosine of jθ or Legendre's polynomial."""
    degree = 15
    harmonics = scattered_harmonics(ambient_dim, degree)
    x, y = random_points(2, ambient_dim, seed=6)[:, None]
    at_x, at_y = (harmonics.coefficients(point, np.ones(1)) for point in (x, y))
    j = np.arange(degree + 1)
    if ambient_dim == 2:
        polynomial = np.cos(j * np.arccos(x[0] @ y[0]))
    else:
        polynomial = [np.polynomial.legendre.Legendre.basis(k)(x[0] @ y[0]) for k in j]
    expected = multiplicities(ambient_dim, degree) * polynomial
    found = harmonics.inner_by_degree(at_x, at_y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        harmonics.power(at_x), multiplicities(ambient_dim, degree), rtol=1e-12
    )


@BOTH_DIMENSIONS
def test_multiplying_by_degree(ambient_dim):
    harmonics = scattered_harmonics(ambient_dim, 6)
    measure = random_measure(5, ambient_dim, seed=1)
    c = harmonics.coefficients(measure.nodes, measure.masses)
    factors = 2.0 ** -np.arange(7)
    scaled = harmonics.multiply(c, factors)
    np.testing.assert_allclose(harmonics.power(scaled), factors**2 * harmonics.power(c), rtol=1e-13)


@BOTH_DIMENSIONS
@given(st.data())
@settings(max_examples=20)
def test_gradients_are_tangent_and_hessians_symmetric(ambient_dim, data):
    harmonics = scattered_harmonics(ambient_dim, 8)
    x = data.draw(unit_rows(3, ambient_dim))
    measure = random_measure(5, ambient_dim, seed=1)
    c = harmonics.coefficients(measure.nodes, measure.masses)
    size = np.linalg.norm(c) * 64
    radial = np.sum(harmonics.gradient(c, x) * x, axis=1)
    np.testing.assert_allclose(radial, 0, atol=1e-14 * size)
    hessian = harmonics.hessian(c, x)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", hessian, x), 0, atol=1e-14 * size)


@BOTH_DIMENSIONS
def test_points_located_once_give_the_same(ambient_dim):
    harmonics = scattered_harmonics(ambient_dim, 10)
    measure = random_measure(30, ambient_dim, seed=1)
    located = harmonics.locate(measure.nodes)
    c = harmonics.coefficients(measure.nodes, measure.masses)
    np.testing.assert_array_equal(harmonics.coefficients(located, measure.masses), c)
    for ask in (harmonics.value, harmonics.gradient, harmonics.hessian):
        np.testing.assert_array_equal(ask(c, located), ask(c, measure.nodes))


@BOTH_DIMENSIONS
def test_other_points_in_between_leave_no_trace(ambient_dim):
    """Plans and caches are shared; the points of the last call must not be."""
    harmonics = scattered_harmonics(ambient_dim, 10)
    one, other = random_measure(30, ambient_dim, seed=1), random_measure(7, ambient_dim, seed=2)
    c = harmonics.coefficients(one.nodes, one.masses)
    harmonics.value(c, other.nodes)
    harmonics.coefficients(other.nodes, other.masses)
    np.testing.assert_array_equal(harmonics.coefficients(one.nodes, one.masses), c)


@BOTH_DIMENSIONS
def test_no_points(ambient_dim):
    harmonics = scattered_harmonics(ambient_dim, 3)
    none = np.empty((0, ambient_dim))
    c = harmonics.coefficients(none, np.empty(0))
    np.testing.assert_array_equal(c, 0)
    assert c.shape == harmonics.coefficients(np.eye(ambient_dim), np.ones(ambient_dim)).shape
    assert harmonics.value(c, none).shape == (0,)
    assert harmonics.gradient(c, none).shape == (0, ambient_dim)
    assert harmonics.hessian(c, none).shape == (0, ambient_dim, ambient_dim)


@BOTH_DIMENSIONS
@pytest.mark.parametrize("degree", [0, 1])
def test_lowest_degrees(ambient_dim, degree):
    measure = random_measure(5, ambient_dim, seed=1)
    harmonics = scattered_harmonics(ambient_dim, degree)
    c = harmonics.coefficients(measure.nodes, measure.masses)
    mean = measure.masses @ measure.nodes
    x = random_points(4, ambient_dim, seed=2)
    # Degree one of a measure's density is d times its mean vector's component.
    slope = degree * ambient_dim * (x @ mean)
    np.testing.assert_allclose(harmonics.value(c, x), 1 + slope, rtol=0, atol=1e-13)
    projection = np.eye(ambient_dim) - x[:, :, None] * x[:, None, :]
    np.testing.assert_allclose(
        harmonics.gradient(c, x), degree * ambient_dim * projection @ mean, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        harmonics.hessian(c, x), -slope[:, None, None] * projection, rtol=0, atol=1e-13
    )


@BOTH_DIMENSIONS
def test_accuracy_that_is_asked_for_is_reached(ambient_dim):
    measure = random_measure(200, ambient_dim, seed=3)
    exact = exact_coefficients(measure, 20)
    for accuracy in (1e-4, 1e-8, 1e-12):
        harmonics = scattered_harmonics(ambient_dim, 20, accuracy=accuracy)
        error = np.linalg.norm(harmonics.coefficients(measure.nodes, measure.masses) - exact)
        assert error <= 10 * accuracy * np.linalg.norm(exact)


def test_another_dimension_is_refused():
    with pytest.raises(ValueError, match=r"ambient_dim=4: .* need 2 or 3"):
        scattered_harmonics(4, 5)
