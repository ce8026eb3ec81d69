"""Particles against a density under the same model, in numbers."""

import numpy as np

from meanfield.coupling.distance import (
    Distance,
    circle_wasserstein,
    kernel_distance,
    quantise_on_circle,
    sphere_wasserstein,
)
from meanfield.fields.field import moments
from meanfield.fields.measure import Measure
from meanfield.runtime.parallel import local_slice, max_over_ranks, sum_over_ranks
from meanfield.sphere.funk_hecke import truncation_degree
from meanfield.sphere.geometry import geodesic_distance
from meanfield.sphere.grids import change_degree, regular_grid

# Cells that stand for a density on S¹, and the degree whose grid stands for it on S².
_CIRCLE_CELLS = 2**18
_SPHERE_GRID_DEGREE = 128
_KERNEL_TOLERANCE = 1e-12


class DensityComparison:
    """How far clouds of particles are from a spectral density.

    Parameters
    ----------
    density : SpectralDensity
    beta : float
        Of the kernel distance.
    projections : int
        Great circles of the sliced distance on S².
    """

    def __init__(self, density, beta, projections=16):
        self.density = density
        self._beta = beta
        self._projections = projections
        self._degree = truncation_degree(beta, density.ambient_dim, _KERNEL_TOLERANCE)
        self._at = None

    def kernel_distance(self, measure):
        """Kernel distance of a measure from the density, see `distance.kernel_distance`."""
        ambient_dim = self.density.ambient_dim
        return kernel_distance(
            moments(measure, self._degree),
            change_degree(self.density.coefficients, ambient_dim, self._degree),
            self._beta,
            ambient_dim,
        )

    def wasserstein(self, measure):
        """W2 to the density: exact on S¹, sliced on S².

        Where the truncated density dips below zero it is cut off; that mass ν counts with
        π√ν in the error, besides the cost of standing for a density by nodes.
        """
        nodes = self._density_nodes()
        if self.density.ambient_dim == 2:
            result = circle_wasserstein(measure, nodes, self._representation_error)
        else:
            result = sphere_wasserstein(
                measure, nodes, max_points=0, projections=self._projections
            )
            result = Distance(
                result.value, result.error + self._representation_error, result.method
            )
        return result

    def _density_nodes(self):
        """The density as a measure of weighted nodes, made once for each time."""
        if self._at != self.density.time:
            self._at = self.density.time
            if self.density.ambient_dim == 2:
                self._nodes = self._circle_nodes()
            else:
                self._nodes = self._sphere_nodes()
        return self._nodes

    def _circle_nodes(self):
        nodes, masses, error = quantise_on_circle(
            lambda x: np.maximum(self.density.density(x), 0.0), _CIRCLE_CELLS
        )
        return self._share(nodes, masses, error)

    def _sphere_nodes(self):
        degree = max(self.density.degree, _SPHERE_GRID_DEGREE)
        grid = regular_grid(3, degree)
        values = grid.value(change_degree(self.density.coefficients, 3, degree))
        return self._share(grid.nodes, grid.weights * np.maximum(values, 0.0), 0.0)

    def _share(self, nodes, masses, error):
        """This rank's rows, masses scaled to one; the mass cut off is the excess over one."""
        total = masses.sum()
        self._representation_error = error + np.pi * np.sqrt(max(total - 1.0, 0.0))
        rows = local_slice(len(masses), self.density.comm)
        return Measure(nodes[rows], masses[rows] / total, self.density.comm)


def separation(measure, other):
    """Distance between nodes of the same number: its mean and maximum, in radians.

    Parameters
    ----------
    measure, other : Measure
        Spread over ranks alike, with the same masses.

    Returns
    -------
    mean, largest : float
    """
    apart = geodesic_distance(measure.nodes, other.nodes)
    mean = sum_over_ranks(float(measure.masses @ apart), measure.comm)
    return mean, max_over_ranks(float(np.max(apart, initial=0.0)), measure.comm)
