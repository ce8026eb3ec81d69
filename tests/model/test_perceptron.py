"""The perceptron's drift, potential and Hessian."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.model.activations import ACTIVATIONS, Activation
from meanfield.model.perceptron import Perceptron
from meanfield.sphere.geometry import exponential_map, project_tangent
from tests.strategies import dimensions, perceptrons, random_points, unit_rows


@pytest.mark.parametrize("name", ACTIVATIONS)
@given(st.data(), dimensions(6))
@settings(max_examples=25)
def test_drift_is_half_the_gradient_of_the_potential(name, data, ambient_dim):
    p = data.draw(perceptrons(ambient_dim, activations=(name,)))
    x = data.draw(unit_rows(2, ambient_dim))
    direction = project_tangent(x, data.draw(unit_rows(2, ambient_dim)))
    step = 1e-5
    ahead, behind = (p.potential(exponential_map(x, t * direction)) for t in (step, -step))
    slope = np.sum(2 * p.drift(x) * direction, axis=1)
    np.testing.assert_allclose((ahead - behind) / (2 * step), slope, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["gelu", "tanh", "identity"])
@given(st.data(), dimensions(6))
@settings(max_examples=25)
def test_hessian_is_that_of_half_the_potential(name, data, ambient_dim):
    p = data.draw(perceptrons(ambient_dim, activations=(name,)))
    x = data.draw(unit_rows(2, ambient_dim))
    direction = project_tangent(x, data.draw(unit_rows(2, ambient_dim)))
    step = 1e-3
    ahead, here, behind = (
        0.5 * p.potential(exponential_map(x, t * direction)) for t in (step, 0, -step)
    )
    hessian = p.hessian(x)
    curvature = np.einsum("ni,nij,nj->n", direction, hessian, direction)
    np.testing.assert_allclose((ahead - 2 * here + behind) / step**2, curvature, atol=1e-4)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", hessian, x), 0, atol=1e-14)


def test_the_hessian_of_relu_away_from_its_kink():
    p = Perceptron([[2.0, 0.0, 0.0]], [1.5], bias=[0.1], activation="relu")
    x = np.array([[0.6, 0.8, 0.0], [-0.6, 0.8, 0.0]])
    # Active: φ = s², ½v = ¾ (2x₁ + 0.1)²; along e₃ only the radial part −x·∇(½v) is left.
    expected = [-0.6 * 1.5 * 2 * (2 * 0.6 + 0.1), 0.0]
    np.testing.assert_allclose(p.hessian(x)[:, 2, 2], expected)


@given(st.data(), dimensions(6))
@settings(max_examples=30)
def test_drift_by_its_definition(data, ambient_dim):
    p = data.draw(perceptrons(ambient_dim, vectors=True))
    x = data.draw(unit_rows(1, ambient_dim))[0]
    total = np.zeros(ambient_dim)
    for a, omega, b in zip(p.a, p.omega, p.bias, strict=True):
        total += omega * p.activation.value(a @ x + b)
    expected = total - (total @ x) * x
    np.testing.assert_allclose(p.drift(x[None])[0], expected, rtol=0, atol=1e-14)


def test_vector_weights_along_a_are_recognised():
    a = random_points(3, 4, seed=1) * [[1.0], [2.0], [0.5]]
    w = np.array([0.3, -1.2, 0.0])
    bias = [0.1, 0.2, 0.3]
    scalars, vectors = (Perceptron(a, weights, bias) for weights in (w, w[:, None] * a))
    np.testing.assert_allclose(vectors.scalar_weights, w, rtol=1e-14)
    x = random_points(5, 4, seed=2)
    np.testing.assert_allclose(vectors.potential(x), scalars.potential(x), rtol=1e-13)
    tilted = w[:, None] * a
    tilted[0] += 1e-9
    assert Perceptron(a, tilted).scalar_weights is None


def test_a_zero_row_moves_nothing_unless_omega_says_so():
    assert Perceptron(np.zeros((1, 2)), [[0.0, 0.0]]).scalar_weights is not None
    constant = Perceptron(np.zeros((1, 2)), [[1.0, 0.0]], bias=[2.0], activation="identity")
    assert constant.scalar_weights is None
    np.testing.assert_allclose(constant.drift(np.array([[0.0, 1.0]])), [[2.0, 0.0]])


def test_what_does_not_exist_is_refused_with_the_reason():
    x = np.eye(2)
    turning = Perceptron(np.eye(2), [[0.0, 1.0], [-1.0, 0.0]])
    for ask in (turning.potential, turning.hessian):
        with pytest.raises(ValueError, match="not all multiples of a_j, so its drift is no grad"):
            ask(x)
    with pytest.raises(ValueError, match="'bare' has no primitive of 2σ"):
        Perceptron(np.eye(2), [1.0, 1.0], activation=Activation("bare", np.sin)).potential(x)
    pair = Perceptron(np.eye(2), [1.0, 1.0], activation=(np.sin, lambda s: -2 * np.cos(s)))
    np.testing.assert_allclose(pair.potential(x), -2 * np.cos(1.0) - 2 * np.cos(0.0))
    with pytest.raises(ValueError, match="activation 'user' has no derivative"):
        pair.hessian(x)


@pytest.mark.parametrize(
    ("a", "w", "bias", "message"),
    [
        ([1.0, 0.0], [1.0], None, r"a has shape \(2,\): expected \(neurons, d\)"),
        ([[1.0], [1.0]], [1.0, 1.0], None, r"a has shape \(2, 1\)"),
        (np.eye(2), [1.0], None, r"w has shape \(1,\): expected \(2,\) or \(2, 2\)"),
        (np.eye(2), np.ones((2, 3)), None, r"w has shape \(2, 3\)"),
        (np.eye(2), [1.0, 1.0], [1.0], r"bias has shape \(1,\): expected \(2,\)"),
        (np.eye(2), [1.0, np.nan], None, "w has an entry that is not finite"),
        ([[np.inf, 0.0]], [1.0], None, "a has an entry that is not finite"),
        (np.eye(2), [1.0, 1.0], [0.0, np.nan], "bias has an entry that is not finite"),
    ],
)
def test_what_does_not_fit_is_refused(a, w, bias, message):
    with pytest.raises(ValueError, match=message):
        Perceptron(a, w, bias)


def test_settings_are_json_and_rebuild_it():
    p = Perceptron(np.eye(2), [1.0, -0.5], [0.1, 0.0], "gelu")
    s = json.loads(json.dumps(p.settings()))
    again = Perceptron(s["a"], s["omega"], s["bias"], s["activation"])
    x = random_points(4, 2, seed=1)
    np.testing.assert_array_equal(again.drift(x), p.drift(x))
