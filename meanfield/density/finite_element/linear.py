"""Sparse linear systems on the cells of a mesh, through PETSc."""

import numpy as np

# Relative residual of a solve.
_TOLERANCE = 1e-13
# Share of the largest density below which a negative one is the linear solver's rounding.
_ROUNDING = 1e-10


class CellMatrix:
    """A matrix that couples each cell with its neighbours.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 0.
    method : "cg" or "bcgs"
        For symmetric matrices, or any.
    """

    def __init__(self, space, method):
        from firedrake.petsc import PETSc

        numbers = space.global_numbers()
        columns = np.concatenate(
            [numbers[: space.cells, None], numbers[space.neighbours()]], axis=1
        )
        width = columns.shape[1]
        self._starts = width * np.arange(space.cells + 1, dtype=PETSc.IntType)
        self._columns = np.ascontiguousarray(columns.ravel(), dtype=PETSc.IntType)
        self._matrix = PETSc.Mat().createAIJ(
            ((space.cells, None), (space.cells, None)), nnz=(width, width), comm=space.comm
        )
        self._solver = solver(method, space.comm)

    def fill(self, diagonal, beside):
        """Set the entries: diagonal (cells,), and towards each neighbour, (cells, f)."""
        values = np.concatenate([diagonal[:, None], beside], axis=1)
        self._matrix.zeroEntries()
        # Two cells of a tiny mesh may meet twice.
        self._matrix.setValuesCSR(self._starts, self._columns, values.ravel(), addv=True)
        self._matrix.assemble()

    def solve(self, load, guess):
        """Solution (cells,) of the system for a load (cells,); see `solve`."""
        solution, right = self._matrix.createVecs()
        right.array[:] = load
        solution.array[:] = guess
        solve(self._solver, self._matrix, right, solution)
        return solution.array.copy()


def solver(method, comm):
    """A Krylov solver that factorises each rank's part approximately."""
    from firedrake.petsc import PETSc

    krylov = PETSc.KSP().create(comm)
    krylov.setType(method)
    krylov.getPC().setType("bjacobi")
    krylov.setTolerances(rtol=_TOLERANCE, atol=0.0, max_it=5000)
    krylov.setInitialGuessNonzero(True)
    return krylov


def solve(krylov, matrix, load, solution):
    """Improve `solution` until the residual is rounding.

    Raises
    ------
    FloatingPointError
        On every rank, when the iteration does not converge.
    """
    krylov.setOperators(matrix)
    krylov.solve(load, solution)
    if krylov.getConvergedReason() <= 0:
        raise FloatingPointError(
            f"the linear solver stopped after {krylov.getIterationNumber()} iterations with "
            f"reason {krylov.getConvergedReason()}; take shorter steps (a smaller courant)"
        )


def tidied(space, solution, before):
    """A solution without what the linear solver left of negative values and lost mass.

    Parameters
    ----------
    solution, before : ndarray, shape (cells, n)
        After and before the step, which keeps mass but for the solver's residual.

    Raises
    ------
    FloatingPointError
        On every rank, when a value is negative by more than the solver's rounding.
    """
    from meanfield.runtime.parallel import max_over_ranks

    extremes = np.array([np.max(-solution, initial=0.0), np.max(before, initial=0.0)])
    negative, largest = max_over_ranks(extremes, space.comm)
    if negative > _ROUNDING * largest:
        raise FloatingPointError(
            f"an implicit step left the density at {-negative:.3g} somewhere, more than "
            f"the linear solver's rounding; expected >= 0"
        )
    solution = np.maximum(solution, 0.0)
    return solution * (space.total(before) / space.total(solution))
