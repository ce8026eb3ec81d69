"""The attention kernel and its amplitude."""

from dataclasses import dataclass

import numpy as np

# exp of more than this is not a double.
LARGEST_EXPONENT = np.log(np.finfo(float).max)


@dataclass
class KernelSums:
    """The kernel k(x, y) = exp(β xᵀBy) summed over a measure at n points, and derivatives in x.

    Attributes
    ----------
    log_scale : float or ndarray, shape (n,)
        All sums are to be multiplied by its exponential and by exp(β ‖B‖), the kernel's
        largest value, which is carried apart because it may overflow.
    value : ndarray, shape (n,), or None
        ∫ k dμ(y).
    gradient : ndarray, shape (n, d), or None
        P_x ∫ k By dμ(y), which is 1/β times the gradient of the value.
    hessian : ndarray, shape (n, d, d), or None
        P_x [∫ k (β By (By)ᵀ − xᵀBy I) dμ(y)] P_x, 1/β times the Riemannian Hessian.
    """

    log_scale: float | np.ndarray
    value: np.ndarray | None = None
    gradient: np.ndarray | None = None
    hessian: np.ndarray | None = None

    def rows(self, rows):
        """The sums at a slice of the points."""
        return KernelSums(
            *(
                array if array is None or np.ndim(array) == 0 else array[rows]
                for array in (self.log_scale, self.value, self.gradient, self.hessian)
            )
        )


class Attention:
    """Attention with energy s/(2β) ∬ exp(β x·y) dμ dμ [L, §2.3].

    With a matrix, x·y becomes xᵀBy throughout, so that ``beta=1`` gives [L, Rem. 6.2]'s
    E_B = ½ ∬ exp(xᵀBy) dμ dμ, and B = I the isotropic model.

    Parameters
    ----------
    beta : float
        Inverse temperature β > 0.
    amplitude : "unit", "peak" or float
        s: 1 as in the formulas of [L]; or exp(−β ‖B‖), which makes the kernel's largest
        value one, as in the published simulations; or a number > 0.
    normalisation : "none" or "softmax"
        Whether the field is divided by ∫ exp(β x·y) dμ(y), over all of μ, self included.
    prefactor : float, optional
        With softmax, what multiplies the averaged direction: 1 by default, β for
        ∇log ∫ exp(β x·y) dμ(y) of [L, eq. (2.9)].
    B : array_like, shape (d, d), optional
        The bilinear form. The dynamics take any B, an energy needs a symmetric one.

    Attributes
    ----------
    peak_exponent : float
        β ‖B‖, the largest exponent β xᵀBy over unit vectors.
    log_peak : float
        log s + β ‖B‖: the logarithm of the kernel's largest value, amplitude included.

    Raises
    ------
    ValueError
        When an argument is out of range or a combination has no meaning.

    Examples
    --------
    >>> Attention(beta=5.0, amplitude="unit").log_peak
    5.0
    >>> Attention(beta=5.0, amplitude="peak").log_peak
    0.0
    """

    def __init__(self, beta, amplitude="unit", normalisation="none", prefactor=None, B=None):
        self.beta = _positive("beta", beta)
        self.B = None if B is None else _square(B)
        if normalisation not in ("none", "softmax"):
            raise ValueError(f"normalisation={normalisation!r}: expected 'none' or 'softmax'")
        self.normalisation = normalisation
        if prefactor is not None and normalisation == "none":
            raise ValueError("prefactor applies to normalisation='softmax' only; leave it out")
        self.prefactor = 1.0 if prefactor is None else _positive("prefactor", prefactor)
        self.amplitude = amplitude
        self.peak_exponent = self.beta
        if self.B is not None:
            self.peak_exponent *= float(np.linalg.norm(self.B, 2))
        if amplitude == "unit":
            self.log_peak = self.peak_exponent
        elif amplitude == "peak":
            self.log_peak = 0.0
        elif isinstance(amplitude, str):
            raise ValueError(f"amplitude={amplitude!r}: expected 'unit', 'peak' or a number > 0")
        else:
            self.amplitude = _positive("amplitude", amplitude)
            self.log_peak = float(np.log(self.amplitude)) + self.peak_exponent

    @property
    def is_symmetric(self):
        """Whether the kernel is symmetric, the condition for a gradient."""
        return self.B is None or bool(
            np.abs(self.B - self.B.T).max() <= 1e-14 * np.abs(self.B).max()
        )

    def keys(self, nodes):
        """B y: what a query x is compared with, and what it is moved towards; (n, d)."""
        return nodes if self.B is None else np.ascontiguousarray(nodes @ self.B.T)

    def scale(self, values, log_scale, power_of_beta=0):
        """s e^{β‖B‖ + log_scale} β^power · values, or an error when that is no double.

        Parameters
        ----------
        values : ndarray, shape (n, ...)
        log_scale : float or ndarray, shape (n,)
        power_of_beta : int

        Raises
        ------
        OverflowError
        """
        exponent = np.asarray(self.log_peak + log_scale)
        factor = self.beta**power_of_beta
        axes = tuple(range(exponent.ndim, np.ndim(values)))
        largest = np.max(np.abs(values), axis=axes, initial=0)
        with np.errstate(divide="ignore"):
            size = np.log(largest) + power_of_beta * np.log(self.beta)
        if np.max(size + exponent, initial=-np.inf) > LARGEST_EXPONENT:
            raise OverflowError(
                f"the attention field at beta={self.beta:g} with amplitude={self.amplitude!r} "
                f"exceeds the largest double; use amplitude='peak', which scales it by e^-beta"
            )
        # In two steps, because the factor alone may overflow or vanish where the product does not.
        # What vanishes stays zero, however large its factor.
        half = np.exp(0.5 * np.where(largest > 0, exponent, 0.0))
        half = half.reshape(half.shape + (1,) * len(axes))
        return values * half * (half * factor)

    def settings(self):
        """JSON-able description."""
        return {
            "beta": self.beta,
            "amplitude": self.amplitude,
            "normalisation": self.normalisation,
            "prefactor": self.prefactor if self.normalisation == "softmax" else None,
            "B": None if self.B is None else self.B.tolist(),
        }


def _positive(name, value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name}={value!r}: expected a finite number > 0")
    return number


def _square(B):
    B = np.array(B, dtype=float)
    if B.ndim != 2 or B.shape[0] != B.shape[1]:
        raise ValueError(f"B has shape {B.shape}: expected a square matrix (d, d)")
    if not np.all(np.isfinite(B)):
        raise ValueError("B has an entry that is not finite; expected real numbers")
    return B
