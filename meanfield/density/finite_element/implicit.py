"""Implicit steps of upwind transport, of degree 0."""

import numpy as np

from meanfield.density.finite_element.linear import CellMatrix, tidied


class ImplicitTransport:
    """Backward Euler for upwind transport with a given velocity, at any step length.

    (|K| + Δt Σ out) ρ_K − Δt Σ in ρ_neighbour = |K| ρ_K^old: diagonals are positive, the rest
    is not, columns sum to |K|. So the matrix is an M-matrix; the solution is nonnegative and
    of the same mass, up to the linear solver's residual, which `tidied` takes away.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 0.
    """

    def __init__(self, space):
        self.space = space
        self._matrix = CellMatrix(space, "bcgs")

    def step(self, density, outflow, length):
        """Density (cells, 1) after a step.

        Parameters
        ----------
        density : ndarray, shape (cells, 1)
        outflow : ndarray, shape (cells, f)
            As `UpwindTransport.outflow` gives it.
        length : float
        """
        areas = self.space.areas
        diagonal = areas + length * np.maximum(outflow, 0).sum(axis=1)
        self._matrix.fill(diagonal, length * np.minimum(outflow, 0))
        solution = self._matrix.solve(areas * density[:, 0], density[:, 0])
        return tidied(self.space, solution[:, None], density)
