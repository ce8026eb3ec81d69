"""Bisection keeps triangulations of S² conforming, oriented and well shaped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.density.finite_element import cell_lists
from meanfield.density.finite_element.bisection import (
    bisect,
    edges_of,
    refine,
    with_longest_edge_as_base,
)
from meanfield.density.finite_element.cell_lists import GROWTH, Region, icosahedral_sphere
from meanfield.sphere.geometry import geodesic_distance


def facet_counts(triangles):
    """How many triangles each edge has, by looking at pairs of vertices."""
    pairs = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    return np.unique(pairs, axis=0, return_counts=True)[1]


def angles(vertices, triangles):
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    return np.stack([corner(a, b, c), corner(b, c, a), corner(c, a, b)])


def corner(at, to, other):
    first, second = to - at, other - at
    return np.arctan2(
        np.linalg.norm(np.cross(first, second), axis=1), rows_dot(first, second)
    )


def longest_edges(vertices, triangles):
    corners = vertices[triangles]
    return np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)


def solid_angles(vertices, triangles):
    """Signed, by the formula of van Oosterom and Strackee."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    volume = rows_dot(a, np.cross(b, c))
    return 2 * np.arctan2(volume, 1 + rows_dot(a, b) + rows_dot(b, c) + rows_dot(c, a))


def rows_dot(first, second):
    return np.einsum("ij,ij->i", first, second)


def assert_mesh_of_the_sphere(vertices, triangles):
    # A vertex in the middle of a neighbour's edge would leave edges with one triangle only.
    counts = facet_counts(triangles)
    assert (counts == 2).all()
    assert len(vertices) - len(counts) + len(triangles) == 2
    np.testing.assert_array_equal(np.unique(triangles), np.arange(len(vertices)))
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1, atol=1e-15)
    # Triangles seen counterclockwise cover the sphere once.
    solid = solid_angles(vertices, triangles)
    assert solid.min() > 0
    assert solid.sum() == pytest.approx(4 * np.pi, rel=1e-12)


def start(refinements):
    vertices, triangles = icosahedral_sphere(refinements)
    return vertices, with_longest_edge_as_base(vertices, triangles)


def test_edges_are_counted_once_and_lie_opposite():
    _, triangles = icosahedral_sphere(1)
    ends, edges = edges_of(triangles)
    assert len(ends) == 120
    for column in range(3):
        others = np.sort(np.delete(triangles, column, axis=1), axis=1)
        np.testing.assert_array_equal(ends[edges[:, column]], others)


def test_longest_edge_becomes_the_base_and_orientation_stays():
    rng = np.random.default_rng(1)
    vertices = rng.normal(size=(30, 3))
    triangles = np.array([rng.choice(30, 3, replace=False) for _ in range(50)])
    turned = with_longest_edge_as_base(vertices, triangles)
    base = np.linalg.norm(vertices[turned[:, 1]] - vertices[turned[:, 2]], axis=1)
    np.testing.assert_allclose(base, longest_edges(vertices, triangles))
    for before, after in zip(triangles.tolist(), turned.tolist(), strict=True):
        assert after in (before, before[1:] + before[:1], before[2:] + before[:2])


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.integers(1, 6))
def test_any_marks_leave_a_conforming_mesh(numbers, rounds):
    vertices, triangles = start(1)
    for _ in range(rounds):
        marked = np.zeros(len(triangles), dtype=bool)
        marked[np.array(numbers) % len(triangles)] = True
        old = triangles[marked].tolist()
        kept = vertices
        vertices, triangles = bisect(vertices, triangles, marked)
        np.testing.assert_array_equal(vertices[: len(kept)], kept)
        assert not {tuple(row) for row in old} & {tuple(row) for row in triangles.tolist()}
        assert_mesh_of_the_sphere(vertices, triangles)


def test_marking_nothing_changes_nothing():
    vertices, triangles = start(1)
    same_vertices, same = bisect(vertices, triangles, np.zeros(len(triangles), dtype=bool))
    np.testing.assert_array_equal(same, triangles)
    np.testing.assert_array_equal(same_vertices, vertices)


def test_angles_do_not_degenerate():
    vertices, triangles = start(2)
    point = np.array([0.48, 0.6, 0.64])
    smallest = []
    for _ in range(40):
        distances = geodesic_distance(vertices[triangles].mean(axis=1), point)
        marked = np.zeros(len(triangles), dtype=bool)
        marked[np.argsort(distances)[:3]] = True
        vertices, triangles = bisect(vertices, triangles, marked)
        smallest.append(angles(vertices, triangles).min())
    assert longest_edges(vertices, triangles).min() < 1e-4
    # 30 degrees for bisections of an equilateral triangle in the plane.
    assert np.rad2deg(smallest[-1]) > 25
    assert smallest[-1] == smallest[10]


