"""Adaptive steps of c' = −γ c + N(c), the decay taken exactly (Lawson's integrating factor)."""

import numpy as np

from meanfield.runtime.runge_kutta import DormandPrince

# Decay exponents in one step beyond this could overflow as e^{γτ}.
_LARGEST_EXPONENT = 600.0


class DecayingDormandPrince:
    """The Dormand–Prince pair for z = e^{γτ} c, τ the time since the step began.

    z' = e^{γτ} N(e^{−γτ} z) has no stiff part, however large γ; where N vanishes c decays
    exactly. With γ = 0 it is the plain pair.

    Parameters
    ----------
    rate : callable
        N, from c to an array like it.
    norm : callable
        Error of c at the end of a step, in units of the tolerance.
    decay : ndarray
        γ ≥ 0, shaped like c.
    first_length : float or None
        First step to try.
    """

    def __init__(self, rate, norm, decay, first_length=None):
        self._rate = rate
        self._norm = norm
        self._decay = decay
        largest = float(np.max(decay))
        self._longest = _LARGEST_EXPONENT / largest if largest > 0 else np.inf
        self._elapsed = 0.0
        self._pair = DormandPrince(self._rescaled_rate, self._rescaled_norm,
                                   first_length=first_length)

    def step(self, state, limit):
        """Advance by at most `limit`; returns the new state and the length taken."""
        # The pair's state carries τ along as its last entry.
        z, length = self._pair.step(np.append(state, 0.0), min(limit, self._longest))
        factor = np.exp(-self._decay * length)
        next_length, last_error, slope = self._pair.memory()
        # The next step counts τ from its own beginning.
        slope = np.append(factor * slope[:-1], 1.0)
        self._pair.remember(next_length, last_error, slope)
        return factor * z[:-1], length

    def interpolate(self, fraction):
        """The state at a fraction in [0, 1] of the last step taken, to fourth order."""
        z = self._pair.interpolate(fraction)
        return np.exp(-self._decay * z[-1].real) * z[:-1]

    def memory(self):
        """Numbers and array to continue bitwise: ``(length, last_error, slope)``."""
        return self._pair.memory()

    def remember(self, length, last_error, slope):
        """Continue where `memory` was taken."""
        self._pair.remember(length, last_error, slope)

    def _rescaled_rate(self, z):
        self._elapsed = z[-1].real
        factor = np.exp(-self._decay * self._elapsed)
        return np.append(self._rate(factor * z[:-1]) / factor, 1.0)

    def _rescaled_norm(self, error):
        # The pair's last stage lies at the end of the step: τ there turns z back into c.
        return self._norm(np.exp(-self._decay * self._elapsed) * error[:-1])
