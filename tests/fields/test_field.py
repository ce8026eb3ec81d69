"""Fields: reference values by both evaluators, the laws they obey, and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.sphere.geometry import circle_points, exponential_map, normalise, project_tangent
from tests.strategies import (
    between,
    dimensions,
    measures,
    perceptrons,
    random_measure,
    random_points,
    rotations,
    unit_rows,
)

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "fields.json").read_text())
STATIONARY = json.loads((Path(__file__).parent.parent / "data" / "stationary.json").read_text())
CASES = [
    pytest.param(case, method, id=f"d{case['ambient_dim']}-beta{case['beta']:g}-{method}")
    for case in REFERENCE["fields"]
    for method in ("direct", "funk_hecke")
    if method == "direct" or case["ambient_dim"] <= 3
]
SMOOTH = ("gelu", "tanh", "identity")


def assert_relative(computed, text, tolerance=1e-12):
    """Within a relative error, of the norm for vectors, where the value is representable."""
    exact = np.array(text, dtype=float)
    size = np.abs(exact).max()
    if size == 0 or size > 1e-300:
        assert np.abs(computed - exact).max() <= tolerance * size


@pytest.mark.parametrize(("case", "method"), CASES)
def test_reference_values(case, method):
    perceptron = mf.Perceptron(case["a"], case["w"], bias=case["b"], activation=case["activation"])
    attention = mf.Attention(case["beta"], case["amplitude"])
    measure, x = mf.Measure(case["nodes"], case["masses"]), np.array([case["x"]])
    f = mf.field(mf.Model(attention, perceptron), measure, method=method)
    assert f.method == method
    assert_relative(f.first_variation(x)[0], case["H"])
    assert_relative(f.attention_gradient(x)[0], case["attention_gradient"])
    assert_relative(f.energy(), case["energy"])
    assert_relative(perceptron.drift(x)[0], case["drift"])
    softmax = mf.Attention(case["beta"], case["amplitude"], normalisation="softmax")
    direction = mf.field(mf.Model(softmax), measure, method=method).velocity(x)[0]
    assert_relative(direction, case["softmax_direction"])


@pytest.mark.parametrize("case", STATIONARY["minimisers"] + STATIONARY["stationary"])
def test_polished_stationary_measures_are_stationary(case):
    nodes = circle_points(np.array(case["angles"], dtype=float))
    masses = np.array(case["masses"], dtype=float)
    model = mf.Model(
        mf.Attention(case["beta"], case["amplitude"]),
        mf.Perceptron(case["a"], case["w"], activation=case["activation"]),
        case.get("direction", "descent"),
    )
    measure = mf.Measure(nodes, masses)
    f = mf.field(model, measure)
    size = np.abs(f.attention_gradient(circle_points(np.linspace(0, 6, 50)))).max()
    assert np.abs(f.velocity(nodes)).max() <= 1e-13 * max(1, size)
    assert_relative(f.energy(), case["energy"])
    if "first_variation_minimum" in case:
        lowest = float(case["first_variation_minimum"])
        np.testing.assert_allclose(f.first_variation(nodes), lowest, rtol=1e-13)
        assert f.first_variation(circle_points(np.linspace(0, 7, 500))).min() > lowest - 1e-13
    if "second_derivative_of_H_at_atoms" in case:
        # The Hessian's trace is the second derivative along the circle.
        curvature = np.trace(f.hessian(nodes), axis1=1, axis2=2)
        assert_relative(curvature, case["second_derivative_of_H_at_atoms"], 1e-11)


@given(st.data(), dimensions(6), between(0.05, 50.0))
@settings(max_examples=40)
def test_rotating_all_rotates_the_field(data, ambient_dim, beta):
    measure, x = data.draw(measures(ambient_dim)), data.draw(unit_rows(3, ambient_dim))
    p = data.draw(perceptrons(ambient_dim, vectors=True))
    Q = data.draw(rotations(ambient_dim))
    softmax = data.draw(st.sampled_from(["none", "softmax"]))
    attention = mf.Attention(beta, "peak", softmax)
    turned = mf.Perceptron(p.a @ Q.T, p.omega @ Q.T, p.bias, p.activation)
    here = mf.field(mf.Model(attention, p), measure)
    there = mf.field(mf.Model(attention, turned), measure.moved(normalise(measure.nodes @ Q.T)))
    moved = there.velocity(normalise(x @ Q.T))
    # A relu's kink and softmax's exponents feel the rounding of the rotation.
    np.testing.assert_allclose(moved, here.velocity(x) @ Q.T, atol=1e-12 * (10 + beta))


@pytest.mark.parametrize("method", ["direct", "funk_hecke"])
@given(st.data(), st.integers(2, 3), between(0.05, 50.0), st.floats(0.0, 1.0))
@settings(max_examples=30)
def test_splitting_a_node_changes_nothing(method, data, ambient_dim, beta, share):
    measure, x = data.draw(measures(ambient_dim)), data.draw(unit_rows(3, ambient_dim))
    nodes, masses = measure.nodes, measure.masses
    pieces = np.append(masses, (1 - share) * masses[0])
    pieces[0] *= share
    split = mf.Measure(np.concatenate([nodes, nodes[:1]]), pieces)
    for normalisation in ("none", "softmax"):
        model = mf.Model(mf.Attention(beta, "peak", normalisation))
        one, other = (mf.field(model, m, method=method) for m in (measure, split))
        np.testing.assert_allclose(one.velocity(x), other.velocity(x), rtol=0, atol=1e-12)
        np.testing.assert_allclose(one.first_variation(x), other.first_variation(x), rtol=1e-11)
        assert one.energy() == pytest.approx(other.energy(), rel=1e-11)


@pytest.mark.parametrize("method", ["direct", "funk_hecke"])
@given(st.data(), st.integers(2, 3), between(0.05, 20.0))
@settings(max_examples=30)
def test_gradient_and_hessian_are_derivatives_along_geodesics(method, data, ambient_dim, beta):
    measure, x = data.draw(measures(ambient_dim)), data.draw(unit_rows(1, ambient_dim))
    p = data.draw(perceptrons(ambient_dim, activations=SMOOTH))
    f = mf.field(mf.Model(mf.Attention(beta, "peak"), p), measure, method=method)
    direction = project_tangent(x, data.draw(unit_rows(1, ambient_dim)))
    step = 1e-3
    offsets = step * np.arange(-2, 3)[:, None]
    line = f.first_variation(exponential_map(np.repeat(x, 5, axis=0), offsets * direction))
    slope = np.array([1, -8, 0, 8, -1]) @ line / (12 * step)
    curvature = np.array([-1, 16, -30, 16, -1]) @ line / (12 * step**2)
    assert slope == pytest.approx(np.sum(f.gradient(x) * direction), abs=1e-8)
    hessian = f.hessian(x)[0]
    assert curvature == pytest.approx(direction[0] @ hessian @ direction[0], abs=1e-7)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(hessian @ x[0], 0, atol=1e-12)
    np.testing.assert_allclose(np.sum(f.velocity(x) * x), 0, atol=1e-14)


@pytest.mark.parametrize("B", [None, [[1.0, 0.4, 0.0], [0.4, -0.3, 0.2], [0.0, 0.2, 0.7]]])
def test_derivatives_with_many_nodes_and_with_a_matrix(B):
    measure, x = random_measure(40, 3, seed=1), random_points(6, 3, seed=2)
    f = mf.field(mf.Model(mf.Attention(3.0, B=B)), measure, method="direct")
    direction = project_tangent(x, random_points(6, 3, seed=3))
    step = 1e-3
    before, here, after = (
        f.first_variation(exponential_map(x, t * direction)) for t in (-step, 0, step)
    )
    slope = np.sum(f.gradient(x) * direction, axis=1)
    np.testing.assert_allclose((after - before) / (2 * step), slope, rtol=1e-4, atol=1e-4)
    curvature = np.einsum("ni,nij,nj->n", direction, f.hessian(x), direction)
    second = (after - 2 * here + before) / step**2
    np.testing.assert_allclose(second, curvature, rtol=1e-4, atol=1e-4)


@given(st.data(), dimensions(5), between(0.05, 20.0))
@settings(max_examples=30)
def test_first_variation_is_the_derivative_of_the_energy_in_the_masses(data, ambient_dim, beta):
    """E is quadratic in μ, so E(ν) − E(μ) = ∫ H dν − ∫ H dμ + E_att(ν − μ) exactly."""
    measure = data.draw(measures(ambient_dim))
    p = data.draw(perceptrons(ambient_dim))
    model = mf.Model(mf.Attention(beta, "peak"), p)
    moved_mass = np.roll(measure.masses, 1)
    H = mf.field(model, measure).first_variation(measure.nodes)
    step = 1e-4
    mixed = [
        mf.energy(model, mf.Measure(measure.nodes, (1 - t) * measure.masses + t * moved_mass))
        for t in (0.0, step, 2 * step)
    ]
    slope = (-3 * mixed[0] + 4 * mixed[1] - mixed[2]) / (2 * step)
    size = 1 + np.abs(H).max()
    assert slope == pytest.approx(H @ (moved_mass - measure.masses), abs=1e-9 * size)


@given(st.data(), dimensions(5), between(0.05, 20.0))
@settings(max_examples=30)
def test_energy_changes_with_the_nodes_as_the_gradient_says(data, ambient_dim, beta):
    measure = data.draw(measures(ambient_dim))
    p = data.draw(perceptrons(ambient_dim, activations=SMOOTH))
    for direction in ("ascent", "descent"):
        model = mf.Model(mf.Attention(beta, "peak"), p, direction)
        velocity = mf.field(model, measure).velocity(measure.nodes)
        step = 1e-4 / (1 + np.abs(velocity).max())
        energies = [
            mf.energy(model, measure.moved(exponential_map(measure.nodes, t * step * velocity)))
            for t in (-1, 1)
        ]
        rate = (energies[1] - energies[0]) / (2 * step)
        power = measure.masses @ np.sum(velocity**2, axis=1)
        assert rate == pytest.approx(model.sign * power, rel=1e-5, abs=1e-7)


def test_direction_normalisation_and_prefactor_in_the_velocity():
    measure, x = random_measure(6, 4, seed=1), random_points(5, 4, seed=2)
    p = mf.Perceptron(random_points(2, 4, seed=3), [0.3, -0.7], activation="tanh")
    attention = mf.Attention(2.0, "peak")
    field = mf.field(mf.Model(attention, p), measure)
    gradient = field.attention_gradient(x) + p.drift(x)
    np.testing.assert_allclose(field.gradient(x), gradient, rtol=1e-14)
    for direction, sign in (("ascent", 1), ("descent", -1)):
        velocity = mf.field(mf.Model(attention, p, direction), measure).velocity(x)
        np.testing.assert_allclose(velocity, sign * gradient, rtol=0, atol=1e-15)
    # H_att = (s/β) ∫ k dμ, so the softmax average is ∇H_att / (β H_att).
    average = field.attention_gradient(x)
    average = average / (2.0 * mf.field(mf.Model(attention), measure).first_variation(x))[:, None]
    for prefactor in (None, 2.0):
        softmax = mf.Attention(2.0, normalisation="softmax", prefactor=prefactor)
        velocity = mf.field(mf.Model(softmax, p), measure).velocity(x)
        expected = (prefactor or 1.0) * average + p.drift(x)
        np.testing.assert_allclose(velocity, expected, rtol=0, atol=1e-14)


def test_without_attention_the_field_is_the_perceptron():
    measure, x = random_measure(6, 3, seed=1), random_points(5, 3, seed=2)
    p = mf.Perceptron(random_points(2, 3, seed=3), [0.3, -0.7], activation="tanh")
    f = mf.field(mf.Model(None, p, "descent"), measure)
    assert f.method == "none"
    np.testing.assert_allclose(f.velocity(x), -p.drift(x), rtol=0, atol=1e-16)
    np.testing.assert_allclose(f.first_variation(x), 0.5 * p.potential(x))
    np.testing.assert_allclose(f.hessian(x), p.hessian(x))
    np.testing.assert_array_equal(f.attention_gradient(x), np.zeros((5, 3)))
    assert f.energy() == pytest.approx(0.5 * measure.masses @ p.potential(measure.nodes))


def test_auto_takes_the_cheaper_and_says_why():
    few, many = random_measure(5, 3, seed=1), random_measure(20_000, 3, seed=1)
    model = mf.Model(mf.Attention(5.0))
    assert mf.field(model, few).method == "direct"
    fast = mf.field(model, many)
    assert fast.method == "funk_hecke"
    assert "20000 nodes" in fast.reason and "degree" in fast.reason
    # Many nodes but a point or two to look at.
    assert mf.field(model, many, targets=1).method == "direct"
    in_space = mf.field(model, random_measure(5, 4, seed=1))
    assert in_space.method == "direct" and "not 4" in in_space.reason


OMEGA = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("attention", "perceptron", "reason"),
    [
        (mf.Attention(1.0, B=[[1.0, 0.5], [0.0, 1.0]]), None, "B is not symmetric"),
        (None, mf.Perceptron(np.eye(2), OMEGA), "not all multiples of a_j"),
        (mf.Attention(1.0, normalisation="softmax"), mf.Perceptron(np.eye(2), [1.0, 1.0]),
         r"softmax .*\[L, eq. \(2.10\)\]"),
    ],
)
def test_energies_that_do_not_exist_are_refused_with_the_reason(attention, perceptron, reason):
    measure = mf.Measure(np.eye(2), [0.5, 0.5])
    model = mf.Model(attention, perceptron)
    f = mf.field(model, measure)
    for ask in (f.first_variation, f.gradient, f.hessian):
        with pytest.raises(ValueError, match=reason):
            ask(measure.nodes)
    with pytest.raises(ValueError, match=f"no energy: .*{reason}"):
        mf.energy(model, measure)
    assert np.all(np.isfinite(f.velocity(measure.nodes)))


@pytest.mark.parametrize("method", ["direct", "funk_hecke"])
def test_values_beyond_doubles_are_an_error_not_infinity(method):
    atom = mf.Measure([[1.0, 0.0, 0.0]], [1.0])
    f = mf.field(mf.Model(mf.Attention(2000.0)), atom, method=method)
    with pytest.raises(OverflowError, match="use amplitude='peak'"):
        f.first_variation(atom.nodes)
    with pytest.raises(OverflowError, match="beta=2000 with amplitude='unit'"):
        f.energy()
    # Elsewhere the same field is representable: exp(2000 · 0)/2000.
    pole = np.array([[0.0, 0.0, 1.0]])
    assert f.first_variation(pole)[0] == pytest.approx(1 / 2000, rel=1e-12)
    assert f.first_variation(-atom.nodes)[0] == 0.0
    np.testing.assert_array_equal(f.attention_gradient(-atom.nodes), np.zeros((1, 3)))


def test_a_gradient_that_vanishes_is_zero_at_any_amplitude():
    atom = mf.Measure([[1.0, 0.0, 0.0]], [1.0])
    f = mf.field(mf.Model(mf.Attention(1e5)), atom)
    np.testing.assert_array_equal(f.attention_gradient(atom.nodes), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "fast"}, "method='fast': expected one of auto, direct, funk_hecke"),
        ({"tolerance": 1e-15}, "tolerance=1e-15: expected between"),
        ({"tolerance": 0.1}, "tolerance=0.1: expected between"),
        ({"tolerance": np.nan}, "tolerance=nan: expected between"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mf.field(mf.Model(mf.Attention(1.0)), random_measure(3, 3, seed=1), **options)


@pytest.mark.parametrize("dimension", [2, 4])
def test_another_dimension_is_refused(dimension):
    perceptron = mf.Perceptron(random_points(1, dimension, seed=1), [1.0])
    with pytest.raises(ValueError, match=rf"R\^{dimension} but the measure's nodes in R\^3"):
        mf.field(mf.Model(None, perceptron), random_measure(3, 3, seed=1))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 0.0], r"x has shape \(2,\): expected \(n, 2\)"),
        ([[1.0, 0.0, 0.0]], r"x has shape \(1, 3\): expected \(n, 2\)"),
        ([[1.0, 0.0], [1.0, 1.0]], r"row of x 1 = \[1. 1.\] has length 1.414"),
        ([[np.nan, 0.0]], "row of x 0 .* has length nan"),
    ],
)
@pytest.mark.parametrize("ask", ["first_variation", "attention_gradient", "gradient", "velocity",
                                 "hessian"])
def test_points_off_the_sphere_are_refused(ask, x, message):
    f = mf.field(mf.Model(mf.Attention(1.0)), mf.Measure(np.eye(2), [0.5, 0.5]))
    with pytest.raises(ValueError, match=message):
        getattr(f, ask)(x)


def test_no_points_are_fine():
    for d in (2, 3, 4):
        f = mf.field(mf.Model(mf.Attention(1.0)), random_measure(3, d, seed=1))
        assert f.velocity(np.empty((0, d))).shape == (0, d)
        assert f.hessian(np.empty((0, d))).shape == (0, d, d)
        assert f.first_variation(np.empty((0, d))).shape == (0,)


@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_moments_of_an_atom_obey_the_addition_theorem(ambient_dim):
    from meanfield.sphere.funk_hecke import multiplicities
    from meanfield.sphere.harmonics import scattered_harmonics

    atom = mf.Measure(random_points(1, ambient_dim, seed=4), [1.0])
    power = scattered_harmonics(ambient_dim, 12).power(mf.moments(atom, 12))
    np.testing.assert_allclose(power, multiplicities(ambient_dim, 12), rtol=1e-12)
    with pytest.raises(ValueError, match="degree=-1"):
        mf.moments(atom, -1)


def test_moments_need_a_circle_or_a_sphere():
    with pytest.raises(ValueError, match="ambient_dim=4"):
        mf.moments(random_measure(3, 4, seed=1), 2)
