"""The perceptron block: a drift on the sphere and, when it is a gradient, its potential."""

import numpy as np

from meanfield.model.activations import activation as as_activation
from meanfield.sphere.geometry import project_tangent


class Perceptron:
    """Drift u(x) = P_x Σ_j ω_j σ(a_j·x + b_j) [L, §2.3].

    Parameters
    ----------
    a : array_like, shape (m, d)
        Input directions, any number m of neurons.
    w : array_like, shape (m,) or (m, d)
        Scalars w_j, for ω_j = w_j a_j, or the vectors ω_j.
    bias : array_like, shape (m,), optional
        b_j; zero by default.
    activation : str, Activation or tuple of callables
        σ, see `meanfield.model.activations.activation`.

    Attributes
    ----------
    omega : ndarray, shape (m, d)
    scalar_weights : ndarray, shape (m,), or None
        w_j when every ω_j is w_j a_j, the condition for a gradient drift; None otherwise.

    Raises
    ------
    ValueError
        On shapes that do not fit or numbers that are not finite.

    Examples
    --------
    >>> relu = Perceptron([[1.0, 0.0]], [0.5], activation="relu")
    >>> relu.drift(np.array([[0.6, 0.8]]))
    array([[ 0.192, -0.144]])
    """

    def __init__(self, a, w, bias=None, activation="relu"):
        self.a = _matrix("a", a)
        neurons, self.ambient_dim = self.a.shape
        w = _finite("w", w)
        if w.shape == (neurons,):
            self.omega = w[:, None] * self.a
            self.scalar_weights = w
        elif w.shape == self.a.shape:
            self.omega = w
            self.scalar_weights = _collinear_weights(self.a, w)
        else:
            raise ValueError(f"w has shape {w.shape}: expected ({neurons},) or {self.a.shape}")
        self.bias = np.zeros(neurons) if bias is None else _finite("bias", bias)
        if self.bias.shape != (neurons,):
            raise ValueError(f"bias has shape {self.bias.shape}: expected ({neurons},)")
        self.activation = as_activation(activation)

    @property
    def no_potential_because(self):
        """Why the drift has no known potential, or None when it has one."""
        if self.scalar_weights is None:
            return (
                "the perceptron's ω_j are not all multiples of a_j, so its drift is no gradient"
            )
        if self.activation.primitive is None:
            return f"the activation {self.activation.name!r} has no primitive of 2σ"
        return None

    def potential(self, x):
        """v(x) = Σ_j w_j φ(a_j·x + b_j) at points (n, d) [L, eq. (2.7)]; ½∇v = u.

        Raises
        ------
        ValueError
            If the drift is no gradient.
        """
        if self.no_potential_because:
            raise ValueError(f"no potential: {self.no_potential_because}")
        return self.activation.primitive(self.preactivation(x)) @ self.scalar_weights

    def preactivation(self, x):
        """a_j·x + b_j, shape (n, m)."""
        return x @ self.a.T + self.bias

    def ambient_drift(self, x):
        """Σ_j ω_j σ(a_j·x + b_j), before projection, shape (n, d)."""
        return self.activation.value(self.preactivation(x)) @ self.omega

    def drift(self, x):
        """u(x) at points (n, d), tangent."""
        return project_tangent(x, self.ambient_drift(x))

    def hessian(self, x):
        """Riemannian Hessian of ½v, shape (n, d, d).

        Where σ has a kink, the one-sided value of σ' from below.
        """
        if self.no_potential_because:
            raise ValueError(f"no Hessian: {self.no_potential_because}")
        if self.activation.derivative is None:
            raise ValueError(f"no Hessian: activation {self.activation.name!r} has no derivative")
        slope = self.activation.derivative(self.preactivation(x)) * self.scalar_weights
        ambient = np.einsum("ij,jk,jl->ikl", slope, self.a, self.a, optimize=True)
        radial = np.einsum("ij,ij->i", x, self.ambient_drift(x))
        identity = np.eye(self.ambient_dim)
        projection = identity - x[:, :, None] * x[:, None, :]
        return projection @ (ambient - radial[:, None, None] * identity) @ projection

    def settings(self):
        """JSON-able description."""
        return {
            "a": self.a.tolist(),
            "omega": self.omega.tolist(),
            "bias": self.bias.tolist(),
            "activation": self.activation.name,
        }


def _collinear_weights(a, omega):
    """w with ω_j = w_j a_j, or None; a zero a_j allows only a zero ω_j."""
    squares = np.einsum("ij,ij->i", a, a)
    products = np.einsum("ij,ij->i", a, omega)
    w = np.divide(products, squares, out=np.zeros_like(products), where=squares > 0)
    deviation = np.abs(omega - w[:, None] * a).max(axis=1, initial=0.0)
    size = np.abs(omega).max(axis=1, initial=0.0)
    return w if np.all(deviation <= 1e-12 * size) else None


def _finite(name, value):
    array = np.array(value, dtype=float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} has an entry that is not finite; expected real numbers")
    return array


def _matrix(name, value):
    array = _finite(name, value)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(f"{name} has shape {array.shape}: expected (neurons, d) with d >= 2")
    return array
