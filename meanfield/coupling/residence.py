"""Particles that live on the rank that owns the cell of a mesh they are in."""

import numpy as np

from meanfield.fields.measure import Measure
from meanfield.runtime.parallel import (
    local_slice,
    row_offset,
    size,
    sum_over_ranks,
)


class ResidentParticles:
    """Weighted particles, each on its cell's rank, with numbers that stay theirs.

    Parameters
    ----------
    finder : CellFinder
    measure : Measure
        Over the finder's ranks; a particle's number is its global row.

    Attributes
    ----------
    ids : ndarray of int, shape (n,)
        Numbers of this rank's particles, ascending.
    nodes : ndarray, shape (n, d)
    masses : ndarray, shape (n,)
    cells : ndarray of int, shape (n,)
        This rank's row of the cell of each.

    Raises
    ------
    ValueError
        If the dimensions differ.
    """

    def __init__(self, finder, measure):
        if measure.ambient_dim != finder.ambient_dim:
            raise ValueError(
                f"the particles live in R^{measure.ambient_dim} but the mesh in "
                f"R^{finder.ambient_dim}; expected one dimension"
            )
        self.finder = finder
        self.comm = finder.comm
        here = len(measure.masses)
        self.total = sum_over_ranks(here, self.comm)
        ids = row_offset(here, self.comm) + np.arange(here)
        self._settle(ids, measure.nodes, measure.masses, None)

    @property
    def measure(self):
        """This rank's particles as a `Measure`, spread as they live; collective."""
        return Measure(self.nodes, self.masses, self.comm)

    def move(self, nodes):
        """Put this rank's particles at unit rows (n, d), on whatever rank those are; collective.

        Raises
        ------
        ValueError
            On every rank, when a row is not on the sphere.
        """
        self._settle(self.ids, nodes, self.masses, self.cells)

    def in_global_order(self):
        """Nodes and masses by number, cut in blocks in rank order; collective."""
        ends = self.comm.allgather(local_slice(self.total, self.comm).stop)
        home = np.searchsorted(ends, self.ids, side="right")
        rows = {"ids": self.ids, "nodes": self.nodes, "masses": self.masses}
        rows = send_rows(rows, home, self.comm)
        order = np.argsort(rows["ids"])
        return rows["nodes"][order], rows["masses"][order]

    def _settle(self, ids, nodes, masses, guess):
        ranks, cells = self.finder.locate(nodes, guess)
        rows = {"ids": ids, "nodes": nodes, "masses": masses, "cells": cells}
        rows = send_rows(rows, ranks, self.comm)
        # So that what follows does not depend on where particles came from.
        order = np.argsort(rows["ids"])
        self.ids, self.nodes = rows["ids"][order], rows["nodes"][order]
        self.masses, self.cells = rows["masses"][order], rows["cells"][order]


def send_rows(columns, ranks, comm):
    """Send each row of some arrays to a rank; collective.

    Parameters
    ----------
    columns : dict of str to ndarray, shape (n, ...)
        Of 8-byte numbers; names, types and trailing shapes are the same on all ranks.
    ranks : ndarray of int, shape (n,)
        Where each row goes.
    comm : communicator

    Returns
    -------
    dict of str to ndarray
        The rows that came to this rank, ordered by the rank they came from.

    Raises
    ------
    RuntimeError
        On every rank, when what arrived is not what was sent, bit by bit.
    """
    if size(comm) == 1:
        return columns
    order = np.argsort(ranks, kind="stable")
    sent = np.bincount(ranks, minlength=comm.size)
    received = np.array(comm.alltoall(sent.tolist()))
    arrived = {}
    for name, rows in columns.items():
        width = int(np.prod(rows.shape[1:]))
        arrived[name] = np.empty((received.sum(), *rows.shape[1:]), rows.dtype)
        comm.Alltoallv(
            (np.ascontiguousarray(rows[order]), sent * width), (arrived[name], received * width)
        )
    balance = sum_over_ranks(_fingerprint(columns) - _fingerprint(arrived), comm)
    if np.any(balance):
        wrong = [name for name, off in zip(("count", *columns), balance, strict=True) if off]
        raise RuntimeError(
            f"{', '.join(wrong)} of the rows that ranks received differ from what was sent: "
            f"the MPI library lost or changed a message"
        )
    return arrived


def _fingerprint(columns):
    """Number of rows, and each column's sum of bits; it does not depend on the rows' order."""
    counts = [len(next(iter(columns.values())))]
    # Integers wrap around, so that no bit is ever rounded away.
    sums = [np.ascontiguousarray(rows).view(np.int64).sum() for rows in columns.values()]
    return np.array(counts + sums, dtype=np.int64)
