"""Noise: implicit steps of ∂_t ρ = κ Δρ that keep mass and ρ ≥ 0."""

import numpy as np

from meanfield.density.finite_element.limiter import limit
from meanfield.density.finite_element.linear import CellMatrix, solve, solver, tidied
from meanfield.density.finite_element.spaces import DiscontinuousSpace
from meanfield.density.finite_element.two_point import TwoPointFluxes
from meanfield.runtime.parallel import max_over_ranks

# Penalty on jumps over that of the least stable simplex of degree 1.
_PENALTY = 8.0


def make_diffusion(space, diffusion):
    """What steps a density of this space by κ Δ, κ = `diffusion` > 0: has ``step(values, length)``.

    Raises
    ------
    ValueError
        When degree 0 is asked for on a mesh without two-point fluxes.
    """
    if space.degree == 0:
        return TwoPointDiffusion(space, TwoPointFluxes(space).conductance, diffusion)
    return PenaltyDiffusion(space, diffusion)


class TwoPointDiffusion:
    """Backward Euler for two-point fluxes: an M-matrix, so nonnegative at any step length.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 0.
    conductance : ndarray, shape (cells, f)
        Positive, alike from both sides.
    diffusion : float
    """

    def __init__(self, space, conductance, diffusion):
        self.space = space
        self._rates = diffusion * conductance
        self._matrix = CellMatrix(space, "cg")

    def step(self, density, length):
        """Density (cells, 1) after a time `length`."""
        areas = self.space.areas
        beside = length * self._rates
        self._matrix.fill(areas + beside.sum(axis=1), -beside)
        solution = self._matrix.solve(areas * density[:, 0], density[:, 0])
        return tidied(self.space, solution[:, None], density)


class PenaltyDiffusion:
    """Crank–Nicolson for the symmetric interior penalty method of degree 1.

    It is of second order but does not keep signs. Where a cell's mean would become negative,
    the step is mixed with the means of a `TwoPointDiffusion`, in the least share that keeps
    all of them nonnegative; then values are limited within cells. Smooth positive densities
    see neither.

    Parameters
    ----------
    space : DiscontinuousSpace
        Of degree 1.
    diffusion : float
    """

    def __init__(self, space, diffusion):
        import firedrake as fd

        self.space = space
        self._diffusion = diffusion
        function_space = space.function_space
        u, v = fd.TrialFunction(function_space), fd.TestFunction(function_space)
        n, size = fd.FacetNormal(space.mesh), fd.CellVolume(space.mesh) / _facet_size(space.mesh)
        dx, dS = fd.dx(degree=2), fd.dS(degree=3)

        def slope(w):
            return (fd.inner(fd.grad(w("+")), n("+")) - fd.inner(fd.grad(w("-")), n("-"))) / 2

        def jump(w):
            return w("+") - w("-")

        stiffness = (
            fd.inner(fd.grad(u), fd.grad(v)) * dx
            - slope(u) * jump(v) * dS
            - slope(v) * jump(u) * dS
            + _PENALTY / fd.avg(size) * jump(u) * jump(v) * dS
        )
        self._mass = fd.assemble(u * v * dx).petscmat
        self._stiffness = fd.assemble(stiffness).petscmat
        self._solver = solver("cg", space.comm)
        self._before, self._after = fd.Function(function_space), fd.Function(function_space)
        self._fallback = None

    def step(self, density, length):
        """Density (cells, n) after a time `length`."""
        space, share = self.space, 0.5 * length * self._diffusion
        space.put(self._before, density)
        space.put(self._after, density)
        left = self._combined(share)
        with self._before.dat.vec_ro as before, self._after.dat.vec as after:
            load = before.duplicate()
            self._combined(-share).mult(before, load)
            solve(self._solver, left, load, after)
        values = space.get(self._after)
        means = self._with_nonnegative_means(space.means(values), density, length)
        if means is not None:
            mixed, low = means
            values = low[:, None] + mixed * (values - low[:, None])
        return tidied(space, limit(values, space.means(values)), density)

    def _combined(self, share):
        matrix = self._stiffness.copy()
        matrix.scale(share)
        matrix.axpy(1.0, self._mass)
        return matrix

    def _with_nonnegative_means(self, means, density, length):
        """Share of the step to keep and means to mix it with, or None when none is negative."""
        space = self.space
        worst = max_over_ranks(float(np.max(-means, initial=0.0)), space.comm)
        if worst <= 0:
            return None
        if self._fallback is None:
            self._fallback = _monotone_diffusion(space, self._diffusion)
        low = self._fallback.step(space.means(density)[:, None], length)[:, 0]
        negative = means < 0
        needed = np.max(-means[negative] / (low - means)[negative], initial=0.0)
        return 1 - max_over_ranks(float(needed), space.comm), low


def _facet_size(mesh):
    import firedrake as fd

    return 1.0 if mesh.topological_dimension == 1 else fd.FacetArea(mesh)


def _monotone_diffusion(space, diffusion):
    """Diffusion of cells' means that keeps signs on any mesh, not accurate on skewed ones."""
    coarse = DiscontinuousSpace(space.mesh, 0)
    columns = [coarse.share(column[:, None]) for column in coarse.centres.T]
    everywhere = np.hstack(columns)
    gap = everywhere[coarse.neighbours()] - coarse.centres[:, None, :]
    lengths = coarse.share_facets(np.linalg.norm(coarse.facet_normals, axis=1))
    return TwoPointDiffusion(coarse, lengths / np.linalg.norm(gap, axis=2), diffusion)
