"""A progress bar on rank 0, where someone can see it."""

import os
import sys
from pathlib import Path

import numpy as np

from meanfield.runtime.parallel import broadcast, rank

_SHOWN = ("energy", "max_speed", "clusters")
_LAUNCHERS = ("mpiexec", "mpirun", "hydra")


class Progress:
    """An observer that shows time, step and the main numbers of the last row.

    Parameters
    ----------
    final_time : float, optional
        For the length of the bar; without it steps are counted.
    every : int
        Steps between looks at the flow's numbers, which may cost as much as a step.
    label : str
        Shown before the bar.
    """

    def __init__(self, final_time=None, every=10, label=""):
        self._final_time = final_time
        self._every = every
        self._label = label
        self._bar = None
        self._is_watched = None

    def next_time(self, time):
        """No time of its own."""
        return np.inf

    def observe(self, moment):
        """Move the bar, where someone sees it."""
        if self._is_watched is None:
            self._is_watched = broadcast(_is_watched(), moment.flow.comm)
        if not self._is_watched:
            return
        if self._bar is None:
            self._bar = self._new_bar(moment.flow.comm)
        if moment.step % self._every == 0 or moment.last:
            shown = {
                name.rpartition(".")[2]: f"{value:.4g}"
                for name, value in moment.row.items()
                if name.rpartition(".")[2] in _SHOWN
            }
            self._bar.set_postfix({"step": moment.step, **shown}, refresh=False)
        now = moment.flow.time if self._final_time is not None else moment.step
        self._bar.update(now - self._bar.n)
        if moment.last or moment.interrupted:
            self._bar.close()

    def _new_bar(self, comm):
        from tqdm import tqdm

        return tqdm(
            total=self._final_time,
            desc=self._label,
            disable=rank(comm) != 0,
            bar_format="{desc} {bar} {n:.4g}/{total:.4g} [{elapsed}<{remaining}{postfix}]"
            if self._final_time is not None
            else None,
        )


def _is_watched():
    """Whether stderr ends in a terminal, be it by way of a launcher of ranks (seen on Linux)."""
    if sys.stderr.isatty():
        return True
    process = Path("/proc") / str(os.getppid())
    try:
        while (process / "comm").read_text().startswith(_LAUNCHERS):
            if os.readlink(process / "fd" / "2").startswith("/dev/pts/"):
                return True
            # Behind the name, which is in parentheses: state, parent.
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            process = Path("/proc") / parent
    except OSError:
        pass
    return False
