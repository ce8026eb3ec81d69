"""The model that a driver's options describe."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.model.options import MODEL_OPTIONS, model_from_options

DEFAULTS = {option.name: option.default for option in MODEL_OPTIONS}


def model(ambient_dim=2, **options):
    return model_from_options(SimpleNamespace(**{**DEFAULTS, **options}), ambient_dim)


def test_defaults_make_a_model_with_random_unit_rows():
    made = model(3)
    assert made.attention.beta == DEFAULTS["beta"]
    assert made.perceptron.a.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(made.perceptron.a, axis=1), 1)
    np.testing.assert_array_equal(model(3).perceptron.a, made.perceptron.a)
    assert np.any(model(3, weights_seed=8).perceptron.a != made.perceptron.a)
    assert model(3, neurons=5).perceptron.a.shape == (5, 3)
    # Twice the strength is twice the weights.
    twice = model(3, strength=2 * DEFAULTS["strength"]).perceptron
    np.testing.assert_allclose(twice.scalar_weights, 2 * made.perceptron.scalar_weights)


def test_everything_is_passed_on():
    made = model(
        2, beta=7.0, amplitude="0.25", normalisation="softmax", prefactor=7.0,
        direction="descent", activation="tanh", a=[[1.0, 0.0]], w=[0.5], bias=[0.1],
    )
    assert made.attention.settings() == {
        "beta": 7.0, "amplitude": 0.25, "normalisation": "softmax", "prefactor": 7.0, "B": None
    }
    assert made.direction == "descent"
    assert made.perceptron.settings() == {
        "a": [[1.0, 0.0]], "omega": [[0.5, 0.0]], "bias": [0.1], "activation": "tanh"
    }
    turning = model(2, a=[[1.0, 0.0]], omega=[[0.0, 1.0]])
    assert turning.perceptron.scalar_weights is None
    assert model(2, activation="none").perceptron is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"a": [[1.0, 0.0]]}, "expected exactly one of w and omega"),
        ({"a": [[1.0, 0.0]], "w": [1.0], "omega": [[1.0, 0.0]]}, "exactly one of w and omega"),
        ({"w": [1.0]}, "w is given without a"),
        ({"bias": [1.0]}, "bias is given without a"),
        ({"a": [[1.0, 0.0, 0.0]], "w": [1.0]}, r"a has rows in R\^3: expected R\^2"),
        ({"amplitude": "high"}, "amplitude='high'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        model(2, **options)
