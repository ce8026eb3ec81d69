"""Clouds of weighted points from files: NumPy arrays or comma-separated text."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from meanfield.runtime.parallel import local_slice, raise_together

# As for a measure: how far rows may be from unit length, and the masses from the sum one.
UNIT_TOLERANCE = 1e-8


def read_points(path, comm=None):
    """This rank's rows of the cloud in a file.

    Parameters
    ----------
    path : path-like
        - ``.npy``: an array (n, d) of unit rows, all of the same mass;
        - ``.npz``: an array ``nodes`` (n, d) and, if masses differ, an array ``masses`` (n,);
        - ``.csv``: a first line that names the columns, such as ``x,y,z`` or ``x,y,z,mass``,
          then one point a line.
    comm : communicator, optional
        The file is read by every rank.

    Returns
    -------
    nodes : ndarray, shape (n, d)
    masses : ndarray, shape (n,)
        They sum to one over all ranks.

    Raises
    ------
    ValueError, OSError
        On every rank, naming the file, where in it the trouble is, and what was expected.
    """
    path = Path(path)
    nodes = masses = None
    os_problem = value_problem = None
    try:
        nodes, masses = _whole(path)
    except OSError as problem:
        os_problem = f"cannot read {path}: {problem.strerror or problem}"
    except (ValueError, EOFError, BadZipFile) as problem:
        value_problem = f"{path}: {problem}"
    raise_together(os_problem, comm, OSError)
    raise_together(value_problem, comm)
    here = local_slice(len(masses), comm)
    # Copies, because the whole may be a read-only map of the file.
    return np.array(nodes[here]), np.array(masses[here])


def _whole(path):
    if path.suffix not in _READERS:
        raise ValueError(f"unknown kind of file {path.suffix!r}; expected .npy, .npz or .csv")
    nodes, masses = _READERS[path.suffix](path)
    nodes = _numbers("nodes", nodes)
    if nodes.ndim != 2 or nodes.shape[1] < 2 or len(nodes) == 0:
        raise ValueError(f"nodes has shape {nodes.shape}: expected (n, d) with n >= 1, d >= 2")
    length = np.linalg.norm(nodes, axis=1)
    # Negated comparisons, so that a NaN is a problem too.
    row = _first(~(np.abs(length - 1) <= UNIT_TOLERANCE))
    if row is not None:
        raise ValueError(
            f"point {row} (counted from 0) = {nodes[row].tolist()} has length "
            f"{length[row]:.12g}; expected 1 to {UNIT_TOLERANCE:g} (divide points by their lengths)"
        )
    if masses is None:
        return nodes, np.full(len(nodes), 1 / len(nodes))
    masses = _numbers("masses", masses)
    if masses.shape != (len(nodes),):
        raise ValueError(f"masses has shape {masses.shape}: expected one a point, ({len(nodes)},)")
    row = _first(~((masses >= 0) & np.isfinite(masses)))
    if row is not None:
        raise ValueError(
            f"mass {row} (counted from 0) is {masses[row]}; expected a finite number >= 0"
        )
    if abs(masses.sum() - 1) > UNIT_TOLERANCE:
        raise ValueError(
            f"masses sum to {masses.sum():.12g}; expected 1 (divide them by their sum if they "
            f"are relative weights)"
        )
    return nodes, masses


def _read_npy(path):
    # Mapped, so that several ranks on a machine share the file's memory.
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("is an archive of arrays; expected one array, or the ending .npz")
    return array, None


def _read_npz(path):
    arrays = np.load(path, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        raise ValueError("is a single array; expected an archive, or the ending .npy")
    with arrays:
        names = sorted(arrays)
        if names not in (["nodes"], ["masses", "nodes"]):
            raise ValueError(
                f"holds the arrays {names}; expected nodes (n, d) and, optionally, masses (n,)"
            )
        return arrays["nodes"], arrays.get("masses")


def _read_csv(path):
    with open(path, encoding="utf-8") as lines:
        names = [name.strip() for name in next(lines, "").split(",")]
        if any(not name or _is_number(name) for name in names) or len(set(names)) < len(names):
            raise ValueError(
                f"line 1 is {','.join(names)!r}; expected the names of the columns, such as "
                f"x,y,z or x,y,z,mass"
            )
        if "mass" in names[:-1]:
            raise ValueError("line 1: expected the column mass to be the last")
        rows = [
            _csv_row(line, number, len(names))
            for number, line in enumerate(lines, start=2)
            if line.strip()
        ]
    table = np.array(rows).reshape(-1, len(names))
    return (table[:, :-1], table[:, -1]) if names[-1] == "mass" else (table, None)


def _csv_row(line, number, columns):
    entries = line.split(",")
    if len(entries) != columns or not all(_is_number(entry) for entry in entries):
        raise ValueError(
            f"line {number} is {line.strip()!r}; expected {columns} numbers separated by commas"
        )
    return [float(entry) for entry in entries]


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(name, array):
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} holds entries of type {array.dtype}; expected real numbers")
    return np.ascontiguousarray(array, dtype=float)


def _first(bad):
    return int(np.argmax(bad)) if np.any(bad) else None


_READERS = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}
