"""Meshes on Firedrake: areas and their orders, topology, orientation, sizes, and pictures."""

import json

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from firedrake import Function, FunctionSpace, SpatialCoordinate, assemble, dx, grad, inner

from drivers import mesh as mesh_driver
from meanfield.density.finite_element.cell_lists import GROWTH, icosahedral_sphere
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import (
    as_text,
    cell_corners,
    cell_diameters,
    gathered_cells,
    quality,
)
from meanfield.sphere.geometry import geodesic_distance

POINT = (0.48, 0.6, 0.64)
CIRCLE = {"family": "circle", "cells": 20}
ICOSAHEDRAL = {"family": "icosahedral sphere", "refinements": 2}
CUBED = {"family": "cubed sphere", "cells_per_edge": 5}
MESHES = {
    "circle": CIRCLE,
    "curved circle": CIRCLE | {"degree": 3},
    "graded circle": CIRCLE | {"refine": [{"point": [0.6, -0.8], "radius": 0.2, "size": 0.02}]},
    "icosahedral": ICOSAHEDRAL,
    "curved icosahedral": ICOSAHEDRAL | {"degree": 2},
    "graded": ICOSAHEDRAL | {"refine": [{"point": list(POINT), "radius": 0.2, "size": 0.05}]},
    "curved graded": ICOSAHEDRAL
    | {"degree": 2, "refine": [{"point": list(POINT), "radius": 0.2, "size": 0.05}]},
    "cubed": CUBED,
    "curved cubed": CUBED | {"degree": 2},
}


@pytest.fixture(scope="module", params=MESHES)
def mesh(request):
    return build_mesh(define(MESHES[request.param]))


def test_topology_nodes_and_orientation(mesh):
    report = quality(mesh)
    assert report["euler_characteristic"] == {1: 0, 2: 2}[mesh.topological_dimension]
    assert report["largest_distance_from_sphere"] < 1e-15
    assert report["inward_cells"] == 0
    assert -0.04 < report["area_error"] < 1e-6
    assert "oriented outwards" in as_text(report)


def test_orientation_by_the_corners_alone(mesh):
    # Firedrake's own corner order, and the sign that it applies to the normal of that order.
    space = FunctionSpace(mesh, mesh.coordinates.ufl_element().family(), 1)
    places = np.column_stack([
        Function(space).interpolate(x).dat.data_ro for x in SpatialCoordinate(mesh)
    ])
    corners = places[space.cell_node_map().values]
    if mesh.topological_dimension == 1:
        step = corners[:, 1] - corners[:, 0]
        normal = np.column_stack([-step[:, 1], step[:, 0]])
    else:
        # Nodes of a quadrilateral go row by row, the last one being opposite to the first.
        first, second = (1, 2) if corners.shape[1] == 3 else (2, 1)
        normal = np.cross(corners[:, first] - corners[:, 0], corners[:, second] - corners[:, 0])
    outward = np.einsum("ij,ij->i", normal, corners.mean(axis=1)) > 0
    np.testing.assert_array_equal(outward, mesh.cell_orientations().dat.data_ro == 0)


def test_turned_cells_are_noticed():
    mesh = build_mesh(define(ICOSAHEDRAL))
    orientations = mesh.cell_orientations().dat
    orientations.data[[3, 8]] = 1 - orientations.data[[3, 8]]
    report = quality(mesh)
    assert report["inward_cells"] == 2
    assert "2 CELLS FACE INWARDS" in as_text(report)


def observed_order(definitions):
    reports = [quality(build_mesh(define(definition))) for definition in definitions]
    coarse, fine = (abs(report["area_error"]) for report in reports)
    step = reports[0]["largest_diameter"] / reports[1]["largest_diameter"]
    return np.log(coarse / fine) / np.log(step)


@pytest.mark.parametrize(
    ("table", "resolutions", "degree", "order"),
    [
        (CIRCLE, (20, 40), 1, 2),
        (CIRCLE, (20, 40), 2, 4),
        (CIRCLE, (10, 20), 3, 6),
        (ICOSAHEDRAL, (3, 4), 1, 2),
        (ICOSAHEDRAL, (2, 3), 2, 4),
        (CUBED, (8, 16), 1, 2),
        (CUBED, (8, 16), 2, 4),
    ],
)
def test_area_converges(table, resolutions, degree, order):
    resolution = next(key for key in table if key != "family")
    definitions = [table | {resolution: n, "degree": degree} for n in resolutions]
    assert observed_order(definitions) == pytest.approx(order, abs=0.25)


