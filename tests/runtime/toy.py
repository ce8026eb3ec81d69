"""A flow whose every number is known: rows that decay, y' = −y, by exact steps."""

import numpy as np

from meanfield.runtime.flow import State
from meanfield.runtime.parallel import row_offset, sum_over_ranks


class Decay:
    """Steps of length 0.1; row i starts at i + 1; `fail_at` is (rank, step) of an error."""

    def __init__(self, count, comm=None, length=0.1, fail_at=None):
        self.comm = comm
        self.time = 0.0
        self.finished = None
        self.length = length
        self.taken = 0
        self._fail_at = fail_at
        self.rows = 1.0 + np.arange(count) + row_offset(count, comm)

    def step(self, limit):
        rank = 0 if self.comm is None else self.comm.Get_rank()
        if (rank, self.taken) == self._fail_at:
            raise FloatingPointError("the position of particle 3 is not finite")
        if self.finished:
            return 0.0
        length = min(self.length, limit)
        self.rows = self.rows * np.exp(-length)
        self.time += length
        self.taken += 1
        return length

    def describe(self):
        total = sum_over_ranks(float(self.rows.sum()), self.comm)
        return {"energy": total, "max_speed": float(np.exp(-self.time))}

    def snapshot(self):
        return State({"rows": self.rows})

    def state(self):
        return State(
            {"rows": self.rows}, {"time": self.time, "phase": np.array([1 + 2j]), "taken": 1}
        )

    def restore(self, state):
        self.rows = state.distributed["rows"]
        self.time = float(state.replicated["time"])
        assert state.replicated["phase"][0] == 1 + 2j

    def settings(self):
        return {"flow": "decay", "length": self.length}
