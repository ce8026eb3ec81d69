"""The figure of a mesh of S¹ or S²: its cells, coloured by a value of each."""

from dataclasses import dataclass

import numpy as np

from meanfield.plotting.style import BLUE, DENSITY_COLOURS, RED, figure_style
from meanfield.sphere.geometry import circle_angles, normalise, sphere_frame

# A close-up is this many of its smallest cells wide.
_CELLS_IN_CLOSE_UP = 40
_BINS = 40


@dataclass
class MeshPicture:
    """What the figure shows.

    Attributes
    ----------
    title : str
    vertices : ndarray, shape (n, d)
    cells : integer ndarray, shape (m, corners)
        Vertex numbers, going round each cell.
    values : ndarray, shape (m,)
        Positive, such as the cells' diameters.
    label : str
        What the values are.
    """

    title: str
    vertices: np.ndarray
    cells: np.ndarray
    values: np.ndarray
    label: str


def save_mesh(path, picture):
    """Draw a `MeshPicture` into a file (PNG or PDF by its name).

    Parameters
    ----------
    path : path-like
    picture : MeshPicture
    """
    draw = {2: _draw_circle, 3: _draw_sphere}[picture.vertices.shape[1]]
    with figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 9 if draw is _draw_sphere else 4.8), layout="constrained")
        figure.suptitle(picture.title, fontsize=11)
        draw(figure, picture)
        figure.savefig(path)


def _draw_circle(figure, picture):
    from matplotlib.collections import LineCollection

    circle, against_angle = figure.subplots(1, 2)
    corners = picture.vertices[picture.cells]
    cells = LineCollection(
        corners, array=picture.values, norm=_colours(picture.values), cmap=DENSITY_COLOURS,
        linewidth=5,
    )
    circle.add_collection(cells)
    # Short strokes outside of the circle show where cells end, and leave the colours alone.
    strokes = picture.vertices[:, None] * np.array([1.02, 1.08])[:, None]
    circle.add_collection(LineCollection(strokes, colors="black", linewidth=0.4))
    circle.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal", title="cells")
    _colour_bar(figure, cells, circle, picture.label)
    angles = circle_angles(normalise(corners.mean(axis=1)))
    order = np.argsort(angles)
    against_angle.plot(angles[order], picture.values[order], ".-", color=BLUE, linewidth=0.6)
    against_angle.set(yscale="log", xlabel="angle", ylabel=picture.label, xlim=(0, 2 * np.pi))
    # Room around equal values, whose rounding errors are not to be seen.
    against_angle.set_ylim(picture.values.min() / 1.2, picture.values.max() * 1.2)
    _plain_ticks(against_angle.yaxis)
    against_angle.set_title("along the circle")


def _draw_sphere(figure, picture):
    axes = figure.subplots(2, 2)
    centres = normalise(picture.vertices[picture.cells].mean(axis=1))
    smallest = centres[picture.values.argmin()]
    colours = _colours(picture.values)
    # Halfway between the smallest cell and the rim, so that it is seen in the first one.
    view = normalise(smallest[None] + sphere_frame(smallest[None])[0] / 2)[0]
    cells = _draw_view(axes[0, 0], picture, centres, view, 1.03, colours)
    axes[0, 0].set_title("the hemisphere with the smallest cell")
    _draw_view(axes[0, 1], picture, centres, -view, 1.03, colours)
    axes[0, 1].set_title("the other one")
    _colour_bar(figure, cells, axes[0], picture.label)
    width = min(1.03, _CELLS_IN_CLOSE_UP / 2 * picture.values.min())
    _draw_view(axes[1, 0], picture, centres, smallest, width, colours)
    axes[1, 0].set_title(f"close-up of the smallest cell, {2 * width:.2g} wide")
    low, high = picture.values.min(), picture.values.max()
    # A uniform mesh needs some width around its only value.
    axes[1, 1].hist(
        picture.values, np.geomspace(low * 0.99, high * 1.01, _BINS), color=BLUE, log=True
    )
    axes[1, 1].axvline(np.median(picture.values), color=RED, linewidth=1, label="median")
    axes[1, 1].set(xlabel=picture.label, ylabel="cells", title="all cells")
    if high > 2 * low:
        axes[1, 1].set_xscale("log")
        _plain_ticks(axes[1, 1].xaxis)
    axes[1, 1].legend()


def _draw_view(axes, picture, centres, view, width, colours):
    """Cells around the unit vector `view`, seen from far away (orthographic)."""
    from matplotlib.collections import PolyCollection

    south, east = (vector[0] for vector in sphere_frame(view[None]))
    places = picture.vertices @ np.stack([east, -south], axis=1)
    shown = centres @ view > 0
    if width < 1:
        shown &= np.abs(places[picture.cells]).min(axis=1).max(axis=1) <= width
    cells = PolyCollection(
        places[picture.cells[shown]], array=picture.values[shown], norm=colours,
        cmap=DENSITY_COLOURS, edgecolors="black", rasterized=True,
        # Edges as thin as the cells are small in print.
        linewidths=float(np.clip(8 * picture.values.min() / width, 0.05, 0.6)),
    )
    axes.add_collection(cells)
    axes.set(xlim=(-width, width), ylim=(-width, width), aspect="equal")
    axes.axis("off")
    return cells


def _colour_bar(figure, cells, axes, label):
    bar = figure.colorbar(cells, ax=axes, label=label, shrink=0.8)
    low, high = cells.get_clim()
    if high > 2 * low:
        _plain_ticks(bar.ax.yaxis)


def _plain_ticks(axis):
    """Logarithmic ticks at 1, 2, 5, 10, ..., written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _colours(values):
    from matplotlib.colors import LogNorm

    # Equal values need an interval around them.
    return LogNorm(values.min() * 0.99, values.max() * 1.01)
