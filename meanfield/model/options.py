"""The options from which every driver makes its model."""

import numpy as np

from meanfield.model.activations import ACTIVATIONS
from meanfield.model.attention import Attention
from meanfield.model.model import Model
from meanfield.model.perceptron import Perceptron
from meanfield.runtime.options import Option, at_least, positive

MODEL_OPTIONS = (
    Option("beta", float, 4.0, "inverse temperature β", check=positive, group="model"),
    Option(
        "amplitude", str, "peak",
        "attention amplitude s: 'unit' (1), 'peak' (exp(-β)) or a number > 0", group="model",
    ),
    Option(
        "normalisation", str, "none", "divide the attention field by its softmax denominator",
        choices=("none", "softmax"), group="model",
    ),
    Option(
        "prefactor", float, None, "with softmax, what multiplies the averaged direction",
        check=positive, group="model",
    ),
    Option("B", "matrix", None, "bilinear form xᵀBy in place of x·y", group="model"),
    Option(
        "direction", str, "ascent", "follow the field or oppose it",
        choices=("ascent", "descent"), group="model",
    ),
    Option(
        "activation", str, "gelu", "activation of the perceptron",
        choices=(*ACTIVATIONS, "none"), group="model",
    ),
    Option("a", "matrix", None, "input directions of the neurons, a row each", group="model"),
    Option("w", "numbers", None, "scalar weights of the neurons along a", group="model"),
    Option("omega", "matrix", None, "vector weights of the neurons, instead of w", group="model"),
    Option("bias", "numbers", None, "biases of the neurons", group="model"),
    Option(
        "neurons", int, None, "number of random neurons when a is not given (default d)",
        check=at_least(1), group="model",
    ),
    Option(
        "strength", float, 0.5, "size of the random neurons' weights", check=positive,
        group="model",
    ),
    Option(
        "weights_seed", int, 7, "seed of the random neurons: unit rows a, normal w times strength",
        check=at_least(0), group="model",
    ),
)


def model_from_options(options, ambient_dim):
    """The model that `options` describe in R^d.

    Parameters
    ----------
    options : namespace
        With the names of ``MODEL_OPTIONS``.
    ambient_dim : int

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        When options contradict each other or the dimension.
    """
    attention = Attention(
        options.beta,
        amplitude=_amplitude(options.amplitude),
        normalisation=options.normalisation,
        prefactor=options.prefactor,
        B=options.B,
    )
    if attention.B is not None and len(attention.B) != ambient_dim:
        raise ValueError(
            f"B has shape {attention.B.shape}: expected ({ambient_dim}, {ambient_dim})"
        )
    perceptron = None
    if options.activation != "none":
        perceptron = _perceptron(options, ambient_dim)
        if perceptron.ambient_dim != ambient_dim:
            raise ValueError(
                f"a has rows in R^{perceptron.ambient_dim}: expected R^{ambient_dim}; "
                f"give ambient_dims={perceptron.ambient_dim} with explicit weights"
            )
    return Model(attention, perceptron, options.direction)


def _perceptron(options, ambient_dim):
    if options.a is not None:
        given = [weights for weights in (options.w, options.omega) if weights is not None]
        if len(given) != 1:
            raise ValueError("a is given: expected exactly one of w and omega with it")
        return Perceptron(options.a, given[0], options.bias, options.activation)
    for name in ("w", "omega", "bias"):
        if getattr(options, name) is not None:
            raise ValueError(f"{name} is given without a; expected both or neither")
    random = np.random.default_rng(options.weights_seed)
    neurons = options.neurons or ambient_dim
    a = random.normal(size=(neurons, ambient_dim))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return Perceptron(a, options.strength * random.normal(size=neurons), None, options.activation)


def _amplitude(text):
    try:
        return float(text)
    except ValueError:
        return text
