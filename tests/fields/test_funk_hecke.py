"""The fast sum against forty digits, against the direct sum, and its claims of accuracy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.fields.funk_hecke import FunkHeckeSums
from meanfield.model.attention import Attention
from tests.fields.test_direct import check_against_exact, telling_points
from tests.strategies import between, measures, random_measure, random_points, unit_rows

BOTH_DIMENSIONS = pytest.mark.parametrize("ambient_dim", [2, 3])


@pytest.mark.parametrize("amplitude", ["unit", "peak"])
@pytest.mark.parametrize("beta", [1e-6, 4e-5, 3e-3, 0.7, 12.0, 300.0])
@BOTH_DIMENSIONS
def test_sums_are_exact(ambient_dim, beta, amplitude):
    measure = random_measure(4, ambient_dim, seed=ambient_dim)
    points = telling_points(measure, beta, seed=23)
    check_against_exact(Attention(beta, amplitude), measure, points, "funk_hecke")


@pytest.mark.parametrize(("ambient_dim", "beta"), [(2, 5e3), (2, 1e5), (3, 5e3), (3, 1e4)])
def test_sums_are_exact_for_sharp_kernels(ambient_dim, beta):
    measure = random_measure(4, ambient_dim, seed=3)
    points = telling_points(measure, beta, seed=5)
    check_against_exact(Attention(beta, "peak"), measure, points, "funk_hecke")


@given(st.data(), st.sampled_from([2, 3]), between(0.01, 200.0))
@settings(max_examples=60)
def test_agrees_with_the_direct_sum(data, ambient_dim, beta):
    measure = data.draw(measures(ambient_dim))
    x = data.draw(unit_rows(3, ambient_dim))
    attention = Attention(beta, "peak")
    direct, fast = (
        mf.field(mf.Model(attention), measure, method=method)
        for method in ("direct", "funk_hecke")
    )
    value = direct.first_variation(x)
    np.testing.assert_allclose(fast.first_variation(x), value, rtol=1e-11)
    # Derivatives vanish at places; what they come from does not.
    total = beta * value
    error = np.linalg.norm(fast.gradient(x) - direct.gradient(x), axis=1)
    assert np.all(error <= 1e-11 * total)
    error = np.linalg.norm(fast.hessian(x) - direct.hessian(x), axis=(1, 2))
    assert np.all(error <= 1e-11 * max(1, beta) * total)
    assert fast.energy() == pytest.approx(direct.energy(), rel=1e-11)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("beta", [0.05, 4.0, 150.0])
@BOTH_DIMENSIONS
def test_errors_stay_within_the_bound_and_the_tolerance(ambient_dim, beta, tolerance):
    measure = random_measure(30, ambient_dim, seed=4)
    x = random_points(200, ambient_dim, seed=5)
    attention = Attention(beta, "peak")
    exact = mf.field(mf.Model(attention), measure, method="direct").first_variation(x)
    for pointwise in (True, False):
        fast = mf.field(
            mf.Model(attention), measure, "funk_hecke", tolerance=tolerance, pointwise=pointwise
        )
        error = np.abs(fast.first_variation(x) - exact)
        largest = 1 / beta
        assert np.all(error <= fast.error_bound * largest)
        if pointwise:
            assert np.all(error <= tolerance * exact)
        # A bound that says nothing would hold, too.
        assert fast.error_bound <= max(tolerance, 2e-13)


@BOTH_DIMENSIONS
def test_a_looser_tolerance_needs_a_lower_degree(ambient_dim):
    measure = random_measure(5, ambient_dim, seed=1)
    degrees = [
        FunkHeckeSums(Attention(50.0), measure, tolerance).degree
        for tolerance in (1e-12, 1e-8, 1e-4)
    ]
    assert degrees == sorted(degrees, reverse=True)
    assert len(set(degrees)) == 3


@BOTH_DIMENSIONS
def test_tiny_sums_are_right_pointwise(ambient_dim):
    """Opposite the only nodes the kernel is e^{-2β} of its peak, far below what a series gives."""
    nodes = np.eye(ambient_dim)[[0, 0]] + 0.01 * random_points(2, ambient_dim, seed=2)
    nodes /= np.linalg.norm(nodes, axis=1)[:, None]
    measure = mf.Measure(nodes, [0.5, 0.5])
    x = np.concatenate([-nodes, nodes, random_points(5, ambient_dim, seed=1)])
    model = mf.Model(Attention(60.0, "peak", normalisation="softmax"))
    direct, fast = (mf.field(model, measure, method=m) for m in ("direct", "funk_hecke"))
    np.testing.assert_allclose(fast.first_variation(x), direct.first_variation(x), rtol=1e-11)
    np.testing.assert_allclose(fast.velocity(x), direct.velocity(x), rtol=0, atol=1e-11)


def test_what_it_cannot_do_is_said():
    circle, space = random_measure(3, 2, seed=1), random_measure(3, 4, seed=1)
    with pytest.raises(ValueError, match=r"isotropic kernel.*use 'direct'"):
        mf.field(mf.Model(Attention(1.0, B=np.eye(2))), circle, method="funk_hecke")
    with pytest.raises(ValueError, match="d = 2 or 3, not 4; use 'direct'"):
        mf.field(mf.Model(Attention(1.0)), space, method="funk_hecke")
