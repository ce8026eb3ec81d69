"""Fields by the formulas of [L, §2] in forty digits, one point at a time."""

import mpmath as mp

DIGITS = 40


class ExactField:
    """First variation, gradients, Hessian and energy of float64 inputs taken as exact.

    ``amplitude`` is s itself, or its logarithm's value as an mpmath number. Everything that
    is returned is an mpmath number or a list of them.
    """

    def __init__(self, beta, amplitude, nodes, masses, B=None):
        with mp.workdps(DIGITS):
            self.beta = mp.mpf(beta)
            self.amplitude = mp.mpf(amplitude)
            self.nodes = [_vector(row) for row in nodes]
            self.masses = _vector(masses)
            self.keys = self.nodes
            if B is not None:
                rows = [_vector(row) for row in B]
                self.keys = [[_dot(row, y) for row in rows] for y in self.nodes]

    def kernel_sum(self, x):
        """s ∫ k dμ."""
        return self._at(x, self._kernel_sum)

    def first_variation(self, x):
        """Of attention alone."""
        return self._at(x, lambda point: self._kernel_sum(point) / self.beta)

    def gradient(self, x):
        """∇H_att, d numbers."""
        return self._at(x, self._gradient)

    def softmax_direction(self, x):
        """P_x ∫ k By dμ / ∫ k dμ, d numbers."""

        def direction(point):
            total = self._kernel_sum(point)
            return [component / total for component in self._gradient(point)]

        return self._at(x, direction)

    def hessian(self, x):
        """P_x [s ∫ k (β By (By)ᵀ − xᵀBy I) dμ] P_x, d rows of d numbers."""

        def hessian(point):
            identity = mp.eye(len(point))
            total = mp.zeros(len(point))
            for key, weight in zip(self.keys, self._weights(point), strict=True):
                column = mp.matrix(key)
                total += weight * (self.beta * column * column.T - _dot(point, key) * identity)
            column = mp.matrix(point)
            projection = identity - column * column.T
            return (projection * total * projection).tolist()

        return self._at(x, hessian)

    def energy(self):
        """s/(2β) ∬ k dμ dμ."""
        with mp.workdps(DIGITS):
            sums = (self._kernel_sum(x) for x in self.nodes)
            return _dot(self.masses, sums) / (2 * self.beta)

    def _at(self, x, formula):
        with mp.workdps(DIGITS):
            return formula(_vector(x))

    def _weights(self, x):
        return [
            self.amplitude * mass * mp.exp(self.beta * _dot(x, key))
            for key, mass in zip(self.keys, self.masses, strict=True)
        ]

    def _kernel_sum(self, x):
        return mp.fsum(self._weights(x))

    def _gradient(self, x):
        weights = self._weights(x)
        vector = [_dot(weights, (key[i] for key in self.keys)) for i in range(len(x))]
        radial = _dot(x, vector)
        return [v - radial * c for v, c in zip(vector, x, strict=True)]


def peak_amplitude(exponent):
    """e^{−exponent}."""
    with mp.workdps(DIGITS):
        return mp.exp(-mp.mpf(exponent))


def largest_error(computed, exact):
    """max |computed − exact| over arrays of one shape, and max |exact|."""
    pairs = list(zip(_flat(computed), _flat(exact), strict=True))
    with mp.workdps(DIGITS):
        error = max(abs(mp.mpf(float(ours)) - theirs) for ours, theirs in pairs)
        return float(error), float(max(abs(theirs) for _, theirs in pairs))


def _flat(values):
    if not hasattr(values, "__len__"):
        return [values]
    return [one for value in values for one in _flat(value)]


def _vector(values):
    return [mp.mpf(float(value)) for value in values]


def _dot(first, second):
    return mp.fsum(a * b for a, b in zip(first, second, strict=True))