def test_area_of_a_flat_mesh_is_that_of_its_triangles():
    mesh = build_mesh(define(MESHES["graded"]))
    corners = cell_corners(mesh)
    sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert quality(mesh)["area"] == pytest.approx(np.linalg.norm(sides, axis=1).sum() / 2)


def test_a_smooth_function_is_continuous_over_cells(mesh):
    # The first harmonic has Dirichlet energy d − 1 times its square: wrongly glued cells would not.
    space = FunctionSpace(mesh, mesh.coordinates.ufl_element().family(), 2)
    height = Function(space).interpolate(SpatialCoordinate(mesh)[mesh.geometric_dimension - 1])
    ratio = assemble(inner(grad(height), grad(height)) * dx) / assemble(height**2 * dx)
    assert ratio == pytest.approx(mesh.topological_dimension, rel=0.05)


def test_refinement_reaches_the_wanted_size_with_few_cells():
    mesh = build_mesh(define(MESHES["graded"]))
    corners = cell_corners(mesh)
    diameters = cell_diameters(corners)
    distances = geodesic_distance(corners, np.array(POINT)).min(axis=1)
    inside = distances <= 0.2
    assert inside.sum() > 50
    assert diameters[inside].max() <= 0.05
    assert (diameters <= 0.05 + GROWTH * (distances - 0.2).clip(0)).all()
    # A uniform mesh with cells as small has 20480 triangles.
    assert len(diameters) < 2048
    assert diameters.max() == pytest.approx(cell_diameters(as_corners(2)).max())
    report = quality(mesh)
    assert report["smallest_angle"] > 25
    assert report["largest_neighbour_ratio"] < 2.5


def as_corners(refinements):
    vertices, triangles = icosahedral_sphere(refinements)
    return vertices[triangles]


def test_quality_of_an_icosahedron():
    report = quality(build_mesh(define(ICOSAHEDRAL | {"refinements": 0})))
    edge = 1 / np.sin(2 * np.pi / 5)
    assert (report["cells"], report["vertices"]) == (20, 12)
    assert report["area"] == pytest.approx(5 * np.sqrt(3) * edge**2, rel=1e-14)
    assert report["smallest_diameter"] == pytest.approx(edge, rel=1e-14)
    assert report["largest_diameter"] == pytest.approx(edge, rel=1e-14)
    assert report["smallest_angle"] == pytest.approx(60, rel=1e-13)
    assert report["largest_aspect_ratio"] == pytest.approx(1, rel=1e-13)
    assert report["largest_neighbour_ratio"] == pytest.approx(1, rel=1e-13)


def test_quality_of_a_cube():
    report = quality(build_mesh(define(CUBED | {"cells_per_edge": 1})))
    assert (report["cells"], report["vertices"]) == (6, 8)
    assert report["area"] == pytest.approx(8, rel=1e-14)
    assert report["largest_diameter"] == pytest.approx(np.sqrt(8 / 3), rel=1e-14)
    assert report["smallest_angle"] == pytest.approx(90, rel=1e-13)
    assert report["largest_aspect_ratio"] == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("name", ["graded circle", "graded", "curved cubed"])
def test_gathered_cells_are_the_mesh(name):
    mesh = build_mesh(define(MESHES[name]))
    vertices, cells = gathered_cells(mesh)
    np.testing.assert_array_equal(vertices[cells], cell_corners(mesh))
    assert len(vertices) == mesh.num_vertices()


@pytest.mark.parametrize("name", ["graded circle", "curved cubed"])
def test_driver_writes_report_and_picture(name, tmp_path, capsys):
    definition = define(MESHES[name])
    file = tmp_path / "mine.toml"
    file.write_text(toml(definition.table()), encoding="utf-8")
    output = tmp_path / "output"
    prepared = mesh_driver.prepare(["--mesh", str(file), "--output", str(output)], None)
    mesh_driver.run(prepared, None)
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    assert summary["definition"] == definition.table()
    assert summary["quality"]["cells"] == prepared.mesh.num_cells()
    assert (output / "mesh.png").read_bytes().startswith(b"\x89PNG")
    assert "oriented outwards" in capsys.readouterr().out


def toml(table):
    regions = table.pop("refine", [])
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    for region in regions:
        lines += ["[[refine]]", *(f"{key} = {json.dumps(value)}" for key, value in region.items())]
    return "\n".join(lines)
