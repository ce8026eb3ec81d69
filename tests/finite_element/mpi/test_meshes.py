"""A mesh is the same on any number of ranks; run under mpirun."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from mpi4py import MPI

from meanfield.density.finite_element import meshes
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import gathered_cells, quality

COMM = MPI.COMM_WORLD
REGION = {"point": [0.48, 0.6, 0.64], "radius": 0.2, "size": 0.05}
MESHES = {
    "graded circle": {
        "family": "circle",
        "cells": 20,
        "refine": [{"point": [0.6, -0.8], "radius": 0.2, "size": 0.02}],
    },
    "curved circle": {"family": "circle", "cells": 20, "degree": 3},
    "graded": {"family": "icosahedral sphere", "refinements": 2, "refine": [REGION]},
    "curved": {"family": "icosahedral sphere", "refinements": 2, "degree": 2},
    "curved cubed": {"family": "cubed sphere", "cells_per_edge": 5, "degree": 2},
}


def sorted_rows(cells):
    """Cells as rows of corner coordinates, in an order that depends on places only."""
    rounded = np.round(cells, 12) + 0.0
    corners = np.array([cell[np.lexsort(cell.T)] for cell in rounded])
    flat = corners.reshape(len(corners), -1)
    return flat[np.lexsort(flat.T)]


@pytest.mark.parametrize("name", MESHES)
def test_same_mesh_as_on_one_rank(name):
    definition = define(MESHES[name])
    mesh = build_mesh(definition, COMM)
    alone = build_mesh(definition)
    report, expected = quality(mesh), quality(alone)
    assert report.keys() == expected.keys()
    for key, value in expected.items():
        assert report[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key
    assert report["inward_cells"] == 0
    vertices, cells = gathered_cells(mesh)
    if COMM.rank == 0:
        alone_vertices, alone_cells = gathered_cells(alone)
        np.testing.assert_array_equal(
            sorted_rows(vertices[cells]), sorted_rows(alone_vertices[alone_cells])
        )


def test_every_rank_has_its_share():
    mesh = build_mesh(define(MESHES["graded"]), COMM)
    shares = COMM.allgather(mesh.cell_set.size)
    assert min(shares) > 0.5 * sum(shares) / COMM.size


def test_what_rank_zero_cannot_build_fails_everywhere(monkeypatch):
    def refuse(*_):
        raise ValueError("too many cells")

    family = meshes.FAMILIES["circle"]
    broken = meshes.Family(**(vars(family) | {"arrays": refuse}))
    monkeypatch.setitem(meshes.FAMILIES, "circle", broken)
    with pytest.raises(ValueError, match="too many cells"):
        build_mesh(define(MESHES["curved circle"]), COMM)
