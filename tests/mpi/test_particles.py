"""Particles spread over ranks move as on one, to rounding."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.evolve import evolve
from meanfield.runtime.parallel import gather_rows, local_slice
from tests.mpi.test_fields import all_on_the_last, contiguous, model, spread
from tests.strategies import random_measure

FLOWS = [
    {"integrator": "euler", "length": 0.1},
    {"integrator": "rk4", "length": 0.1},
    {"integrator": "adaptive", "tolerance": 1e-6},
    {"integrator": "rk4", "length": 0.1, "diffusion": 0.1, "seed": 4},
]


def moved(measure, **options):
    """Where this rank's particles are at a time, the number of steps and the description."""
    flow = ParticleFlow(model(measure.ambient_dim), measure, **options)
    evolve(flow, until=0.5)
    return flow.measure.nodes, np.array([flow.steps, *flow.describe().values()])


@pytest.mark.parametrize("options", FLOWS, ids=lambda options: options["integrator"])
@pytest.mark.parametrize(
    ("count", "cut"), [(2, contiguous), (40, contiguous), (5, all_on_the_last)]
)
@pytest.mark.parametrize("method", ["direct", "funk_hecke"])
def test_trajectories_do_not_depend_on_the_ranks(comm, count, cut, options, method):
    whole = random_measure(count, 3, seed=6)
    nodes, numbers = moved(spread(whole, comm, cut), method=method, **options)
    expected, serial_numbers = moved(whole, method=method, **options)
    np.testing.assert_allclose(nodes, expected[cut(count, comm)], rtol=0, atol=1e-12)
    np.testing.assert_allclose(numbers, serial_numbers, rtol=1e-11, atol=1e-12)
    for other in comm.allgather(numbers):
        np.testing.assert_array_equal(numbers, other)


def test_mass_on_one_rank_only(comm):
    """Tracers on all other ranks: they are moved, and move nothing."""
    count = 12
    whole = random_measure(count, 2, seed=8)
    masses = np.where(np.arange(count) < count // comm.Get_size(), whole.masses, 0)
    whole = mf.Measure(whole.nodes, masses / masses.sum())
    nodes, _ = moved(spread(whole, comm))
    expected, _ = moved(whole)
    np.testing.assert_allclose(nodes, expected[local_slice(count, comm)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", FLOWS[:3], ids=lambda options: options["integrator"])
def test_a_particle_that_is_not_finite_is_named_on_all_ranks(comm, options):
    count, planted = 11, 8
    flow = ParticleFlow(model(3), spread(random_measure(count, 3, seed=1), comm), **options)
    flow.step(0.01)
    rows = local_slice(count, comm)
    if rows.start <= planted < rows.stop:
        flow.measure.nodes[planted - rows.start, 0] = np.nan
    with pytest.raises(FloatingPointError, match=f"of particle {planted} is not finite"):
        flow.describe()
        flow.step(0.01)
    if rows.start <= planted < rows.stop:
        flow.measure.nodes[planted - rows.start, 0] = np.nan
    with pytest.raises(FloatingPointError, match=f"of particle {planted} is not finite"):
        flow.step(0.01)
        flow.step(0.01)


def test_a_restored_flow_continues_on_another_number_of_ranks(comm):
    """The whole's state, cut for the ranks that there are now."""
    whole = random_measure(9, 3, seed=1)
    serial = ParticleFlow(model(3), whole)
    for _ in range(3):
        serial.step(np.inf)
    state = serial.state()
    mine = local_slice(9, comm)
    state.distributed = {name: rows[mine] for name, rows in state.distributed.items()}
    flow = ParticleFlow(model(3), spread(random_measure(9, 3, seed=2), comm))
    flow.restore(state)
    for _ in range(3):
        assert flow.step(np.inf) == pytest.approx(serial.step(np.inf), rel=1e-9)
    nodes = gather_rows(flow.measure.nodes, comm)
    if comm.Get_rank() == 0:
        np.testing.assert_allclose(nodes, serial.measure.nodes, rtol=0, atol=1e-12)
