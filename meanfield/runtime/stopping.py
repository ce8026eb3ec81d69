"""Stopping rules: a moment of a run -> a reason to stop, or None."""

import numpy as np


class UntilTime:
    """Stop at a time.

    Parameters
    ----------
    time : float
        Finite.
    """

    def __init__(self, time):
        if not np.isfinite(time):
            raise ValueError(f"until={time!r}: expected a finite time")
        self.time = float(time)

    def __call__(self, moment):
        if moment.flow.time >= self.time:
            return f"reached time {self.time:g}"
        return None

    def next_time(self, time):
        """The final time, which is not stepped over."""
        return self.time if time < self.time else np.inf


class UntilSlow:
    """Stop when no particle is faster than `max_speed`, looked at every so many steps.

    A slow state may be metastable: this is no proof of stationarity [L, §4].
    """

    def __init__(self, max_speed, every=1):
        self.max_speed = _positive("max_speed", max_speed)
        self.every = every

    def __call__(self, moment):
        if moment.step % self.every:
            return None
        speed = _largest_speed(moment)
        if speed <= self.max_speed:
            return f"largest speed {speed:.3g} <= {self.max_speed:g} (it may be metastable)"
        return None


class UntilSettled:
    """The rule of [L, §4]: a constant number of clusters, and slow.

    Parameters
    ----------
    count : callable
        flow -> number of clusters, or None where they are not tight enough to count.
        Collective.
    window : int
        Snapshots over which the count must be constant.
    every : int
        Steps between snapshots.
    max_speed : float
    """

    def __init__(self, count, window=5, every=10, max_speed=1e-4):
        self.window = window
        self.every = every
        self.max_speed = _positive("max_speed", max_speed)
        self._count = count
        self._seen = []
        self._last_step = None

    def __call__(self, moment):
        if moment.step % self.every:
            return None
        # A run that continues begins with the step that it was left at.
        if moment.step != self._last_step:
            self._seen = [*self._seen, self._count(moment.flow)][-self.window :]
            self._last_step = moment.step
        settled = len(self._seen) == self.window and len(set(self._seen)) == 1
        if not settled or self._seen[0] is None:
            return None
        speed = _largest_speed(moment)
        if speed > self.max_speed:
            return None
        return (
            f"{self._seen[0]} clusters over {self.window} snapshots and largest speed "
            f"{speed:.3g} <= {self.max_speed:g} (it may be metastable)"
        )

    def memory(self):
        """JSON-able, for a checkpoint."""
        return {"seen": self._seen, "last_step": self._last_step}

    def remember(self, memory):
        """Continue where `memory` was taken."""
        self._seen, self._last_step = list(memory["seen"]), memory["last_step"]


class AnyOf:
    """Stop when the first of several rules says so."""

    def __init__(self, *rules):
        self.rules = rules

    def __call__(self, moment):
        # All are asked, because some keep count of what they have seen.
        reasons = [rule(moment) for rule in self.rules]
        return next((reason for reason in reasons if reason), None)

    def next_time(self, time):
        """The earliest of the rules' times."""
        times = (rule.next_time(time) for rule in self.rules if hasattr(rule, "next_time"))
        return min(times, default=np.inf)

    def memory(self):
        """JSON-able, for a checkpoint."""
        return {
            str(i): rule.memory() for i, rule in enumerate(self.rules) if hasattr(rule, "memory")
        }

    def remember(self, memory):
        """Continue where `memory` was taken."""
        for i, rule in enumerate(self.rules):
            if hasattr(rule, "remember"):
                rule.remember(memory[str(i)])


def _largest_speed(moment):
    if "max_speed" not in moment.row:
        raise ValueError(
            f"the flow describes {', '.join(moment.row)}: expected max_speed among them; "
            f"stop it at a time instead"
        )
    return moment.row["max_speed"]


def _positive(name, value):
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r}: expected a finite number > 0")
    return float(value)
