"""Time series for ParaView: particles that keep their numbers, and cells of a mesh.

Each series is one file in Kitware's VTKHDF format, version 2.0, as polygonal data: HDF5 with
the steps' arrays one after the other and, in the group ``Steps``, where each step's begin. So
a geometry that does not change is stored once. ParaView opens it from version 5.12 on.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from meanfield.runtime.parallel import (
    blocks_on_root,
    broadcast,
    raise_together,
    rank,
    sum_over_ranks,
)
from meanfield.runtime.schedule import Schedule

FOLDER_NAME = "paraview"
_KINDS = ("Vertices", "Lines", "Polygons", "Strips")
# Rows of a file's chunks, at most: large enough to read fast, small enough not to waste space.
_ROWS_A_CHUNK = 2**14
_STEP = "step"


@dataclass(frozen=True)
class Cloud:
    """Particles to be shown at one time.

    Attributes
    ----------
    nodes : ndarray, shape (n, d), d = 2 or 3
        This rank's rows; a particle's global row is its "id".
    arrays : dict of str to ndarray, shape (n, ...)
        Numbers of each particle.
    """

    nodes: np.ndarray
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """Cells of a mesh to be shown at one time.

    Attributes
    ----------
    vertices : ndarray, shape (v, d), d = 2 or 3
        All of the mesh on rank 0; not used on the others.
    cells : ndarray of int, shape (m, corners)
        All cells on rank 0, going round each; two corners make a line.
    arrays : dict of str to ndarray, shape (n, ...)
        Numbers of each of this rank's cells, which follow each other in rank order.
    """

    vertices: np.ndarray | None
    cells: np.ndarray | None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class ParaviewSeries:
    """An observer that writes time series, one file ``name.vtkhdf`` each.

    Parameters
    ----------
    directory : path-like
        Made when missing.
    shows : dict of str to callable
        Without arguments, collective: a `Cloud` or `Cells`, or None while there is nothing.
    comm : communicator, optional
        The flow's.
    interval : float, optional
        Time between steps of the series, which also has the first and the last moment.
    every : int, optional
        Steps of the flow between them, instead.
    append : bool
        Continue the files; what they hold after `from_step` is cut off.
    from_step : int
        Step from which an appended run continues.

    Raises
    ------
    ValueError
        On every rank, when points are not in R² or R³, or an array does not fit.
    OSError
        On every rank, when the files cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np, meanfield as mf
    >>> from meanfield.particles.flow import ParticleFlow
    >>> from meanfield.runtime.evolve import evolve
    >>> pair = mf.Measure([[1.0, 0.0], [0.6, 0.8]], [0.5, 0.5])
    >>> flow = ParticleFlow(mf.Model(mf.Attention(beta=1.0)), pair)
    >>> def cloud():
    ...     return Cloud(flow.measure.nodes, {"mass": flow.measure.masses})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     series = ParaviewSeries(folder, {"particles": cloud}, interval=0.5)
    ...     _ = evolve(flow, 2.0, [series])
    ...     [path.name for path in Path(folder).iterdir()]
    ['particles.vtkhdf']
    """

    def __init__(
        self,
        directory,
        shows,
        comm=None,
        interval=None,
        every=None,
        append=False,
        from_step=0,
    ):
        self._schedule = Schedule(interval, every)
        self._shows = shows
        self._comm = comm
        directory = Path(directory)
        self._paths = {name: directory / f"{name}.vtkhdf" for name in shows}
        for name, show in shows.items():
            _check(name, show(), comm)
        last_steps, problem = {}, None
        if rank(comm) == 0:
            try:
                directory.mkdir(parents=True, exist_ok=True)
                for name, path in self._paths.items():
                    last_steps[name] = _cut_back(path, from_step) if append else _remove(path)
            except (OSError, KeyError) as error:
                problem = f"{directory} cannot be written: {error}"
        raise_together(problem, comm, OSError)
        self._last_steps = broadcast(last_steps, comm)
        # The order of cells is that of this run's ranks.
        self._has_cells = set()

    def next_time(self, time):
        """The time of the next step of the series."""
        return self._schedule.next_time(time)

    def observe(self, moment):
        """Write a step of every series when it is due."""
        if not self._schedule.is_due(moment):
            return
        for name, show in self._shows.items():
            # A moment is met twice when a run continues from it.
            if self._last_steps[name] == moment.step:
                continue
            shown = show()
            if shown is not None:
                self._write(name, shown, moment)
                self._last_steps[name] = moment.step

    def _write(self, name, shown, moment):
        _check(name, shown, self._comm)
        file = _open(self._paths[name]) if rank(self._comm) == 0 else None
        try:
            if isinstance(shown, Cloud):
                _write_cloud(file, shown, self._comm)
            else:
                if file is not None and name not in self._has_cells:
                    _write_cells(file, shown)
                self._has_cells.add(name)
                _write_arrays(file, "Cell", shown.arrays, self._comm)
            if file is not None:
                _end_step(file, moment)
        finally:
            if file is not None:
                file.close()


def _check(name, shown, comm):
    """Raise on every rank when a rank's rows cannot be shown."""
    if shown is None:
        return
    count, problem = None, None
    if isinstance(shown, Cloud):
        count = len(shown.nodes)
    points = shown.nodes if isinstance(shown, Cloud) else shown.vertices
    if points is not None and (points.ndim != 2 or points.shape[1] not in (2, 3)):
        problem = f"{name} has points of shape {points.shape}: ParaView shows those of R² and R³"
    for title, rows in shown.arrays.items():
        count = len(rows) if count is None else count
        if len(rows) != count:
            problem = f"{title} of {name} has {len(rows)} rows: expected {count}"
        elif rows.dtype.kind not in "fiu":
            problem = f"{title} of {name} has type {rows.dtype}: expected real numbers"
    raise_together(problem, comm)


