"""Fields of a measure spread over ranks are those of the whole, and errors are everyone's."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.runtime.parallel import local_slice
from tests.strategies import random_measure, random_points

METHODS = pytest.mark.parametrize("method", ["direct", "funk_hecke"])


def contiguous(count, comm):
    return local_slice(count, comm)


def all_on_the_last(count, comm):
    """The other ranks hold nothing."""
    return slice(0, count if last(comm) else 0)


def last(comm):
    return comm.Get_rank() == comm.Get_size() - 1


def spread(measure, comm, cut=contiguous):
    rows = cut(len(measure.masses), comm)
    return mf.Measure(measure.nodes[rows], measure.masses[rows], comm)


def weighted_on_one_rank(count, ambient_dim, comm):
    """All ranks hold nodes but only the first rank's carry mass; the same in one piece."""
    whole = random_measure(count, ambient_dim, seed=8)
    masses = np.where(np.arange(count) < count // comm.Get_size(), whole.masses, 0)
    return mf.Measure(whole.nodes, masses / masses.sum())


def model(ambient_dim, normalisation="none"):
    p = mf.Perceptron(random_points(2, ambient_dim, seed=7), [0.4, -0.6], activation="gelu")
    return mf.Model(mf.Attention(6.0, "peak", normalisation), p, "descent")


def assert_same_fields(part, whole, points, method):
    """`part` belongs to ranks, `whole` to this process alone; every rank has its own points."""
    d = whole.ambient_dim
    here, serial = (mf.field(model(d), m, method=method) for m in (part, whole))
    for ask in ("first_variation", "attention_gradient", "gradient", "velocity", "hessian"):
        np.testing.assert_allclose(
            getattr(here, ask)(points), getattr(serial, ask)(points), rtol=0, atol=1e-12
        )
    assert here.energy() == pytest.approx(serial.energy(), rel=1e-12)
    softmax = model(d, "softmax")
    here, serial = (mf.field(softmax, m, method=method) for m in (part, whole))
    np.testing.assert_allclose(here.velocity(points), serial.velocity(points), rtol=0, atol=1e-12)


@METHODS
@pytest.mark.parametrize(
    ("count", "cut"), [(2, contiguous), (50, contiguous), (1, all_on_the_last)]
)
@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_fields_do_not_depend_on_the_ranks(comm, ambient_dim, count, cut, method):
    whole = random_measure(count, ambient_dim, seed=5)
    part = spread(whole, comm, cut)
    # Only the last rank has points to ask for.
    wanted = 3 if last(comm) else 0
    some = random_points(wanted, ambient_dim, seed=comm.Get_rank())
    assert_same_fields(part, whole, some, method)
    assert part.global_count == count


@METHODS
def test_mass_on_one_rank_only(comm, method):
    whole = weighted_on_one_rank(12, 3, comm)
    assert_same_fields(spread(whole, comm), whole, random_points(4, 3, seed=1), method)


def test_high_dimension(comm):
    whole = random_measure(7, 20, seed=5)
    assert_same_fields(spread(whole, comm), whole, random_points(4, 20, seed=1), "direct")


@METHODS
def test_at_the_nodes_themselves(comm, method):
    whole = random_measure(11, 3, seed=5)
    part = spread(whole, comm)
    velocity = mf.field(model(3), part, method=method).velocity(part.nodes)
    everywhere = mf.field(model(3), whole, method=method).velocity(whole.nodes)
    np.testing.assert_allclose(velocity, everywhere[local_slice(11, comm)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_moments_are_of_the_whole(comm, ambient_dim):
    whole = random_measure(2, ambient_dim, seed=5)
    np.testing.assert_allclose(
        mf.moments(spread(whole, comm), 9), mf.moments(whole, 9), rtol=0, atol=1e-12
    )


def test_all_ranks_take_the_same_method(comm):
    chosen = mf.field(model(3), spread(random_measure(3000, 3, seed=1), comm, all_on_the_last))
    assert len(set(comm.allgather(chosen.method))) == 1


def test_a_node_off_the_sphere_is_named_on_all_ranks(comm):
    nodes, masses = random_points(4, 3, seed=1), np.full(4, 0.25 / comm.Get_size())
    if last(comm):
        nodes[2] *= 1.5
    number = 4 * (comm.Get_size() - 1) + 2
    with pytest.raises(ValueError, match=f"node {number} = .* has length 1.5"):
        mf.Measure(nodes, masses, comm)


def test_shapes_and_masses_are_refused_on_all_ranks(comm):
    nodes, masses = random_points(4, 3, seed=1), np.full(4, 0.25 / comm.Get_size())
    with pytest.raises(ValueError, match=r"masses has shape \(3,\)"):
        mf.Measure(nodes, masses[:3] if last(comm) else masses, comm)
    with pytest.raises(ValueError, match="masses sum to"):
        mf.Measure(nodes, 2 * masses if last(comm) else masses, comm)
    with pytest.raises(ValueError, match="; expected a finite number >= 0"):
        mf.Measure(nodes, masses * np.nan if last(comm) else masses, comm)


@METHODS
def test_points_off_the_sphere_are_refused_on_all_ranks(comm, method):
    f = mf.field(model(3), spread(random_measure(6, 3, seed=1), comm), method=method)
    x = random_points(2, 3, seed=comm.Get_rank())
    if last(comm):
        x[1] *= 2
    with pytest.raises(ValueError, match=r"row of x 1 = .* has length 2"):
        f.velocity(x)
    with pytest.raises(ValueError, match=r"x has shape \(2, 2\)"):
        f.velocity(x[:, :2] if last(comm) else x)


def test_ranks_that_disagree_on_the_dimension_all_say_so(comm):
    if comm.Get_size() == 1:
        assert mf.Measure([[1.0, 0.0]], [1.0], comm).ambient_dim == 2
        return
    last = comm.Get_rank() == comm.Get_size() - 1
    nodes = np.eye(3)[:1] if last else np.zeros((0, 2))
    with pytest.raises(ValueError, match=r"R\^2 on one rank and in R\^3"):
        mf.Measure(nodes, np.ones(len(nodes)), comm)
