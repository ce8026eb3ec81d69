"""Where points are on a mesh: at its corners, edges and poles as anywhere else."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from meanfield.coupling.location import CellFinder
from meanfield.coupling.residence import ResidentParticles
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import cell_corners
from meanfield.fields.measure import Measure
from meanfield.sphere.geometry import normalise

CIRCLE = {"family": "circle", "cells": 20}
ICOSAHEDRAL = {"family": "icosahedral sphere", "refinements": 2}
CUBED = {"family": "cubed sphere", "cells_per_edge": 5}
REGION = [{"point": [0.48, 0.6, 0.64], "radius": 0.1, "size": 0.02}]
MESHES = {
    "circle": CIRCLE,
    "triangle": {"family": "circle", "cells": 3},
    "curved circle": CIRCLE | {"degree": 3},
    "graded circle": CIRCLE | {"refine": [{"point": [0.6, -0.8], "radius": 0.2, "size": 0.02}]},
    "icosahedron": {"family": "icosahedral sphere", "refinements": 0},
    "icosahedral": ICOSAHEDRAL,
    "curved icosahedral": ICOSAHEDRAL | {"degree": 2},
    "graded": ICOSAHEDRAL | {"refine": REGION},
    "cube": {"family": "cubed sphere", "cells_per_edge": 1},
    "cubed": CUBED,
    "curved cubed": CUBED | {"degree": 2},
}
# It measures distances to cells, and ours are cones over them: near edges they differ by O(h²).
FINE_MESHES = [name for name in MESHES if name not in ("triangle", "icosahedron", "cube")]


@pytest.fixture(scope="module", params=MESHES)
def mesh(request):
    return build_mesh(define(MESHES[request.param]))


def adversarial_points(corners):
    """Corners, points on edges, poles and axes, on the sphere and 1e-12 off it."""
    following = np.roll(corners, -1, axis=1)
    d = corners.shape[2]
    axes = np.vstack([np.eye(d), -np.eye(d)])
    points = [corners.reshape(-1, d), axes, normalise(corners.mean(axis=1))]
    if d == 3:
        for share in (0.5, 0.3, 1e-9, 1e-16):
            on_edge = (1 - share) * corners + share * following
            points.append(normalise(on_edge.reshape(-1, d)))
    points = np.vstack(points)
    return np.vstack([points, (1 + 1e-12) * points, (1 - 1e-12) * points])


def holds(corners, points):
    """For each cell and point, whether the point is a nonnegative sum of corners.

    Quadrilaterals are cut in two triangles.
    """
    count, d = corners.shape[1:]
    parts = [range(d)] if count == d else [(0, 1, 2), (0, 2, 3)]
    inside = np.zeros((len(corners), len(points)), dtype=bool)
    for part in parts:
        columns = np.swapaxes(corners[:, list(part)], 1, 2)
        weights = np.linalg.inv(columns) @ points.T
        inside |= (weights >= -1e-12).all(axis=1)
    return inside


def test_points_anywhere_are_in_a_cell_that_holds_them(mesh):
    corners = cell_corners(mesh)
    anywhere = normalise(np.random.default_rng(0).normal(size=(400, corners.shape[2])))
    points = np.vstack([anywhere, adversarial_points(normalise(corners))[::101]])
    ranks, cells = CellFinder(mesh).locate(points)
    assert np.all(ranks == 0)
    assert np.all(holds(normalise(corners), points)[cells, np.arange(len(points))])


def test_no_adversarial_point_is_lost_nor_its_cell_ambiguous(mesh):
    finder = CellFinder(mesh)
    points = adversarial_points(normalise(cell_corners(mesh)))
    _, cells = finder.locate(points)
    assert cells.min() >= 0 and cells.max() < finder.cells
    third = len(points) // 3
    # A point's length does not matter, nor what else is asked, nor what was guessed.
    np.testing.assert_array_equal(cells[:third], cells[third : 2 * third])
    np.testing.assert_array_equal(cells[:third], cells[2 * third :])
    order = np.random.default_rng(1).permutation(len(points))
    guess = np.random.default_rng(2).integers(-1, finder.cells, len(points))
    np.testing.assert_array_equal(finder.locate(points[order], guess)[1], cells[order])


def test_a_corner_has_one_cell_whichever_cell_names_it(mesh):
    corners = normalise(cell_corners(mesh))
    points = corners.reshape(-1, corners.shape[2])
    _, cells = CellFinder(mesh).locate(points)
    same = np.unique(np.round(points, 9) + 0.0, axis=0, return_inverse=True)[1].ravel()
    for name in range(same.max() + 1):
        assert len(set(cells[same == name])) == 1


@pytest.mark.parametrize("name", FINE_MESHES)
def test_firedrake_agrees_away_from_edges(name):
    mesh = build_mesh(define(MESHES[name]))
    corners = cell_corners(mesh)
    inner = np.random.default_rng(3).dirichlet(8 * np.ones(corners.shape[1]), len(corners))
    points = normalise(np.einsum("kc,kcd->kd", inner, corners))
    _, cells = CellFinder(mesh).locate(points)
    theirs = mesh.locate_cells_ref_coords_and_dists(points, tolerance=0.5)[0]
    np.testing.assert_array_equal(cells, theirs)


def test_what_no_cell_holds_is_an_error(mesh):
    finder = CellFinder(mesh)
    points = np.ones((1, finder.ambient_dim))
    with pytest.raises(ValueError, match="length"):
        finder.locate(points)
    with pytest.raises(ValueError, match="length"):
        finder.locate(np.nan * points)


def test_particles_keep_numbers_and_masses_through_jumps(mesh):
    generator = np.random.default_rng(4)
    finder = CellFinder(mesh)
    start = normalise(generator.normal(size=(300, finder.ambient_dim)))
    masses = generator.dirichlet(np.ones(300))
    particles = ResidentParticles(finder, Measure(start, masses))
    nodes = start
    for scale in (1e-3, 0.1, 10.0, 10.0):
        nodes = normalise(nodes + scale * generator.normal(size=nodes.shape))
        particles.move(nodes)
        in_order, kept = particles.in_global_order()
        np.testing.assert_array_equal(in_order, nodes)
        np.testing.assert_array_equal(kept, masses)
        np.testing.assert_array_equal(particles.cells, finder.locate(nodes)[1])
