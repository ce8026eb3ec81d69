"""The fixed points on which records keep functions of the sphere for figures."""

import numpy as np

from meanfield.sphere.geometry import circle_points, sphere_points

CIRCLE_COUNT = 720
SPHERE_SHAPE = (91, 180)


def picture_points(ambient_dim):
    """Points of the pictures of S¹ or S².

    Parameters
    ----------
    ambient_dim : int
        2 or 3.

    Returns
    -------
    ndarray, shape (n, d)
        On S¹ equispaced angles from 0; on S² colatitudes from 0 to π, both included, by
        longitudes from 0, row by row (``SPHERE_SHAPE``).

    Examples
    --------
    >>> picture_points(2).shape, picture_points(3).shape
    ((720, 2), (16380, 3))
    """
    if ambient_dim == 2:
        return circle_points(picture_angles())
    if ambient_dim == 3:
        rows, columns = SPHERE_SHAPE
        colatitude = np.repeat(np.linspace(0, np.pi, rows), columns)
        longitude = np.tile(2 * np.pi / columns * np.arange(columns), rows)
        return sphere_points(colatitude, longitude)
    raise ValueError(f"ambient_dim={ambient_dim}: pictures are of S¹ or S²; expected 2 or 3")


def picture_angles():
    """Angles of the points on S¹, shape (720,)."""
    return 2 * np.pi / CIRCLE_COUNT * np.arange(CIRCLE_COUNT)
