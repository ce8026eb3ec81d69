"""Transport on the circle against POT's network simplex and closed forms."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.coupling.circle_transport import squared_wasserstein
from meanfield.sphere.geometry import circle_points, geodesic_distance

TURN = 2 * np.pi


def all_pairs(angles_a, masses_a, angles_b, masses_b):
    nodes_a, nodes_b = circle_points(angles_a), circle_points(angles_b)
    cost = geodesic_distance(nodes_a[:, None], nodes_b[None]) ** 2
    return ot.emd2(masses_a, masses_b, cost)


angles = st.one_of(
    st.floats(0, TURN, exclude_max=True),
    # Places that coincide, also with the cut and with antipodes.
    st.sampled_from([0.0, 1.0, np.pi, np.pi + 1, np.nextafter(TURN, 0)]),
)
clouds = st.lists(st.tuples(angles, st.integers(0, 9)), min_size=1, max_size=12).filter(
    lambda cloud: sum(weight for _, weight in cloud) > 0
)


def arrays(cloud):
    places, weights = np.array(cloud, dtype=float).T
    return places, weights / weights.sum()


@given(first=clouds, second=clouds)
def test_weighted_clouds_against_all_pairs(first, second):
    first, second = arrays(first), arrays(second)
    assert np.isclose(squared_wasserstein(*first, *second), all_pairs(*first, *second), atol=1e-12)


@given(first=clouds, second=clouds, turn=st.floats(0, TURN))
def test_symmetry_and_rotation(first, second, turn):
    first, second = arrays(first), arrays(second)
    value = squared_wasserstein(*first, *second)
    assert np.isclose(squared_wasserstein(*second, *first), value, atol=1e-12)
    turned = [((places + turn) % TURN % TURN, masses) for places, masses in (first, second)]
    assert np.isclose(squared_wasserstein(*turned[0], *turned[1]), value, atol=1e-11)


@given(cloud=clouds, order=st.randoms())
def test_a_cloud_is_at_no_distance_from_itself(cloud, order):
    shuffled = cloud.copy()
    order.shuffle(shuffled)
    # Halves of the same nodes, in another order.
    split = [(place, weight) for place, weight in shuffled for _ in range(2)]
    assert squared_wasserstein(*arrays(cloud), *arrays(split)) < 1e-28


@pytest.mark.parametrize("turn", [1e-9, 1e-3, 0.3])
def test_a_cloud_within_a_third_of_the_circle_turns_with_its_angle(turn):
    generator = np.random.default_rng(0)
    places, masses = generator.random(1000) * TURN / 3, generator.random(1000)
    masses /= masses.sum()
    value = squared_wasserstein(places, masses, places + turn, masses)
    assert np.isclose(np.sqrt(value), turn, rtol=1e-7, atol=0)


@pytest.mark.parametrize("fine", [20_000, 65_536])
def test_equispaced_points_against_finer_ones(fine):
    # A point of mass 1/n spread over an arc of length h = 2π/n: h²/12, and less the finer part.
    coarse = 1000
    places = [(np.arange(n) + 0.5) * TURN / n for n in (coarse, fine)]
    masses = [np.full(n, 1 / n) for n in (coarse, fine)]
    value = squared_wasserstein(places[0], masses[0], places[1], masses[1])
    exact = TURN**2 / 12 * (1 / coarse**2 - 1 / fine**2)
    # Points of the finer set may be split by the coarse set's arcs.
    assert np.isclose(value, exact, rtol=1e-12 if fine % coarse == 0 else 2e-4)


def test_a_million_points_in_two_places():
    # Masses are added up well enough that none crosses the circle by rounding.
    places = np.repeat([0.0, np.pi], 500_000)
    masses = np.full(1_000_000, 1e-6)
    assert squared_wasserstein(places, masses, np.array([0.0, np.pi]), np.full(2, 0.5)) < 1e-20


def test_agrees_with_the_binary_search_of_pot():
    generator = np.random.default_rng(1)
    places = [generator.random(n) * TURN for n in (300, 500)]
    masses = [generator.dirichlet(np.ones(n)) for n in (300, 500)]
    value = squared_wasserstein(places[0], masses[0], places[1], masses[1])
    theirs = ot.wasserstein_circle(places[0] / TURN, places[1] / TURN, *masses, p=2)[0]
    assert np.isclose(value, TURN**2 * theirs, rtol=1e-6)
