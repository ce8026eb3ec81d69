"""Which cell of a mesh holds a point of the sphere, and which rank owns that cell.

A cell holds what lies on the rays from the origin through it: the cone over its corners. Cones
of a closed mesh leave no gaps and do not overlap. The cells of a polyhedron are off the sphere,
so that distances to them, by which Firedrake's own search goes, decide badly near edges: there
its answer changes with rounding, or is none. Edges of curved cells have all their nodes in the
plane through the origin and two corners, hence the same cones.
"""

import numpy as np

from meanfield.density.finite_element.quality import cell_corners
from meanfield.fields.measure import off_sphere_problem
from meanfield.runtime.parallel import max_over_ranks, raise_together, rank, size
from meanfield.sphere.geometry import normalise

# How far behind a facet's plane a point on it may come to lie by rounding.
_ROUNDING = 1e-14
# How far inside a cell a point has to be for no other cell to claim it.
_CLEARLY_INSIDE = 1e-12
# Of the cells that share a facet or corner, the one farthest this way holds it. No two centres
# of any usual mesh are equally far.
_PREFERENCE = np.array([0.5403023058681398, 0.7648421872844885, 0.3507832276896198])
_FIRST_NEIGHBOURS = 4
# Points that ranks ask each other about at a time.
_POINTS_A_BLOCK = 2**16


