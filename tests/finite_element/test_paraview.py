"""Series of mesh densities, read back with VTK, the library under ParaView."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

import meanfield as mf
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.paraview import density_on_cells
from meanfield.runtime.evolve import evolve
from meanfield.runtime.paraview import ParaviewSeries
from meanfield.sphere.von_mises_fisher import random_mixture
from tests.paraview_reader import read_series

VTK_LINE, VTK_TRIANGLE, VTK_QUADRILATERAL = 3, 5, 9
REGION = [{"point": [0.48, 0.6, 0.64], "radius": 0.1, "size": 0.05}]
MESHES = {
    "circle": ({"family": "circle", "cells": 40}, VTK_LINE),
    "icosahedral": ({"family": "icosahedral sphere", "refinements": 2}, VTK_TRIANGLE),
    "graded": (
        {"family": "icosahedral sphere", "refinements": 2, "refine": REGION}, VTK_TRIANGLE
    ),
    "cubed": ({"family": "cubed sphere", "cells_per_edge": 6}, VTK_QUADRILATERAL),
}


def density_on(definition, degree):
    mesh = build_mesh(define(definition))
    start = random_mixture(mesh.geometric_dimension, 2, 2.0, 3)
    model = mf.Model(mf.Attention(beta=1.0))
    return FiniteElementDensity(model, mesh, start.density, degree), start


def facet_counts(step):
    """Numbers of cells that meet in a facet: two, when curve or surface is closed."""
    corners = np.array(step.cells)
    facets = corners.ravel()
    if corners.shape[1] > 2:
        edges = np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1)
        facets = np.sort(edges.reshape(-1, 2), axis=1)
    return set(np.unique(facets, axis=0, return_counts=True)[1].tolist())


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("name", MESHES)
def test_cells_carry_density_and_mass(tmp_path, name, degree):
    definition, kind = MESHES[name]
    density, start = density_on(definition, degree)
    series = ParaviewSeries(tmp_path, {"mesh": density_on_cells(density)}, interval=0.25)
    evolve(density, 0.5, [series])
    steps = read_series(tmp_path / "mesh.vtkhdf")
    assert [step.time for step in steps] == [0, 0.25, 0.5]
    for step in steps:
        assert step.kinds == {kind}
        assert len(step.cells) == density.space.cells
        mass, mean = step.cell_arrays["mass"], step.cell_arrays["density"]
        assert abs(mass.sum() - 1) < 1e-13
        # Areas as VTK finds them from the corners; it cuts quadrilaterals in flat triangles.
        tolerance = 1e-3 if kind == VTK_QUADRILATERAL else 1e-12
        np.testing.assert_allclose(mean * step.sizes / step.sizes.sum(), mass, rtol=tolerance)
        np.testing.assert_allclose(np.linalg.norm(step.points, axis=1), 1, atol=1e-14)
        assert facet_counts(step) == {2}
    # Each value is at its cell: the start's density there, up to the size of cells.
    centres = np.array([steps[0].points[corners].mean(axis=0) for corners in steps[0].cells])
    centres /= np.linalg.norm(centres, axis=1)[:, None]
    exact = start.density(np.ascontiguousarray(centres[:, : density.ambient_dim]))
    np.testing.assert_allclose(steps[0].cell_arrays["density"], exact, atol=0.05 * exact.max())
    assert np.ptp(exact) > 10 * 0.05 * exact.max()


def test_curved_cells_show_their_corners(tmp_path):
    density, _ = density_on({"family": "icosahedral sphere", "refinements": 1, "degree": 2}, 0)
    series = ParaviewSeries(tmp_path, {"mesh": density_on_cells(density)}, every=1)
    evolve(density, 0.1, [series])
    last = read_series(tmp_path / "mesh.vtkhdf")[-1]
    assert (len(last.points), len(last.cells)) == (42, 80)
    np.testing.assert_allclose(np.linalg.norm(last.points, axis=1), 1, atol=1e-14)
    np.testing.assert_array_equal(last.cell_arrays["mass"], density.space.masses(density.values))
