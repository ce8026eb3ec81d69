"""Triangles on S² made smaller where they have to be, by newest-vertex bisection.

A triangle is cut from its newest vertex to the middle of the edge opposite, its *base*. Whoever
shares that edge is cut as well, so that meshes stay conforming: any two triangles meet in nothing,
in a vertex or in an edge. Descendants of a triangle in the plane have at most four shapes, hence
angles do not degenerate, however often it is done; on the sphere this holds up to curvature.

A triangle is a row of three vertex numbers, counterclockwise seen from outside, its newest vertex
first and so its base last.
"""

import numpy as np

from meanfield.sphere.geometry import normalise

# Lengths that differ by rounding only are equal, so that all machines choose the same base.
_DECIMALS = 9


def with_longest_edge_as_base(vertices, triangles):
    """The same triangles, turned so that each one's longest edge is its base.

    Parameters
    ----------
    vertices : ndarray, shape (n, 3)
    triangles : integer ndarray, shape (m, 3)
        In any order of vertices, which is kept up to rotation.

    Returns
    -------
    integer ndarray, shape (m, 3)
    """
    lengths = np.round(_opposite_lengths(vertices, triangles), _DECIMALS)
    turn = lengths.argmax(axis=1)[:, None]
    return np.take_along_axis(triangles, (turn + np.arange(3)) % 3, axis=1)


def refine(vertices, triangles, wanted_size, most_triangles=20_000_000):
    """Bisect until no triangle is larger than wanted.

    Parameters
    ----------
    vertices : ndarray, shape (n, 3)
        Unit vectors.
    triangles : integer ndarray, shape (m, 3)
        A conforming mesh without boundary, newest vertices first (`with_longest_edge_as_base`
        chooses them at the start).
    wanted_size : callable
        (centres (m, 3), spreads (m,)) -> largest diameter allowed (m,), positive, for triangles
        whose points are all within `spreads` (geodesic distance) of the unit vectors `centres`.
    most_triangles : int
        More are taken for a mistake.

    Returns
    -------
    vertices : ndarray, shape (n', 3)
        The old ones first, all of unit length.
    triangles : integer ndarray, shape (m', 3)
        Newest vertices first, oriented as their ancestors.

    Raises
    ------
    ValueError
        When more than `most_triangles` would be needed.

    Examples
    --------
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> faces = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2],
    ...                   [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
    >>> vertices, triangles = refine(octahedron, faces, lambda centres, spreads: 1.2 + 0 * spreads)
    >>> len(triangles)
    48
    """
    while True:
        diameters = _opposite_lengths(vertices, triangles).max(axis=1)
        too_large = diameters > wanted_size(*_enclosing_caps(vertices, triangles))
        if not too_large.any():
            return vertices, triangles
        vertices, triangles = bisect(vertices, triangles, too_large)
        if len(triangles) > most_triangles:
            raise ValueError(
                f"the wanted sizes need more than {most_triangles} triangles; "
                "ask for larger cells or smaller regions"
            )


def bisect(vertices, triangles, marked):
    """Cut the marked triangles, and those others that keep the mesh conforming.

    Parameters
    ----------
    vertices : ndarray, shape (n, 3)
    triangles : integer ndarray, shape (m, 3)
        A conforming mesh, newest vertices first.
    marked : boolean ndarray, shape (m,)

    Returns
    -------
    vertices, triangles
        As from `refine`.
    """
    ends, edges = edges_of(triangles)
    cut = np.zeros(len(ends), dtype=bool)
    cut[edges[marked, 0]] = True
    # Closure: whoever has an edge cut has its base cut too, as it is the first that can be.
    while True:
        incomplete = cut[edges].any(axis=1) & ~cut[edges[:, 0]]
        if not incomplete.any():
            break
        cut[edges[incomplete, 0]] = True
    middles = np.full(len(ends), -1)
    middles[cut] = len(vertices) + np.arange(np.count_nonzero(cut))
    vertices = np.vstack([vertices, normalise(vertices[ends[cut]].sum(axis=1))])
    # The children's bases are the other two edges of their parent, so that two rounds suffice.
    triangles, edges = _halves(triangles, edges, middles)
    triangles, _ = _halves(triangles, edges, middles)
    return vertices, triangles


def edges_of(triangles):
    """Edges of a triangulation, each once.

    Parameters
    ----------
    triangles : integer ndarray, shape (m, 3)

    Returns
    -------
    ends : integer ndarray, shape (e, 2)
        Lower vertex number first, in lexicographic order.
    edges : integer ndarray, shape (m, 3)
        Numbers of the edges opposite to each vertex of each triangle.
    """
    pairs = np.sort(triangles[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    # One number an edge sorts far faster than rows do.
    count = np.int64(triangles.max()) + 1
    keys, edges = np.unique(pairs[:, 0] * count + pairs[:, 1], return_inverse=True)
    return np.column_stack([keys // count, keys % count]), edges.reshape(-1, 3)


def _halves(triangles, edges, middles):
    """Triangles whose base has a middle give way to two; `edges` has -1 for edges that are new."""
    middle = np.where(edges[:, 0] >= 0, middles[edges[:, 0]], -1)
    cut = middle >= 0
    middle, (newest, left, right) = middle[cut], triangles[cut].T
    _, right_edge, left_edge = edges[cut].T
    inside = np.full(len(middle), -1)
    return (
        np.vstack([
            triangles[~cut],
            np.column_stack([middle, newest, left]),
            np.column_stack([middle, right, newest]),
        ]),
        np.vstack([
            edges[~cut],
            np.column_stack([left_edge, inside, inside]),
            np.column_stack([right_edge, inside, inside]),
        ]),
    )


def _opposite_lengths(vertices, triangles):
    corners = vertices[triangles]
    sides = np.roll(corners, -1, axis=1) - np.roll(corners, -2, axis=1)
    return np.linalg.norm(sides, axis=2)


def _enclosing_caps(vertices, triangles):
    """Unit vectors in the middle of triangles, and the geodesic distance to their farthest corner.

    The caps hold all of the triangle, being convex when smaller than a hemisphere.
    """
    corners = vertices[triangles]
    centres = normalise(corners.sum(axis=1))
    chords = np.linalg.norm(corners - centres[:, None], axis=2).max(axis=1)
    return centres, 2 * np.arcsin(np.minimum(chords / 2, 1.0))
