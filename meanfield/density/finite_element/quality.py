"""How good a mesh of S¹ or S² is, in numbers."""

import numpy as np

from meanfield.runtime.parallel import gather_rows, max_over_ranks, sum_over_ranks

# Corners of Firedrake's quadrilaterals come row by row; these go round.
_ROUND = {2: [0, 1], 3: [0, 1, 2], 4: [0, 1, 3, 2]}


def quality(mesh):
    """Report on a mesh; collective.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        From `build_mesh`.

    Returns
    -------
    dict
        ``cells``, ``vertices``: numbers of them; ``euler_characteristic``: 0 for a circle, 2 for a
        sphere;
        ``area`` and ``area_error``, the latter relative to 2π or 4π;
        ``smallest_diameter``, ``largest_diameter``: of cells, as distances between corners;
        ``largest_neighbour_ratio``: of the diameters of two cells that meet in a facet;
        ``inward_cells``: how many have an oriented normal n with x·n ≤ 0 on average;
        ``largest_distance_from_sphere``: over all nodes of the cells;
        on S² also ``smallest_angle`` at a corner in degrees, and ``largest_aspect_ratio``: the
        longest edge squared over the area, relative to the regular polygon, which has 1.
    """
    from firedrake import Constant, assemble, dx

    comm = mesh.comm
    corners = cell_corners(mesh)
    dimension = mesh.topological_dimension
    diameters = cell_diameters(corners)
    area = float(assemble(Constant(1.0) * dx(domain=mesh)))
    whole = 2 * np.pi if dimension == 1 else 4 * np.pi
    counts = [sum_over_ranks(_owned(mesh, k), comm) for k in range(dimension + 1)]
    radii = np.linalg.norm(mesh.coordinates.dat.data_ro, axis=1)
    report = {
        "cells": counts[-1],
        "vertices": counts[0],
        "euler_characteristic": sum((-1) ** k * count for k, count in enumerate(counts)),
        "area": area,
        "area_error": area / whole - 1,
        "smallest_diameter": -_largest(-diameters, comm),
        "largest_diameter": _largest(diameters, comm),
        "largest_neighbour_ratio": _largest(_neighbour_ratios(mesh, diameters), comm),
        "inward_cells": sum_over_ranks(int(np.sum(_outward(mesh) <= 0)), comm),
        "largest_distance_from_sphere": _largest(np.abs(radii - 1), comm),
    }
    if dimension == 2:
        report["smallest_angle"] = -_largest(-_angles(corners), comm)
        report["largest_aspect_ratio"] = _largest(_aspect_ratios(corners), comm)
    return report


def as_text(report):
    """A report of `quality` as a page of text."""
    circle = "smallest_angle" not in report
    lines = [
        f"{report['cells']} cells, {report['vertices']} vertices, "
        f"Euler characteristic {report['euler_characteristic']} "
        f"({0 if circle else 2} for a {'circle' if circle else 'sphere'})",
        f"{'length' if circle else 'area'} {report['area']:.12g}, "
        f"off by {report['area_error']:.2e} of it",
        f"cell diameters from {report['smallest_diameter']:.4g} to "
        f"{report['largest_diameter']:.4g}, neighbours differ by at most a factor of "
        f"{report['largest_neighbour_ratio']:.3g}",
    ]
    if not circle:
        lines.append(
            f"angles at least {report['smallest_angle']:.1f} degrees, aspect ratios at most "
            f"{report['largest_aspect_ratio']:.2f}"
        )
    inward = report["inward_cells"]
    lines.append("all cells oriented outwards" if inward == 0 else f"{inward} CELLS FACE INWARDS")
    lines.append(
        f"nodes at most {report['largest_distance_from_sphere']:.1e} from the unit "
        f"{'circle' if circle else 'sphere'}"
    )
    return "\n".join(lines)


