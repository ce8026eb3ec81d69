"""Series of a mesh density and its tracers, over ranks, read back with VTK."""

import shutil

import numpy as np
import pytest

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

from mpi4py import MPI
from scipy.spatial import cKDTree

import meanfield as mf
from meanfield.coupling.mesh_tracers import MeshTracers
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.density.finite_element.paraview import density_on_cells
from meanfield.fields.measure import Measure
from meanfield.runtime.evolve import evolve
from meanfield.runtime.parallel import local_slice, sum_over_ranks
from meanfield.runtime.paraview import Cloud, ParaviewSeries
from meanfield.sphere.geometry import normalise
from meanfield.sphere.von_mises_fisher import random_mixture
from tests.paraview_reader import read_series

DEFINITION = define({"family": "icosahedral sphere", "refinements": 1})
COUNT = 60


def flow_over(comm):
    density = FiniteElementDensity(
        mf.Model(mf.Attention(beta=4.0)),
        build_mesh(DEFINITION, comm),
        random_mixture(3, 2, 2.0, 3).density,
    )
    rows = local_slice(COUNT, comm)
    nodes = normalise(np.random.default_rng(5).normal(size=(COUNT, 3)))
    return MeshTracers(density, Measure(nodes[rows], masses()[rows], comm))


def masses():
    return np.arange(1.0, COUNT + 1) / np.arange(1.0, COUNT + 1).sum()


def series(folder, flow, **options):
    def tracers():
        nodes, mass = flow.tracers.in_global_order()
        return Cloud(nodes, {"mass": mass})

    shows = {"mesh": density_on_cells(flow.density), "tracers": tracers}
    return ParaviewSeries(folder, shows, flow.comm, interval=0.5, **options)


def centres(step):
    return step.points[np.array(step.cells)].mean(axis=1)


def assert_same(found, expected):
    assert [step.time for step in found] == [step.time for step in expected]
    for one, other in zip(found, expected, strict=True):
        # Ranks decide the order of cells.
        distance, match = cKDTree(centres(other)).query(centres(one))
        assert len(set(match)) == len(match) == len(other.cells)
        assert distance.max() < 1e-12
        for name in ("density", "mass"):
            np.testing.assert_allclose(
                one.cell_arrays[name], other.cell_arrays[name][match], rtol=1e-10
            )
        assert abs(one.cell_arrays["mass"].sum() - 1) < 1e-13


def test_ranks_change_nothing(comm, shared_folder):
    flow = flow_over(comm)
    before = set(flow.tracers.ids)
    half = evolve(flow, 0.5, [series(shared_folder / "shared", flow)])
    # A run that began on one rank continues on all.
    if comm.rank == 0:
        alone = flow_over(MPI.COMM_SELF)
        evolve(alone, 1.0, [series(shared_folder / "alone", alone)])
        shutil.copytree(shared_folder / "alone", shared_folder / "continued")
    comm.Barrier()
    continued = series(shared_folder / "continued", flow, append=True, from_step=half.steps)
    evolve(flow, 1.0, [continued], half.steps)
    moved = sum_over_ranks(len(before - set(flow.tracers.ids)), comm)
    assert moved > 0 or comm.size == 1
    if comm.rank != 0:
        return
    meshes, clouds = (
        {
            folder: read_series(shared_folder / folder / f"{name}.vtkhdf")
            for folder in ("alone", "shared", "continued")
        }
        for name in ("mesh", "tracers")
    )
    assert [step.time for step in meshes["alone"]] == [0, 0.5, 1]
    assert_same(meshes["shared"], meshes["alone"][:2])
    assert_same(meshes["continued"], meshes["alone"])
    for folder, steps in clouds.items():
        assert len(steps) == (2 if folder == "shared" else 3)
        for one, other in zip(steps, clouds["alone"], strict=False):
            np.testing.assert_array_equal(one.point_arrays["id"], np.arange(COUNT))
            # Masses tell tracers apart.
            np.testing.assert_array_equal(one.point_arrays["mass"], masses())
            np.testing.assert_allclose(one.points, other.points, atol=1e-10)
