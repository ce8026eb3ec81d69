"""How far a density on a mesh has gathered, measured against the mesh's cells."""

from dataclasses import dataclass

import numpy as np

from meanfield.runtime.parallel import max_over_ranks, row_offset, sum_over_ranks

# A maximum counts when it is this share of the greatest.
_HIGH = 0.1
# Two maxima are one concentration unless the density between them falls below this share of
# the lower one; so ripples of the mesh do not count.
_SEPARATING = 0.5


@dataclass(frozen=True)
class Concentrations:
    """Places where a density gathers, the highest first; the same on every rank.

    Each has a core: the cells around it where the density is at least half as high.

    Attributes
    ----------
    points : ndarray, shape (p, d)
        Centres of the cells where the density is highest.
    heights : ndarray, shape (p,)
        Mean of it over those cells.
    masses : ndarray, shape (p,)
        Of the cores.
    widths : ndarray, shape (p,)
        At half height: length of an arc, or diameter of a cap, of the core's size, in radians.
    cells_across : ndarray, shape (p,)
        Width over that of the cell where the density is highest.
    """

    points: np.ndarray
    heights: np.ndarray
    masses: np.ndarray
    widths: np.ndarray
    cells_across: np.ndarray


def concentrations(density):
    """Where a density gathers, and how wide that is on its mesh; collective.

    Parameters
    ----------
    density : FiniteElementDensity

    Returns
    -------
    Concentrations
        Maxima of at least a tenth of the greatest, no two of them connected by cells where the
        density is at least half of the lower one. The uniform density has one, everywhere.
    """
    space, comm = density.space, density.comm
    means = space.means(density.values)
    shares = space.weights.sum(axis=1)
    basins, neighbours = _basins(space, means)
    peaks = np.flatnonzero(basins[: space.cells] == row_offset(space.cells, comm)
                           + np.arange(space.cells))
    found = np.column_stack([basins[peaks], means[peaks], shares[peaks], space.centres[peaks]])
    found = _from_all(found, comm)
    found = found[found[:, 1] >= _HIGH * found[:, 1].max()]
    # By place where heights are equal, whichever rank found them.
    found = found[np.lexsort((*np.round(found[:, 3:], 9).T, -found[:, 1]))]
    members = _merged(found, _saddles(space, means, basins, neighbours, comm))
    leaders = np.unique(members)
    heights, cells, points = found[leaders, 1], found[leaders, 2], found[leaders, 3:]

    # From basins to concentrations; the basins that were too low belong to none.
    by_label = np.argsort(found[:, 0])
    labels = found[by_label, 0]
    here = np.minimum(np.searchsorted(labels, basins[: space.cells]), len(labels) - 1)
    known = labels[here] == basins[: space.cells]
    concentration = np.searchsorted(leaders, members[by_label[here]])
    core = known & (means >= _SEPARATING * heights[concentration])
    weights = np.stack([space.masses(density.values), shares])
    here = [np.bincount(concentration[core], row[core], len(leaders)) for row in weights]
    # Of nothing, bincount makes integers.
    masses, sizes = sum_over_ranks(np.array(here, dtype=float), comm)
    widths = _diameter(sizes, space.ambient_dim)
    return Concentrations(
        points, heights, masses, widths, widths / _diameter(cells, space.ambient_dim)
    )


def atomization(density, least_mass=0.01):
    """The monitor of a density on a mesh; collective.

    Parameters
    ----------
    density : FiniteElementDensity
    least_mass : float
        Concentrations of less mass do not count.

    Returns
    -------
    dict of str to float
        "effective_cells" = 1/Σ m_K² and "largest_cell_mass" of the cells' masses m_K;
        "relative_entropy" = Σ m_K log(m_K / s_K) ≥ 0 with the cells' shares s_K of the sphere;
        "concentrations", their number; the least of their widths, "narrowest_width" in radians
        and "cells_across", infinite when there are none.
    """
    space, comm = density.space, density.comm
    masses = space.masses(density.values)
    carrying = masses > 0
    entropy = np.sum(
        masses[carrying] * np.log(masses[carrying] / space.weights.sum(axis=1)[carrying])
    )
    squares, entropy = sum_over_ranks(np.array([masses @ masses, entropy]), comm)
    found = concentrations(density)
    heavy = found.masses >= least_mass
    return {
        "effective_cells": float(1 / squares),
        "largest_cell_mass": max_over_ranks(float(masses.max(initial=0.0)), comm),
        "relative_entropy": float(entropy),
        "concentrations": float(np.count_nonzero(heavy)),
        "narrowest_width": float(found.widths[heavy].min(initial=np.inf)),
        "cells_across": float(found.cells_across[heavy].min(initial=np.inf)),
    }


