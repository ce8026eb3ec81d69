"""Particles, spectral and mesh densities against each other, in numbers."""

import numpy as np

from meanfield.coupling.circle_transport import squared_wasserstein
from meanfield.coupling.distance import (
    Distance,
    average_over_circles,
    circle_wasserstein,
    great_circles,
    kernel_distance,
    quantise_on_circle,
    sphere_wasserstein,
)
from meanfield.fields.field import moments
from meanfield.fields.measure import Measure
from meanfield.runtime.parallel import broadcast, gather_rows, max_over_ranks, rank, sum_over_ranks
from meanfield.sphere.funk_hecke import truncation_degree
from meanfield.sphere.geometry import circle_angles, geodesic_distance
from meanfield.sphere.grids import change_degree
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.sampling import even_from_density

# Cells of a circle that stand for a density, for each particle of the cloud it is compared with,
# and at most. Evenly spread particles are about 1/n from their density on S¹ and n^{-3/4} in
# projections from S²: the cells' share of that stays below a few percent.
_CELLS_A_PARTICLE = {2: 16, 3: 4}
_FEWEST_CELLS, _MOST_CELLS = 2**12, {2: 2**20, 3: 2**17}
_KERNEL_TOLERANCE = 1e-12
# Points that stand for a density in exact transport on S², and the mean square distance of a
# regular hexagon of area one from its centre.
_TRANSPORT_POINTS = 2000
_HEXAGON = 5 / (18 * np.sqrt(3))


class DensityComparison:
    """How far clouds of particles are from a spectral density, at the density's present time.

    Parameters
    ----------
    density : SpectralDensity
    beta : float
        Of the kernel distance.
    projections : int
        Random great circles of the sliced distance on S².
    seed : int
        Of the great circles.
    """

    def __init__(self, density, beta, projections=16, seed=0):
        self.density = density
        self._beta = beta
        self._circles = great_circles(seed, projections, 3)
        self._degree = truncation_degree(beta, density.ambient_dim, _KERNEL_TOLERANCE)
        self._marginals_at = None

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
        """W2 to the density in radians; collective.

        On S¹ it is W2 with geodesic cost, exact up to the cells that stand for the density,
        whose cost is the error. On S² it is the sliced distance: the root mean square of
        W2 between the longitudes about random axes, for which the density's marginal
        is exact; the error adds one standard error of the average. Where a truncated density
        dips below zero it is cut off, and the mass ν that this adds counts as π√ν.

        Parameters
        ----------
        measure : Measure

        Returns
        -------
        Distance
        """
        comm = measure.comm
        nodes, masses = gather_rows(measure.nodes, comm), gather_rows(measure.masses, comm)
        result = None
        if rank(comm) == 0:
            wanted = _CELLS_A_PARTICLE[measure.ambient_dim] * len(masses)
            cells = int(np.clip(wanted, _FEWEST_CELLS, _MOST_CELLS[measure.ambient_dim]))
            squares, errors = zip(
                *(
                    _squared_distance(angles, masses, coefficients, cells)
                    for angles, coefficients in self._projected(nodes)
                ),
                strict=True,
            )
            if self.density.ambient_dim == 2:
                result = Distance(float(np.sqrt(squares[0])), errors[0], "exact on the circle")
            else:
                value, spread = average_over_circles(squares)
                method = f"sliced over {len(squares)} great circles"
                result = Distance(value, spread + max(errors), method)
        return broadcast(result, comm)

    def transport(self, measure):
        """W2 with geodesic cost between a measure on S² and 2000 points that stand for the density.

        Optimal transport, solved exactly. The points, evenly spread and of equal mass, are
        themselves about 0.4 √A from the density, A = 4π/2000 their mean share of the sphere
        (the root mean square radius of a hexagon); that is the error.

        Parameters
        ----------
        measure : Measure
            Of at most 2000 nodes.

        Returns
        -------
        Distance
            NaN, with the reason as its method, when the density is too sharp to be represented.
        """
        comm = measure.comm
        try:
            points = even_from_density(
                lambda x: np.maximum(self.density.density(x), 0.0), _TRANSPORT_POINTS, 3, comm
            )
        except ValueError as problem:
            return Distance(np.nan, np.inf, f"not computed: {problem}")
        masses = np.full(len(points), 1 / _TRANSPORT_POINTS)
        found = sphere_wasserstein(measure, Measure(points, masses, comm), _TRANSPORT_POINTS)
        error = float(np.sqrt(_HEXAGON * 4 * np.pi / _TRANSPORT_POINTS))
        return Distance(found.value, error, f"{found.method} to {_TRANSPORT_POINTS} points")

    def _projected(self, nodes):
        """Angles of nodes, and Fourier coefficients of the density, on each circle."""
        if self.density.ambient_dim == 2:
            yield circle_angles(nodes), self.density.coefficients
            return
        if self._marginals_at != self.density.time:
            self._marginals = [
                longitude_marginal(self.density.density, self.density.degree, circle)
                for circle in self._circles
            ]
            self._marginals_at = self.density.time
        for circle, marginal in zip(self._circles, self._marginals, strict=True):
            yield circle_angles(nodes @ circle.T), marginal


