"""Several flows that start together and are looked at together."""

from meanfield.runtime.flow import State


class SideBySide:
    """Flows advanced over the same intervals of time, each with steps of its own.

    One step takes every member from one common time to the next. When a member stops by
    itself, all stop: the last common time is the last row of the table.

    Parameters
    ----------
    members : dict of str to Flow
        All at the same time, over the same ranks.
    interval : float
        Time between common times, > 0.
    compare : callable, optional
        members -> dict of numbers, added to every row of the table.
    pictured : sequence of str, optional
        Members whose snapshots are wanted; all by default.

    Raises
    ------
    ValueError
        When there is no member, the members' times differ, or the interval is not > 0.
    """

    def __init__(self, members, interval, compare=None, pictured=None):
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

    def step(self, limit):
        """Take all members to the next common time; returns the length taken."""
        length = min(self.interval, limit)
        target = self.time + length
        before = {name: flow.state() for name, flow in self.members.items()}
        for name, flow in self.members.items():
            try:
                self._advance(flow, target)
            except FloatingPointError as problem:
                raise FloatingPointError(f"{name}: {problem}") from problem
            if flow.time < target:
                self.finished = f"{name}: {flow.finished}"
                for other, state in before.items():
                    self.members[other].restore(state)
                return 0.0
        self.time = target
        return length

    def describe(self):
        """Every member's numbers as "member.name", then those of the comparison."""
        row = {
            f"{name}.{quantity}": number
            for name, flow in self.members.items()
            for quantity, number in flow.describe().items()
        }
        if self._compare is not None:
            row |= self._compare(self.members)
        return row

    def snapshot(self):
        """The pictured members' snapshots, names prefixed by the member's."""
        return _merged({name: self.members[name].snapshot() for name in self._pictured})

    def state(self):
        """All members' states, names prefixed by the member's."""
        merged = _merged({name: flow.state() for name, flow in self.members.items()})
        merged.replicated["time"] = self.time
        return merged

    def restore(self, state):
        """Continue all members from `state`."""
        for name, flow in self.members.items():
            flow.restore(
                State(_of_member(name, state.distributed), _of_member(name, state.replicated))
            )
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
