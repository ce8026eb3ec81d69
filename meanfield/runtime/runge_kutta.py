"""Explicit Runge–Kutta steps for any array state, fixed or adaptive.

A state is an array y with rate y' = f(y). On a curved space `retract` brings the result of
every stage back to it; this keeps the order when the rate extends smoothly off the space.
"""

import numpy as np

EULER = (np.zeros((1, 0)), np.array([1.0]))
CLASSICAL = (
    np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]),
    np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
)


def explicit_step(tableau, rate, state, length, retract=lambda y: y):
    """One step of an explicit Runge–Kutta method.

    Parameters
    ----------
    tableau : tuple of ndarray
        Stage matrix (s, s − 1) below the diagonal, and weights (s,).
    rate : callable
        y -> y'.
    state : ndarray
    length : float
    retract : callable
        Brings an array back to the space the state lives on.

    Returns
    -------
    ndarray
    """
    stages, weights = tableau
    slopes = []
    for row in stages:
        slopes.append(rate(retract(_combine(state, length, row, slopes))))
    return retract(_combine(state, length, weights, slopes))


# Dormand and Prince (1980), order 5 with an embedded solution of order 4.
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_ORDER = 5
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 5.0


class DormandPrince:
    """Adaptive steps of the Dormand–Prince pair 5(4) with proportional–integral control.

    The last stage of a step is the first of the next. All decisions rest on `norm`, which
    has to give the same number on every rank.

    Parameters
    ----------
    rate : callable
        y -> y'.
    norm : callable
        error array -> float, in units of the tolerance: a step is accepted at ≤ 1.
    retract : callable
        Brings an array back to the space the state lives on.
    first_length : float or None
        First step to try; by default from the size of the rate.

    Attributes
    ----------
    rejected : int
        Steps tried in vain so far.
    """

    def __init__(self, rate, norm, retract=lambda y: y, first_length=None):
        self._rate = rate
        self._norm = norm
        self._retract = retract
        self._slope = None
        self._length = first_length
        self._last_error = 1e-4
        self._taken = None
        self.rejected = 0

    def step(self, state, limit):
        """Advance by a length of the controller's choice, at most `limit`.

        Returns
        -------
        state : ndarray
        length : float

        Raises
        ------
        FloatingPointError
            If the error is not finite, or no step above rounding is accepted.
        """
        if self._slope is None:
            self._slope = self._rate(state)
        if self._length is None:
            # A step whose first-order change is a hundred tolerances: never far off.
            self._length = _bounded(100.0 / max(self._norm(self._slope), 1e-300), 1e-8, 1.0)
        while True:
            length = min(limit, self._length)
            if limit / 2 < length < limit:
                # Two equal steps rather than a long one and a sliver before an event.
                length = limit / 2
            slopes = [self._slope]
            for row in _STAGES[1:]:
                trial = self._retract(_combine(state, length, row, slopes))
                slopes.append(self._rate(trial))
            error = self._norm(length * _combine(0.0, 1.0, _ERROR, slopes))
            if not np.isfinite(error):
                raise FloatingPointError("the error of a step is not finite")
            proportional = max(error, 1e-10) ** (-0.7 / _ORDER)
            integral = self._last_error ** (0.4 / _ORDER)
            if error <= 1.0:
                growth = _bounded(_SAFETY * proportional * integral, _LEAST, _MOST)
                # A step cut short by an event says little about a longer one.
                cut_short = length < self._length
                self._length = max(self._length, growth * length) if cut_short else growth * length
                self._last_error = max(error, 1e-4)
                self._slope = slopes[-1]
                self._taken = state, length, slopes
                return trial, length
            self.rejected += 1
            self._length = length * max(_SAFETY * error ** (-1 / _ORDER), _LEAST)
            if self._length < 1e-14:
                raise FloatingPointError("no step longer than 1e-14 meets the tolerance")

    def interpolate(self, fraction):
        """The state at a fraction in [0, 1] of the last step taken, to fourth order.

        Only for states of a vector space: nothing is retracted.
        """
        state, length, slopes = self._taken
        return _combine(state, length, _interpolation_weights(fraction), slopes)

    def memory(self):
        """Numbers and array to continue bitwise: ``(length, last_error, slope)``."""
        return self._length, self._last_error, self._slope

    def remember(self, length, last_error, slope):
        """Continue where `memory` was taken."""
        self._length, self._last_error, self._slope = length, last_error, slope


def _interpolation_weights(fraction):
    """Weights of the continuous extension [Hairer, Nørsett, Wanner, II.6]."""
    t = fraction
    smooth, bump = t * t * (3 - 2 * t), (t * (t - 1)) ** 2
    corrections = (
        -5 * (2558722523 - 31403016 * t) / 11282082432,
        0.0,
        100 * (882725551 - 15701508 * t) / 32700410799,
        -25 * (443332067 - 31403016 * t) / 1880347072,
        32805 * (23143187 - 3489224 * t) / 199316789632,
        -55 * (29972135 - 7076736 * t) / 822651844,
        10 * (7414447 - 829305 * t) / 29380423,
    )
    weights = [smooth * b + bump * c for b, c in zip((*_STAGES[-1], 0.0), corrections, strict=True)]
    weights[0] += t * (t - 1) ** 2
    weights[6] += t * t * (t - 1)
    return weights


def _combine(state, length, weights, slopes):
    total = state
    for weight, slope in zip(weights, slopes, strict=False):
        if weight:
            total = total + (length * weight) * slope
    return total


def _bounded(value, least, most):
    return min(max(value, least), most)
