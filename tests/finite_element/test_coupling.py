"""Mass and motion between particles and meshes, against closed forms and other solvers."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

import meanfield as mf
from meanfield.coupling.deposition import as_density, deposit
from meanfield.coupling.location import CellFinder
from meanfield.coupling.mesh_tracers import MeshTracers
from meanfield.coupling.particle_in_cell import ParticleInCell
from meanfield.coupling.tracers import Tracers
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import cell_corners
from meanfield.density.finite_element.spaces import DiscontinuousSpace
from meanfield.density.spectral import SpectralDensity
from meanfield.fields.measure import Measure
from meanfield.particles.flow import ParticleFlow
from meanfield.sphere.geometry import circle_points, geodesic_distance, normalise

ATTENTION = mf.Attention(beta=2.0, amplitude="peak")


def circle(cells):
    return build_mesh(define({"family": "circle", "cells": cells}))


def sphere(refinements):
    return build_mesh(define({"family": "icosahedral sphere", "refinements": refinements}))


def random_measure(seed, count, d):
    generator = np.random.default_rng(seed)
    nodes = normalise(generator.normal(size=(count, d)) + np.eye(d)[0])
    return Measure(nodes, generator.dirichlet(np.ones(count)))


@pytest.mark.parametrize("mesh", [circle(30), sphere(2)], ids=["circle", "sphere"])
def test_deposited_mass_is_where_its_cell_is_pierced(mesh):
    corners = cell_corners(mesh)
    measure = random_measure(0, 500, corners.shape[2])
    masses = deposit(CellFinder(mesh), measure.nodes, measure.masses)
    # The ray through a point meets the cell's plane at a convex combination of its corners.
    weights = np.linalg.inv(np.swapaxes(corners, 1, 2)) @ measure.nodes.T
    holds = (weights >= 0).all(axis=1)
    assert np.all(holds.sum(axis=0) == 1)
    np.testing.assert_allclose(masses, holds @ measure.masses, atol=1e-15)
    assert abs(masses.sum() - 1) < 1e-14


@pytest.mark.parametrize("degree", [0, 1])
def test_deposited_masses_make_a_density(degree):
    mesh = sphere(2)
    space = DiscontinuousSpace(mesh, degree)
    measure = random_measure(1, 200, 3)
    masses = deposit(CellFinder(mesh), measure.nodes, measure.masses)
    values = as_density(space, masses)
    assert np.all(values >= 0)
    np.testing.assert_allclose(space.masses(values), masses, atol=1e-15)
    assert abs(space.total(values) - 1) < 1e-13


@pytest.mark.parametrize(
    ("meshes", "d"),
    [([circle(n) for n in (32, 64, 128, 256)], 2), ([sphere(n) for n in (2, 3, 4, 5)], 3)],
    ids=["circle", "sphere"],
)
def test_particles_in_cells_approach_particles_at_first_order(meshes, d):
    measure = random_measure(2, 12, d)
    model = mf.Model(ATTENTION)
    reference = ParticleFlow(model, measure, "rk4", length=0.25, method="direct")
    for _ in range(4):
        reference.step(np.inf)
    errors = []
    for mesh in meshes:
        flow = ParticleInCell(model, mesh, measure, 0.25)
        for _ in range(4):
            flow.step(np.inf)
        assert flow.time == reference.time
        errors.append(geodesic_distance(flow.particles.nodes, reference.measure.nodes).max())
    order = -np.polyfit(np.arange(4), np.log2(errors), 1)[0]
    assert order > 0.8, errors
    assert errors[-1] < 0.02


def test_the_field_of_particles_in_cells_is_that_of_their_cells():
    mesh, measure = circle(40), random_measure(3, 30, 2)
    flow = ParticleInCell(mf.Model(ATTENTION), mesh, measure, 0.1)
    # Middles of equal arcs, found by angle.
    angle = np.arctan2(measure.nodes[:, 1], measure.nodes[:, 0]) % (2 * np.pi)
    width = 2 * np.pi / 40
    middles = Measure(circle_points((np.floor(angle / width) + 0.5) * width), measure.masses)
    row = flow.describe()
    assert row["energy"] == pytest.approx(mf.energy(mf.Model(ATTENTION), middles, "direct"), 1e-9)
    assert row["mass"] == pytest.approx(1.0, abs=1e-14)


def tilted_model():
    perceptron = mf.Perceptron([[0.8, 0.6], [-0.5, 1.0]], [0.4, -0.3], activation="gelu")
    return mf.Model(ATTENTION, perceptron)


@pytest.mark.parametrize(("degree", "cells", "atol"), [(0, 400, 1e-2), (1, 100, 3e-4)])
def test_tracers_on_a_mesh_follow_those_of_the_spectral_density(degree, cells, atol):
    points = circle_points(np.linspace(0, 6, 25))
    measure = Measure(points, np.full(25, 1 / 25))

    def start(x):
        return 1 + 0.5 * x[:, 0]

    reference = Tracers(SpectralDensity(tilted_model(), start), measure)
    density = FiniteElementDensity(tilted_model(), circle(cells), start, degree=degree)
    flow = MeshTracers(density, measure)
    for each in (reference, flow):
        while each.time < 1.0:
            each.step(1.0 - each.time)
    moved, masses = flow.tracers.in_global_order()
    assert geodesic_distance(points, moved).max() > 0.3
    np.testing.assert_allclose(moved, reference.measure.nodes, atol=atol)
    np.testing.assert_array_equal(masses, measure.masses)
    # Along its path, a tracer sees the density of its cell.
    exact = reference.density.density(moved)
    np.testing.assert_allclose(flow.densities(), exact, rtol=0.2)


def test_restored_tracers_continue_bitwise():
    mesh = circle(40)
    measure = random_measure(4, 20, 2)

    def fresh():
        return MeshTracers(
            FiniteElementDensity(tilted_model(), mesh, lambda x: 1 + 0.5 * x[:, 0]), measure
        )

    flow, other = fresh(), fresh()
    for _ in range(3):
        flow.step(np.inf)
    other.restore(flow.state())
    flow.step(np.inf)
    other.step(np.inf)
    np.testing.assert_array_equal(flow.tracers.nodes, other.tracers.nodes)
    np.testing.assert_array_equal(flow.tracers.ids, other.tracers.ids)
    assert flow.time == other.time


def test_noise_has_no_trajectories():
    density = FiniteElementDensity(
        tilted_model(), circle(20), lambda x: 1 + 0 * x[:, 0], diffusion=0.1
    )
    with pytest.raises(ValueError, match="diffusion"):
        MeshTracers(density, random_measure(5, 3, 2))


def test_dimensions_have_to_agree():
    with pytest.raises(ValueError, match="R\\^3 but the mesh in R\\^2"):
        ParticleInCell(mf.Model(ATTENTION), circle(20), random_measure(6, 3, 3), 0.1)
