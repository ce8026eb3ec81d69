"""The conservative upwind discretisation of −div(ρV) in discontinuous polynomials."""

import numpy as np

from meanfield.runtime.parallel import max_over_ranks

# Share of a cell's mass that the longest step leaves, so that rounding makes none negative.
_ROUNDING = 1e-12


class UpwindTransport:
    """Rate of change of a density (cells, n) under a given velocity.

    Through each facet flows the density of the cell that the velocity leaves. The sum over
    all cells is zero to rounding, whatever the velocity.

    Parameters
    ----------
    space : DiscontinuousSpace
    """

    def __init__(self, space):
        self.space = space

    def outflow(self, facet_velocity):
        """Flow out of each cell through its facet nodes, per density; collective.

        Parameters
        ----------
        facet_velocity : ndarray, shape (p, d)
            Velocity at ``space.facet_nodes``.

        Returns
        -------
        ndarray, shape (cells, f)
            Negative where the velocity points into the cell.
        """
        space = self.space
        through = np.einsum("pd,pd->p", facet_velocity, space.facet_normals)
        return space.sides * space.share_facets(through)

    def rate(self, density, outflow, velocity=None):
        """Change of a density (cells, n) per time, same shape; collective.

        Parameters
        ----------
        density : ndarray, shape (cells, n)
        outflow : ndarray, shape (cells, f)
        velocity : ndarray, shape (cells, q, d), optional
            At ``space.nodes``; needed of degree 1.
        """
        space = self.space
        inside, outside = space.both_traces(density)
        flux = np.maximum(outflow, 0) * inside + np.minimum(outflow, 0) * outside
        load = -flux @ space.traces
        gained = -flux.sum(axis=1)
        if space.degree:
            carried = (density @ space.basis.T)[:, :, None] * velocity
            gradients = space.gradients.reshape(*load.shape, -1)
            load += (gradients @ carried.reshape(len(load), -1, 1))[:, :, 0]
        rate = (space.inverse_mass @ load[:, :, None])[:, :, 0]
        # Rounding in the tables would be the same in every step and add up: each cell gains
        # what its facets bring, to the last bit.
        excess = gained - space.masses(rate)
        return rate + (excess / space.areas)[:, None]

    def longest_step(self, outflow):
        """Time after which some cell could have lost more than it holds; collective.

        An Euler step of at most this length leaves the mean of every cell nonnegative when
        the density is. A nonnegative function of degree 1 has nonnegative corner values ρ_i,
        the cell's mass is Σ ∫φ_i ρ_i and its outflow Σ o_i ρ_i with o_i ≥ 0, so it is enough
        that the step is below ∫φ_i / o_i for each i.

        Returns
        -------
        float
            Infinite when nothing flows.
        """
        space = self.space
        leaving = np.maximum(outflow, 0) @ space.traces
        fastest = float(np.max(leaving / space.integrals, initial=0.0))
        fastest = max_over_ranks(fastest, space.comm)
        return np.inf if fastest == 0 else (1 - _ROUNDING) / fastest
