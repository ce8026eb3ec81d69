"""Optimal transport between weighted points of a circle, for the square of the arc length.

Cut open, both measures are transported by their quantile functions. What is left is the cut,
or equally a shift α of mass: W2² is the least value of the convex, piecewise linear function

    C(α) = ∫_0^1 (F⁻¹(t) − G⁻¹(t − α))² dt,

F and G the cumulative masses, continued by F⁻¹(t + 1) = F⁻¹(t) + 2π [J. Delon, J. Salomon,
A. Sobolevski, Fast transport optimization for Monge costs on the circle, SIAM J. Appl. Math. 70
(2010)]. Its slope is known, so that the best cut is the root of a monotone function.
"""

import numpy as np

_TURN = 2 * np.pi
# Cumulative masses that differ by less are equal up to rounding.
_ROUNDING = 16 * np.finfo(float).eps


def squared_wasserstein(angles_a, masses_a, angles_b, masses_b):
    """W2² between weighted angles, in square radians.

    Parameters
    ----------
    angles_a, angles_b : ndarray, shape (n,), (m,)
        In [0, 2π), in any order.
    masses_a, masses_b : ndarray, shape (n,), (m,)
        ≥ 0, of sum one up to rounding.

    Returns
    -------
    float

    Examples
    --------
    The short way from 0.1 to 2π − 0.1:

    >>> one = np.ones(1)
    >>> round(squared_wasserstein(np.array([0.1]), one, np.array([2 * np.pi - 0.1]), one), 12)
    0.04
    """
    from scipy.optimize import brentq

    first, second = _Quantiles(angles_a, masses_a), _Quantiles(angles_b, masses_b)
    # The slope looks up one measure's jumps in the other: let it be the shorter's.
    if len(second.angles) > len(first.angles):
        first, second = second, first
    # The slope is negative at −2 and positive at 2 wherever the angles lie.
    shift = brentq(_slope, -2.0, 2.0, args=(first, second), xtol=1e-15, rtol=1e-15)
    return _cost(shift, first, second)


class _Quantiles:
    """Sorted angles that carry mass, with their cumulative masses."""

    def __init__(self, angles, masses):
        order = np.argsort(angles)
        order = order[masses[order] > 0]
        self.angles = angles[order]
        cumulative = _running_sum(masses[order])
        self.cumulative = (cumulative / cumulative[-1]).astype(float)

    def __call__(self, mass):
        """The quantile function at any real `mass`, continuous from the right."""
        turns = np.floor(mass)
        found = np.searchsorted(self.cumulative, mass - turns, "right")
        # The remainder of a tiny negative mass rounds up to one.
        return self.angles[np.minimum(found, len(self.angles) - 1)] + _TURN * turns

    @property
    def next_angles(self):
        """The angle that follows each, around the circle."""
        return np.append(self.angles[1:], self.angles[0] + _TURN)


def _running_sum(values):
    """Cumulative sums to rounding; added one by one, a million equal doubles are 1e-11 off."""
    block = int(np.sqrt(len(values))) + 1
    padded = np.zeros((len(values) // block + 1) * block, dtype=np.longdouble)
    padded[: len(values)] = values
    sums = np.cumsum(padded.reshape(-1, block), axis=1)
    sums[1:] += np.cumsum(sums[:-1, -1])[:, None]
    return sums.ravel()[: len(values)]


def _slope(shift, first, second):
    """C'(α): the jumps of G⁻¹ move along F⁻¹."""
    jumps = second.next_angles - second.angles
    ahead = first(second.cumulative + shift)
    return jumps @ (2 * ahead - second.next_angles - second.angles)


def _cost(shift, first, second):
    """C at the vertex next to `shift`."""
    position = second.cumulative + shift
    turns = np.floor(position)
    position -= turns
    to_vertex = _nearest(first.cumulative, position) - position
    position += to_vertex[np.argmin(np.abs(to_vertex))]
    # Where both measures jump at once up to rounding, no mass lies between.
    nearest = _nearest(first.cumulative, position)
    position = np.where(np.abs(nearest - position) <= _ROUNDING, nearest, position)
    order = np.argsort(position, kind="stable")
    position = position[order]
    after = (second.next_angles - _TURN * turns)[order]
    before_all = (second.angles - _TURN * turns)[order[:1]]
    ends = np.sort(np.concatenate([first.cumulative, position]))
    begins = np.concatenate([[0.0], ends[:-1]])
    middle = (begins + ends) / 2
    quantile = np.concatenate([before_all, after])[np.searchsorted(position, middle)]
    return float((ends - begins) @ (first(middle) - quantile) ** 2)


def _nearest(values, wanted):
    """The nearest of zero and sorted values (the last is one) to each wanted number in [0, 1]."""
    values = np.concatenate([[0.0], values])
    above = np.clip(np.searchsorted(values, wanted), 1, len(values) - 1)
    lower, upper = values[above - 1], values[above]
    return np.where(wanted - lower < upper - wanted, lower, upper)
