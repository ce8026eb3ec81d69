"""The directory that a run writes into, and its summary."""

import json
import math
import os
from pathlib import Path

import numpy as np

from meanfield.runtime.parallel import raise_together, rank

_WRITTEN = ("record.h5", "checkpoint.h5*", "summary.json*", "*.png", "paraview/*.vtkhdf")


def prepare_directory(directory, overwrite=False, restart=False, comm=None):
    """Make the directory of a run, on rank 0; nothing that is there is lost unasked.

    Parameters
    ----------
    directory : path-like
    overwrite : bool
        Allow one that holds files. What a run had written there (record, checkpoint,
        summary, figures) is removed, other files stay.
    restart : bool
        Expect one that holds a run to be continued.
    comm : communicator, optional

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        When both are asked for.
    OSError
        On every rank, saying what to do.
    """
    directory = Path(directory)
    if overwrite and restart:
        raise ValueError("overwrite and restart contradict each other; expected one of them")
    problem = None
    if rank(comm) == 0:
        try:
            problem = _refusal(directory, overwrite, restart)
            if problem is None:
                _make(directory, overwrite)
        except OSError as error:
            problem = f"output directory {directory} cannot be written: {error.strerror}"
    raise_together(problem, comm, OSError)
    return directory


def _refusal(directory, overwrite, restart):
    if restart and not directory.is_dir():
        return f"{directory} does not exist; there is no run to restart"
    if not restart and not overwrite and directory.is_dir() and any(directory.iterdir()):
        return (
            f"{directory} is not empty; choose another output, continue the run in it with "
            f"--restart, or replace it with --overwrite"
        )
    return None


def _make(directory, overwrite):
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / f".writable-{os.getpid()}"
    probe.touch()
    probe.unlink()
    if overwrite:
        for pattern in _WRITTEN:
            for file in directory.glob(pattern):
                file.unlink()


def write_summary(path, summary):
    """Write numbers and texts as JSON, whole or not at all; call it on one rank.

    Parameters
    ----------
    path : path-like
    summary : dict
        Nested dicts and lists of texts, numbers, numpy numbers and arrays, None. What is
        not finite becomes null.
    """
    path = Path(path)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(_plain(summary), indent=1, ensure_ascii=False) + "\n")
    os.replace(temporary, path)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