def is_unresolved(density, fewest_cells, least_mass=0.01):
    """Whether some concentration is fewer than `fewest_cells` cells across; collective."""
    # A core's density is at most its peak's, so its mass is at most that of the peak's cell
    # times the number of such cells in it. This is cheap to look at, and settles most steps.
    heaviest = float(density.space.masses(density.values).max(initial=0.0))
    dimension = density.space.ambient_dim - 1
    if max_over_ranks(heaviest, density.comm) * fewest_cells**dimension < least_mass:
        return False
    found = concentrations(density)
    narrow = found.cells_across < fewest_cells
    return bool(np.any(narrow & (found.masses >= least_mass)))


def _basins(space, means):
    """Number of the maximum to which steepest ascent leads, for own and neighbours' cells.

    Returns
    -------
    basins : ndarray, shape (cells of this rank and its neighbours,)
        Global numbers of cells, as floats.
    neighbours : ndarray of int, shape (cells, f)
        Their rows.
    """
    neighbours = space.neighbours()
    everywhere = _shared(space, means)
    around = np.column_stack([np.arange(space.cells), neighbours])
    highest = np.take_along_axis(
        around, everywhere[around].argmax(axis=1)[:, None], axis=1
    ).ravel()
    # Within this rank, up to a maximum or a neighbour's cell.
    target = np.arange(len(everywhere))
    target[: space.cells] = highest
    while np.any(target != target[target]):
        target = target[target]
    offset = row_offset(space.cells, space.comm)
    basins = _shared(space, offset + np.arange(space.cells, dtype=float))
    # The neighbours' answers come back through the halos, once for each rank on the way.
    while True:
        ahead = _shared(space, basins[target[: space.cells]])
        changed = float(np.any(ahead != basins))
        basins = ahead
        if not max_over_ranks(changed, space.comm):
            return basins, neighbours


def _saddles(space, means, basins, neighbours, comm):
    """Pairs of basins that touch, and the highest density at which they do: rows (a, b, s)."""
    everywhere = _shared(space, means)
    ours = np.broadcast_to(basins[: space.cells, None], neighbours.shape)
    theirs = basins[neighbours]
    level = np.minimum(means[:, None], everywhere[neighbours])
    # Each pair is seen from both sides, one is enough.
    touch = ours < theirs
    rows = np.column_stack([ours[touch], theirs[touch], level[touch]])
    other = ours > theirs
    rows = np.vstack([rows, np.column_stack([theirs[other], ours[other], level[other]])])
    return _highest_of_pairs(_from_all(_highest_of_pairs(rows), comm))


def _highest_of_pairs(rows):
    rows = rows[np.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))]
    new = np.any(rows[1:, :2] != rows[:-1, :2], axis=1)
    return rows[np.concatenate([[True], new])[: len(rows)]]


def _merged(found, saddles):
    """For each maximum, the highest one of its concentration; rows of `found`, highest first."""
    order = np.argsort(found[:, 0])
    labels, heights = found[order, 0], found[:, 1]
    ends = np.minimum(np.searchsorted(labels, saddles[:, :2]), len(labels) - 1)
    known = np.all(labels[ends] == saddles[:, :2], axis=1)
    pairs, levels = order[ends[known]], saddles[known, 2]
    connects = levels >= _SEPARATING * heights[pairs].min(axis=1)
    pairs, levels = pairs[connects], levels[connects]
    leader = list(range(len(found)))

    def highest(row):
        while leader[row] != row:
            leader[row] = leader[leader[row]]
            row = leader[row]
        return row

    # From the highest saddle down, so that two high maxima do not join by way of a low one.
    for number in np.argsort(-levels, kind="stable"):
        high, low = sorted(highest(row) for row in pairs[number])
        if high != low and levels[number] >= _SEPARATING * heights[low]:
            leader[low] = high
    return np.array([highest(row) for row in range(len(found))])


def _diameter(share, ambient_dim):
    """Length of the arc, or geodesic diameter of the cap, that is this share of the sphere."""
    share = np.minimum(share, 1.0)
    return 2 * np.pi * share if ambient_dim == 2 else 4 * np.arcsin(np.sqrt(share))


def _shared(space, row):
    """One number a cell, followed by those of the neighbours' cells."""
    return space.share(np.repeat(row[:, None], space.integrals.shape[1], axis=1))[:, 0]


def _from_all(rows, comm):
    return np.concatenate(comm.allgather(rows)) if comm.size > 1 else rows
