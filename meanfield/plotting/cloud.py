"""The figure of a run of particles, in any dimension."""

from dataclasses import dataclass

import numpy as np

from meanfield.plotting.circle import angle_axis, draw_trajectories
from meanfield.plotting.series import draw_series
from meanfield.plotting.sphere import draw_scattered_map
from meanfield.plotting.style import BLUE, GREEN, RED, figure_style
from meanfield.sphere.geometry import circle_angles

_MOST_BARS = 20
_PATHS = 80


@dataclass
class CloudPicture:
    """What the figure shows.

    Attributes
    ----------
    title : str
    times : ndarray, shape (t,)
        Of the snapshots.
    nodes : ndarray, shape (t, n, d)
    masses : ndarray, shape (n,)
    table : dict of str to ndarray, shape (s,)
        With "time", "max_speed", "clusters" and, if there is one, "energy".
    cluster_masses : ndarray, shape (k,)
        At the end, heaviest first.
    cluster_centres : ndarray, shape (k, d)
    potential : ndarray, shape (p,), optional
        The perceptron's v at the points of `meanfield.sphere.pictures` (d = 2 and 3).
    """

    title: str
    times: np.ndarray
    nodes: np.ndarray
    masses: np.ndarray
    table: dict
    cluster_masses: np.ndarray
    cluster_centres: np.ndarray
    potential: np.ndarray | None = None


def save_cloud(path, picture):
    """Draw a `CloudPicture` into a file (PNG or PDF by its name).

    Parameters
    ----------
    path : path-like
    picture : CloudPicture
    """
    with figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(13, 7.5), layout="constrained")
        figure.suptitle(picture.title, fontsize=11)
        grid = figure.add_gridspec(2, 3)
        ambient_dim = picture.nodes.shape[-1]
        {2: _draw_circle, 3: _draw_sphere}.get(ambient_dim, _draw_directions)(
            figure, grid[0, 0], picture
        )
        _draw_paths(figure.add_subplot(grid[0, 1]), picture)
        _draw_masses(figure.add_subplot(grid[0, 2]), picture)
        table = picture.table
        axes = figure.add_subplot(grid[1, 0])
        if "energy" in table:
            draw_series(axes, table["time"], {"E": table["energy"]}, "energy E")
        else:
            axes.text(0.5, 0.5, "no energy: the drift is no gradient", ha="center", va="center")
            axes.axis("off")
        axes = figure.add_subplot(grid[1, 1])
        speeds = {"largest speed": table["max_speed"]}
        draw_series(axes, table["time"], speeds, "speed (radians a unit of time)", True)
        axes = figure.add_subplot(grid[1, 2])
        axes.step(table["time"], table["clusters"], where="post", color=GREEN)
        axes.set(xlabel="time t", ylabel="number of clusters", ylim=(0, None))
        figure.savefig(path)


def _draw_circle(figure, place, picture):
    axes = figure.add_subplot(place)
    bins = np.linspace(0, 2 * np.pi, 121)
    for index, colour in ((0, BLUE), (-1, RED)):
        mass, _ = np.histogram(circle_angles(picture.nodes[index]), bins, weights=picture.masses)
        axes.stairs(mass, bins, fill=True, color=colour, alpha=0.5,
                    label=f"t = {picture.times[index]:g}")
    angle_axis(axes.xaxis)
    axes.set(xlim=(0, 2 * np.pi), yscale="log", xlabel="angle θ", ylabel="mass in each 3°")
    axes.set_title("where the mass is")
    axes.legend()


def _draw_sphere(figure, place, picture):
    axes = figure.add_subplot(place, projection="mollweide")
    draw_scattered_map(axes, picture.potential, picture.nodes[0], picture.nodes[-1])
    axes.set_title(f"start (small) and t = {picture.times[-1]:g} (large)")


def _draw_directions(figure, place, picture):
    """Principal directions of the final cloud: where it is, in the plane that shows most."""
    axes = figure.add_subplot(place)
    final = np.sqrt(picture.masses)[:, None] * picture.nodes[-1]
    _, _, directions = np.linalg.svd(final, full_matrices=False)
    for index, colour, size in ((0, BLUE, 4), (-1, RED, 12)):
        flat = picture.nodes[index] @ directions[:2].T
        axes.scatter(*flat.T, s=size, color=colour, alpha=0.5, linewidths=0,
                     label=f"t = {picture.times[index]:g}")
    axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal",
             xlabel="first principal direction", ylabel="second")
    axes.set_title("the plane that holds most of the final mass")
    axes.legend()


def _draw_paths(axes, picture):
    step = max(1, picture.nodes.shape[1] // _PATHS)
    if picture.nodes.shape[-1] == 2:
        paths = np.stack([circle_angles(nodes[::step]) for nodes in picture.nodes])
        draw_trajectories(axes, picture.times, paths, picture.potential)
    else:
        heaviest = picture.cluster_centres[0]
        angles = np.arccos(np.clip(picture.nodes[:, ::step] @ heaviest, -1, 1))
        axes.plot(picture.times, angles, color="black", linewidth=0.5, alpha=0.5)
        angle_axis(axes.yaxis)
        axes.set(ylim=(0, np.pi), xlim=(picture.times[0], picture.times[-1]), xlabel="time t",
                 ylabel="angle to the heaviest cluster")
    axes.set_title("trajectories")


def _draw_masses(axes, picture):
    masses = picture.cluster_masses[:_MOST_BARS]
    axes.bar(np.arange(1, len(masses) + 1), masses, color=BLUE)
    more = len(picture.cluster_masses) - len(masses)
    axes.set(xlabel="cluster" + (f" (and {more} lighter ones)" if more else ""), ylabel="mass",
             ylim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(f"{len(picture.cluster_masses)} cluster(s) at the end")
