"""Where a mesh's values sit, in a form that does not depend on how ranks share the mesh."""

import numpy as np

from meanfield.runtime.parallel import sum_over_ranks

# Share of the way from a corner to its cell's centre, which tells corners of cells apart.
_INWARD = 0.125
# Points are moved by this much towards no special direction, so that those between two cells
# of a symmetric mesh go to the same cell on any number of ranks.
_ASIDE = 1e-6 * np.array([0.8414709848, 0.5403023059, 0.2836621855])
# How far, in mesh units, a place may be from where a checkpoint says.
_SAME = 1e-9


class Layout:
    """Places of the values of a space, and cells near given points, over all ranks.

    Parameters
    ----------
    space : DiscontinuousSpace

    Attributes
    ----------
    places : ndarray, shape (cells · n, d)
        One for each value of this rank, no two alike: corners drawn a little into the cell.
    """

    def __init__(self, space):
        self.comm = space.comm
        self._centres = space.centres
        centres = space.corners.mean(axis=1, keepdims=True)
        places = space.corners + _INWARD * (centres - space.corners)
        self.places = np.ascontiguousarray(places.reshape(-1, space.ambient_dim))

    def sort(self, places, values):
        """Values (m,) that sit at `places` (m, d) on any rank, in this rank's order; collective.

        Raises
        ------
        ValueError
            On every rank, when a place of the mesh is not among `places`, or the other way.
        """
        from scipy.spatial import cKDTree

        every_place = np.concatenate(_from_all(places, self.comm))
        every_value = np.concatenate(_from_all(values, self.comm))
        count = sum_over_ranks(len(self.places), self.comm)
        found, misses = np.zeros(0, dtype=int), 0
        if len(every_place) == count and every_place.shape[1:] == self.places.shape[1:]:
            distance, found = cKDTree(every_place).query(self.places)
            misses = int(np.sum(distance > _SAME))
        else:
            misses = 1
        if sum_over_ranks(misses, self.comm):
            raise ValueError(
                f"the state has {len(every_place)} values that sit elsewhere than the {count} of "
                f"this mesh and degree; expected a state of the same mesh and degree"
            )
        return every_value[found]

    def nearest_cells(self, points):
        """For points (m, d) given on all ranks, the cell with the nearest centre; collective.

        Where two are as near to 1e-6, it is the same one on any number of ranks.

        Returns
        -------
        ndarray of int, shape (m,)
            Local row of the cell, −1 where another rank holds it.
        """
        from scipy.spatial import cKDTree

        points = points + _ASIDE[: points.shape[1]]
        distance = np.full(len(points), np.inf)
        cells = np.zeros(len(points), dtype=int)
        if len(self._centres):
            distance, cells = cKDTree(self._centres).query(points)
        distances = np.stack(_from_all(distance, self.comm))
        cells[distances.argmin(axis=0) != self.comm.rank] = -1
        return cells

    def at_cells(self, values, cells):
        """Values (cells,) of the cells that `nearest_cells` found, on all ranks; collective."""
        here = cells >= 0
        found = np.zeros(len(cells))
        found[here] = values[cells[here]]
        return sum_over_ranks(found, self.comm)


def _from_all(rows, comm):
    return comm.allgather(rows) if comm.size > 1 else [rows]