# Below, a file is None on all ranks but 0. Every part of a file, that is a geometry, and all
# rows of a step are added at the end; so a step's offsets are lengths less its own counts.


def _open(path):
    import h5py

    file = h5py.File(path, "a")
    if "VTKHDF" not in file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = (2, 0)
        root.attrs["Type"] = np.bytes_("PolyData")
        root.create_group("Steps").attrs["NSteps"] = 0
        for kind in ("PointData", "CellData", *_KINDS):
            root.create_group(kind)
    return file


def _write_cloud(file, cloud, comm):
    count = sum_over_ranks(len(cloud.nodes), comm)
    if file is not None:
        numbers = file["VTKHDF"].get("NumberOfPoints")
        # Particles keep their numbers, and ParaView needs these once.
        if numbers is None or numbers[-1] != count:
            _add_part(file, count, "Vertices", np.arange(count)[:, None])
            _add_rows(file["VTKHDF/PointData"], "id", np.arange(count), None)
    root = None if file is None else file["VTKHDF"]
    _add_rows(root, "Points", _in_space(cloud.nodes), comm)
    _write_arrays(file, "Point", cloud.arrays, comm)


def _write_cells(file, shown):
    """The mesh, once; on rank 0."""
    kind = "Lines" if shown.cells.shape[1] == 2 else "Polygons"
    _add_part(file, len(shown.vertices), kind, shown.cells)
    _add_rows(file["VTKHDF"], "Points", _in_space(shown.vertices), None)


def _write_arrays(file, place, arrays, comm):
    group = None if file is None else file[f"VTKHDF/{place}Data"]
    for name, rows in arrays.items():
        _add_rows(group, name, rows, comm)


def _add_part(file, points, kind, cells):
    root = file["VTKHDF"]
    _add_rows(root, "NumberOfPoints", np.array([points]), None)
    for each in _KINDS:
        present = cells if each == kind else cells[:0]
        count, corners = present.shape
        rows = {
            "NumberOfCells": np.array([count]),
            "NumberOfConnectivityIds": np.array([count * corners]),
            "Connectivity": present.ravel(),
            "Offsets": corners * np.arange(count + 1),
        }
        for name, values in rows.items():
            _add_rows(root[each], name, values.astype(np.int64), None)


