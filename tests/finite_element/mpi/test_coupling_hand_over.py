"""Tracers, the monitor of atomization and the hand-over on meshes that ranks share."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from mpi4py import MPI

import meanfield as mf
from meanfield.coupling.atomization import atomization, concentrations
from meanfield.coupling.hand_over import HandOver
from meanfield.coupling.mesh_tracers import MeshTracers
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.runtime.parallel import gather_rows, local_slice
from meanfield.sphere.geometry import normalise

COMM = MPI.COMM_WORLD
DEFINITIONS = {
    "circle": {"family": "circle", "cells": 60},
    "sphere": {"family": "icosahedral sphere", "refinements": 2},
}


@pytest.fixture(scope="module", params=DEFINITIONS)
def meshes(request):
    """The mesh over all ranks, and the same on each."""
    definition = define(DEFINITIONS[request.param])
    return build_mesh(definition, COMM), build_mesh(definition)


def relu_density(mesh, degree=0):
    d = mesh.geometric_dimension
    model = mf.Model(
        mf.Attention(beta=4.0, amplitude="peak"),
        mf.Perceptron(np.eye(d), np.ones(d), activation="relu"),
    )

    def start(x):
        return 1 + 0.5 * x[:, 0] + 0.1 * x[:, 1]

    return FiniteElementDensity(model, mesh, start, degree=degree)


def advance(flow, until):
    while flow.time < until:
        flow.step(until - flow.time)


def test_tracers_move_as_on_one_rank(meshes):
    shared, alone = meshes
    nodes = normalise(np.random.default_rng(0).normal(size=(90, shared.geometric_dimension)))
    masses = np.full(90, 1 / 90)
    block = local_slice(90, COMM)
    flow = MeshTracers(relu_density(shared), mf.Measure(nodes[block], masses[block], COMM))
    serial = MeshTracers(relu_density(alone), mf.Measure(nodes, masses))
    advance(flow, 1.0)
    advance(serial, 1.0)
    moved, _ = flow.tracers.in_global_order()
    np.testing.assert_allclose(moved, serial.tracers.nodes[block], atol=1e-11)
    for name, value in serial.describe().items():
        assert flow.describe()[name] == pytest.approx(value, rel=1e-9, abs=1e-11)
    snapshot = flow.snapshot().distributed
    np.testing.assert_array_equal(snapshot["tracers"], moved)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("degree", [0, 1])
def test_any_density_has_the_concentrations_found_on_one_rank(meshes, degree, seed):
    generator = np.random.default_rng(seed)
    waves = 8 * generator.normal(size=(6, meshes[0].geometric_dimension))
    phases = generator.uniform(0, 6, 6)

    def rough(x):
        return np.exp(np.cos(x @ waves.T + phases).sum(axis=1))

    both = []
    for mesh in meshes:
        density = relu_density(mesh, degree)
        space = density.space
        corners = space.corners if degree else space.centres[:, None]
        values = rough(corners.reshape(-1, space.ambient_dim)).reshape(len(corners), -1)
        density.values = values / space.total(values)
        both.append((concentrations(density), atomization(density)))
    (found, row), (expected, serial_row) = both
    assert len(expected.points) > 1
    for name in ("points", "heights", "masses", "widths", "cells_across"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-12
        )
    assert row == pytest.approx(serial_row, rel=1e-10)


def test_the_hand_over_is_that_of_one_rank(meshes):
    flow, serial = HandOver(relu_density(meshes[0])), HandOver(relu_density(meshes[1]))
    for each in (flow, serial):
        while not each.is_particles:
            each.step(0.5)
    assert flow.hand_over_time == pytest.approx(serial.hand_over_time, rel=1e-11)
    assert flow.time == pytest.approx(serial.time, rel=1e-5)
    until = serial.hand_over_time + 0.3
    for each in (flow, serial):
        advance(each, until)
    measure = flow.particles.measure
    nodes, masses = gather_rows(measure.nodes, COMM), gather_rows(measure.masses, COMM)
    if COMM.rank == 0:
        # Cells come in another order, so that particles are compared as measures.
        assert abs(masses.sum() - 1) < 1e-13
        expected = serial.particles.measure
        for power in (1, 2):
            np.testing.assert_allclose(
                masses @ nodes**power, expected.masses @ expected.nodes**power, atol=1e-8
            )
    assert flow.describe()["energy"] == pytest.approx(serial.describe()["energy"], rel=1e-8)
