"""The exact sum over all nodes, in any dimension, in blocks."""

from functools import cache, partial

import numpy as np

from meanfield.model.attention import KernelSums
from meanfield.runtime.blocks import for_each
from meanfield.runtime.parallel import max_over_ranks, rank, size, sum_over_ranks

# A block of exponents stays in a core's cache: 64 x 1024 doubles are 0.5 MiB.
_POINTS_A_BLOCK, _NODES_A_BLOCK = 64, 1024
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
        starts = range(0, len(points), _POINTS_A_BLOCK)
        with _linear_algebra().limit(limits=1, user_api="blas"):
            for nodes, masses in self._all_nodes():
                keys = _Keys(self.attention.keys(nodes), masses, self._by_differences)
                for_each(partial(accumulated.add, keys), starts, self._threads)
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
        self.defects = length_defects(keys) if by_differences else None

    def columns(self, part, order):
        """m, m y and m y yᵀ up to an order, shape (nodes, 1 + d + d²)."""
        masses, keys = self.masses[part, None], self.keys[part]
        columns = [masses]
        if order > 0:
            columns.append(masses * keys)
        if order > 1:
            columns.append((columns[1][:, :, None] * keys[:, None, :]).reshape(len(keys), -1))
        return np.hstack(columns)


class _Accumulator:
    """Running sums at every point, rescaled whenever a larger exponent turns up.

    The columns are the sums of k, of k y and of k y yᵀ, as far as wanted.
    """

    def __init__(self, points, attention, gradient, hessian, by_differences):
        count, ambient_dim = points.shape
        self._points = points
        self._attention = attention
        self._by_differences = by_differences
        self._defects = length_defects(points) if by_differences else None
        self._order = 2 if hessian else int(gradient)
        self._largest = np.full(count, -np.inf)
        self._sums = np.zeros((count, sum(ambient_dim**k for k in range(self._order + 1))))

    def add(self, keys, start):
        """Add all of `keys` to the block of points that begins at `start`."""
        block = slice(start, start + _POINTS_A_BLOCK)
        for first in range(0, len(keys.masses), _NODES_A_BLOCK):
            part = slice(first, first + _NODES_A_BLOCK)
            exponents = self._exponents(block, keys, part)
            largest = np.maximum(self._largest[block], exponents.max(axis=1))
            exponents -= largest[:, None]
            kernel = np.exp(exponents, out=exponents)
            self._sums[block] *= np.exp(self._largest[block] - largest)[:, None]
            self._sums[block] += kernel @ keys.columns(part, self._order)
            self._largest[block] = largest

    def _exponents(self, block, keys, part):
        """β xᵀBy, or by differences β (x·y − 1), shape (points, nodes)."""
        beta = self._attention.beta
        if not self._by_differences:
            return (beta * self._points[block]) @ keys.keys[part].T
        from scipy.spatial.distance import cdist

        # x·y − 1 = (|x|²−1)/2 + (|y|²−1)/2 − |x−y|²/2
        exponents = cdist(self._points[block], keys.keys[part], "sqeuclidean")
        exponents *= -0.5 * beta
        exponents += beta * (self._defects[block, None] + keys.defects[part])
        return exponents

    def result(self):
        peak = 0.0 if self._by_differences else self._attention.peak_exponent
        sums = KernelSums(self._largest - peak, self._sums[:, 0])
        if self._order == 0:
            return sums
        x = self._points
        d = x.shape[1]
        vector = self._sums[:, 1 : 1 + d]
        radial = np.einsum("ij,ij->i", x, vector)
        sums.gradient = vector - radial[:, None] * x
        if self._order == 2:
            identity = np.eye(d)
            projection = identity - x[:, :, None] * x[:, None, :]
            matrix = self._sums[:, 1 + d :].reshape(-1, d, d)
            inner = self._attention.beta * matrix - radial[:, None, None] * identity
            sums.hessian = projection @ inner @ projection
        return sums


@cache
def _linear_algebra():
    """Control over the threads of the linear algebra, found once because that is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def length_defects(points):
    """(|x|² − 1)/2, computed in extended precision."""
    extended = points.astype(np.longdouble)
    return (0.5 * (np.einsum("ij,ij->i", extended, extended) - 1)).astype(float)