def _end_step(file, moment):
    """Make what was added a step of the series."""
    root = file["VTKHDF"]
    points = root["NumberOfPoints"][-1]
    cells = np.array([root[kind]["NumberOfCells"][-1] for kind in _KINDS])
    corners = np.array([root[kind]["NumberOfConnectivityIds"][-1] for kind in _KINDS])
    parts = len(root["NumberOfPoints"])
    rows = {
        "Values": moment.flow.time,
        "PartOffsets": parts - 1,
        "NumberOfParts": 1,
        "PointOffsets": len(root["Points"]) - points,
        # Every part has one more offset than cells.
        "CellOffsets": [len(root[kind]["Offsets"]) - parts for kind in _KINDS] - cells,
        "ConnectivityIdOffsets": [len(root[kind]["Connectivity"]) for kind in _KINDS] - corners,
    }
    for place, count in (("Point", points), ("Cell", cells.sum())):
        for name, array in root[f"{place}Data"].items():
            rows[f"{place}DataOffsets/{name}"] = len(array) - count
    for name, value in rows.items():
        _add_rows(root["Steps"], name, np.asarray(value)[None], None)
    root["Steps"].attrs["NSteps"] = len(root["Steps/Values"])
    # Last, so that a step is one when this is there.
    _add_rows(file, _STEP, np.array([moment.step]), None)


def _add_rows(group, name, rows, comm):
    """Add all ranks' rows at the end of a dataset, which is made when missing."""
    count = sum_over_ranks(len(rows), comm)
    dataset, first = None, 0
    if group is not None:
        if name not in group:
            chunk = (min(max(count, 64), _ROWS_A_CHUNK), *rows.shape[1:])
            group.create_dataset(
                name, (0, *rows.shape[1:]), rows.dtype, maxshape=(None, *rows.shape[1:]),
                chunks=chunk,
            )
        dataset = group[name]
        first = len(dataset)
        dataset.resize(first + count, axis=0)
    for start, block in blocks_on_root(rows, comm):
        dataset[first + start : first + start + len(block)] = block


def _in_space(points):
    """Points of the plane at height 0."""
    return np.pad(points, ((0, 0), (0, 3 - points.shape[1])))


def _remove(path):
    path.unlink(missing_ok=True)


def _cut_back(path, step):
    """Remove what comes after a step; returns the last one that is left, or None."""
    import h5py

    if not path.exists():
        return None
    with h5py.File(path, "r+") as file:
        steps = file[_STEP][...]
        kept = int(np.sum(steps <= step))
        if kept:
            _keep(file, kept)
    if not kept:
        path.unlink()
        return None
    return int(steps[kept - 1])


def _keep(file, kept):
    """Cut everything off that does not belong to the first `kept` steps."""
    import h5py

    root, steps = file["VTKHDF"], file["VTKHDF/Steps"]
    file[_STEP].resize(kept, axis=0)
    steps.attrs["NSteps"] = kept
    steps.visititems(
        lambda _, item: item.resize(kept, axis=0) if isinstance(item, h5py.Dataset) else None
    )
    part = int(steps["PartOffsets"][-1])
    root["NumberOfPoints"].resize(part + 1, axis=0)
    points, cells = root["NumberOfPoints"][part], 0
    root["Points"].resize(steps["PointOffsets"][-1] + points, axis=0)
    for number, kind in enumerate(_KINDS):
        group, first = root[kind], steps["CellOffsets"][-1, number]
        here, corners = group["NumberOfCells"][part], group["NumberOfConnectivityIds"][part]
        cells += here
        group["NumberOfCells"].resize(part + 1, axis=0)
        group["NumberOfConnectivityIds"].resize(part + 1, axis=0)
        group["Offsets"].resize(first + here + part + 1, axis=0)
        group["Connectivity"].resize(
            steps["ConnectivityIdOffsets"][-1, number] + corners, axis=0
        )
    for place, count in (("Point", points), ("Cell", cells)):
        for name, array in root[f"{place}Data"].items():
            array.resize(steps[f"{place}DataOffsets/{name}"][-1] + count, axis=0)
