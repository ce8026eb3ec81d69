"""Particles become masses of a mesh's cells."""

import numpy as np

from meanfield.coupling.residence import send_rows


def deposit(finder, nodes, masses, guess=None):
    """Masses of cells: each particle's mass goes to the cell that holds it; collective.

    Nonnegative when the particles' masses are, and of the same sum up to rounding.

    Parameters
    ----------
    finder : CellFinder
    nodes : ndarray, shape (n, d)
        This rank's unit rows, wherever on the sphere.
    masses : ndarray, shape (n,)
    guess : ndarray of int, shape (n,), optional
        This rank's cells to look at first, −1 for none.

    Returns
    -------
    ndarray, shape (cells,)
        Of this rank's cells.

    Raises
    ------
    ValueError
        On every rank, when a node is not on the sphere.
    """
    ranks, cells = finder.locate(nodes, guess)
    arrived = send_rows({"cells": cells, "masses": masses}, ranks, finder.comm)
    masses = np.bincount(arrived["cells"], arrived["masses"], minlength=finder.cells)
    # Of nothing, bincount makes integers.
    return masses.astype(float)


def as_density(space, masses):
    """The density that is constant on each cell and has these masses.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 0 or 1.
    masses : ndarray, shape (cells,)

    Returns
    -------
    ndarray, shape (cells, n)
        Values with respect to the uniform probability, in the layout of the space.
    """
    means = masses / space.integrals.sum(axis=1)
    return np.repeat(means[:, None], space.integrals.shape[1], axis=1)
