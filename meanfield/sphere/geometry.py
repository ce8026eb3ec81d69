"""Geometry of the unit sphere S^{d-1} in R^d. Points are rows of (n, d) arrays."""

import numpy as np


def normalise(points):
    """Rows scaled to unit length; shape (n, d)."""
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def project_tangent(points, vectors):
    """P_x v = v − (x·v) x, row by row.

    Parameters
    ----------
    points, vectors : ndarray, shape (n, d)
        Unit rows, and any vectors.
    """
    return vectors - np.einsum("ij,ij->i", points, vectors)[:, None] * points


def exponential_map(points, tangents):
    """Where the geodesics from `points` with initial velocity `tangents` are at time one.

    Parameters
    ----------
    points, tangents : ndarray, shape (n, d)
        Unit rows, and tangent rows (lengths are angles in radians).

    Returns
    -------
    ndarray, shape (n, d)
        Unit rows.

    Examples
    --------
    >>> north, east = np.array([[0.0, 1.0]]), np.array([[np.pi, 0.0]])
    >>> np.allclose(exponential_map(north, east), [[0.0, -1.0]])
    True
    """
    angle = np.linalg.norm(tangents, axis=1, keepdims=True)
    # np.sinc(t) = sin(πt)/(πt) is finite at zero.
    return normalise(np.cos(angle) * points + np.sinc(angle / np.pi) * tangents)


def geodesic_distance(points, others):
    """Angle between unit vectors, in [0, π], accurate near 0 and π; broadcasts over rows."""
    return 2 * np.arctan2(
        np.linalg.norm(points - others, axis=-1), np.linalg.norm(points + others, axis=-1)
    )


def logarithm_map(points, targets):
    """Initial velocities of the shortest geodesics that reach `targets` at time one.

    Antipodal pairs have no unique shortest geodesic; any is returned only where rounding
    leaves a direction, otherwise zero.
    """
    tangent = project_tangent(points, targets)
    length = np.linalg.norm(tangent, axis=1)
    angle = geodesic_distance(points, targets)
    return np.divide(angle, length, out=np.ones_like(angle), where=length > 0)[:, None] * tangent


def circle_points(angles):
    """Points of S¹ at `angles` (radians), shape (n, 2)."""
    angles = np.asarray(angles, dtype=float)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def circle_angles(points):
    """Angles in [0, 2π) of points of S¹."""
    return _positive_angle(np.arctan2(points[:, 1], points[:, 0]))


def sphere_points(colatitude, longitude):
    """Points of S² at colatitude in [0, π] and longitude (radians), shape (n, 3)."""
    return np.stack(
        [
            np.sin(colatitude) * np.cos(longitude),
            np.sin(colatitude) * np.sin(longitude),
            np.cos(colatitude) * np.ones_like(longitude),
        ],
        axis=-1,
    )


def sphere_angles(points):
    """Colatitude in [0, π] and longitude in [0, 2π) of points of S²."""
    colatitude = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
    return colatitude, _positive_angle(np.arctan2(points[:, 1], points[:, 0]))


def sphere_frame(points):
    """Unit tangent vectors towards growing colatitude and growing longitude, each (n, 3).

    At the poles they are those of the longitude that `sphere_angles` reports.
    """
    x, y, z = points.T
    from_axis = np.hypot(x, y)
    at_pole = from_axis == 0
    cosine = np.divide(x, from_axis, out=np.copysign(1.0, x), where=~at_pole)
    sine = np.divide(y, from_axis, out=np.zeros_like(y), where=~at_pole)
    south = np.stack([z * cosine, z * sine, -from_axis], axis=1)
    east = np.stack([-sine, cosine, np.zeros_like(z)], axis=1)
    return south, east


def _positive_angle(angle):
    angle = np.where(angle < 0, angle + 2 * np.pi, angle)
    # A tiny negative angle rounds up to 2π itself.
    return np.where(angle >= 2 * np.pi, 0.0, angle)
