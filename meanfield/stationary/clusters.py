"""Clusters of a measure: single linkage at a geodesic distance [L, §4]."""

from dataclasses import dataclass

import numpy as np

from meanfield.runtime.parallel import broadcast, gather_rows, rank, row_offset
from meanfield.sphere.geometry import circle_angles, geodesic_distance


def cluster_threshold(beta, ambient_dim):
    """Geodesic distance up to which points are linked, as in the published runs [L, §4].

    min(1/(2√β), π/4) on S¹ and min(1/(2√β), π/(2d)) for d ≥ 3, in radians.

    Parameters
    ----------
    beta : float
        > 0.
    ambient_dim : int
        d ≥ 2.

    Examples
    --------
    >>> cluster_threshold(25.0, 2)
    0.1
    """
    if not (np.isfinite(beta) and beta > 0):
        raise ValueError(f"beta={beta!r}: expected a finite number > 0")
    if ambient_dim < 2:
        raise ValueError(f"ambient_dim={ambient_dim!r}: expected an integer >= 2")
    widest = np.pi / 4 if ambient_dim == 2 else np.pi / (2 * ambient_dim)
    return float(min(1 / (2 * np.sqrt(beta)), widest))


@dataclass(frozen=True)
class Clusters:
    """Clusters, heaviest first.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Cluster of each of this rank's nodes.
    masses : ndarray, shape (k,)
    centres : ndarray, shape (k, d)
        Directions of the clusters' mean vectors; of a cluster whose mean vanishes, or
        that has no mass, its first node.
    radii : ndarray, shape (k,)
        Largest geodesic distance of a member from the centre; the diameter lies between
        this and twice this.
    threshold : float
        Distance up to which points are linked.
    """

    labels: np.ndarray
    masses: np.ndarray
    centres: np.ndarray
    radii: np.ndarray
    threshold: float

    @property
    def count(self):
        """Number of clusters."""
        return len(self.masses)


def find_clusters(measure, threshold):
    """Connected components of the graph that links nodes at geodesic distance ≤ threshold.

    Takes memory O(n), and time O(n log n) in low dimension, also for collapsed clouds.
    Collective: the nodes are gathered on rank 0.

    Parameters
    ----------
    measure : Measure
    threshold : float
        In (0, π), radians; `cluster_threshold` is the papers' rule.

    Returns
    -------
    Clusters
        Of equal masses, the cluster with the first node comes first.

    Raises
    ------
    ValueError
        If the threshold is out of its range.

    Examples
    --------
    >>> from meanfield.fields.measure import Measure
    >>> from meanfield.sphere.geometry import circle_points
    >>> measure = Measure(circle_points([0.05, 3.0, 6.25]), [0.25, 0.5, 0.25])
    >>> clusters = find_clusters(measure, threshold=0.1)
    >>> clusters.count, clusters.labels.tolist(), clusters.masses.tolist()
    (2, [0, 1, 0], [0.5, 0.5])
    """
    if not 0 < threshold < np.pi:
        raise ValueError(f"threshold={threshold!r}: expected a geodesic distance in (0, pi)")
    comm = measure.comm
    nodes, masses = gather_rows(measure.nodes, comm), gather_rows(measure.masses, comm)
    found = _summary(nodes, masses, threshold) if rank(comm) == 0 else None
    labels, *summary = broadcast(found, comm)
    offset = row_offset(len(measure.masses), comm)
    return Clusters(labels[offset : offset + len(measure.masses)], *summary, float(threshold))


def count_if_tight(measure, threshold):
    """Number of clusters, or None while one of them is wider than the threshold; collective.

    What the stopping rule of [L, §4] counts (`meanfield.runtime.stopping.UntilSettled`).
    """
    clusters = find_clusters(measure, threshold)
    return clusters.count if clusters.radii.max() <= threshold else None


def linked_components(nodes, threshold):
    """Labels 0 … k − 1 of the components of nodes (n, d) on one rank, shape (n,)."""
    if nodes.shape[1] == 2:
        return _components_on_circle(circle_angles(nodes), threshold)
    # Search trees do not bear many equal points, with which collapsed clouds may end.
    place = _equal_rows(nodes)
    _, first = np.unique(place, return_index=True)
    # Distances along the sphere and through space order pairs alike.
    return _components_in_space(nodes[first], 2 * np.sin(threshold / 2))[place]


