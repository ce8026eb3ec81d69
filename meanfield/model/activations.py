"""Activations σ with the primitive φ of 2σ [L, §2.3] and the derivative σ'."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Activation:
    """A scalar function with its companions, each elementwise on arrays.

    Attributes
    ----------
    name : str
    value : callable
        σ.
    primitive : callable or None
        φ with φ' = 2σ; without one the perceptron drives a flow but has no potential.
    derivative : callable or None
        σ'; without one there is no Hessian.
    lipschitz : float
        The Lipschitz constant of σ; NaN when unknown.
    analytic : bool
        Whether σ is real-analytic: the hypothesis of [L, Thm 3.2].
    """

    name: str
    value: Callable
    primitive: Callable | None = None
    derivative: Callable | None = None
    lipschitz: float = np.nan
    analytic: bool = False


def _normal_pdf(s):
    return np.exp(-0.5 * s * s) / np.sqrt(2 * np.pi)


def _log_cosh(s):
    magnitude = np.abs(s)
    return magnitude + np.log1p(np.exp(-2 * magnitude)) - np.log(2)


def leaky_relu(slope=0.01):
    """σ(s) = s for s > 0 and slope·s below.

    Parameters
    ----------
    slope : float
        Finite.
    """
    if not np.isfinite(slope):
        raise ValueError(f"slope={slope!r}: expected a finite number")
    return Activation(
        "leaky_relu" if slope == 0.01 else f"leaky_relu({slope:g})",
        lambda s: np.where(s > 0, s, slope * s),
        lambda s: np.where(s > 0, s * s, slope * s * s),
        lambda s: np.where(s > 0, 1.0, slope),
        lipschitz=max(1.0, abs(slope)),
    )


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation(
            "relu",
            lambda s: np.maximum(s, 0.0),
            lambda s: np.maximum(s, 0.0) ** 2,
            lambda s: np.where(s > 0, 1.0, 0.0),
            lipschitz=1.0,
        ),
        leaky_relu(),
        Activation(
            "gelu",
            lambda s: s * ndtr(s),
            # The term −Φ(s) is part of the primitive: ∫2sΦ = s²Φ + s g − Φ.
            lambda s: (s * s - 1) * ndtr(s) + s * _normal_pdf(s) + 0.5,
            lambda s: ndtr(s) + s * _normal_pdf(s),
            # σ'' = (2 − s²) g(s) vanishes at √2, where σ' is largest.
            lipschitz=float(ndtr(np.sqrt(2)) + np.sqrt(2) * _normal_pdf(np.sqrt(2))),
            analytic=True,
        ),
        Activation(
            "tanh",
            np.tanh,
            lambda s: 2 * _log_cosh(s),
            lambda s: 1 - np.tanh(s) ** 2,
            lipschitz=1.0,
            analytic=True,
        ),
        Activation(
            "identity",
            lambda s: 1.0 * s,
            lambda s: s * s,
            np.ones_like,
            lipschitz=1.0,
            analytic=True,
        ),
    )
}


def activation(choice):
    """The activation of a name, of a user's pair, or itself.

    Parameters
    ----------
    choice : str, Activation, or tuple of callables
        A name from ``ACTIVATIONS``, or (σ, φ), or (σ, φ, σ'), each elementwise.

    Raises
    ------
    ValueError
        For an unknown name, or a pair whose φ' is not 2σ.

    Examples
    --------
    >>> activation("gelu").lipschitz
    1.12890...
    >>> squares = activation((lambda s: s**2, lambda s: 2 * s**3 / 3))
    """
    if isinstance(choice, Activation):
        return choice
    if isinstance(choice, str):
        if choice not in ACTIVATIONS:
            names = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation={choice!r}: expected one of {names}, or a pair (σ, φ)")
        return ACTIVATIONS[choice]
    if isinstance(choice, tuple) and len(choice) in (2, 3) and all(map(callable, choice)):
        _check_primitive(*choice[:2])
        return Activation("user", *choice)
    raise ValueError(f"activation={choice!r}: expected a name, an Activation, or (σ, φ[, σ'])")


def _check_primitive(value, primitive):
    """Compare φ with the integral of 2σ: a wrong primitive makes every energy wrong."""
    from scipy.integrate import quad

    for a, b in ((-2.0, -0.5), (-0.5, 0.7), (0.7, 3.0)):
        integral = quad(lambda s: 2 * float(value(np.float64(s))), a, b, limit=200)[0]
        found = float(primitive(np.float64(b)) - primitive(np.float64(a)))
        if not np.isclose(found, integral, rtol=1e-6, atol=1e-6):
            raise ValueError(
                f"activation: the primitive changes by {found:.8g} on [{a}, {b}] but 2σ integrates "
                f"to {integral:.8g}; expected φ' = 2σ"
            )
