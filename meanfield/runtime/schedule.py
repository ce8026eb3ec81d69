"""When an observer acts: at multiples of a time or of a number of steps."""

import numpy as np

from meanfield.runtime.evolve import is_multiple, next_multiple


class Schedule:
    """Moments at multiples of `interval`, or every so many steps; also the first and the last.

    Parameters
    ----------
    interval : float, optional
        Time between moments.
    every : int, optional
        Steps between them, instead.

    Raises
    ------
    ValueError
        Unless exactly one of the two is given.

    Examples
    --------
    >>> Schedule(interval=0.5).next_time(0.7)
    1.0
    """

    def __init__(self, interval=None, every=None):
        if (interval is None) == (every is None):
            raise ValueError("expected exactly one of interval (time) and every (steps)")
        self._interval = interval
        self._every = every

    def next_time(self, time):
        """The next time that must not be stepped over, inf for none."""
        return np.inf if self._interval is None else next_multiple(time, self._interval)

    def is_due(self, moment):
        """Whether to act now."""
        if moment.last or moment.step == 0:
            return True
        if self._interval is not None:
            return is_multiple(moment.flow.time, self._interval)
        return moment.step % self._every == 0
