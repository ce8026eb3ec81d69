"""Series of a cloud that ranks share, read back with VTK."""

import numpy as np
import pytest

from meanfield.fields.measure import Measure
from meanfield.model.attention import Attention
from meanfield.model.model import Model
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.evolve import evolve
from meanfield.runtime.parallel import broadcast, local_slice
from meanfield.runtime.paraview import Cloud, ParaviewSeries, particles_of
from meanfield.sphere.geometry import normalise
from tests.paraview_reader import read_series

COUNT = 7


def flow_over(comm):
    """Particles of different masses, some ranks with more than others."""
    rows = local_slice(COUNT, comm)
    nodes = normalise(np.random.default_rng(2).normal(size=(COUNT, 3)))
    masses = np.arange(1.0, COUNT + 1) / np.arange(1.0, COUNT + 1).sum()
    measure = Measure(nodes[rows], masses[rows], comm)
    return ParticleFlow(Model(Attention(beta=2.0)), measure, "rk4", length=0.1)


def series(folder, flow, **options):
    return ParaviewSeries(folder, {"cloud": particles_of(flow)}, flow.comm, every=2, **options)


def test_ranks_change_nothing(comm, shared_folder):
    flow = flow_over(comm)
    evolve(flow, 1.0, [series(shared_folder / "shared", flow)])
    if comm.Get_rank() != 0:
        return
    alone = flow_over(None)
    evolve(alone, 1.0, [series(shared_folder / "alone", alone)])
    found = read_series(shared_folder / "shared" / "cloud.vtkhdf")
    expected = read_series(shared_folder / "alone" / "cloud.vtkhdf")
    assert len(found) == len(expected) == 6
    for one, other in zip(found, expected, strict=True):
        assert one.time == other.time
        np.testing.assert_array_equal(one.point_arrays["id"], np.arange(COUNT))
        np.testing.assert_allclose(
            one.point_arrays["mass"], np.arange(1, COUNT + 1) / 28, rtol=1e-15
        )
        np.testing.assert_allclose(one.points, other.points, atol=1e-12)


def test_a_series_is_continued_on_other_ranks(comm, shared_folder):
    if comm.Get_rank() == 0:
        alone = flow_over(None)
        evolve(alone, 0.6, [series(shared_folder, alone)])
    comm.Barrier()
    flow = flow_over(comm)
    evolve(flow, 0.4)
    evolve(flow, 1.0, [series(shared_folder, flow, append=True, from_step=4)], 4)
    if comm.Get_rank() != 0:
        return
    steps = read_series(shared_folder / "cloud.vtkhdf")
    np.testing.assert_allclose([step.time for step in steps], np.arange(6) / 5, atol=1e-14)
    whole = flow_over(None)
    evolve(whole, 1.0)
    np.testing.assert_allclose(steps[-1].points, whole.measure.nodes, atol=1e-12)


def test_all_ranks_refuse_together(comm, shared_folder):
    last = comm.Get_rank() == comm.Get_size() - 1
    rows = np.zeros((3, 3))
    masses = np.zeros(2 if last else 3)
    with pytest.raises(ValueError, match="expected the same number of each"):
        ParaviewSeries(shared_folder, {"it": lambda: Cloud(rows, {"mass": masses})}, comm, every=1)


def test_a_place_that_cannot_be_written_is_named_on_all_ranks(comm, shared_folder):
    if comm.Get_rank() == 0:
        (shared_folder / "file").touch()
    folder = broadcast(shared_folder / "file", comm)
    with pytest.raises(OSError, match="cannot be written"):
        ParaviewSeries(folder, {}, comm, every=1)
