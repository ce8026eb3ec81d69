"""Particles on meshes that ranks share: none lost, nothing changed by the number of ranks."""

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from mpi4py import MPI

import meanfield as mf
from meanfield.coupling.deposition import deposit
from meanfield.coupling.location import CellFinder
from meanfield.coupling.particle_in_cell import ParticleInCell
from meanfield.coupling.residence import ResidentParticles, send_rows
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.quality import cell_corners
from meanfield.fields.measure import Measure
from meanfield.runtime.parallel import local_slice
from meanfield.sphere.geometry import normalise

COMM = MPI.COMM_WORLD
REGION = [{"point": [0.48, 0.6, 0.64], "radius": 0.1, "size": 0.02}]
MESHES = {
    "circle": {"family": "circle", "cells": 20},
    "triangle": {"family": "circle", "cells": 3},
    "icosahedral": {"family": "icosahedral sphere", "refinements": 2},
    "graded": {"family": "icosahedral sphere", "refinements": 2, "refine": REGION},
    "curved cubed": {"family": "cubed sphere", "cells_per_edge": 5, "degree": 2},
}


@pytest.fixture(scope="module", params=MESHES)
def meshes(request):
    """The mesh over all ranks, and the same on each."""
    definition = define(MESHES[request.param])
    return build_mesh(definition, COMM), build_mesh(definition)


def adversarial_points(corners):
    """Corners, middles of edges and poles, on the sphere and 1e-12 off it."""
    d = corners.shape[2]
    middles = normalise((corners + np.roll(corners, -1, axis=1)).reshape(-1, d))
    points = np.vstack([corners.reshape(-1, d), middles, np.eye(d), -np.eye(d)])
    return np.vstack([points, (1 + 1e-12) * points, (1 - 1e-12) * points])


def centres_found(finder, points):
    """Centre of the cell of each of this rank's points."""
    ranks, cells = finder.locate(points)
    centres = np.full((len(points), finder.ambient_dim), np.nan)
    every = COMM.allgather(finder.centres) if finder.comm.size > 1 else [finder.centres]
    for owner, rows in enumerate(every):
        here = ranks == owner
        centres[here] = rows[cells[here]]
    return centres


def test_every_point_has_the_cell_that_one_rank_finds(meshes):
    shared, alone = meshes
    points = adversarial_points(normalise(cell_corners(alone)))
    mine = points[local_slice(len(points), COMM)]
    found = centres_found(CellFinder(shared), mine)
    np.testing.assert_allclose(found, centres_found(CellFinder(alone), mine), atol=1e-12)


def test_all_ranks_find_the_same_cell_for_the_same_point(meshes):
    shared, alone = meshes
    points = adversarial_points(normalise(cell_corners(alone)))
    answers = COMM.allgather(CellFinder(shared).locate(points))
    for ranks, cells in answers:
        np.testing.assert_array_equal(ranks, answers[0][0])
        np.testing.assert_array_equal(cells, answers[0][1])


def test_random_walks_with_jumps_across_partitions_lose_nothing(meshes):
    shared, alone = meshes
    finder = CellFinder(shared)
    d, count = finder.ambient_dim, 200
    generator = np.random.default_rng(5)
    masses = generator.dirichlet(np.ones(count))
    corners = normalise(cell_corners(alone)).reshape(-1, d)
    nodes = normalise(generator.normal(size=(count, d)))
    block = local_slice(count, COMM)
    particles = ResidentParticles(finder, Measure(nodes[block], masses[block], COMM))
    changed_rank = 0
    for step in range(40):
        before = COMM.allgather(particles.ids)
        if step % 4 == 3:
            nodes = corners[generator.integers(len(corners), size=count)]
        else:
            scale = (0.01, 0.3, 10.0)[step % 4]
            nodes = normalise(nodes + scale * generator.normal(size=(count, d)))
        particles.move(nodes[particles.ids])
        after = COMM.allgather(particles.ids)
        changed_rank += sum(len(set(b) - set(a)) for a, b in zip(before, after, strict=True))
        np.testing.assert_array_equal(np.sort(np.concatenate(after)), np.arange(count))
        np.testing.assert_array_equal(particles.nodes, nodes[particles.ids])
        np.testing.assert_array_equal(particles.masses, masses[particles.ids])
        ranks, cells = finder.locate(particles.nodes)
        assert np.all(ranks == COMM.rank)
        np.testing.assert_array_equal(cells, particles.cells)
    in_order, kept = particles.in_global_order()
    np.testing.assert_array_equal(in_order, nodes[block])
    np.testing.assert_array_equal(kept, masses[block])
    assert changed_rank > 5 * count if COMM.size > 1 else changed_rank == 0


