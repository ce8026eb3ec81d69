"""Activations: each is checked against many digits, and its companions against itself."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from meanfield.model.activations import ACTIVATIONS, Activation, activation, leaky_relu

EXACT = {
    "relu": lambda s: max(s, mp.mpf(0)),
    "leaky_relu": lambda s: s if s > 0 else mp.mpf(0.01) * s,
    "gelu": lambda s: s * mp.ncdf(s),
    "tanh": mp.tanh,
    "identity": lambda s: s,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@given(s=st.floats(-30, 30))
def test_value(name, s):
    exact = float(EXACT[name](mp.mpf(s)))
    assert float(ACTIVATIONS[name].value(np.float64(s))) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("low", "high"), [(-3.0, -1.0), (-1.0, 0.4), (0.4, 5.0), (0.0, 25.0)])
def test_primitive_is_the_integral_of_twice_the_value(name, low, high):
    primitive = ACTIVATIONS[name].primitive
    corner = [0] if low < 0 < high else []
    exact = mp.quad(lambda s: 2 * EXACT[name](s), [low, *corner, high])
    found = float(primitive(np.float64(high)) - primitive(np.float64(low)))
    assert found == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_primitives_start_at_zero(name):
    assert float(ACTIVATIONS[name].primitive(np.float64(0))) == 0


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("s", [-7.0, -1.3, -0.2, 0.3, 1.4142, 6.0])
def test_derivative(name, s):
    exact = float(mp.diff(EXACT[name], mp.mpf(s)))
    found = float(ACTIVATIONS[name].derivative(np.float64(s)))
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_gelu_is_twelve_percent_steeper_than_one():
    gelu = ACTIVATIONS["gelu"]
    assert gelu.lipschitz == pytest.approx(1.1289, abs=1e-4)
    slopes = gelu.derivative(np.linspace(-5, 5, 100_001))
    assert slopes.max() == pytest.approx(gelu.lipschitz, abs=1e-9)
    assert slopes.max() <= gelu.lipschitz


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_lipschitz_constants_are_reached_and_never_exceeded(name):
    s = np.linspace(-4, 4, 20_001)
    steepest = np.abs(np.diff(ACTIVATIONS[name].value(s)) / np.diff(s)).max()
    assert steepest == pytest.approx(ACTIVATIONS[name].lipschitz, rel=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_large_arguments_do_not_overflow(name):
    s = np.array([-1e150, -1e3, 1e3, 1e150])
    with np.errstate(over="raise", invalid="raise"):
        for function in (ACTIVATIONS[name].value, ACTIVATIONS[name].primitive):
            assert np.all(np.isfinite(function(s)))


def test_leaky_slopes():
    assert leaky_relu().name == "leaky_relu"
    steep = leaky_relu(-2.0)
    assert steep.name == "leaky_relu(-2)"
    assert steep.lipschitz == 2.0
    np.testing.assert_array_equal(steep.value(np.array([-1.0, 1.0])), [2.0, 1.0])
    with pytest.raises(ValueError, match="slope=nan: expected a finite number"):
        leaky_relu(np.nan)


def test_which_are_analytic():
    analytic = {name for name, one in ACTIVATIONS.items() if one.analytic}
    assert analytic == {"gelu", "tanh", "identity"}


def test_choices():
    assert activation("relu") is ACTIVATIONS["relu"]
    own = Activation("own", np.sin)
    assert activation(own) is own
    pair = activation((np.sin, lambda s: -2 * np.cos(s)))
    assert (pair.name, pair.derivative) == ("user", None)
    triple = activation((np.sin, lambda s: -2 * np.cos(s), np.cos))
    assert triple.derivative is np.cos


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("swish", "activation='swish': expected one of relu, leaky_relu, gelu, tanh, identity"),
        (3, "activation=3: expected a name"),
        ((np.sin,), "expected a name"),
        # The primitive of σ in place of that of 2σ.
        ((np.sin, lambda s: -np.cos(s)), "expected φ' = 2σ"),
        # GeLU's primitive without −Φ, as in a published script.
        ((ACTIVATIONS["gelu"].value,
          lambda s: ACTIVATIONS["gelu"].primitive(s) + ndtr(s)), "expected φ' = 2σ"),
    ],
)
def test_wrong_choices_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        activation(choice)
