"""Records: what a run wrote down, in one HDF5 file that xarray and others open.

The root group is the time table (one row a moment), the group ``snapshots`` holds the arrays for
figures, the group ``constants`` arrays that do not change. Attributes of the root tell
what was run. The file is netCDF4, written by rank 0.
"""

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from meanfield import __version__
from meanfield.runtime.parallel import (
    blocks_on_root,
    broadcast,
    raise_together,
    rank,
    size,
    sum_over_ranks,
)
from meanfield.runtime.schedule import Schedule

RECORD_NAME = "record.h5"
_LIBRARIES = ("numpy", "scipy", "mpi4py", "h5py", "h5netcdf", "ducc0", "finufft", "POT")


class Record:
    """An observer that writes the table and snapshots.

    Parameters
    ----------
    path : path-like
        A new file, or with `append` one to be continued.
    flow : Flow
    interval : float, optional
        Time between rows; they are written at its multiples, at the beginning and at the end.
    every : int, optional
        Steps between rows, instead.
    snapshot_every : int
        Rows between snapshots; there is one at the end too.
    settings : dict
        JSON-able: the options of the run, kept beside those of the flow.
    constants : dict of str to ndarray
        Written once.
    append : bool
        Continue the file; rows after `from_step` are cut off.
    from_step : int
        Step from which an appended run continues.
    """

    def __init__(
        self,
        path,
        flow,
        interval=None,
        every=None,
        snapshot_every=1,
        settings=None,
        constants=None,
        append=False,
        from_step=0,
    ):
        self._schedule = Schedule(interval, every)
        self._path = Path(path)
        self._snapshot_every = snapshot_every
        description = _description(flow, settings)
        problem, kept = None, (0, None, None)
        if rank(flow.comm) == 0:
            try:
                if append:
                    kept = _cut_back(self._path, from_step)
                else:
                    _create(self._path, description, constants or {})
            except (OSError, KeyError) as error:
                problem = f"{self._path} cannot be written: {error}"
        raise_together(problem, flow.comm, OSError)
        self._rows, self._row_step, self._snapshot_step = broadcast(kept, flow.comm)

    def next_time(self, time):
        """The time of the next row."""
        return self._schedule.next_time(time)

    def observe(self, moment):
        """Write a row, and a snapshot, when they are due."""
        if not self._schedule.is_due(moment):
            return
        # A step is met twice when a run continues from it, or its flow ends after all.
        is_new = moment.step != self._row_step
        wants_snapshot = moment.last or (is_new and self._rows % self._snapshot_every == 0)
        if is_new:
            row = {"time": moment.flow.time, "step": moment.step, **moment.row}
            if rank(moment.flow.comm) == 0:
                with _open(self._path, "a") as file:
                    _append(file, "time", row)
            self._rows, self._row_step = self._rows + 1, moment.step
        if wants_snapshot and moment.step != self._snapshot_step:
            self._write_snapshot(moment)
            self._snapshot_step = moment.step

    def _write_snapshot(self, moment):
        flow = moment.flow
        snapshot = flow.snapshot()
        for name, value in (snapshot.distributed | snapshot.replicated).items():
            if np.iscomplexobj(value):
                raise TypeError(f"{name} of the snapshot is complex: expected real numbers")
        on_root = rank(flow.comm) == 0
        file = _open(self._path, "a") if on_root else None
        try:
            group = None
            if on_root:
                group = file.groups.get("snapshots") or file.create_group("snapshots")
                fixed = {name: np.asarray(v, float) for name, v in snapshot.replicated.items()}
                _append(group, "snapshot", {"time": flow.time, "step": moment.step, **fixed})
            for name, rows in snapshot.distributed.items():
                count = sum_over_ranks(len(rows), flow.comm)
                if on_root:
                    variable = _variable(group, "snapshot", name, (count, *rows.shape[1:]))
                for start, block in blocks_on_root(rows, flow.comm):
                    variable[-1, start : start + len(block)] = block
        finally:
            if on_root:
                file.close()


