"""Checkpoints: one HDF5 file from which a run continues, on any number of ranks."""

import json
import os
import time
from pathlib import Path

import numpy as np

from meanfield.runtime.flow import State
from meanfield.runtime.parallel import (
    blocks_on_root,
    broadcast,
    local_slice,
    raise_together,
    rank,
    size,
    sum_over_ranks,
)

CHECKPOINT_NAME = "checkpoint.h5"
_FORMAT = "meanfield checkpoint 1"


class Checkpoint:
    """An observer that keeps the flow's state, so that a run can continue.

    The file is written beside the old one and then takes its place, so that one of them is
    always whole. One is also written when the run begins, ends or is told to stop.

    Parameters
    ----------
    path : path-like
    every : int, optional
        Steps between checkpoints.
    minutes : float, optional
        Minutes of wall time between checkpoints.
    """

    def __init__(self, path, every=None, minutes=None):
        self._path = Path(path)
        self._every = every
        self._minutes = minutes
        self._written = time.monotonic()

    def next_time(self, time):
        """Checkpoints fall between steps, whenever those end."""
        return np.inf

    def observe(self, moment):
        """Write the file when it is due."""
        comm = moment.flow.comm
        late = self._minutes is not None and time.monotonic() - self._written > 60 * self._minutes
        due = broadcast(late, comm)
        if self._every is not None and moment.step % self._every == 0:
            due = True
        # From the start on, so that what is killed at any time can be continued.
        if due or moment.step == 0 or moment.last or moment.interrupted:
            self._write(moment)
            self._written = time.monotonic()

    def _write(self, moment):
        import h5py

        flow = moment.flow
        state, settings = flow.state(), flow.settings()
        on_root = rank(flow.comm) == 0
        temporary = self._path.with_name(self._path.name + ".tmp")
        file = h5py.File(temporary, "w") if on_root else None
        try:
            if on_root:
                file.attrs["format"] = _FORMAT
                file.attrs["step"] = moment.step
                file.attrs["settings"] = json.dumps(settings)
                memory = moment.rule.memory() if hasattr(moment.rule, "memory") else None
                file.attrs["rule"] = json.dumps(memory)
                for name, value in state.replicated.items():
                    file.create_dataset(f"replicated/{name}", data=value)
            for name, rows in state.distributed.items():
                rows = np.ascontiguousarray(rows)
                counts = np.zeros(size(flow.comm), dtype=np.int64)
                counts[rank(flow.comm)] = len(rows)
                counts = sum_over_ranks(counts, flow.comm)
                if on_root:
                    file.create_dataset(f"rows_of_ranks/{name}", data=counts)
                    dataset = file.create_dataset(
                        f"distributed/{name}", (counts.sum(), *rows.shape[1:]), rows.dtype
                    )
                for start, block in blocks_on_root(rows, flow.comm):
                    dataset[start : start + len(block)] = block
        finally:
            if on_root:
                file.close()
        if on_root:
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())
            os.replace(temporary, self._path)


def restore(path, flow, rule=None):
    """Bring a flow, and a stopping rule with a memory, to the state of a checkpoint.

    Parameters
    ----------
    path : path-like
        Read by every rank.
    flow : Flow
        Made with the settings of the checkpoint's flow.
    rule : callable, optional

    Returns
    -------
    int
        Steps taken so far.

    Raises
    ------
    ValueError
        On every rank, when the file is damaged or foreign, or the settings differ, naming which.
    OSError
        When it cannot be read.
    """
    settings = json.loads(json.dumps(flow.settings()))
    loaded, problem, missing = None, None, None
    try:
        loaded = _load(path, flow.comm)
    except FileNotFoundError as error:
        missing = f"{path}: no such checkpoint ({error.strerror or 'not found'})"
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        problem = (
            f"{path} is damaged or no checkpoint of this program ({error}); "
            f"remove it and start again"
        )
    raise_together(missing, flow.comm, FileNotFoundError)
    raise_together(problem, flow.comm)
    state, step, stored, memory = loaded
    differences = list(_differences(stored, settings))
    if differences:
        raise ValueError(
            f"{path} belongs to a run with other settings: {'; '.join(differences[:5])}. "
            f"Continue with the settings of that run, or start a new one"
        )
    flow.restore(state)
    if rule is not None and hasattr(rule, "remember") and memory is not None:
        try:
            rule.remember(memory)
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"{path} belongs to a run with another stopping rule: expected the same"
            ) from error
    return step


def _load(path, comm):
    import h5py

    if not Path(path).exists():
        raise FileNotFoundError(path)
    with h5py.File(path, "r") as file:
        if file.attrs.get("format") != _FORMAT:
            raise ValueError(f"its format is {file.attrs.get('format')!r}, not {_FORMAT!r}")
        distributed, replicated = {}, {}
        for name, dataset in file.get("distributed", {}).items():
            counts = file[f"rows_of_ranks/{name}"][...]
            # The cut decides how sums round, so as many ranks as before share as before.
            if len(counts) == size(comm):
                first = counts[: rank(comm)].sum()
                rows = slice(first, first + counts[rank(comm)])
            else:
                rows = local_slice(len(dataset), comm)
            distributed[name] = dataset[rows]
        for name, dataset in file.get("replicated", {}).items():
            replicated[name] = dataset[()]
        return (
            State(distributed, replicated),
            int(file.attrs["step"]),
            json.loads(file.attrs["settings"]),
            json.loads(file.attrs["rule"]),
        )


def _differences(stored, present, prefix=""):
    """Texts "key: then, now" for every setting that is not the same."""
    if isinstance(stored, dict) and isinstance(present, dict):
        for key in sorted(stored.keys() | present.keys()):
            yield from _differences(stored.get(key), present.get(key), f"{prefix}{key}.")
    elif stored != present:
        yield f"{prefix[:-1]} was {stored!r} and is {present!r}"
