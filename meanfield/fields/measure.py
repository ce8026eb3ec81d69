"""A measure is weighted nodes on the sphere, spread over ranks."""

import numpy as np

from meanfield.runtime.parallel import (
    max_over_ranks,
    raise_together,
    row_offset,
    sum_over_ranks,
)

# How far rows may be from unit length, and the total mass from one.
UNIT_TOLERANCE = 1e-8


def off_sphere_problem(name, rows, offset=0):
    """A sentence about the first of `rows` (n, d) that is not of unit length, or None."""
    length = np.linalg.norm(rows, axis=1)
    # Negated, so that a NaN is a problem too.
    bad = ~(np.abs(length - 1) <= UNIT_TOLERANCE)
    if not np.any(bad):
        return None
    row = int(np.argmax(bad))
    return (
        f"{name} {offset + row} = {rows[row]} has length {length[row]:.12g}; expected "
        f"unit rows (meanfield.sphere.geometry.normalise scales them)"
    )


def speeds(velocity, masses, comm):
    """Greatest speed and ∫ |V|² dμ over all ranks, of this rank's velocities (n, d) and masses."""
    squares = np.einsum("ij,ij->i", velocity, velocity)
    greatest = np.sqrt(max_over_ranks(float(squares.max(initial=0.0)), comm))
    return float(greatest), sum_over_ranks(float(masses @ squares), comm)


class Measure:
    """A probability measure Σ m_i δ_{x_i} on S^{d-1}.

    Parameters
    ----------
    nodes : array_like, shape (n, d)
        This rank's unit rows; n may be zero. An array of doubles is kept, not copied, and must
        not be changed afterwards.
    masses : array_like, shape (n,)
        This rank's masses, ≥ 0; they sum to one over all ranks.
    comm : communicator, optional
        By default the measure is whole on this rank.

    Attributes
    ----------
    nodes, masses, comm
    ambient_dim : int
        d ≥ 2.

    Raises
    ------
    ValueError
        On every rank when anywhere a shape does not fit, a number is not finite, a row is
        not of unit length to 1e-8, a mass is negative, or the masses do not sum to one to 1e-8.

    Examples
    --------
    >>> pair = Measure([[1.0, 0.0], [0.0, 1.0]], [0.25, 0.75])
    >>> pair.ambient_dim, pair.global_count
    (2, 2)
    """

    def __init__(self, nodes, masses, comm=None):
        self.nodes = np.ascontiguousarray(nodes, dtype=float)
        self.masses = np.ascontiguousarray(masses, dtype=float)
        self.comm = comm
        raise_together(self._shape_problem(), comm)
        self.ambient_dim = self.nodes.shape[1]
        raise_together(self._dimension_problem(), comm)
        raise_together(self._node_problem(row_offset(len(self.nodes), comm)), comm)
        total = sum_over_ranks(float(self.masses.sum()), comm)
        if abs(total - 1) > UNIT_TOLERANCE:
            raise ValueError(
                f"masses sum to {total:.12g}; expected 1 (divide them by their sum if they are "
                f"relative weights)"
            )

    @property
    def global_count(self):
        """Number of nodes on all ranks; collective."""
        return sum_over_ranks(len(self.masses), self.comm)

    def moved(self, nodes):
        """The same masses at other unit rows (n, d), which are not checked."""
        result = object.__new__(Measure)
        result.nodes, result.masses, result.comm = nodes, self.masses, self.comm
        result.ambient_dim = self.ambient_dim
        return result

    def _shape_problem(self):
        if self.nodes.ndim != 2 or self.nodes.shape[1] < 2:
            return f"nodes has shape {self.nodes.shape}: expected (n, d) with d >= 2"
        if self.masses.shape != self.nodes.shape[:1]:
            return (
                f"masses has shape {self.masses.shape}: expected one mass a node, "
                f"({len(self.nodes)},)"
            )
        return None

    def _dimension_problem(self):
        elsewhere = int(max_over_ranks(float(self.ambient_dim), self.comm))
        if self.ambient_dim != elsewhere:
            return f"nodes live in R^{self.ambient_dim} on one rank and in R^{elsewhere} on another"
        return None

    def _node_problem(self, offset):
        problem = off_sphere_problem("node", self.nodes, offset)
        if problem:
            return problem
        # Negated, so that a NaN is a problem too.
        bad = ~((self.masses >= 0) & np.isfinite(self.masses))
        if np.any(bad):
            row = int(np.argmax(bad))
            return f"mass {offset + row} = {self.masses[row]}; expected a finite number >= 0"
        return None
