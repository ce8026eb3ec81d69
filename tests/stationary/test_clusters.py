"""Clusters against SciPy's single linkage of all pairs, and where pairs are too many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from meanfield.fields.measure import Measure
from meanfield.sphere.geometry import circle_points, geodesic_distance, normalise
from meanfield.sphere.sampling import even_uniform, random_uniform
from meanfield.stationary.clusters import cluster_threshold, find_clusters, linked_components


def equal_masses(nodes):
    return Measure(nodes, np.full(len(nodes), 1 / len(nodes)))


def same_partition(first, second):
    pairs = np.unique(np.stack([first, second]), axis=1).shape[1]
    return pairs == len(np.unique(first)) == len(np.unique(second))


@given(
    seed=st.integers(0, 10**6),
    dim=st.integers(2, 8),
    count=st.integers(2, 60),
    places=st.integers(1, 8),
    log_spread=st.floats(-8, 0.5),
    log_threshold=st.floats(-4, 0.4),
)
def test_single_linkage_of_small_clouds(seed, dim, count, places, log_spread, log_threshold):
    generator = np.random.default_rng(seed)
    centres = normalise(generator.normal(size=(places, dim)))
    noise = 10**log_spread * generator.normal(size=(count, dim))
    nodes = normalise(centres[generator.integers(0, places, count)] + noise)
    upper = np.triu_indices(count, 1)
    distances = geodesic_distance(nodes[upper[0]], nodes[upper[1]])
    threshold = 10**log_threshold
    expected = fcluster(linkage(distances, "single"), threshold, "distance")
    assert same_partition(linked_components(nodes, threshold), expected)


@pytest.mark.parametrize("dim", [3, 6])
def test_long_chains_are_one_cluster(dim):
    # Beads on a great circle, each linked to the next only, and the same with one bead missing.
    angles = np.linspace(0, 2, 2001)
    nodes = np.zeros((2001, dim))
    nodes[:, [0, dim - 1]] = circle_points(angles)
    assert find_clusters(equal_masses(nodes), 0.00101).count == 1
    gap = equal_masses(np.delete(nodes, 500, axis=0))
    assert np.allclose(find_clusters(gap, 0.00101).masses, [0.75, 0.25])
    assert find_clusters(equal_masses(nodes), 0.00099).count == 2001


def test_clusters_close_around_angle_zero():
    nodes = circle_points(np.array([6.2, 0.1, 3.0, 0.0]))
    clusters = find_clusters(equal_masses(nodes), 0.15)
    assert clusters.labels.tolist() == [0, 0, 1, 0]
    expected = np.angle(np.exp(1j * np.array([6.2, 0.1, 0.0])).sum())
    assert np.allclose(clusters.centres, circle_points([expected, 3.0]))
    assert np.isclose(clusters.radii[0], 0.1 - expected)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_antipodes_are_far_apart(dim):
    nodes = np.zeros((2, dim))
    nodes[:, -1] = 1, -1
    assert find_clusters(equal_masses(nodes), np.pi - 1e-6).count == 2


@pytest.mark.parametrize("dim", [2, 3, 10])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-3])
def test_collapsed_clouds(dim, spread):
    generator = np.random.default_rng(dim)
    places = np.eye(dim)[:2]
    chosen = generator.random(50_000) < 0.3
    noise = spread * generator.normal(size=(50_000, dim))
    nodes = normalise(np.where(chosen[:, None], places[0], places[1]) + noise)
    clusters = find_clusters(equal_masses(nodes), cluster_threshold(25.0, dim))
    assert clusters.count == 2
    assert np.array_equal(clusters.labels == 1, chosen)
    assert np.isclose(clusters.masses[1], chosen.mean())
    assert np.allclose(clusters.centres, places[::-1], atol=max(spread / 20, 1e-12))
    assert np.all(clusters.radii <= max(10 * spread, 1e-11))


@pytest.mark.parametrize("dim", [2, 3])
def test_a_cloud_over_the_sphere_is_one_cluster_or_none(dim):
    nodes = even_uniform(20_000, dim)
    spacing = 2 * np.pi / 20_000 if dim == 2 else np.sqrt(4 * np.pi / 20_000)
    assert find_clusters(equal_masses(nodes), 1.5 * spacing).count == 1
    assert find_clusters(equal_masses(nodes), 0.2 * spacing).count == 20_000


def test_isolated_points_in_high_dimension():
    assert find_clusters(equal_masses(random_uniform(2000, 30, seed=1)), 0.05).count == 2000


def test_heaviest_first_and_ties_by_first_node():
    nodes = np.eye(3)
    clusters = find_clusters(Measure(nodes, [0.3, 0.4, 0.3]), 0.1)
    assert clusters.labels.tolist() == [1, 0, 2]
    assert clusters.masses.tolist() == [0.4, 0.3, 0.3]
    assert np.array_equal(clusters.centres, nodes[[1, 0, 2]])


def test_clusters_without_a_mean_take_their_first_node():
    around = circle_points(np.arange(8) * np.pi / 4)
    assert np.array_equal(find_clusters(equal_masses(around), 0.8).centres, around[:1])
    massless = Measure(np.eye(2), [1.0, 0.0])
    assert np.array_equal(find_clusters(massless, 0.1).centres, np.eye(2))


@pytest.mark.parametrize(
    ("beta", "dim", "expected"),
    [
        (25.0, 2, 0.1),
        (0.01, 2, np.pi / 4),
        (0.01, 7, np.pi / 14),
        (1e4, 50, 0.005),
        (50.0, 50, np.pi / 100),
    ],
)
def test_threshold_of_the_published_runs(beta, dim, expected):
    assert np.isclose(cluster_threshold(beta, dim), expected, rtol=1e-15)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.pi, np.nan])
def test_what_is_no_threshold_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold"):
        find_clusters(equal_masses(np.eye(3)), threshold)


@pytest.mark.parametrize(("beta", "dim"), [(0.0, 2), (np.inf, 2), (1.0, 1)])
def test_thresholds_of_no_model_are_refused(beta, dim):
    with pytest.raises(ValueError, match="expected"):
        cluster_threshold(beta, dim)
