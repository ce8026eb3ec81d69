"""Geometry of the sphere: maps that invert each other, accuracy where formulas are delicate."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.sphere.geometry import (
    circle_angles,
    circle_points,
    exponential_map,
    geodesic_distance,
    logarithm_map,
    normalise,
    project_tangent,
    sphere_angles,
    sphere_frame,
    sphere_points,
)
from tests.strategies import between, dimensions, random_points, unit_rows

POLES = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-0.0, 0.0, 1.0], [-0.0, -0.0, -1.0]])


def assert_unit(rows):
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=0, atol=1e-15)


@given(st.data(), dimensions())
def test_projection_is_tangent_and_idempotent(data, ambient_dim):
    x, v = (data.draw(unit_rows(4, ambient_dim)) for _ in range(2))
    tangent = project_tangent(x, v)
    np.testing.assert_allclose(np.sum(tangent * x, axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(project_tangent(x, tangent), tangent, rtol=0, atol=1e-15)
    # What is taken away is radial.
    radial = v - tangent
    np.testing.assert_allclose(radial, np.sum(radial * x, axis=1)[:, None] * x, atol=1e-15)


@given(st.data(), dimensions(), between(1e-12, 3.1))
def test_logarithm_inverts_the_exponential(data, ambient_dim, length):
    x, v = (data.draw(unit_rows(3, ambient_dim)) for _ in range(2))
    # Projected twice, so that the shortest are tangent too.
    tangent = project_tangent(x, project_tangent(x, v))
    sizes = np.linalg.norm(tangent, axis=1, keepdims=True)
    tangent = length * np.divide(tangent, sizes, out=np.zeros_like(tangent), where=sizes > 1e-3)
    y = exponential_map(x, tangent)
    assert_unit(y)
    np.testing.assert_allclose(logarithm_map(x, y), tangent, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        geodesic_distance(x, y), np.linalg.norm(tangent, axis=1), rtol=0, atol=1e-13
    )


def test_exponential_map_of_no_and_of_a_whole_turn():
    x = random_points(5, 4, seed=1)
    np.testing.assert_allclose(exponential_map(x, 0 * x), x, rtol=0, atol=1e-15)
    tangent = normalise(project_tangent(x, random_points(5, 4, seed=2)))
    np.testing.assert_allclose(exponential_map(x, 2 * np.pi * tangent), x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(exponential_map(x, np.pi * tangent), -x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(exponential_map(x, np.pi / 2 * tangent), tangent, atol=1e-14)


@given(st.data(), dimensions(5))
def test_distance_is_a_metric(data, ambient_dim):
    x, y, z = (data.draw(unit_rows(4, ambient_dim)) for _ in range(3))
    xy = geodesic_distance(x, y)
    np.testing.assert_array_equal(xy, geodesic_distance(y, x))
    np.testing.assert_array_equal(geodesic_distance(x, x), 0)
    np.testing.assert_allclose(geodesic_distance(x, -y), np.pi - xy, rtol=0, atol=1e-15)
    assert np.all(xy <= geodesic_distance(x, z) + geodesic_distance(z, y) + 1e-14)


@pytest.mark.parametrize("exponent", [-12, -9, -5, -2])
def test_small_and_nearly_antipodal_distances_are_accurate(exponent):
    """arccos of the inner product would lose half the digits."""
    x, y = circle_points([0.3, 0.3 + 10.0**exponent])
    with mp.workdps(40):
        cross = mp.mpf(x[0]) * mp.mpf(y[1]) - mp.mpf(x[1]) * mp.mpf(y[0])
        inner = mp.mpf(x[0]) * mp.mpf(y[0]) + mp.mpf(x[1]) * mp.mpf(y[1])
        exact = float(mp.atan2(cross, inner))
        far = float(mp.atan2(cross, -inner))
    assert geodesic_distance(x, y) == pytest.approx(exact, rel=1e-12)
    assert geodesic_distance(x, -y) == pytest.approx(far, rel=1e-15)


def test_distance_broadcasts():
    x, y = random_points(3, 4, seed=1), random_points(5, 4, seed=2)
    table = geodesic_distance(x[:, None], y[None])
    np.testing.assert_allclose(np.cos(table), x @ y.T, rtol=0, atol=1e-15)


def test_logarithm_of_an_antipode_is_finite():
    x = random_points(20, 3, seed=1)
    assert np.all(np.isfinite(logarithm_map(x, -x)))
    np.testing.assert_array_equal(logarithm_map(np.eye(3), -np.eye(3)), 0)
    np.testing.assert_array_equal(logarithm_map(np.eye(3), np.eye(3)), 0)


@given(st.floats(-20, 20))
def test_circle_angles_invert_circle_points(angle):
    points = circle_points([angle])
    assert_unit(points)
    found = circle_angles(points)
    assert 0 <= found[0] < 2 * np.pi
    turns = (found[0] - angle) / (2 * np.pi)
    assert turns == pytest.approx(round(turns), abs=1e-14)


def test_angles_stay_below_a_full_turn():
    just_below = np.array([[1.0, -1e-320], [1.0, -0.0], [1.0, -1e-17], [-1.0, -0.0]])
    np.testing.assert_allclose(circle_angles(just_below), [0, 0, 0, np.pi])
    in_space = np.concatenate([just_below, np.zeros((4, 1))], axis=1)
    np.testing.assert_allclose(sphere_angles(in_space)[1], [0, 0, 0, np.pi])


@given(unit_rows(5, 3))
def test_sphere_points_invert_sphere_angles(points):
    colatitude, longitude = sphere_angles(points)
    assert np.all((colatitude >= 0) & (colatitude <= np.pi))
    assert np.all((longitude >= 0) & (longitude < 2 * np.pi))
    np.testing.assert_allclose(sphere_points(colatitude, longitude), points, rtol=0, atol=1e-15)


def test_colatitudes_near_the_poles_are_accurate():
    angle = np.array([1e-12, 1e-7])
    near_north = np.stack([np.sin(angle), 0 * angle, np.cos(angle)], axis=1)
    np.testing.assert_allclose(sphere_angles(near_north)[0], angle, rtol=1e-15)


def test_sphere_points_broadcast():
    points = sphere_points(np.array([0.5, 1.0])[:, None], np.array([0.1, 0.2, 0.3])[None])
    assert points.shape == (2, 3, 3)
    np.testing.assert_allclose(points[1, 2], sphere_points(1.0, 0.3))


@given(unit_rows(5, 3))
def test_frame_is_orthonormal_and_points_south_and_east(points):
    points = np.concatenate([points, POLES])
    south, east = sphere_frame(points)
    frame = np.stack([south, east, points], axis=1)
    gram = np.broadcast_to(np.eye(3), (len(points), 3, 3))
    np.testing.assert_allclose(frame @ frame.transpose(0, 2, 1), gram, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(frame), 1, rtol=0, atol=1e-14)
    colatitude, longitude = sphere_angles(points)
    # The frame is that of the angles, at the poles too.
    np.testing.assert_allclose(
        south, sphere_points(colatitude + np.pi / 2, longitude), rtol=0, atol=1e-14
    )
