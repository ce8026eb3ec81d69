"""Panels for S²: the density as a map and on two hemispheres, particles over it."""

import numpy as np

from meanfield.plotting.style import DENSITY_COLOURS, POTENTIAL_COLOURS, RED
from meanfield.sphere.geometry import sphere_angles, sphere_frame
from meanfield.sphere.pictures import SPHERE_SHAPE

_MOST_DOTS = 1500


def density_colours(values):
    """Colours that grow like the square root of the density, so that peaks do not hide the rest."""
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0.0, vmax=float(values.max()), clip=True)


def draw_map(axes, values, nodes, colours):
    """Density on a Mollweide map, particles as dots.

    Parameters
    ----------
    axes : matplotlib Axes with projection="mollweide"
    values : ndarray, shape (rows, columns)
        On equispaced colatitudes from 0 to π and longitudes from 0, 2π excluded.
    nodes : ndarray, shape (n, 3)
    colours : matplotlib Normalize
        From densities to colours, see `density_colours`.

    Returns
    -------
    matplotlib mappable
    """
    image = _colour_map(axes, values, cmap=DENSITY_COLOURS, norm=colours)
    _dots(axes, *_longitude_latitude(_some(nodes)))
    axes.tick_params(axis="x", colors="white")
    return image


def draw_scattered_map(axes, potential, before, after):
    """Particles before (small) and after (large) on a Mollweide map.

    Parameters
    ----------
    axes : matplotlib Axes with projection="mollweide"
    potential : ndarray, shape (p,), or None
        At the points of `meanfield.sphere.pictures`, as the background.
    before, after : ndarray, shape (n, 3)
    """
    if potential is not None:
        size = np.abs(potential).max() or 1.0
        image = _colour_map(
            axes, potential.reshape(SPHERE_SHAPE), cmap=POTENTIAL_COLOURS, vmin=-size, vmax=size,
            alpha=0.7,
        )
        axes.figure.colorbar(image, ax=axes, label="perceptron potential v", shrink=0.75,
                             location="bottom")
    else:
        _label_map(axes)
    axes.plot(*_longitude_latitude(_some(before)), linestyle="none", marker="o", markersize=1.2,
              color="0.35", markeredgewidth=0)
    axes.plot(*_longitude_latitude(_some(after)), linestyle="none", marker="o", markersize=5,
              color=RED, markeredgecolor="white", markeredgewidth=0.4)


def _colour_map(axes, values, **colours):
    rows, columns = values.shape
    # The map runs from −π to π.
    shifted = np.roll(values, columns // 2, axis=1)
    shifted = np.column_stack([shifted, shifted[:, 0]])
    longitude = np.linspace(-np.pi, np.pi, columns + 1)
    latitude = np.pi / 2 - np.linspace(0, np.pi, rows)
    image = axes.pcolormesh(
        longitude, latitude, shifted, shading="gouraud", rasterized=True, **colours
    )
    _label_map(axes)
    return image


def _label_map(axes):
    axes.grid(alpha=0.25)
    axes.set_xticks(np.deg2rad([-120, -60, 0, 60, 120]))
    axes.set_yticks(np.deg2rad([-60, -30, 0, 30, 60]))
    axes.tick_params(labelsize=6.5)


def _longitude_latitude(nodes):
    colatitude, east = sphere_angles(nodes)
    return np.where(east > np.pi, east - 2 * np.pi, east), np.pi / 2 - colatitude


def draw_hemisphere(axes, values, nodes, centre, colours):
    """The hemisphere around `centre`, seen from far away (orthographic).

    Parameters
    ----------
    axes : matplotlib Axes
    values : ndarray, shape (rows, columns)
        As in `draw_map`.
    nodes : ndarray, shape (n, 3)
    centre : ndarray, shape (3,)
        Unit vector in the middle of the picture.
    colours : matplotlib Normalize
        From densities to colours, see `density_colours`.
    """
    from scipy.ndimage import map_coordinates

    south, east = (vector[0] for vector in sphere_frame(centre[None]))
    across = np.linspace(-1, 1, 301)
    right, up = np.meshgrid(across, across)
    squared = right**2 + up**2
    depth = np.sqrt(np.maximum(1 - squared, 0.0))
    points = right[..., None] * east - up[..., None] * south + depth[..., None] * centre
    colatitude, longitude = sphere_angles(points.reshape(-1, 3))
    rows, columns = values.shape
    closed = np.column_stack([values, values[:, 0]])
    index = np.stack([colatitude * (rows - 1) / np.pi, longitude * columns / (2 * np.pi)])
    picture = map_coordinates(closed, index, order=1).reshape(right.shape)
    axes.imshow(
        np.where(squared <= 1, picture, np.nan), extent=(-1, 1, -1, 1), origin="lower",
        cmap=DENSITY_COLOURS, norm=colours,
    )
    visible = _some(nodes)
    visible = visible[visible @ centre > 0]
    _dots(axes, visible @ east, -visible @ south)
    circle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(circle), np.sin(circle), color="0.3", linewidth=0.8)
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.axis("off")


def _some(nodes):
    return nodes[:: max(1, len(nodes) // _MOST_DOTS)]


def _dots(axes, horizontal, vertical):
    axes.plot(horizontal, vertical, linestyle="none", marker="o", markersize=1.4,
              color="white", markeredgecolor="black", markeredgewidth=0.25)
