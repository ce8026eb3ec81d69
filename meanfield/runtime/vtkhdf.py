"""Files of Kitware's VTKHDF format, version 2.0: polygonal data that change in time.

HDF5 with the steps' arrays one after the other and, in the group ``Steps``, where each step's
begin, so that what does not change is stored once. A *part* is a geometry; a step shows one part.
Everything is added at the end, so a step's offsets are lengths less its own counts.

Functions that add rows are collective; the file is None on all ranks but 0.
"""

import numpy as np

from meanfield.runtime.parallel import blocks_on_root, sum_over_ranks

KINDS = ("Vertices", "Lines", "Polygons", "Strips")
# Rows of a chunk, at least and at most: neither many chunks nor much empty space.
_CHUNK = (64, 2**14)
# Beside what the format knows: the flow's step for each step of the series.
_STEP = "step"


def open_file(path):
    """A file to be continued, made when missing."""
    import h5py

    file = h5py.File(path, "a")
    if "VTKHDF" not in file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = (2, 0)
        root.attrs["Type"] = np.bytes_("PolyData")
        root.create_group("Steps").attrs["NSteps"] = 0
        for name in ("PointData", "CellData", *KINDS):
            root.create_group(name)
    return file


def add_part(root, points, kind, cells):
    """Begin a geometry of so many points; on rank 0.

    Parameters
    ----------
    root : h5py.Group
        "VTKHDF" of the file.
    points : int
        Their rows have to follow: once, or at every step when they move.
    kind : str
        Of `KINDS`.
    cells : ndarray of int, shape (m, corners)
        Numbers of points.
    """
    _add(root, "NumberOfPoints", points)
    for each in KINDS:
        present = cells if each == kind else cells[:0]
        count, corners = present.shape
        _add(root[each], "NumberOfCells", count)
        _add(root[each], "NumberOfConnectivityIds", count * corners)
        add_rows(root[each], "Connectivity", present.ravel().astype(np.int64), None)
        add_rows(root[each], "Offsets", corners * np.arange(count + 1), None)


def add_rows(group, name, rows, comm):
    """Add all ranks' rows at the end of a dataset, which is made when missing; collective."""
    count = sum_over_ranks(len(rows), comm)
    dataset, first = None, 0
    if group is not None:
        if name not in group:
            shape = rows.shape[1:]
            chunk = min(max(count, _CHUNK[0]), _CHUNK[1])
            group.create_dataset(
                name, (0, *shape), rows.dtype, maxshape=(None, *shape), chunks=(chunk, *shape)
            )
        dataset = group[name]
        first = len(dataset)
        dataset.resize(first + count, axis=0)
    for start, block in blocks_on_root(rows, comm):
        dataset[first + start : first + start + len(block)] = block


def end_step(file, time, step):
    """Make what was added a step of the series; on rank 0."""
    root = file["VTKHDF"]
    kinds = [root[kind] for kind in KINDS]
    parts = len(root["NumberOfPoints"])
    points = root["NumberOfPoints"][-1]
    cells = [kind["NumberOfCells"][-1] for kind in kinds]
    rows = {
        "Values": float(time),
        "NumberOfParts": 1,
        "PartOffsets": parts - 1,
        "PointOffsets": len(root["Points"]) - points,
        # Every part has one more offset than cells.
        "CellOffsets": [
            len(kind["Offsets"]) - parts - count for kind, count in zip(kinds, cells, strict=True)
        ],
        "ConnectivityIdOffsets": [
            len(kind["Connectivity"]) - kind["NumberOfConnectivityIds"][-1] for kind in kinds
        ],
    }
    for place, count in (("PointData", points), ("CellData", sum(cells))):
        for name, array in root[place].items():
            rows[f"{place}Offsets/{name}"] = len(array) - count
    for name, row in rows.items():
        _add(root["Steps"], name, row)
    root["Steps"].attrs["NSteps"] = len(root["Steps/Values"])
    # Last, so that a step whose number is there is whole.
    _add(file, _STEP, step)


def cut_back(path, step):
    """Remove what comes after a step, the file too when nothing is left; on rank 0.

    Returns
    -------
    int or None
        The last step that is left.
    """
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
    """Cut off what does not belong to the first `kept` steps."""
    root, steps = file["VTKHDF"], file["VTKHDF/Steps"]
    last, part = kept - 1, int(steps["PartOffsets"][kept - 1])
    points = root["NumberOfPoints"][part]
    cells = [root[kind]["NumberOfCells"][part] for kind in KINDS]
    lengths = {
        "NumberOfPoints": part + 1,
        "Points": steps["PointOffsets"][last] + points,
    }
    for number, kind in enumerate(KINDS):
        corners = root[kind]["NumberOfConnectivityIds"][part]
        lengths |= {
            f"{kind}/NumberOfCells": part + 1,
            f"{kind}/NumberOfConnectivityIds": part + 1,
            f"{kind}/Offsets": steps["CellOffsets"][last, number] + cells[number] + part + 1,
            f"{kind}/Connectivity": steps["ConnectivityIdOffsets"][last, number] + corners,
        }
    for place, count in (("PointData", points), ("CellData", sum(cells))):
        for name in root[place]:
            lengths[f"{place}/{name}"] = steps[f"{place}Offsets/{name}"][last] + count
            lengths[f"Steps/{place}Offsets/{name}"] = kept
    for name in ("Values", "NumberOfParts", "PartOffsets", "PointOffsets", "CellOffsets",
                 "ConnectivityIdOffsets"):
        lengths[f"Steps/{name}"] = kept
    for name, length in lengths.items():
        root[name].resize(length, axis=0)
    steps.attrs["NSteps"] = kept
    file[_STEP].resize(kept, axis=0)


def _add(group, name, row):
    add_rows(group, name, np.asarray(row)[None], None)
