"""The exact sum over all nodes, in any dimension, in blocks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from meanfield.model.attention import KernelSums
from meanfield.runtime.parallel import max_over_ranks, rank, size, sum_over_ranks

# A block of exponents stays in a core's cache: 256 x 1024 doubles are 2 MiB.
_POINTS_A_BLOCK, _NODES_A_BLOCK = 256, 1024
_EPSILON = np.finfo(float).eps


class DirectSums:
    """Kernel sums of a measure by the direct sum, O(n) in memory, O(n²) in time.

    Each point carries its own scale, its largest exponent, so that sums are right to
    rounding wherever the point is. All ranks' nodes pass by every rank in turn.

    Parameters
    ----------
    attention : Attention
    measure : Measure
    tolerance : float
        Relative error wanted; it decides how exponents are computed.
    threads : int
        Cores to use.
    """

    method = "direct"

    def __init__(self, attention, measure, tolerance, threads=1):
        self.attention = attention
        self.measure = measure
        self._threads = threads
        # A dot product errs by about ε however close two points are. Once β makes that too
        # much, exponents come from differences, which are small where the kernel is not.
        self._by_differences = (
            attention.B is None and attention.beta * _EPSILON > 0.1 * tolerance
        )
        self.error_bound = 4 * _EPSILON * (
            16 if self._by_differences else 16 + attention.peak_exponent
        )

    def sums(self, points, value=True, gradient=False, hessian=False):
        """Kernel sums at this rank's points (n, d); collective. Returns `KernelSums`."""
        accumulated = _Accumulator(points, self.attention, gradient, hessian, self._by_differences)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, "blas"), ThreadPoolExecutor(self._threads) as pool:
            for nodes, masses in self._all_nodes():
                keys = _Keys(self.attention.keys(nodes), masses, self._by_differences)
                rows = range(0, len(points), _POINTS_A_BLOCK)
                list(pool.map(lambda start, keys=keys: accumulated.add(start, keys), rows))
        return accumulated.result()

    def interaction(self):
        """∬ k dμ dμ as ``(log_scale, value)``; collective."""
        sums = self.sums(self.measure.nodes)
        local = np.max(sums.log_scale, initial=-np.inf)
        log_scale = max_over_ranks(float(local), self.measure.comm)
        value = float((self.measure.masses * np.exp(sums.log_scale - log_scale)) @ sums.value)
        return log_scale, sum_over_ranks(value, self.measure.comm)

    def _all_nodes(self):
        comm = self.measure.comm
        if size(comm) == 1:
            yield self.measure.nodes, self.measure.masses
            return
        for root in range(comm.Get_size()):
            count = comm.bcast(len(self.measure.masses), root=root)
            if count == 0:
                continue
            if rank(comm) == root:
                nodes, masses = self.measure.nodes, self.measure.masses
            else:
                nodes = np.empty((count, self.measure.ambient_dim))
                masses = np.empty(count)
            comm.Bcast(nodes, root=root)
            comm.Bcast(masses, root=root)
            yield nodes, masses


class _Keys:
    """Nodes prepared for summing: only those that carry mass."""

    def __init__(self, keys, masses, by_differences):
        carries = masses > 0
        if not np.all(carries):
            keys, masses = keys[carries], masses[carries]
        self.keys = keys
        self.masses = masses
        self.defects = _length_defects(keys) if by_differences else None


class _Accumulator:
    """Running sums at every point, rescaled whenever a larger exponent turns up."""

    def __init__(self, points, attention, gradient, hessian, by_differences):
        count, ambient_dim = points.shape
        self._points = points
        self._beta = attention.beta
        self._peak_exponent = attention.peak_exponent
        self._by_differences = by_differences
        self._defects = _length_defects(points) if by_differences else None
        self._log_scale = np.full(count, -np.inf)
        self._value = np.zeros(count)
        self._vector = np.zeros((count, ambient_dim)) if gradient or hessian else None
        self._matrix = np.zeros((count, ambient_dim, ambient_dim)) if hessian else None

    def add(self, start, keys):
        """Add all of `keys` to the block of points that begins at `start`."""
        block = slice(start, start + _POINTS_A_BLOCK)
        for first in range(0, len(keys.masses), _NODES_A_BLOCK):
            part = slice(first, first + _NODES_A_BLOCK)
            exponents = self._exponents(block, keys, part)
            largest = np.maximum(self._log_scale[block], exponents.max(axis=1))
            rescale = np.exp(self._log_scale[block] - largest)
            exponents -= largest[:, None]
            weights = np.exp(exponents, out=exponents)
            masses, vectors = keys.masses[part], keys.keys[part]
            self._log_scale[block] = largest
            self._value[block] = self._value[block] * rescale + weights @ masses
            if self._vector is not None:
                weights *= masses
                self._vector[block] = self._vector[block] * rescale[:, None] + weights @ vectors
            if self._matrix is not None:
                outer = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
                self._matrix[block] *= rescale[:, None, None]
                self._matrix[block] += (weights @ outer).reshape(self._matrix[block].shape)

    def _exponents(self, block, keys, part):
        """β (xᵀBy − ‖B‖), shape (points, nodes)."""
        if not self._by_differences:
            exponents = self._points[block] @ keys.keys[part].T
            exponents *= self._beta
            exponents -= self._peak_exponent
            return exponents
        from scipy.spatial.distance import cdist

        # x·y − 1 = (|x|²−1)/2 + (|y|²−1)/2 − |x−y|²/2
        exponents = cdist(self._points[block], keys.keys[part], "sqeuclidean")
        exponents *= -0.5
        exponents += self._defects[block, None] + keys.defects[part]
        exponents *= self._beta
        return exponents

    def result(self):
        sums = KernelSums(self._log_scale, self._value)
        if self._vector is None:
            return sums
        x = self._points
        radial = np.einsum("ij,ij->i", x, self._vector)
        sums.gradient = self._vector - radial[:, None] * x
        if self._matrix is not None:
            identity = np.eye(x.shape[1])
            projection = identity - x[:, :, None] * x[:, None, :]
            inner = self._beta * self._matrix - radial[:, None, None] * identity
            sums.hessian = projection @ inner @ projection
        return sums


def _length_defects(points):
    """(|x|² − 1)/2, computed in extended precision."""
    extended = points.astype(np.longdouble)
    return (0.5 * (np.einsum("ij,ij->i", extended, extended) - 1)).astype(float)
