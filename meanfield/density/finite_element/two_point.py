"""Fluxes between neighbouring cells from the difference of two values."""

import numpy as np

from meanfield.sphere.geometry import normalise

# A facet shorter than this against the cells' distance belongs to a degenerate pair.
_LEAST_DISTANCE = 1e-3


class TwoPointFluxes:
    """Difference quotients across the facets of a circle mesh or a Delaunay triangulation.

    The centre of a triangle is its circumcentre: the line between two of them crosses the
    common facet at a right angle, so that the quotient approximates the normal derivative.
    Quotient times length of the facet is the difference times 2 / (cot α + cot β), α and β
    the angles opposite to the facet.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 0.

    Attributes
    ----------
    centres : ndarray, shape (cells, d)
        Unit rows.
    conductance : ndarray, shape (cells, f)
        Length of the facet over distance of the centres, over the mesh's area; positive.

    Raises
    ------
    ValueError
        On every rank, when cells are no simplices or two circumcentres are out of order.
    """

    def __init__(self, space):
        import firedrake as fd

        from meanfield.runtime.parallel import max_over_ranks

        self.space = space
        mesh = space.mesh
        if mesh.ufl_cell().cellname == "quadrilateral":
            raise ValueError(
                "a mesh of quadrilaterals: two-point fluxes need triangles whose "
                "circumcentres are in order; use a triangulation, or degree 1"
            )
        corners = fd.VectorFunctionSpace(mesh, "DG", 1, variant="equispaced")
        position = fd.Function(corners).interpolate(fd.SpatialCoordinate(mesh))
        vertices = position.dat.data_ro_with_halos[corners.cell_node_map().values]
        weights, distances = (_segments if vertices.shape[1] == 2 else _triangles)(vertices)
        self.centres = normalise(np.einsum("kv,kvd->kd", weights, vertices))
        # Each column goes to the neighbours as a function of degree 0.
        columns = [space.share(distances[:, [facet]]) for facet in range(distances.shape[1])]
        beyond = np.hstack(columns).ravel()[space.partners]
        apart = distances + beyond
        lengths = np.linalg.norm(space.facet_normals, axis=1)
        lengths = space.share_facets(lengths)
        problem = np.max(lengths * space.area * _LEAST_DISTANCE - apart, initial=-np.inf)
        if max_over_ranks(float(problem), space.comm) >= 0:
            raise ValueError(
                "the mesh is no Delaunay triangulation, or two circumcentres coincide: "
                "two-point fluxes do not exist on it; use another mesh, or degree 1"
            )
        self.conductance = lengths / apart

    def outflow(self, potential):
        """Flow of velocity ∇potential out of each cell per density, shape (cells, f).

        Parameters
        ----------
        potential : ndarray, shape (cells,)
            At `centres`.
        """
        everywhere = self.space.share(potential[:, None])[:, 0]
        beyond = everywhere[self.space.neighbours()]
        return self.conductance * (beyond - potential[:, None])


def _segments(vertices):
    """Weights of the midpoint, and its distances to the ends."""
    half = 0.5 * np.linalg.norm(vertices[:, 1] - vertices[:, 0], axis=1)
    return np.full(vertices.shape[:2], 0.5), np.stack([half, half], axis=1)


def _triangles(vertices):
    """Barycentric weights of the circumcentre, and its signed distances to the edges."""
    before, after = np.roll(vertices, 1, axis=1), np.roll(vertices, -1, axis=1)
    opposite = np.linalg.norm(after - before, axis=2)
    one, other = before - vertices, after - vertices
    cosine = np.einsum("kvd,kvd->kv", one, other)
    sine = np.linalg.norm(np.cross(one, other), axis=2)
    cotangent = cosine / sine
    # a² (b² + c² − a²) is a² · 2bc cos α.
    weights = opposite**2 * cosine
    weights /= weights.sum(axis=1, keepdims=True)
    return weights, 0.5 * opposite * cotangent