def test_deposited_masses_are_those_of_one_rank(meshes):
    shared, alone = meshes
    generator = np.random.default_rng(6)
    finder, whole = CellFinder(shared), CellFinder(alone)
    nodes = normalise(generator.normal(size=(500, finder.ambient_dim)))
    masses = generator.dirichlet(np.ones(500))
    block = local_slice(500, COMM)
    here = deposit(finder, nodes[block], masses[block])
    assert np.all(here >= 0)
    expected = deposit(whole, nodes, masses)
    _, cells = whole.locate(finder.centres)
    np.testing.assert_allclose(here, expected[cells], rtol=1e-13, atol=1e-16)
    assert abs(COMM.allreduce(here.sum()) - 1) < 1e-14


def test_a_changed_message_is_noticed(monkeypatch):
    if COMM.size == 1:
        pytest.skip("one rank sends nothing")

    class Lossy:
        """A communicator whose messages lose the last bit of their first number."""

        def __getattr__(self, name):
            return getattr(COMM, name)

        def Alltoallv(self, sent, received):
            COMM.Alltoallv(sent, received)
            if COMM.rank == 1:
                received[0].ravel().view(np.int64)[0] ^= 1

    masses = np.full(COMM.size, 0.1)
    with pytest.raises(RuntimeError, match="masses"):
        send_rows({"masses": masses}, np.arange(COMM.size), Lossy())


def test_a_point_off_the_sphere_on_one_rank_is_an_error_on_all(meshes):
    points = np.ones((int(COMM.rank == COMM.size - 1), meshes[0].geometric_dimension))
    with pytest.raises(ValueError, match="length"):
        CellFinder(meshes[0]).locate(points)


@pytest.mark.parametrize("normalisation", ["none", "softmax"])
def test_particles_in_cells_move_alike_on_any_number_of_ranks(meshes, normalisation):
    shared, alone = meshes
    generator = np.random.default_rng(7)
    d = shared.geometric_dimension
    nodes = normalise(generator.normal(size=(100, d)) + 0.5 * np.eye(d)[0])
    masses = generator.dirichlet(np.ones(100))
    model = mf.Model(mf.Attention(beta=2.0, amplitude="peak", normalisation=normalisation))
    block = local_slice(100, COMM)
    flow = ParticleInCell(model, shared, Measure(nodes[block], masses[block], COMM), 0.2)
    serial = ParticleInCell(model, alone, Measure(nodes, masses), 0.2)
    for _ in range(5):
        flow.step(np.inf)
        serial.step(np.inf)
    moved, _ = flow.particles.in_global_order()
    np.testing.assert_allclose(moved, serial.particles.nodes[block], atol=1e-11)
    assert flow.describe()["energy" if normalisation == "none" else "mass"] == pytest.approx(
        serial.describe()["energy" if normalisation == "none" else "mass"], rel=1e-12
    )
    other = ParticleInCell(model, shared, Measure(nodes[block], masses[block], COMM), 0.2)
    other.restore(flow.state())
    flow.step(np.inf)
    other.step(np.inf)
    np.testing.assert_array_equal(flow.particles.nodes, other.particles.nodes)
    assert flow.time == other.time
