"""Clouds are the same on any number of ranks; distances and clusters agree with serial ones."""

import numpy as np
import pytest

from meanfield.coupling.distance import circle_wasserstein, sphere_wasserstein
from meanfield.fields.measure import Measure
from meanfield.runtime.parallel import gather_rows
from meanfield.sphere.point_files import read_points
from meanfield.sphere.sampling import (
    even_from_density,
    even_uniform,
    random_from_density,
    random_uniform,
)
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture
from meanfield.stationary.clusters import find_clusters

MIXTURE = VonMisesFisherMixture([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]], [20.0, 5.0])


@pytest.mark.parametrize(
    "cloud",
    [
        lambda count, comm: random_uniform(count, 5, 3, comm),
        lambda count, comm: even_uniform(count, 3, comm),
        lambda count, comm: random_from_density(lambda x: 1 + x[:, 0] / 2, count, 3, 3, comm),
        lambda count, comm: even_from_density(lambda x: 1 + x[:, 0] / 2, count, 2, comm),
        lambda count, comm: MIXTURE.sample(count, 3, comm),
    ],
    ids=["random", "even", "random from density", "even from density", "mixture"],
)
@pytest.mark.parametrize("count", [1, 2, 5000])
def test_clouds_do_not_depend_on_ranks(comm, cloud, count):
    gathered = gather_rows(cloud(count, comm), comm)
    assert gathered is None or np.array_equal(gathered, cloud(count, None))


def test_files_are_shared_out(comm, tmp_path):
    path = comm.bcast(str(tmp_path / "cloud.npy"))
    whole = random_uniform(11, 3, 1)
    if comm.Get_rank() == 0:
        np.save(path, whole)
    comm.Barrier()
    nodes, masses = read_points(path, comm)
    gathered = gather_rows(nodes, comm)
    assert gathered is None or np.array_equal(gathered, whole)
    assert np.isclose(comm.allreduce(masses.sum()), 1)
    with pytest.raises(OSError, match="missing"):
        read_points("missing.npy", comm)


def equal(nodes, comm, count):
    return Measure(nodes, np.full(len(nodes), 1 / count), comm)


@pytest.mark.parametrize("count", [2, 300])
def test_distances_agree_with_serial_ones(comm, count):
    for dim, distance in ((2, circle_wasserstein), (3, sphere_wasserstein)):
        measures = [equal(random_uniform(count, dim, s, comm), comm, count) for s in (1, 2)]
        whole = [equal(random_uniform(count, dim, s), None, count) for s in (1, 2)]
        expected = distance(*whole)
        assert distance(*measures) == expected
        # One of the two may be whole on every rank.
        assert distance(whole[0], measures[1]) == expected
        assert distance(measures[0], whole[1]) == expected


def test_sliced_distance_agrees_with_the_serial_one(comm):
    measures = [equal(random_uniform(50, 3, s, comm), comm, 50) for s in (1, 2)]
    whole = [equal(random_uniform(50, 3, s), None, 50) for s in (1, 2)]
    assert sphere_wasserstein(*measures, max_points=10) == sphere_wasserstein(*whole, max_points=10)


@pytest.mark.parametrize("count", [2, 300])
def test_clusters_agree_with_serial_ones(comm, count):
    measure = equal(MIXTURE.sample(count, 4, comm), comm, count)
    expected = find_clusters(equal(MIXTURE.sample(count, 4), None, count), 0.1)
    found = find_clusters(measure, 0.1)
    assert np.array_equal(found.masses, expected.masses)
    assert np.array_equal(found.centres, expected.centres)
    assert np.array_equal(found.radii, expected.radii)
    labels = gather_rows(found.labels, comm)
    assert labels is None or np.array_equal(labels, expected.labels)