@pytest.mark.parametrize(("radius", "size"), [(0.3, 0.02), (0.0, 0.001), (np.pi, 0.1)])
def test_refinement_reaches_the_wanted_size_with_few_cells(radius, size):
    region = Region((0.48, 0.6, 0.64), radius, size)
    vertices, triangles = icosahedral_sphere(3, [region])
    assert_mesh_of_the_sphere(vertices, triangles)
    diameters = longest_edges(vertices, triangles)
    distances = geodesic_distance(vertices, np.array(region.point))
    touching = (distances[triangles] <= radius).any(axis=1)
    touching |= distances[triangles].min(axis=1) == distances.min()
    assert diameters[touching].max() <= size
    # And everywhere what its distance asks for.
    assert (diameters <= size + GROWTH * np.maximum(distances[triangles].T - radius, 0)).all()
    # Ideal triangles of the wanted sizes: the integral of 1/area over the sphere.
    distance = np.linspace(0, np.pi, 20001)
    start_size = longest_edges(*icosahedral_sphere(3)).max()
    wanted = np.minimum(size + GROWTH * np.maximum(distance - radius, 0), start_size)
    ring = 2 * np.pi * np.sin(distance)
    ideal = np.trapezoid(ring / (np.sqrt(3) / 4 * wanted**2), distance)
    assert len(triangles) < 6 * ideal
    assert angles(vertices, triangles).min() > np.deg2rad(25)


def test_the_same_mesh_every_time():
    region = Region((0.0, 0.6, -0.8), 0.1, 0.05)
    first, second = icosahedral_sphere(2, [region]), icosahedral_sphere(2, [region])
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_too_many_triangles_are_refused():
    vertices, triangles = start(0)
    with pytest.raises(ValueError, match="more than 1000 triangles; ask for larger"):
        refine(vertices, triangles, lambda centres, spreads: 0 * spreads + 0.01, 1000)


@pytest.mark.parametrize("refinements", [0, 1, 3])
def test_icosahedral_sphere(refinements):
    vertices, triangles = icosahedral_sphere(refinements)
    assert_mesh_of_the_sphere(vertices, triangles)
    assert len(triangles) == 20 * 4**refinements
    lengths = longest_edges(vertices, triangles)
    assert lengths.max() / lengths.min() < 1.25


def test_icosahedron_is_regular():
    vertices, triangles = cell_lists.icosahedron()
    edge = 1 / np.sin(2 * np.pi / 5)
    np.testing.assert_allclose(longest_edges(vertices, triangles), edge, rtol=1e-14)
    np.testing.assert_allclose(angles(vertices, triangles), np.pi / 3, rtol=1e-14)


@pytest.mark.parametrize("cells_per_edge", [1, 2, 5])
def test_cubed_sphere(cells_per_edge):
    vertices, cells = cell_lists.cubed_sphere(cells_per_edge)
    assert len(cells) == 6 * cells_per_edge**2
    # Each quadrilateral as two triangles; its diagonal is an edge of both.
    assert_mesh_of_the_sphere(vertices, np.vstack([cells[:, :3], cells[:, [0, 2, 3]]]))


def turn(tails, heads):
    """Sine of the counterclockwise angle from one to the other."""
    return tails[:, 0] * heads[:, 1] - tails[:, 1] * heads[:, 0]


def test_equal_arcs():
    vertices, cells = cell_lists.circle(5)
    steps = turn(*np.moveaxis(vertices[cells], 1, 0))
    np.testing.assert_allclose(steps, np.sin(2 * np.pi / 5), rtol=1e-14)


def test_graded_arcs():
    regions = [Region((0.6, -0.8), 0.2, 0.01), Region((-1.0, 0.0), 0.05, 0.03)]
    vertices, cells = cell_lists.circle(24, regions)
    tails, heads = np.moveaxis(vertices[cells], 1, 0)
    arcs = geodesic_distance(tails, heads)
    # Counterclockwise, once round.
    assert turn(tails, heads).min() > 0
    assert arcs.sum() == pytest.approx(2 * np.pi, rel=1e-14)
    assert arcs.max() <= 2 * np.pi / 24 * (1 + 1e-6)
    for region in regions:
        nearest = np.minimum(*(geodesic_distance(end, np.array(region.point))
                               for end in (tails, heads)))
        assert arcs[nearest <= region.radius].max() <= region.size * (1 + 1e-6)
    # No larger than the wanted size at the nearer end, up to its growth along the arc.
    wanted = [region.wanted_size(end) for region in regions for end in (tails, heads)]
    assert (arcs <= np.minimum.reduce(wanted) * (1 + GROWTH)).all()
    # A vertex is where the first region is.
    assert geodesic_distance(vertices, np.array(regions[0].point)).min() < 1e-6
    growth = np.maximum(arcs / np.roll(arcs, 1), np.roll(arcs, 1) / arcs)
    assert growth.max() < 1.4
    assert len(cells) < 150
