"""How the parts of a model fit together; its formulas are tested through fields."""

import json

import numpy as np
import pytest

import meanfield as mf

ATTENTION = mf.Attention(2.0)
SOFTMAX = mf.Attention(2.0, normalisation="softmax")
PERCEPTRON = mf.Perceptron(np.eye(3), [1.0, 0.5, -0.5])


def test_direction():
    assert mf.Model(ATTENTION).sign == 1.0
    assert mf.Model(ATTENTION, direction="descent").sign == -1.0
    with pytest.raises(ValueError, match="direction='down': expected 'ascent' or 'descent'"):
        mf.Model(ATTENTION, direction="down")


@pytest.mark.parametrize(
    ("attention", "perceptron", "dimension"),
    [
        (None, None, None),
        (ATTENTION, None, None),
        (ATTENTION, PERCEPTRON, 3),
        (mf.Attention(1.0, B=np.eye(5)), None, 5),
        (mf.Attention(1.0, B=np.eye(3)), PERCEPTRON, 3),
    ],
)
def test_the_weights_fix_the_dimension(attention, perceptron, dimension):
    assert mf.Model(attention, perceptron).ambient_dim == dimension


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"B is 2 x 2 but the perceptron lives in R\^3"):
        mf.Model(mf.Attention(1.0, B=np.eye(2)), PERCEPTRON)
    with pytest.raises(TypeError, match="attention is a float: expected Attention or None"):
        mf.Model(2.0)
    with pytest.raises(TypeError, match="perceptron is a Attention: expected Perceptron"):
        mf.Model(ATTENTION, ATTENTION)


@pytest.mark.parametrize(
    ("attention", "perceptron", "reason"),
    [
        (ATTENTION, PERCEPTRON, None),
        (None, None, None),
        # Alone it follows the energy's gradient in another metric.
        (SOFTMAX, None, None),
        (SOFTMAX, PERCEPTRON, "softmax"),
        (mf.Attention(1.0, B=[[0.0, 1.0], [0.0, 0.0]]), None, "B is not symmetric"),
        (None, mf.Perceptron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]), "not all multiples"),
    ],
)
def test_why_there_is_no_energy(attention, perceptron, reason):
    model = mf.Model(attention, perceptron)
    assert model.is_softmax == (attention is SOFTMAX)
    if reason is None:
        assert model.no_energy_because is None
        model.require_energy("energy")
    else:
        assert reason in model.no_energy_because
        with pytest.raises(ValueError, match=f"no energy: .*{reason}"):
            model.require_energy("energy")


def test_settings_are_json():
    settings = json.loads(json.dumps(mf.Model(SOFTMAX, PERCEPTRON, "descent").settings()))
    assert settings["direction"] == "descent"
    assert settings["attention"]["normalisation"] == "softmax"
    assert settings["perceptron"]["activation"] == "relu"
    assert mf.Model().settings() == {"attention": None, "perceptron": None, "direction": "ascent"}
