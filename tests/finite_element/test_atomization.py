"""Mass on a mesh gathers in the atoms that particles find, and stays mass."""

import json

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

import meanfield as mf
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import cell_corners, cell_diameters
from meanfield.sphere.geometry import geodesic_distance
from meanfield.sphere.sampling import even_uniform
from meanfield.stationary.clusters import cluster_threshold

# Below this, a cell's mass is the tail that a mesh cannot empty.
NO_ATOM = 1e-4


@pytest.fixture(scope="module")
def published_weights(request):
    runs = json.loads((request.config.rootpath / "tests/data/published_runs.json").read_text())
    return {
        (run["ambient_dim"], run["direction"]): (run["a"], run["omega"])
        for run in runs["runs"]
    }


@pytest.mark.parametrize(
    ("ambient_dim", "direction", "activation", "beta", "until", "cells", "atoms"),
    [
        (2, "ascent", "relu", 5.0, 40.0, 128, 2),
        (2, "descent", "gelu", 1.0, 250.0, 64, 3),
        (3, "ascent", "relu", 1.0, 45.0, 2, 1),
        (3, "descent", "gelu", 1.0, 60.0, 2, 2),
    ],
)
def test_atoms_are_those_of_particles(
    published_weights, ambient_dim, direction, activation, beta, until, cells, atoms
):
    a, omega = published_weights[ambient_dim, direction]
    model = mf.Model(
        mf.Attention(beta, amplitude="peak"), mf.Perceptron(a, omega, activation=activation),
        direction,
    )
    family = (
        {"family": "circle", "cells": cells}
        if ambient_dim == 2
        else {"family": "icosahedral sphere", "refinements": cells}
    )
    mesh = build_mesh(define(family))
    density = FiniteElementDensity(model, mesh, lambda x: np.ones(len(x)), degree=1)
    count = 2000
    particles = mf.ParticleFlow(
        model, mf.Measure(even_uniform(count, ambient_dim), np.full(count, 1 / count)),
        tolerance=1e-6,
    )
    for flow in (density, particles):
        mf.evolve(flow, until)
    nodes, masses = density.measure()
    assert np.all(masses >= 0)
    assert abs(masses.sum() - 1) < 1e-13
    kept = masses > NO_ATOM
    assert masses[~kept].sum() < 5e-3
    threshold = cluster_threshold(beta, ambient_dim)
    on_mesh = mf.find_clusters(
        mf.Measure(nodes[kept], masses[kept] / masses[kept].sum()), threshold
    )
    found = mf.find_clusters(particles.measure, threshold)
    assert on_mesh.count == found.count == atoms
    np.testing.assert_allclose(on_mesh.masses, found.masses, atol=1e-2)
    one_cell = cell_diameters(cell_corners(mesh)).max()
    assert geodesic_distance(on_mesh.centres, found.centres).max() < one_cell