class CellFinder:
    """Finds the cells of a mesh that hold given points, over all ranks.

    Every point of the sphere has exactly one cell, on any number of ranks the same: facets,
    corners and poles belong to one of the cells around them.

    Parameters
    ----------
    mesh : firedrake mesh
        Closed, of circle or sphere, each cell the cone's cut over its corners.

    Attributes
    ----------
    cells : int
        How many this rank owns.
    centres : ndarray, shape (cells, d)
        Unit rows, in the middle of the corners.
    radii : ndarray, shape (cells,)
        Distance from the centre to the farthest corner.

    Raises
    ------
    ValueError
        On every rank, when a cell does not hold its own centre.
    """

    def __init__(self, mesh):
        self.comm = mesh.comm
        self.ambient_dim = mesh.geometric_dimension
        corners = normalise(cell_corners(mesh))
        self.cells = len(corners)
        self.centres = normalise(corners.mean(axis=1))
        self.radii = np.linalg.norm(corners - self.centres[:, None], axis=2).max(axis=1)
        self._planes = _inward_planes(corners, self.centres)
        problem = None
        held = self._depth(self.centres, np.arange(self.cells)) > _ROUNDING
        if not np.all(held):
            problem = (
                f"the cell around {self.centres[np.argmin(held)]} is degenerate or not convex: "
                f"expected cells that hold their centres"
            )
        raise_together(problem, self.comm)
        self._preference = self.centres @ _PREFERENCE[: self.ambient_dim]
        self._trees = list(_trees_by_size(self.centres, self.radii))

    def locate(self, points, guess=None):
        """Owners and cells of this rank's points; collective.

        Parameters
        ----------
        points : ndarray, shape (n, d)
            Of unit length to 1e-8.
        guess : ndarray of int, shape (n,), optional
            Cells of this rank to look at first, −1 for none; what is found does not depend on it.

        Returns
        -------
        ranks : ndarray of int, shape (n,)
        cells : ndarray of int, shape (n,)
            Local rows on those ranks.

        Raises
        ------
        ValueError
            On every rank, when a point is not on the sphere, or no cell holds it: the mesh is
            not closed.
        """
        raise_together(off_sphere_problem("point", points), self.comm)
        cells, settled = self._search(points, guess)
        ranks = np.where(cells >= 0, rank(self.comm), -1)
        if size(self.comm) > 1:
            # Others are asked about what is not here, or lies on a facet.
            asked = np.flatnonzero(~settled)
            blocks = int(max_over_ranks(-(-len(asked) // _POINTS_A_BLOCK), self.comm))
            for block in range(blocks):
                some = asked[block * _POINTS_A_BLOCK : (block + 1) * _POINTS_A_BLOCK]
                ranks[some], cells[some] = self._ask_all(points[some])
        problem = None
        if np.any(ranks < 0):
            problem = f"no cell holds {points[np.argmin(ranks)]}: expected a closed mesh"
        raise_together(problem, self.comm)
        return ranks, cells

    def _ask_all(self, points):
        """Owners and cells of points that any rank may hold; collective."""
        from mpi4py import MPI

        counts = np.array(self.comm.allgather(len(points)))
        everyones = np.empty((counts.sum(), self.ambient_dim))
        lengths = counts * self.ambient_dim
        self.comm.Allgatherv(np.ascontiguousarray(points), (everyones, lengths))
        cells, _ = self._search(everyones, None)
        preference = np.where(cells >= 0, self._preference[cells], -np.inf)
        best = np.empty_like(preference)
        self.comm.Allreduce(preference, best, MPI.MAX)
        here = (cells >= 0) & (preference == best)
        claims = np.where(here, self.comm.rank, self.comm.size)
        ranks = np.empty_like(claims)
        self.comm.Allreduce(claims, ranks, MPI.MIN)
        cells = np.where(ranks == self.comm.rank, cells, -1)
        winners = np.empty_like(cells)
        self.comm.Allreduce(cells, winners, MPI.MAX)
        ranks[ranks == self.comm.size] = -1
        first = counts[: self.comm.rank].sum()
        mine = slice(first, first + len(points))
        return ranks[mine], winners[mine]

    def _search(self, points, guess):
        """This rank's preferred cell of each point, −1 for none, and whether no other can be."""
        cells = np.full(len(points), -1)
        settled = np.zeros(len(points), dtype=bool)
        if guess is not None:
            some = np.flatnonzero(guess >= 0)
            right = some[self._depth(points[some], guess[some]) > _CLEARLY_INSIDE]
            cells[right], settled[right] = guess[right], True
        for tree, rows, reach in self._trees:
            self._search_tree(tree, rows, reach, points, cells, settled)
        return cells, settled

    def _search_tree(self, tree, rows, reach, points, cells, settled):
        """Look through the cells whose centre is within `reach`, more and more of them."""
        pending, tested = np.flatnonzero(~settled), 0
        wanted = _FIRST_NEIGHBOURS
        while len(pending) and tested < len(rows):
            wanted = min(wanted, len(rows))
            # From the nearest again, as the order of cells equally near may have changed.
            nearest = np.arange(1, wanted + 1)
            _, found = tree.query(points[pending], nearest, distance_upper_bound=reach)
            for column in found.T:
                exists = column < len(rows)
                some, candidates = pending[exists], rows[column[exists]]
                depth = self._depth(points[some], candidates)
                preferred = (cells[some] < 0) | (
                    self._preference[candidates] > self._preference[cells[some]]
                )
                takes = (depth >= -_ROUNDING) & preferred
                cells[some[takes]] = candidates[takes]
                settled[some[depth > _CLEARLY_INSIDE]] = True
            more_within_reach = found[:, -1] < len(rows)
            pending = pending[more_within_reach & ~settled[pending]]
            tested, wanted = wanted, 4 * wanted

    def _depth(self, points, cells):
        """Least distance of points from the planes of their cells' facets, positive inside."""
        return np.einsum("nfd,nd->nf", self._planes[cells], points).min(axis=1)


def _inward_planes(corners, centres):
    """Unit normals of the planes through the origin and each facet, towards the centre."""
    if corners.shape[2] == 2:
        normals = np.stack([-corners[..., 1], corners[..., 0]], axis=-1)
    else:
        normals = normalise(np.cross(corners, np.roll(corners, -1, axis=1)))
    towards = np.einsum("kfd,kd->kf", normals, centres)
    return normals * np.where(towards < 0, -1.0, 1.0)[..., None]


def _trees_by_size(centres, radii):
    """Search trees of cells of one size each: a tree, its cells' rows and their largest radius.

    A cell that holds a point has its centre within its radius, where only a few cells of its
    own size fit, however graded the mesh.
    """
    from scipy.spatial import cKDTree

    exponents = np.floor(np.log2(radii)).astype(int)
    for exponent in np.unique(exponents):
        rows = np.flatnonzero(exponents == exponent)
        # Slightly more, as points are on the sphere to 1e-8 only.
        yield cKDTree(centres[rows]), rows, float(radii[rows].max()) * (1 + 1e-6) + 1e-7
