"""Several flows that start together and are looked at together."""

import numpy as np

from meanfield.runtime.flow import State


class SideBySide:
    """Flows advanced over the same intervals of time, each with steps of its own.

    One step takes every member from one common time to the next. When a member stops by
    itself, all stop, and the last common time is the last row of the table; but those that
    may stop only leave the comparison, which the others continue.

    Parameters
    ----------
    members : dict of str to Flow
        All at the same time, over the same ranks.
    interval : float
        Time between common times, > 0.
    compare : callable, optional
        Members that are still running -> dict of numbers, added to every row of the table.
    pictured : sequence of str, optional
        Members whose snapshots are wanted; all by default.
    may_stop : sequence of str
        Members without which the others go on.

    Attributes
    ----------
    stopped : dict of str to str
        Why members that may stop have left.

    Raises
    ------
    ValueError
        When there is no member, the members' times differ, or the interval is not > 0.
    """

    def __init__(self, members, interval, compare=None, pictured=None, may_stop=()):
        if not members:
            raise ValueError("members is empty: expected at least one flow")
        times = {name: flow.time for name, flow in members.items()}
        if len(set(times.values())) > 1:
            raise ValueError(f"members begin at different times {times}; expected one")
        if not interval > 0:
            raise ValueError(f"interval={interval!r}: expected a time > 0")
        self.members = members
        self.interval = interval
        self.finished = None
        self.time = next(iter(times.values()))
        self.comm = next(iter(members.values())).comm
        self._compare = compare
        self._pictured = list(members) if pictured is None else list(pictured)
        self._may_stop = set(may_stop)
        self.stopped = {}

    @property
    def running(self):
        """The members that have not left."""
        return {name: flow for name, flow in self.members.items() if name not in self.stopped}

    def step(self, limit):
        """Take all running members to the next common time; returns the length taken."""
        length = min(self.interval, limit)
        target = self.time + length
        running = self.running
        before = {name: flow.state() for name, flow in running.items()}
        for name, flow in running.items():
            try:
                self._advance(flow, target)
            except FloatingPointError as problem:
                raise FloatingPointError(f"{name}: {problem}") from problem
            if flow.time < target:
                self.stopped[name] = flow.finished
                flow.restore(before[name])
        lost = [name for name in self.stopped if name not in self._may_stop]
        if lost or not self.running:
            name = lost[0] if lost else next(iter(self.stopped))
            self.finished = f"{name}: {self.stopped[name]}"
            for other in self.running:
                self.members[other].restore(before[other])
            return 0.0
        self.time = target
        return length

    def describe(self):
        """Every member's numbers as "member.name", then those of the comparison."""
        row = {
            f"{name}.{quantity}": number
            for name, flow in self.running.items()
            for quantity, number in flow.describe().items()
        }
        if self._compare is not None:
            row |= self._compare(self.running)
        return row

    def snapshot(self):
        """Snapshots of the pictured members that are running, names prefixed by the member's."""
        running = self.running
        return _merged(
            {name: running[name].snapshot() for name in self._pictured if name in running}
        )

    def state(self):
        """All members' states, names prefixed by the member's."""
        merged = _merged({name: flow.state() for name, flow in self.members.items()})
        merged.replicated["time"] = self.time
        for name, reason in self.stopped.items():
            merged.replicated[f"{name}.stopped"] = np.frombuffer(reason.encode(), dtype=np.uint8)
        return merged

    def restore(self, state):
        """Continue all members from `state`."""
        self.stopped = {}
        for name, flow in self.members.items():
            numbers = _of_member(name, state.replicated)
            if "stopped" in numbers:
                self.stopped[name] = bytes(numbers.pop("stopped")).decode()
            flow.restore(State(_of_member(name, state.distributed), numbers))
        self.time = float(state.replicated["time"])
        self.finished = None

    def settings(self):
        """JSON-able description."""
        return {
            "flow": "side by side",
            "interval": self.interval,
            "members": {name: flow.settings() for name, flow in self.members.items()},
        }

    @staticmethod
    def _advance(flow, target):
        while flow.time < target:
            remaining = target - flow.time
            if flow.step(remaining) >= remaining * (1 - 1e-12):
                flow.time = target
            elif flow.finished:
                return


def _merged(states):
    merged = State()
    for name, state in states.items():
        merged.distributed |= {f"{name}.{key}": rows for key, rows in state.distributed.items()}
        merged.replicated |= {f"{name}.{key}": value for key, value in state.replicated.items()}
    return merged


def _of_member(name, arrays):
    prefix = f"{name}."
    return {key[len(prefix) :]: value for key, value in arrays.items() if key.startswith(prefix)}
