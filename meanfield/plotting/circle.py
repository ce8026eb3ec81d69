"""Panels for S¹: the circle itself, densities over the angle, trajectories."""

import numpy as np

from meanfield.plotting.style import BLACK, BLUE, CYCLE, POTENTIAL_COLOURS, RED
from meanfield.sphere.geometry import circle_angles, circle_points

_RING = (0.78, 0.94)
_MOST_DOTS = 400


def draw_circle(axes, angles, density, nodes, potential=None, active=()):
    """The circle with its particles, the density as a curve around it.

    Parameters
    ----------
    axes : matplotlib Axes
    angles, density : ndarray, shape (k,)
        Density with respect to the uniform probability, on equispaced angles.
    nodes : ndarray, shape (n, 2)
        Particles; at most 400, evenly chosen, are drawn.
    potential : ndarray, shape (k,), optional
        The perceptron's v at the same angles, coloured on the inner ring.
    active : sequence of ndarray of bool, shape (k,)
        For each neuron where a_j·x + b_j > 0, drawn as an arc inside.
    """
    closed = np.append(angles, angles[0] + 2 * np.pi)
    if potential is not None:
        _draw_ring(axes, closed, potential)
    for j, where in enumerate(active):
        arc = np.where(np.append(where, where[0]), _RING[0] - 0.06 * (j + 1), np.nan)
        axes.plot(arc * np.cos(closed), arc * np.sin(closed), color="0.35", linewidth=2,
                  solid_capstyle="butt", label="active neurons" if j == 0 else None)
    height = 0.6 / density.max()
    radius = 1 + height * np.append(density, density[0])
    outline = radius[:, None] * circle_points(closed)
    axes.plot(np.cos(closed), np.sin(closed), color=BLACK, linewidth=0.6)
    band = np.concatenate([outline, circle_points(closed)[::-1]])
    axes.fill(*band.T, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(*outline.T, color=BLUE, linewidth=1.2, label="density")
    chosen = nodes[:: max(1, len(nodes) // _MOST_DOTS)]
    axes.plot(*chosen.T, linestyle="none", marker="o", markersize=2.2, color=RED,
              markeredgewidth=0, label="particles")
    axes.set(xlim=(-1.75, 1.75), ylim=(-1.75, 1.75), aspect="equal", xticks=[], yticks=[])
    axes.grid(False)
    axes.legend(loc="lower left", handlelength=1.2)


def draw_densities(axes, angles, curves, clouds, labels):
    """Density curves over the angle with histograms of the particles at the same times.

    Parameters
    ----------
    axes : matplotlib Axes
    angles : ndarray, shape (k,)
    curves : list of ndarray, shape (k,)
        Densities with respect to the uniform probability.
    clouds : list of (ndarray, ndarray)
        Nodes (n, 2) and masses (n,).
    labels : list of str
    """
    bins = np.linspace(0, 2 * np.pi, 73)
    for curve, (nodes, masses), label, colour in zip(curves, clouds, labels, CYCLE, strict=False):
        mass, _ = np.histogram(circle_angles(nodes), bins, weights=masses)
        axes.stairs(mass * (len(bins) - 1), bins, fill=True, color=colour, alpha=0.2, baseline=0)
        axes.plot(angles, curve, color=colour, label=label)
    angle_axis(axes.xaxis)
    lowest = max(1e-3, 0.5 * min(curve.min() for curve in curves))
    axes.set(
        xlim=(0, 2 * np.pi), yscale="log", ylim=(lowest, None), xlabel="angle θ",
        ylabel="density dμ/dσ",
    )
    axes.legend()


def draw_trajectories(axes, times, angles, potential=None):
    """Angles of particles over time.

    Parameters
    ----------
    axes : matplotlib Axes
    times : ndarray, shape (t,)
    angles : ndarray, shape (t, n)
        In [0, 2π); lines break where they pass 0.
    potential : ndarray, shape (k,), optional
        The perceptron's v on equispaced angles, as background.
    """
    if potential is not None:
        size = np.abs(potential).max() or 1.0
        image = axes.imshow(
            potential[:, None], extent=(times[0], times[-1], 0, 2 * np.pi), origin="lower",
            aspect="auto", cmap=POTENTIAL_COLOURS, vmin=-size, vmax=size, alpha=0.6,
        )
        axes.figure.colorbar(image, ax=axes, label="perceptron potential v")
    jumps = np.abs(np.diff(angles, axis=0, prepend=angles[:1])) > np.pi
    axes.plot(times, np.where(jumps, np.nan, angles), color=BLACK, linewidth=0.5, alpha=0.7)
    angle_axis(axes.yaxis)
    axes.grid(False)
    axes.set(xlim=(times[0], times[-1]), ylim=(0, 2 * np.pi), xlabel="time t", ylabel="angle θ")


def angle_axis(axis):
    """Ticks at multiples of π/2."""
    axis.set_ticks(np.pi / 2 * np.arange(5), ["0", "π/2", "π", "3π/2", "2π"])


def _draw_ring(axes, closed, potential):
    size = np.abs(potential).max() or 1.0
    ring = np.array(_RING)[:, None, None] * circle_points(closed)
    mesh = axes.pcolormesh(
        ring[..., 0], ring[..., 1], potential[None, :], cmap=POTENTIAL_COLOURS,
        vmin=-size, vmax=size, shading="flat", rasterized=True,
    )
    axes.figure.colorbar(mesh, ax=axes, label="perceptron potential v", shrink=0.75)