class StoredRun:
    """What `read_record` found.

    Attributes
    ----------
    table : dict of str to ndarray, shape (rows,)
        "time", "step" and the flow's numbers.
    snapshots : dict of str to ndarray, shape (snapshots, ...)
        "time", "step" and the flow's arrays.
    constants : dict of str to ndarray
    description : dict
        Settings, versions and the like.
    """

    def __init__(self, table, snapshots, constants, description):
        self.table = table
        self.snapshots = snapshots
        self.constants = constants
        self.description = description


def read_record(path):
    """Read a record back.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    StoredRun

    Raises
    ------
    OSError
        When there is no such file or it is no record.
    """
    with _open(path, "r") as file:
        groups = [file, file.groups.get("snapshots"), file.groups.get("constants")]
        table, snapshots, constants = (
            {} if group is None else {name: v[...] for name, v in group.variables.items()}
            for group in groups
        )
        description = {name: json.loads(text) for name, text in file.attrs.items()}
    return StoredRun(table, snapshots, constants, description)


def _open(path, mode):
    import h5netcdf

    return h5netcdf.File(path, mode)


def _create(path, description, constants):
    with _open(path, "w") as file:
        for name, value in description.items():
            file.attrs[name] = json.dumps(value)
        if constants:
            group = file.create_group("constants")
            for name, value in constants.items():
                value = np.asarray(value, dtype=float)
                _set_dimensions(group, name, value.shape)
                group.create_variable(
                    name, tuple(f"{name}_{i}" for i in range(value.ndim)), data=value
                )


def _append(group, dimension, row):
    """Add one entry along an unlimited dimension to every variable of `row`."""
    length = len(group.dimensions[dimension]) if dimension in group.dimensions else 0
    if length == 0 and dimension not in group.dimensions:
        group.dimensions[dimension] = None
    group.resize_dimension(dimension, length + 1)
    for name, value in row.items():
        _variable(group, dimension, name, np.shape(value))[-1] = value


def _variable(group, dimension, name, shape):
    if name not in group.variables:
        _set_dimensions(group, name, shape)
        trailing = tuple(f"{name}_{i}" for i in range(len(shape)))
        group.create_variable(name, (dimension, *trailing), dtype=float, fillvalue=np.nan)
    return group.variables[name]


def _set_dimensions(group, name, shape):
    for i, extent in enumerate(shape):
        group.dimensions[f"{name}_{i}"] = extent


def _cut_back(path, step):
    """Remove rows and snapshots after a step, so that the run can continue from there.

    Returns the number of rows kept, and the last steps that have a row and a snapshot.
    """
    kept = {}
    with _open(path, "a") as file:
        for group, dimension in ((file, "time"), (file.groups.get("snapshots"), "snapshot")):
            steps = np.empty(0) if group is None else group.variables["step"][...]
            kept[dimension] = steps[steps <= step]
            if group is not None:
                group.resize_dimension(dimension, len(kept[dimension]))
    last = [int(steps[-1]) if len(steps) else None for steps in kept.values()]
    return len(kept["time"]), *last


def _description(flow, settings):
    return {
        "flow": flow.settings(),
        "settings": settings or {},
        "versions": {"meanfield": __version__, "python": platform.python_version(), **_versions()},
        "git": _git_state() if rank(flow.comm) == 0 else None,
        "ranks": size(flow.comm),
        "command": sys.argv,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _versions():
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _git_state():
    """Commit of the source tree and whether it was changed since, or None outside one."""
    here = Path(__file__).resolve()
    # An installed copy may lie within the tree of another project, which does not track it.
    commands = (
        ["ls-files", "--error-unmatch", here.name],
        ["rev-parse", "HEAD"],
        ["status", "--porcelain", "-uno"],
    )
    try:
        _, commit, changes = (
            subprocess.run(
                ["git", "-C", str(here.parent), *command],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "changed": bool(changes)}
