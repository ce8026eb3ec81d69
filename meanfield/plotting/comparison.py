"""The figure of a comparison of particles with a density, on S¹ or S²."""

from dataclasses import dataclass, field

import numpy as np

from meanfield.plotting.circle import draw_circle, draw_densities, draw_trajectories
from meanfield.plotting.series import draw_convergence, draw_series
from meanfield.plotting.sphere import density_colours, draw_hemisphere, draw_map
from meanfield.plotting.style import figure_style
from meanfield.sphere.geometry import circle_angles
from meanfield.sphere.pictures import SPHERE_SHAPE, picture_angles, picture_points

_TRAJECTORIES = 60


@dataclass
class ComparisonPicture:
    """What the figure shows.

    Attributes
    ----------
    title : str
    times : ndarray, shape (t,)
        Of the snapshots.
    densities : ndarray, shape (t, k)
        At the points of `meanfield.sphere.pictures`.
    nodes : ndarray, shape (t, n, d)
        Of one cloud.
    masses : ndarray, shape (n,)
    cloud : str
        The cloud's name.
    table_times : ndarray, shape (s,)
    energies, distances : dict of str to ndarray, shape (s,)
        Curves over time, by name.
    counts : ndarray, shape (c,)
        Numbers of particles.
    errors : dict of str to ndarray, shape (c,)
        Against the number of particles, by kind of start.
    slopes : dict of str to float
    distance_label : str
        What the distances and errors are.
    potential : ndarray, shape (k,), optional
        The perceptron's v.
    active : list of ndarray of bool, shape (k,)
        Where each neuron's preactivation is positive.
    """

    title: str
    times: np.ndarray
    densities: np.ndarray
    nodes: np.ndarray
    masses: np.ndarray
    cloud: str
    table_times: np.ndarray
    energies: dict
    distances: dict
    counts: np.ndarray
    errors: dict
    slopes: dict
    distance_label: str
    potential: np.ndarray | None = None
    active: list = field(default_factory=list)


def save_comparison(path, picture):
    """Draw a `ComparisonPicture` into a file (PNG or PDF by its name).

    Parameters
    ----------
    path : path-like
    picture : ComparisonPicture
    """
    with figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(13, 8), layout="constrained")
        figure.suptitle(picture.title, fontsize=11)
        grid = figure.add_gridspec(2, 3)
        if picture.nodes.shape[-1] == 2:
            _circle_panels(figure, grid, picture)
        else:
            _sphere_panels(figure, grid, picture)
        axes = figure.add_subplot(grid[1, 0])
        if picture.energies:
            draw_series(axes, picture.table_times, picture.energies, "energy E")
            axes.set_title("energy")
        else:
            _say(axes, "no energy: the drift is no gradient")
        axes = figure.add_subplot(grid[1, 1])
        draw_series(
            axes, picture.table_times, picture.distances, picture.distance_label, logarithmic=True
        )
        axes.set_title("distance of particles from the density")
        axes = figure.add_subplot(grid[1, 2])
        draw_convergence(
            axes, picture.counts, picture.errors, picture.slopes, picture.distance_label
        )
        axes.set_title(f"the same at t = {picture.table_times[-1]:g}")
        figure.savefig(path)


def _circle_panels(figure, grid, picture):
    angles = picture_angles()
    axes = figure.add_subplot(grid[0, 0])
    draw_circle(
        axes, angles, picture.densities[-1], picture.nodes[-1], picture.potential, picture.active
    )
    axes.set_title(f"t = {picture.times[-1]:g} ({picture.cloud})")
    axes = figure.add_subplot(grid[0, 1])
    chosen = (0, len(picture.times) // 2, -1)
    draw_densities(
        axes,
        angles,
        [picture.densities[i] for i in chosen],
        [(picture.nodes[i], picture.masses) for i in chosen],
        [f"t = {picture.times[i]:g}" for i in chosen],
    )
    axes.set_title("density (curves) and particles (histograms)")
    axes = figure.add_subplot(grid[0, 2])
    step = max(1, picture.nodes.shape[1] // _TRAJECTORIES)
    paths = np.stack([circle_angles(nodes[::step]) for nodes in picture.nodes])
    draw_trajectories(axes, picture.times, paths, picture.potential)
    axes.set_title("trajectories")


def _sphere_panels(figure, grid, picture):
    values = picture.densities[-1].reshape(SPHERE_SHAPE)
    nodes = picture.nodes[-1]
    colours = density_colours(values)
    axes = figure.add_subplot(grid[0, 0], projection="mollweide")
    image = draw_map(axes, values, nodes, colours)
    # Evenly spaced on a scale that grows like the square root.
    ticks = colours.vmax * np.linspace(0, 1, 6) ** 2
    figure.colorbar(
        image, ax=axes, label="density dμ/dσ", shrink=0.75, location="bottom", ticks=ticks,
        format="%.2g",
    )
    axes.set_title(f"t = {picture.times[-1]:g} ({picture.cloud})")
    centre = picture_points(3)[np.argmax(values)]
    for column, (sign, where) in enumerate(((1, "around"), (-1, "opposite to")), start=1):
        axes = figure.add_subplot(grid[0, column])
        draw_hemisphere(axes, values, nodes, sign * centre, colours)
        axes.set_title(f"hemisphere {where} the densest place")


def _say(axes, text):
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.axis("off")