def _summary(nodes, masses, threshold):
    """Labels, masses, centres and radii, heaviest cluster first."""
    labels = linked_components(nodes, threshold)
    _, first = np.unique(labels, return_index=True)
    count = len(first)
    cluster_masses = np.bincount(labels, weights=masses, minlength=count)
    # Masses that differ by rounding are equal, so that the order does not hang on it.
    order = np.lexsort((first, -np.round(cluster_masses, 12)))
    position = np.empty(count, dtype=int)
    position[order] = np.arange(count)
    labels, cluster_masses, first = position[labels], cluster_masses[order], first[order]
    mean = np.stack(
        [np.bincount(labels, weights=masses * x, minlength=count) for x in nodes.T], axis=1
    )
    length = np.linalg.norm(mean, axis=1)
    has_mean = length > 1e-12 * cluster_masses
    centres = nodes[first]
    centres[has_mean] = mean[has_mean] / length[has_mean, None]
    radii = np.zeros(count)
    np.maximum.at(radii, labels, geodesic_distance(nodes, centres[labels]))
    return labels, cluster_masses, centres, radii


def _components_on_circle(angles, threshold):
    order = np.argsort(angles, kind="stable")
    gaps = np.diff(angles[order])
    labels = np.empty(len(angles), dtype=int)
    labels[order] = np.concatenate([[0], np.cumsum(gaps > threshold)])
    around = angles[order[0]] + 2 * np.pi - angles[order[-1]]
    if around <= threshold:
        labels[labels == labels[order[-1]]] = 0
    return labels


def _components_in_space(nodes, distance):
    """Components by Borůvka's rounds: every component looks for a node of another within reach.

    Two components' numbers differ in some binary digit, so the nodes whose component has
    that digit 0 need to look among those with 1 only, and the other way round; no list of
    pairs is ever made.
    """
    # Nodes in one cube of this diameter are linked. Rounding to nearest keeps the coordinate
    # hyperplanes, where clusters like to sit, inside cubes.
    side = distance / np.sqrt(nodes.shape[1])
    labels = _equal_rows(np.rint(nodes / side))
    active = np.arange(len(nodes))
    while len(active):
        number, count = labels[active], labels.max() + 1
        reached = np.zeros(count, dtype=bool)
        for digit in range(int(number.max()).bit_length()):
            one = (number >> digit & 1).astype(bool)
            for here, there in ((active[one], active[~one]), (active[~one], active[one])):
                ones, others = _within_reach(nodes, here, there, distance)
                reached[number[np.searchsorted(active, ones)]] = True
                labels = _joined(labels, ones, others)
            if 2 * (labels.max() + 1) < count:
                # Much has been joined: fewer numbers have fewer digits.
                break
        else:
            # A component that reached no other in a whole round never will.
            active = active[reached[number]]
    return labels


def _within_reach(nodes, here, there, distance):
    """Those of `here` that have a node of `there` within a distance, and the nearest such."""
    from scipy.spatial import cKDTree

    if len(here) == 0 or len(there) == 0:
        return here[:0], there[:0]
    # The bound of the search is strict.
    bound = np.nextafter(distance, np.inf)
    _, nearest = cKDTree(nodes[there]).query(nodes[here], distance_upper_bound=bound)
    found = nearest < len(there)
    return here[found], there[nearest[found]]


def _joined(labels, ones, others):
    """Labels after joining the components of pairs of nodes; each takes its smallest label."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = labels.max() + 1
    links = coo_array((np.ones(len(ones)), (labels[ones], labels[others])), shape=(size, size))
    return connected_components(links, directed=False)[1][labels]


def _equal_rows(rows):
    """Numbers 0, 1, … shared by the rows of an array (n, d) that are equal, shape (n,)."""
    order = np.lexsort(rows.T)
    new = np.any(np.diff(rows[order], axis=0) != 0, axis=1)
    numbers = np.empty(len(rows), dtype=int)
    numbers[order] = np.concatenate([[0], np.cumsum(new)])
    return numbers
