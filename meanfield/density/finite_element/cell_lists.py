"""Meshes of S¹ and S² as arrays: vertices of unit length, and the vertex numbers of cells.

Plain NumPy, the same on every machine and for every number of ranks. Cells are counterclockwise
seen from outside.
"""

from dataclasses import dataclass

import numpy as np

from meanfield.density.finite_element.bisection import edges_of, refine, with_longest_edge_as_base
from meanfield.sphere.geometry import circle_angles, circle_points, geodesic_distance, normalise

# How much larger cells may be per unit of distance from a region of small ones: neighbours differ
# little enough in size for the errors of the coarser one not to spoil the finer one.
GROWTH = 0.3
_ANGLES_PER_CELL = 16


@dataclass(frozen=True)
class Region:
    """A cap in which cells are small.

    Attributes
    ----------
    point : tuple of float
        Unit vector in its middle.
    radius : float
        Geodesic radius in [0, π].
    size : float
        Largest diameter of cells that touch it.
    """

    point: tuple
    radius: float
    size: float

    def wanted_size(self, points, spreads=0.0):
        """Largest diameter for cells within `spreads` of the unit vectors `points`, (n, d)."""
        outside = geodesic_distance(points, np.array(self.point)) - spreads - self.radius
        return self.size + GROWTH * np.maximum(outside, 0.0)


def circle(cells, regions=()):
    """S¹ cut in arcs.

    Parameters
    ----------
    cells : int
        At least 3: that many equal arcs without regions; with regions there are more, as outside
        of them arcs are as short as that.
    regions : sequence of Region

    Returns
    -------
    vertices : ndarray, shape (n, 2)
    cells : integer ndarray, shape (n, 2)
    """
    angles = _equal_angles(cells) if not regions else _graded_angles(cells, regions)
    numbers = np.arange(len(angles))
    return circle_points(angles), np.column_stack([numbers, np.roll(numbers, -1)])


def _equal_angles(cells):
    return 2 * np.pi * np.arange(cells) / cells


def _graded_angles(cells, regions):
    # The integral of 1/(wanted size) counts arcs: their ends are at equal steps of at most one.
    smallest = min(region.size for region in regions)
    spacing = min(2 * np.pi / cells, smallest) / _ANGLES_PER_CELL
    grid = np.linspace(0, 2 * np.pi, int(np.ceil(2 * np.pi / spacing)) + 1)
    points = circle_points(grid)
    wanted = np.full(len(grid), 2 * np.pi / cells)
    # An arc that only touches a region is to be small as well, so regions count as larger by one.
    for region in regions:
        wanted = np.minimum(wanted, region.wanted_size(points, spreads=region.size))
    rate = 1 / wanted
    number = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(grid))])
    total = int(np.ceil(number[-1]))
    # With a vertex in its middle, the mesh is symmetric about a single region.
    levels = np.arange(total) * (number[-1] / total)
    start = np.interp(circle_angles(np.array([regions[0].point]))[0], grid, number)
    return np.interp(np.sort((levels + start) % number[-1]), number, grid)


def icosahedral_sphere(refinements, regions=()):
    """S² cut in 20 · 4^refinements triangles of much the same size, smaller ones in regions.

    Parameters
    ----------
    refinements : int
        How often each triangle of the icosahedron is cut in four.
    regions : sequence of Region
        There, triangles are bisected further.

    Returns
    -------
    vertices : ndarray, shape (n, 3)
    triangles : integer ndarray, shape (m, 3)
    """
    vertices, triangles = icosahedron()
    for _ in range(refinements):
        vertices, triangles = _quartered(vertices, triangles)
    if not regions:
        return vertices, triangles

    def wanted_size(centres, spreads):
        return np.min([region.wanted_size(centres, spreads) for region in regions], axis=0)

    return refine(vertices, with_longest_edge_as_base(vertices, triangles), wanted_size)


def icosahedron():
    """Its 12 vertices on S² and 20 triangles; two of the vertices are the poles."""
    height, ring = 1 / np.sqrt(5), 2 / np.sqrt(5)
    angles = 2 * np.pi * np.arange(5) / 5
    upper = np.column_stack([ring * circle_points(angles), np.full(5, height)])
    lower = np.column_stack([ring * circle_points(angles + np.pi / 5), np.full(5, -height)])
    vertices = np.vstack([[0.0, 0.0, 1.0], upper, lower, [0.0, 0.0, -1.0]])
    here, next_one = np.arange(5), (np.arange(5) + 1) % 5
    north, south = np.zeros(5, dtype=int), np.full(5, 11)
    triangles = np.vstack([
        np.column_stack([north, 1 + here, 1 + next_one]),
        np.column_stack([1 + here, 6 + here, 1 + next_one]),
        np.column_stack([1 + next_one, 6 + here, 6 + next_one]),
        np.column_stack([south, 6 + next_one, 6 + here]),
    ])
    return normalise(vertices), triangles


def _quartered(vertices, triangles):
    ends, edges = edges_of(triangles)
    a, b, c = triangles.T
    across_a, across_b, across_c = len(vertices) + edges.T
    vertices = np.vstack([vertices, normalise(vertices[ends].sum(axis=1))])
    return vertices, np.vstack([
        np.column_stack([a, across_c, across_b]),
        np.column_stack([b, across_a, across_c]),
        np.column_stack([c, across_b, across_a]),
        np.column_stack([across_a, across_b, across_c]),
    ])


def cubed_sphere(cells_per_edge):
    """S² cut in 6 · cells_per_edge² quadrilaterals: a cube's faces, cut at equal angles.

    Parameters
    ----------
    cells_per_edge : int
        Of each of the cube's edges.

    Returns
    -------
    vertices : ndarray, shape (n, 3)
    quadrilaterals : integer ndarray, shape (m, 4)
    """
    count = cells_per_edge
    steps = np.arange(count)
    row, column = (index.ravel() for index in np.meshgrid(steps, steps, indexing="ij"))
    corners = []
    for axis in range(3):
        for end in (0, count):
            # Right-handed axes of the face seen from outside.
            first, second = ((axis + 1) % 3, (axis + 2) % 3)[:: 1 if end else -1]
            face = np.empty((count**2, 4, 3), dtype=np.int64)
            face[..., axis] = end
            face[..., first] = row[:, None] + [0, 1, 1, 0]
            face[..., second] = column[:, None] + [0, 0, 1, 1]
            corners.append(face)
    # Faces share the lattice points of their edges.
    lattice, numbers = np.unique(
        np.concatenate(corners).reshape(-1, 3), axis=0, return_inverse=True
    )
    vertices = normalise(np.tan(np.pi / 4 * (2 * lattice - count) / count))
    return vertices, numbers.reshape(-1, 4)
