"""The direct sum against forty digits, and what it must do at the edges."""

import mpmath as mp
import numpy as np
import pytest

import meanfield as mf
from meanfield.model.attention import Attention
from tests.fields.exact_sums import ExactField, largest_error, peak_amplitude
from tests.strategies import random_measure, random_points

EPSILON = np.finfo(float).eps


def telling_points(measure, beta, seed):
    """Random ones, a node, an antipode, two poles, one as close to a node as the kernel is wide."""
    nodes, d = measure.nodes, measure.ambient_dim
    near = nodes[-1] + random_points(1, d, seed)[0] / np.sqrt(1 + beta)
    points = [*random_points(2, d, seed + 1), nodes[0], -nodes[1 % len(nodes)], near]
    points = np.array([*points, np.eye(d)[-1], -np.eye(d)[-1]])
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def exact_field(attention, measure):
    amplitude = attention.amplitude
    if amplitude == "unit":
        amplitude = 1
    elif amplitude == "peak":
        norm = 1
        if attention.B is not None:
            norm = max(mp.svd_r(mp.matrix(attention.B.tolist()), compute_uv=False))
        amplitude = peak_amplitude(attention.beta * norm)
    return ExactField(attention.beta, amplitude, measure.nodes, measure.masses, attention.B)


def check_against_exact(attention, measure, points, method, tolerance=1e-12):
    """Everything at every point to `tolerance`, apart from what rounding cancels."""
    exact = exact_field(attention, measure)
    model = mf.Model(attention)
    softmax = mf.Model(
        Attention(attention.beta, attention.amplitude, normalisation="softmax", B=attention.B)
    )
    f = mf.field(model, measure, method=method)
    gradient, hessian = f.attention_gradient(points), None
    direction = mf.field(softmax, measure, method=method).velocity(points)
    if attention.is_symmetric:
        first_variation, hessian = f.first_variation(points), f.hessian(points)
        error, size = largest_error(f.energy(), exact.energy())
        assert error <= tolerance * size
    for i, x in enumerate(points):
        total = exact.kernel_sum(x)
        error, size = largest_error(direction[i], exact.softmax_direction(x))
        # Sums of vectors cancel when they are projected: at a node, all but nothing is left.
        rounding = 100 * EPSILON * np.linalg.norm(exact.keys[0])
        assert error <= tolerance * size + rounding
        if not 1e-290 < total < 1e300:
            continue
        error, size = largest_error(gradient[i], exact.gradient(x))
        assert error <= tolerance * size + rounding * total
        if hessian is None:
            continue
        error, size = largest_error(first_variation[i], exact.first_variation(x))
        assert error <= tolerance * size
        error, size = largest_error(hessian[i], exact.hessian(x))
        assert error <= tolerance * size + rounding * max(1, attention.beta) * total


@pytest.mark.parametrize("amplitude", ["unit", "peak", 0.3])
@pytest.mark.parametrize("beta", [1e-6, 1e-3, 0.7, 12.0, 300.0])
@pytest.mark.parametrize("ambient_dim", [2, 3, 5, 20])
def test_sums_are_exact(ambient_dim, beta, amplitude):
    measure = random_measure(4, ambient_dim, seed=ambient_dim)
    points = telling_points(measure, beta, seed=17)
    check_against_exact(Attention(beta, amplitude), measure, points, "direct")


@pytest.mark.parametrize("beta", [1e3, 1e4, 1e5])
@pytest.mark.parametrize("ambient_dim", [2, 3, 8])
def test_sums_are_exact_for_sharp_kernels(ambient_dim, beta):
    measure = random_measure(4, ambient_dim, seed=3)
    points = telling_points(measure, beta, seed=5)
    check_against_exact(Attention(beta, "peak"), measure, points, "direct")


@pytest.mark.parametrize("amplitude", ["unit", "peak", 2.0])
@pytest.mark.parametrize("beta", [1e-6, 0.4, 30.0])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("ambient_dim", [2, 4])
def test_sums_with_a_matrix_are_exact(ambient_dim, symmetric, beta, amplitude):
    B = np.random.default_rng(ambient_dim).normal(size=(ambient_dim, ambient_dim))
    if symmetric:
        B = B + B.T
    measure = random_measure(4, ambient_dim, seed=8)
    points = telling_points(measure, beta, seed=9)
    check_against_exact(Attention(beta, amplitude, B=B), measure, points, "direct")


def test_blocks_of_points_and_nodes_leave_no_trace():
    """More nodes and points than a block holds, against the sum written in one line."""
    measure, points = random_measure(2500, 4, seed=1), random_points(150, 4, seed=2)
    beta = 7.0
    kernel = measure.masses * np.exp(beta * (points @ measure.nodes.T - 1))
    f = mf.field(mf.Model(Attention(beta, "peak")), measure, method="direct")
    np.testing.assert_allclose(f.first_variation(points), kernel.sum(axis=1) / beta, rtol=1e-13)
    vector = kernel @ measure.nodes
    tangent = vector - np.sum(vector * points, axis=1)[:, None] * points
    np.testing.assert_allclose(f.attention_gradient(points), tangent, rtol=0, atol=1e-14)


def test_threads_change_nothing(monkeypatch):
    measure, points = random_measure(300, 3, seed=1), random_points(300, 3, seed=2)
    model = mf.Model(Attention(20.0))
    results = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results.append(mf.field(model, measure, method="direct").hessian(points))
    np.testing.assert_array_equal(*results)


def test_nodes_without_mass_count_for_nothing():
    nodes = random_points(5, 3, seed=1)
    masses = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    # The point sits on a massless node, far from all others: its scale must not come from there.
    point = nodes[:1]
    model = mf.Model(Attention(1e4, "peak", normalisation="softmax"))
    whole = mf.field(model, mf.Measure(nodes, masses), method="direct")
    part = mf.field(model, mf.Measure(nodes[[1, 3]], masses[[1, 3]]), method="direct")
    np.testing.assert_array_equal(whole.velocity(point), part.velocity(point))
    assert np.linalg.norm(whole.velocity(point)) > 0.1
