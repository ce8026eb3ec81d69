"""Time series for ParaView: particles that keep their numbers, and cells of a mesh.

Each series is one file in the VTKHDF format, which ParaView opens from version 5.12 on and
VTK from 9.3 on.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from meanfield.runtime.parallel import broadcast, raise_together, rank, sum_over_ranks
from meanfield.runtime.schedule import Schedule
from meanfield.runtime.vtkhdf import add_part, add_rows, cut_back, end_step, open_file

FOLDER_NAME = "paraview"


@dataclass(frozen=True)
class Cloud:
    """Particles to be shown at one time, as vertices.

    Attributes
    ----------
    nodes : ndarray, shape (n, d), d = 2 or 3
        This rank's rows, in the order of the particles' numbers, which are shown as "id".
    arrays : dict of str to ndarray, shape (n, ...)
        Numbers of each particle.
    """

    nodes: np.ndarray
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """Cells of a mesh to be shown at one time, as lines or polygons.

    Attributes
    ----------
    vertices : ndarray, shape (v, d), d = 2 or 3
        All of the mesh on rank 0; not used on the others.
    cells : ndarray of int, shape (m, corners)
        All cells on rank 0, going round each; two corners make a line.
    arrays : dict of str to ndarray, shape (n, ...)
        Numbers of each of this rank's cells; `cells` has the ranks' cells one after the other.
    """

    vertices: np.ndarray | None
    cells: np.ndarray | None
    arrays: dict[str, np.ndarray]


class ParaviewSeries:
    """An observer that writes time series, one file ``name.vtkhdf`` each.

    Parameters
    ----------
    directory : path-like
        Made when missing.
    shows : dict of str to callable
        Without arguments, collective: a `Cloud` or `Cells`, or None while there is nothing to
        show. The particles may change in number from one time to another, a mesh must not.
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
    >>> import tempfile, meanfield as mf
    >>> from meanfield.particles.flow import ParticleFlow
    >>> from meanfield.runtime.evolve import evolve
    >>> pair = mf.Measure([[1.0, 0.0], [0.6, 0.8]], [0.5, 0.5])
    >>> flow = ParticleFlow(mf.Model(mf.Attention(beta=1.0)), pair)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     series = ParaviewSeries(folder, {"particles": particles_of(flow)}, interval=0.5)
    ...     _ = evolve(flow, 2.0, [series])
    ...     [path.name for path in Path(folder).iterdir()]
    ['particles.vtkhdf']
    """

    def __init__(
        self, directory, shows, comm=None, interval=None, every=None, append=False, from_step=0
    ):
        directory = Path(directory)
        self._schedule = Schedule(interval, every)
        self._shows = shows
        self._comm = comm
        self._paths = {name: directory / f"{name}.vtkhdf" for name in shows}
        for name, show in shows.items():
            raise_together(_problem(name, show()), comm)
        last_steps, problem = {}, None
        if rank(comm) == 0:
            try:
                directory.mkdir(parents=True, exist_ok=True)
                for name, path in self._paths.items():
                    if not append:
                        path.unlink(missing_ok=True)
                    last_steps[name] = cut_back(path, from_step)
            except (OSError, KeyError) as error:
                problem = f"{directory} cannot be written: {error}"
        raise_together(problem, comm, OSError)
        self._last_steps = broadcast(last_steps, comm)
        # A mesh is written once in each run, because ranks decide the order of its cells.
        self._meshes_written = set()

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
        comm = self._comm
        raise_together(_problem(name, shown), comm)
        file = open_file(self._paths[name]) if rank(comm) == 0 else None
        try:
            raise_together(file and _change(name, file["VTKHDF"], shown), comm)
            root = file and file["VTKHDF"]
            if isinstance(shown, Cloud):
                _add_cloud(root, shown, comm)
            elif name not in self._meshes_written:
                _add_mesh(root, shown)
                self._meshes_written.add(name)
            place = root and root[_place(shown)]
            for title, rows in shown.arrays.items():
                add_rows(place, title, rows, comm)
            if file is not None:
                end_step(file, moment.flow.time, moment.step)
        finally:
            if file is not None:
                file.close()


def particles_of(flow):
    """A show of a flow whose ``measure`` has its particles in the order of their numbers."""
    return lambda: Cloud(flow.measure.nodes, {"mass": flow.measure.masses})


def _add_cloud(root, cloud, comm):
    count = sum_over_ranks(len(cloud.nodes), comm)
    if root is not None and ("NumberOfPoints" not in root or root["NumberOfPoints"][-1] != count):
        numbers = np.arange(count)
        add_part(root, count, "Vertices", numbers[:, None])
        add_rows(root["PointData"], "id", numbers, None)
    add_rows(root, "Points", _in_space(cloud.nodes), comm)


def _add_mesh(root, shown):
    if root is not None:
        kind = "Lines" if shown.cells.shape[1] == 2 else "Polygons"
        add_part(root, len(shown.vertices), kind, shown.cells)
        add_rows(root, "Points", _in_space(shown.vertices), None)


def _in_space(points):
    """Points of the plane at height 0."""
    return np.pad(points, ((0, 0), (0, 3 - points.shape[1])))


def _place(shown):
    return "PointData" if isinstance(shown, Cloud) else "CellData"


def _problem(name, shown):
    """Why this rank's rows cannot be shown, or None."""
    if shown is None:
        return None
    is_cloud = isinstance(shown, Cloud)
    points = shown.nodes if is_cloud else shown.vertices
    if points is not None and (points.ndim != 2 or points.shape[1] not in (2, 3)):
        return f"{name} has points of shape {points.shape}: ParaView shows those of R² and R³"
    if is_cloud and "id" in shown.arrays:
        return f"{name} has an array id: the particles' numbers have that name; choose another"
    lengths = {title: len(rows) for title, rows in shown.arrays.items()}
    if is_cloud:
        lengths["nodes"] = len(points)
    if len(set(lengths.values())) > 1:
        return f"{name} has rows {lengths}: expected the same number of each"
    for title, rows in shown.arrays.items():
        if rows.dtype.kind not in "fiu":
            return f"{title} of {name} has type {rows.dtype}: expected real numbers"
    return None


def _change(name, root, shown):
    """How what is shown differs in kind from what the file holds, or None."""
    if root["Steps"].attrs["NSteps"] == 0:
        return None
    is_cloud = isinstance(shown, Cloud)
    if is_cloud != ("id" in root["PointData"]):
        return f"{name} was a cloud or a mesh and is the other: expected a series for each"
    before = set(root[_place(shown)]) - {"id"}
    if before != set(shown.arrays):
        return f"{name} had arrays {sorted(before)}, now {sorted(shown.arrays)}: expected the same"
    return None
