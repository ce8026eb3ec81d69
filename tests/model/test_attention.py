"""Attention's parameters and the scale that is carried apart."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.model.attention import Attention, KernelSums
from tests.strategies import between

B = np.array([[2.0, 1.0], [0.0, -1.0]])


@pytest.mark.parametrize(
    ("amplitude", "log_peak"), [("unit", 3.0), ("peak", 0.0), (5.0, 3.0 + np.log(5.0))]
)
def test_logarithm_of_the_kernels_peak(amplitude, log_peak):
    assert Attention(3.0, amplitude).log_peak == pytest.approx(log_peak, rel=1e-15)


def test_the_peak_with_a_matrix_is_its_norm():
    attention = Attention(3.0, "unit", B=B)
    angles = np.linspace(0, 2 * np.pi, 721)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert attention.peak_exponent == pytest.approx(3.0 * (x @ B @ x.T).max(), rel=1e-4)
    assert attention.log_peak == attention.peak_exponent
    assert Attention(3.0, "peak", B=B).log_peak == 0


@given(between(1e-6, 1e5), st.sampled_from(["unit", "peak", 2.5]), st.integers(-1, 1))
def test_scaling_is_multiplication_where_that_is_representable(beta, amplitude, power):
    attention = Attention(beta, amplitude)
    # Sums as far below the peak as brings them to the size of one.
    values = np.array([0.5, -2.0])
    log_scale = np.array([-attention.log_peak, 1.0 - attention.log_peak])
    expected = values * np.exp([0.0, 1.0]) * beta**power
    np.testing.assert_allclose(attention.scale(values, log_scale, power), expected, rtol=1e-10)
    vectors = values[:, None] * [[1.0, 2.0, 3.0]]
    scaled = attention.scale(vectors, log_scale, power)
    np.testing.assert_allclose(scaled, expected[:, None] * [[1.0, 2.0, 3.0]], rtol=1e-10)


def test_scaling_reaches_the_ends_of_the_doubles():
    attention = Attention(1e5)
    tiny, large = np.array([1e-300]), np.array([1.0])
    np.testing.assert_allclose(attention.scale(tiny, 1380.0 - 1e5), [np.exp(1380 - 690.7755278982)])
    assert attention.scale(large, -800.0 - 1e5)[0] == 0.0
    assert attention.scale(large, -744.0 - 1e5)[0] > 0.0
    with pytest.raises(OverflowError, match=r"beta=100000 .*'unit'.*use amplitude='peak'"):
        attention.scale(large, 710.0 - 1e5)
    # One over the end by its power of β alone.
    assert np.isfinite(attention.scale(large, 705.0 - 1e5)[0])
    with pytest.raises(OverflowError):
        attention.scale(large, 705.0 - 1e5, power_of_beta=1)


def test_zero_times_any_scale_is_zero():
    attention = Attention(1e5)
    np.testing.assert_array_equal(attention.scale(np.zeros(2), np.zeros(2)), 0)
    mixed = attention.scale(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0.0, -1e5]))
    np.testing.assert_array_equal(mixed, [[0.0, 0.0], [1.0, 0.0]])


def test_keys():
    nodes = np.eye(2)
    assert Attention(1.0).keys(nodes) is nodes
    np.testing.assert_array_equal(Attention(1.0, B=B).keys(nodes), B.T)


def test_symmetry():
    assert Attention(1.0).is_symmetric
    assert Attention(1.0, B=B + B.T).is_symmetric
    assert not Attention(1.0, B=B).is_symmetric
    rounding = np.array([[0.0, 1e-17], [0.0, 0.0]])
    assert Attention(1.0, B=np.eye(2) + rounding).is_symmetric


def test_the_matrix_is_the_attentions_own():
    mine = B.copy()
    attention = Attention(1.0, B=mine)
    mine[:] = 0
    np.testing.assert_array_equal(attention.B, B)


def test_rows_of_sums():
    sums = KernelSums(np.arange(3.0), np.arange(3.0), np.ones((3, 2)))
    part = sums.rows(slice(1, 3))
    np.testing.assert_array_equal(part.value, [1, 2])
    np.testing.assert_array_equal(part.log_scale, [1, 2])
    assert part.gradient.shape == (2, 2)
    assert part.hessian is None
    assert KernelSums(0.5).rows(slice(1, 3)).log_scale == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, "beta=0.0: expected a finite number > 0"),
        ({"beta": -2}, "beta=-2: expected"),
        ({"beta": np.nan}, "beta=nan: expected"),
        ({"beta": np.inf}, "beta=inf: expected"),
        ({"beta": None}, "beta=None: expected"),
        ({"amplitude": "large"}, "amplitude='large': expected 'unit', 'peak' or a number > 0"),
        ({"amplitude": -1.0}, "amplitude=-1.0: expected a finite number > 0"),
        ({"normalisation": "l2"}, "normalisation='l2': expected 'none' or 'softmax'"),
        ({"prefactor": 2.0}, "prefactor applies to normalisation='softmax' only"),
        ({"prefactor": 0.0, "normalisation": "softmax"}, "prefactor=0.0: expected"),
        ({"B": [1.0, 2.0]}, r"B has shape \(2,\): expected a square matrix"),
        ({"B": np.ones((2, 3))}, r"B has shape \(2, 3\): expected a square matrix"),
        ({"B": [[1.0, np.nan], [0.0, 1.0]]}, "B has an entry that is not finite"),
    ],
)
def test_what_is_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Attention(**{"beta": 1.0, **options})


def test_settings_are_json():
    settings = Attention(2.0, "peak", "softmax", prefactor=2.0, B=B).settings()
    assert json.loads(json.dumps(settings)) == {
        "beta": 2.0, "amplitude": "peak", "normalisation": "softmax", "prefactor": 2.0,
        "B": B.tolist(),
    }
    assert Attention(2.0, 0.5).settings()["prefactor"] is None
