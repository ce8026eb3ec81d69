"""The model: attention and perceptron, and what they make of a measure's kernel sums."""

from meanfield.model.attention import Attention
from meanfield.model.perceptron import Perceptron
from meanfield.sphere.geometry import project_tangent


class Model:
    """∂_t μ ± div(μ (∇H_att + u)) = 0 [L, eq. (2.6)], or with softmax [L, eq. (2.9)].

    Parameters
    ----------
    attention : Attention or None
    perceptron : Perceptron or None
    direction : "ascent" or "descent"
        Ascent follows the field (attractive), descent opposes it (repulsive).

    Attributes
    ----------
    sign : float
        +1 for ascent, −1 for descent.
    ambient_dim : int or None
        d where the weights fix it.

    Raises
    ------
    ValueError
        When the parts do not fit.

    Examples
    --------
    >>> model = Model(Attention(beta=2.0), None, direction="descent")
    >>> model.sign
    -1.0
    """

    def __init__(self, attention=None, perceptron=None, direction="ascent"):
        if attention is not None and not isinstance(attention, Attention):
            raise TypeError(
                f"attention is a {type(attention).__name__}: expected Attention or None"
            )
        if perceptron is not None and not isinstance(perceptron, Perceptron):
            raise TypeError(
                f"perceptron is a {type(perceptron).__name__}: expected Perceptron or None"
            )
        if direction not in ("ascent", "descent"):
            raise ValueError(f"direction={direction!r}: expected 'ascent' or 'descent'")
        self.attention = attention
        self.perceptron = perceptron
        self.direction = direction
        self.sign = 1.0 if direction == "ascent" else -1.0
        dimensions = set()
        if attention is not None and attention.B is not None:
            dimensions.add(len(attention.B))
        if perceptron is not None:
            dimensions.add(perceptron.ambient_dim)
        if len(dimensions) > 1:
            raise ValueError(
                f"B is {len(attention.B)} x {len(attention.B)} but the perceptron lives in "
                f"R^{perceptron.ambient_dim}; expected one dimension"
            )
        self.ambient_dim = dimensions.pop() if dimensions else None

    @property
    def is_softmax(self):
        """Whether attention is normalised."""
        return self.attention is not None and self.attention.normalisation == "softmax"

    @property
    def no_energy_because(self):
        """Why no energy has this drift as its gradient, or None when one has.

        Softmax attention alone counts as a gradient flow: it follows ∇E_att in a
        conformally equivalent metric, along which E_att is monotone.
        """
        if self.attention is not None and not self.attention.is_symmetric:
            return "B is not symmetric"
        if self.perceptron is not None:
            if self.perceptron.no_potential_because:
                return self.perceptron.no_potential_because
            if self.is_softmax:
                return (
                    "softmax rescales the attention part of the drift but not the perceptron's "
                    "[L, eq. (2.10)], so their sum is the gradient of no energy"
                )
        return None

    def require_energy(self, quantity):
        """Raise the reason why `quantity` does not exist, if there is one.

        Raises
        ------
        ValueError
        """
        if self.no_energy_because:
            raise ValueError(f"no {quantity}: {self.no_energy_because}")

    def first_variation(self, x, sums):
        """H = (s/β) ∫ k dμ + ½ v at points (n, d), from the kernel's sums; shape (n,)."""
        self.require_energy("first variation")
        result = 0.0 * x[:, 0]
        if self.attention is not None:
            result += self.attention.scale(sums.value, sums.log_scale, power_of_beta=-1)
        if self.perceptron is not None:
            result += 0.5 * self.perceptron.potential(x)
        return result

    def attention_gradient(self, x, sums):
        """∇H_att = s P_x ∫ k By dμ, unnormalised, shape (n, d)."""
        if self.attention is None:
            return 0.0 * x
        return self.attention.scale(sums.gradient, sums.log_scale)

    def gradient(self, x, sums):
        """∇H = ∇H_att + u, unnormalised, shape (n, d)."""
        self.require_energy("gradient of the first variation")
        return self._with_perceptron(x, self.attention_gradient(x, sums))

    def hessian(self, x, sums):
        """Riemannian Hessian of H in ambient coordinates, shape (n, d, d)."""
        self.require_energy("Hessian of the first variation")
        result = 0.0 * x[:, :, None] * x[:, None, :]
        if self.attention is not None:
            result += self.attention.scale(sums.hessian, sums.log_scale)
        if self.perceptron is not None:
            result += self.perceptron.hessian(x)
        return result

    def velocity(self, x, sums):
        """The flow's velocity: direction and normalisation included, shape (n, d)."""
        if self.is_softmax:
            attention_drift = self.attention.prefactor * sums.gradient / sums.value[:, None]
        else:
            attention_drift = self.attention_gradient(x, sums)
        # Projected once more: rounding in the radial part would not shrink with the velocity.
        return self.sign * project_tangent(x, self._with_perceptron(x, attention_drift))

    def title(self):
        """One line for figures and reports."""
        parts = [self.direction]
        if self.attention is not None:
            parts += [f"β = {self.attention.beta:g}", f"amplitude {self.attention.amplitude}"]
            if self.attention.B is not None:
                parts.append("general B")
            if self.is_softmax:
                parts.append(f"softmax with prefactor {self.attention.prefactor:g}")
        if self.perceptron is not None:
            parts.append(f"{len(self.perceptron.a)} {self.perceptron.activation.name} neurons")
        return ", ".join(parts)

    def settings(self):
        """JSON-able description."""
        return {
            "attention": None if self.attention is None else self.attention.settings(),
            "perceptron": None if self.perceptron is None else self.perceptron.settings(),
            "direction": self.direction,
        }

    def _with_perceptron(self, x, drift):
        return drift if self.perceptron is None else drift + self.perceptron.drift(x)
