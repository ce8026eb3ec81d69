"""The fast sum through spherical harmonics, on S¹ and S²: O(n + L^d log L) [L, §5.1]."""

import numpy as np

from meanfield.fields.direct import DirectSums, length_defects
from meanfield.model.attention import KernelSums
from meanfield.runtime.parallel import sum_over_ranks
from meanfield.sphere.funk_hecke import eigenvalues, tail_bound, truncation_degree
from meanfield.sphere.harmonics import FINEST_ACCURACY, scattered_harmonics


class FunkHeckeSums:
    """Kernel sums of a measure from its harmonic coefficients.

    The measure enters through O(L^{d−1}) numbers: the local coefficients, summed over the
    ranks once. The truncation degree comes from the tail bound and the tolerance.

    Parameters
    ----------
    attention : Attention
        Without B.
    measure : Measure
        On S¹ or S².
    tolerance : float
        Relative error wanted.
    threads : int
        Cores to use.
    pointwise : bool
        Hold the error below ``tolerance`` times ∫ k dμ at each point rather than times its
        largest value. Points where the fast sum cannot do this, because the kernel sum is
        tiny there, are then summed directly.

    Attributes
    ----------
    degree : int
    error_bound : float
        What truncation and transforms may cost, relative to the largest kernel sum.
    """

    method = "funk_hecke"

    def __init__(self, attention, measure, tolerance, threads=1, pointwise=True):
        self.attention = attention
        self.measure = measure
        self.degree = truncation_degree(attention.beta, measure.ambient_dim, 0.1 * tolerance)
        self._tolerance = tolerance
        self._threads = threads
        self._pointwise = pointwise
        # Held pointwise, sums are spoilt by this error where they are tiny, and then cost dear.
        accuracy = FINEST_ACCURACY if pointwise else max(FINEST_ACCURACY, 0.01 * tolerance)
        self._harmonics = scattered_harmonics(
            measure.ambient_dim, self.degree, threads, accuracy
        )
        self._eigenvalues = eigenvalues(attention.beta, measure.ambient_dim, self.degree)
        # Most often the field is wanted where the nodes are.
        self._located = self._harmonics.locate(measure.nodes)
        # Angles know nothing of lengths. A row's rounding off unit length is a factor of the
        # kernel near its peak that counts once β is large.
        self._weighs_lengths = attention.beta * np.finfo(float).eps > 0.1 * tolerance
        masses = measure.masses
        if self._weighs_lengths:
            masses = masses * np.exp(attention.beta * length_defects(measure.nodes))
        local = self._harmonics.coefficients(self._located, masses)
        self.coefficients = sum_over_ranks(local, measure.comm)
        self._potential = self._harmonics.multiply(self.coefficients, self._eigenvalues)
        # The transforms err relative to the size of their coefficients, here in the mean.
        self._size = np.sqrt(self._harmonics.power(self._potential).sum())
        self._truncation = tail_bound(attention.beta, measure.ambient_dim, self.degree)
        self._error = self._truncation + 10 * accuracy * self._size
        self.error_bound = self._error / self._eigenvalues[0]

    def sums(self, points, value=True, gradient=False, hessian=False):
        """Kernel sums at this rank's points (n, d); collective. Returns `KernelSums`."""
        potential, beta = self._potential, self.attention.beta
        result = KernelSums(0.0)
        if self._weighs_lengths:
            result.log_scale = beta * length_defects(points)
        at_nodes = points is self.measure.nodes
        located = self._located if at_nodes else self._harmonics.locate(points)
        if value or self._pointwise:
            result.value = self._harmonics.value(potential, located)
        if gradient:
            result.gradient = self._harmonics.gradient(potential / beta, located)
        if hessian:
            result.hessian = self._harmonics.hessian(potential / beta, located)
        if self._pointwise:
            self._sum_directly_where_tiny(points, result, gradient, hessian)
        return result

    def interaction(self):
        """∬ k dμ dμ as ``(log_scale, value)``: Σ_j λ_j Σ_ℓ m_jℓ²."""
        power = self._harmonics.power(self.coefficients)
        return 0.0, float(self._eigenvalues @ power)

    def _sum_directly_where_tiny(self, points, result, gradient, hessian):
        tiny = ~(self._error <= self._tolerance * result.value)
        if not sum_over_ranks(int(tiny.sum()), self.measure.comm):
            return
        direct = DirectSums(self.attention, self.measure, self._tolerance, self._threads)
        exact = direct.sums(points[tiny], gradient=gradient, hessian=hessian)
        log_scale = np.full(len(points), result.log_scale)
        log_scale[tiny] = exact.log_scale
        result.log_scale = log_scale
        result.value[tiny] = exact.value
        if gradient:
            result.gradient[tiny] = exact.gradient
        if hessian:
            result.hessian[tiny] = exact.hessian