class MeshComparison:
    """How far measures are from a density on a mesh, at its present time.

    The density is taken as the measure of its quadrature nodes, which is itself about a
    tenth of a cell's diameter from it in W2.

    Parameters
    ----------
    mesh : FiniteElementDensity
    beta : float
        Of the kernel distance.
    projections : int
        Random great circles of the sliced distance on S².
    """

    def __init__(self, mesh, beta, projections=16):
        self.mesh = mesh
        self._beta = beta
        self._projections = projections
        self._degree = truncation_degree(beta, mesh.ambient_dim, _KERNEL_TOLERANCE)
        self._measure_at = None

    @property
    def measure(self):
        """The mesh density's quadrature nodes, made once for each time."""
        if self._measure_at != self.mesh.time:
            self._measure = Measure(*self.mesh.measure(), self.mesh.comm)
            self._moments = None
            self._measure_at = self.mesh.time
        return self._measure

    def kernel_distance(self, measure):
        """Kernel distance of a measure from the density, see `distance.kernel_distance`."""
        mesh = self.measure
        if self._moments is None:
            self._moments = moments(mesh, self._degree)
        return kernel_distance(
            moments(measure, self._degree), self._moments, self._beta, mesh.ambient_dim
        )

    def wasserstein(self, measure):
        """W2 to the density in radians: exact on S¹, sliced on S²; collective."""
        if measure.ambient_dim == 2:
            return circle_wasserstein(measure, self.measure)
        return sphere_wasserstein(
            measure, self.measure, max_points=0, projections=self._projections
        )


def longitude_marginal(density, degree, circle):
    """Marginal in longitude of a density on S².

    Parameters
    ----------
    density : callable
        Unit rows (n, 3) -> values (n,), a sum of harmonics up to `degree`.
    degree : int
        L.
    circle : ndarray, shape (2, 3)
        Orthonormal vectors; longitude is the angle in their plane.

    Returns
    -------
    ndarray, complex, shape (L + 1,)
        Its Fourier coefficients c_k = ∫ e^{−ikφ} dμ, as on S¹.

    Examples
    --------
    A linear density 1 + x has the marginal 1 + (π/4) cos φ.

    >>> plane = np.eye(3)[:2]
    >>> c = longitude_marginal(lambda x: 1 + x[:, 0], 2, plane)
    >>> np.allclose(c, [1.0, np.pi / 8, 0.0])
    True
    """
    axis = np.cross(*circle)
    longitude = np.pi / (degree + 1) * np.arange(2 * (degree + 1))
    # Along a meridian the integrand is a trigonometric polynomial of degree L + 1, for which
    # Gauss's rule converges exponentially once there are more nodes than that.
    abscissae, weights = np.polynomial.legendre.leggauss(degree + 32)
    colatitude = np.pi / 2 * (abscissae + 1)
    rings = np.stack([np.cos(longitude), np.sin(longitude)], axis=1) @ circle
    points = (
        np.sin(colatitude)[:, None, None] * rings + np.cos(colatitude)[:, None, None] * axis
    )
    values = density(points.reshape(-1, 3)).reshape(len(colatitude), -1)
    marginal = (np.pi / 4 * weights * np.sin(colatitude)) @ values
    return np.fft.rfft(marginal)[: degree + 1] / len(longitude)


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


def _squared_distance(angles, masses, coefficients, cells):
    """W2² between weighted angles and a density on the circle, and the error of W2."""
    harmonics = scattered_harmonics(2, len(coefficients) - 1)
    nodes, held, error = quantise_on_circle(
        lambda x: np.maximum(harmonics.value(coefficients, x), 0.0), cells
    )
    total = held.sum()
    cut_off = np.pi * np.sqrt(max(total - 1.0, 0.0))
    squared = squared_wasserstein(angles, masses / masses.sum(), circle_angles(nodes), held / total)
    return squared, error + cut_off