def cell_corners(mesh):
    """Corners of this rank's cells, going round each; shape (cells, corners, d)."""
    from firedrake import Function, SpatialCoordinate

    space = _corner_space(mesh)
    places = Function(space).interpolate(SpatialCoordinate(mesh)).dat.data_ro_with_halos
    return places[_corner_numbers(mesh, space)]


def gathered_cells(mesh):
    """The whole mesh on rank 0, ``None`` elsewhere; collective.

    Returns
    -------
    vertices : ndarray, shape (n, d)
    cells : integer ndarray, shape (m, corners)
        Vertex numbers, going round each cell.
    """
    from firedrake import Function, SpatialCoordinate

    space = _corner_space(mesh)
    places = Function(space).interpolate(SpatialCoordinate(mesh)).dat.data_ro
    to_global = space.dof_dset.scalar_lgmap
    numbers = _corner_numbers(mesh, space)
    globally = np.asarray(to_global.apply(numbers.ravel().astype(np.int32)), dtype=np.int64)
    return gather_rows(places, mesh.comm), gather_rows(globally.reshape(numbers.shape), mesh.comm)


def cell_diameters(corners):
    """Largest distance between corners of each cell, from shape (m, corners, d) to (m,)."""
    count = corners.shape[1]
    pairs = [(i, j) for i in range(count) for j in range(i)]
    return np.max(
        [np.linalg.norm(corners[:, i] - corners[:, j], axis=1) for i, j in pairs], axis=0
    )


def _corner_space(mesh):
    from firedrake import VectorFunctionSpace

    return VectorFunctionSpace(mesh, mesh.coordinates.ufl_element().family(), 1)


def _corner_numbers(mesh, space):
    numbers = space.cell_node_map().values[: mesh.cell_set.size]
    return numbers[:, _ROUND[numbers.shape[1]]]


def _owned(mesh, dimension):
    """How many points of a dimension belong to this rank."""
    from firedrake import FunctionSpace

    top = mesh.topological_dimension
    if dimension == top:
        return mesh.cell_set.size
    if dimension == 0:
        return _corner_space(mesh).dof_dset.size
    # One degree of freedom a facet.
    return FunctionSpace(mesh, "HDiv Trace", 0).dof_dset.size


def _outward(mesh):
    """Mean over each of this rank's cells of x·n, n the normal as oriented."""
    from firedrake import (
        CellNormal,
        FunctionSpace,
        SpatialCoordinate,
        TestFunction,
        assemble,
        dx,
        inner,
    )

    test = TestFunction(FunctionSpace(mesh, "DG", 0))
    flux = assemble(inner(SpatialCoordinate(mesh), CellNormal(mesh)) * test * dx)
    area = assemble(test * dx(domain=mesh))
    return flux.dat.data_ro / area.dat.data_ro


def _neighbour_ratios(mesh, diameters):
    from firedrake import Function, FunctionSpace

    size = Function(FunctionSpace(mesh, "DG", 0))
    size.dat.data[:] = diameters
    facets = mesh.interior_facets
    pairs = facets.facet_cell_map.values[: facets.set.size]
    # Facets on the border between ranks know a cell of the other rank.
    both = size.dat.data_ro_with_halos[pairs]
    return both.max(axis=1) / both.min(axis=1)


def _angles(corners):
    forward = np.roll(corners, -1, axis=1) - corners
    backward = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(forward, backward), axis=2)
    return np.rad2deg(np.arctan2(sine, np.einsum("ijk,ijk->ij", forward, backward)))


def _aspect_ratios(corners):
    count = corners.shape[1]
    edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
    following = np.roll(corners, -1, axis=1)
    areas = np.linalg.norm(np.cross(corners, following).sum(axis=1), axis=1) / 2
    regular = count / 4 / np.tan(np.pi / count)
    return edges.max(axis=1) ** 2 / areas * regular


def _largest(values, comm):
    return float(max_over_ranks(values.max(initial=-np.inf), comm))
