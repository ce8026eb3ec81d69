"""One field of (model, measure) behind one interface, whichever way it is summed."""

import numpy as np

from meanfield.fields.direct import DirectSums
from meanfield.fields.funk_hecke import FunkHeckeSums
from meanfield.fields.measure import off_sphere_problem
from meanfield.model.attention import KernelSums
from meanfield.runtime.blocks import by_rows
from meanfield.runtime.parallel import raise_together, sum_over_ranks, threads_per_rank
from meanfield.sphere.funk_hecke import truncation_degree
from meanfield.sphere.harmonics import scattered_harmonics

METHODS = ("auto", "direct", "funk_hecke")

# Rough times on one core, in nanoseconds; they decide what "auto" takes and nothing else.
_NS_A_PAIR, _NS_A_PAIR_AND_DIMENSION = 2.0, 0.1
_NS_A_POINT, _NS_A_COEFFICIENT, _NS_A_TRANSFORM = 150.0, 16.0, 1e5


def field(model, measure, method="auto", tolerance=1e-12, pointwise=True, targets=None):
    """The field that a measure makes under a model.

    Parameters
    ----------
    model : Model
    measure : Measure
    method : "auto", "direct" or "funk_hecke"
        The exact sum over all pairs (any d); or the fast one through spherical harmonics
        (d = 2 and 3, attention without B); or whichever is cheaper.
    tolerance : float
        Relative error wanted of the fast sum, between 1e-13 and 1e-2.
    pointwise : bool
        Error of ∫ exp(β x·y) dμ relative to its value at each point (the default, what
        softmax needs), or to its largest value only (enough for unnormalised flows, and
        never slowed down by points where the field is tiny).
    targets : int, optional
        On how many points altogether it will be evaluated, for the choice of method; by
        default as many as the measure has nodes.

    Returns
    -------
    Field

    Raises
    ------
    ValueError
        If the dimensions of model and measure differ, or the method cannot do the model.

    Examples
    --------
    >>> import meanfield as mf
    >>> model = mf.Model(mf.Attention(beta=2.0, amplitude="peak"), direction="descent")
    >>> pair = mf.Measure([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    >>> f = mf.field(model, pair, method="direct")
    >>> bool(np.allclose(f.velocity(pair.nodes), [[0.0, -np.exp(-2) / 2], [-np.exp(-2) / 2, 0.0]]))
    True
    """
    if model.ambient_dim not in (None, measure.ambient_dim):
        raise ValueError(
            f"the model's weights live in R^{model.ambient_dim} but the measure's nodes in "
            f"R^{measure.ambient_dim}; expected one dimension"
        )
    if method not in METHODS:
        raise ValueError(f"method={method!r}: expected one of {', '.join(METHODS)}")
    if not 1e-13 <= tolerance <= 1e-2:
        raise ValueError(f"tolerance={tolerance!r}: expected between 1e-13 and 1e-2")
    threads = threads_per_rank(measure.comm)
    if model.attention is None:
        return Field(model, measure, None, "no attention: nothing to sum", threads)
    obstacle = _fast_sum_obstacle(model, measure)
    if method == "funk_hecke" and obstacle:
        raise ValueError(f"method='funk_hecke' needs {obstacle}; use 'direct'")
    reason = "asked for"
    if method == "auto":
        method, reason = _cheaper(model, measure, tolerance, targets, obstacle)
    if method == "direct":
        evaluator = DirectSums(model.attention, measure, tolerance, threads)
    else:
        evaluator = FunkHeckeSums(model.attention, measure, tolerance, threads, pointwise)
    return Field(model, measure, evaluator, reason, threads)


class Field:
    """First variation, drift and velocity of (model, measure); made by `field`.

    Every method takes this rank's points as unit rows (n, d) and is collective over the
    measure's ranks: a rank without points takes part with n = 0. Points off the sphere are
    a ValueError.

    Attributes
    ----------
    model, measure
    method : str
        "direct", "funk_hecke", or "none" when the model has no attention.
    reason : str
        Why this method.
    error_bound : float
        Bound for the error of the kernel sums, relative to the largest.
    """

    def __init__(self, model, measure, evaluator, reason, threads):
        self.model = model
        self.measure = measure
        self.reason = reason
        self.method = "none" if evaluator is None else evaluator.method
        self.error_bound = 0.0 if evaluator is None else evaluator.error_bound
        self._evaluator = evaluator
        self._threads = threads

    def first_variation(self, x):
        """H(x) = δE/δμ[μ](x), shape (n,).

        Raises
        ------
        ValueError
            If the drift is no gradient.
        OverflowError
            If H exceeds the largest double (unit amplitude at large β).
        """
        self.model.require_energy("first variation")
        x = self._points(x)
        return self._by_rows(self.model.first_variation, x, self._sums(x, value=True))

    def attention_gradient(self, x):
        """∇H_att(x), unnormalised and without the perceptron, shape (n, d), tangent."""
        x = self._points(x)
        sums = self._sums(x, value=False, gradient=True)
        return self._by_rows(self.model.attention_gradient, x, sums)

    def gradient(self, x):
        """∇H(x) = ∇H_att + u, unnormalised, shape (n, d), tangent.

        Raises
        ------
        ValueError
            If the drift is no gradient.
        """
        self.model.require_energy("gradient of the first variation")
        x = self._points(x)
        sums = self._sums(x, value=False, gradient=True)
        return self._by_rows(self.model.gradient, x, sums)

    def velocity(self, x):
        """The flow's velocity, shape (n, d), tangent: direction, normalisation, perceptron."""
        x = self._points(x)
        sums = self._sums(x, value=self.model.is_softmax, gradient=True)
        return self._by_rows(self.model.velocity, x, sums)

    def hessian(self, x):
        """Riemannian Hessian of H in ambient coordinates, shape (n, d, d).

        Raises
        ------
        ValueError
            If the drift is no gradient, or σ' is unknown.
        """
        self.model.require_energy("Hessian of the first variation")
        x = self._points(x)
        sums = self._sums(x, value=False, gradient=True, hessian=True)
        return self._by_rows(self.model.hessian, x, sums)

    def energy(self):
        """E[μ] = s/(2β) ∬ exp(β x·y) dμ dμ + ½ ∫ v dμ.

        Raises
        ------
        ValueError
            If the drift is no gradient.
        """
        self.model.require_energy("energy")
        total = 0.0
        if self._evaluator is not None:
            log_scale, value = self._evaluator.interaction()
            scaled = self.model.attention.scale(np.float64(value), log_scale, power_of_beta=-1)
            total += 0.5 * float(scaled)
        if self.model.perceptron is not None:
            potential = self.model.perceptron.potential(self.measure.nodes)
            total += 0.5 * sum_over_ranks(
                float(self.measure.masses @ potential), self.measure.comm
            )
        return total

    def _points(self, x):
        """`x` as an array of unit rows, or the same error on every rank."""
        problem = None
        # The measure's own nodes have been looked at.
        if x is not self.measure.nodes:
            x = np.ascontiguousarray(x, dtype=float)
            if x.ndim != 2 or x.shape[1] != self.measure.ambient_dim:
                problem = f"x has shape {x.shape}: expected (n, {self.measure.ambient_dim})"
            else:
                problem = off_sphere_problem("row of x", x)
        raise_together(problem, self.measure.comm)
        return x

    def _sums(self, x, **wanted):
        if self._evaluator is None:
            return KernelSums(0.0)
        return self._evaluator.sums(x, **wanted)

    def _by_rows(self, formula, x, sums):
        return by_rows(lambda rows: formula(x[rows], sums.rows(rows)), len(x), self._threads)


def energy(model, measure, method="auto", tolerance=1e-12):
    """E[μ] of a model, collective over the measure's ranks; see `Field.energy`.

    Examples
    --------
    >>> import meanfield as mf
    >>> model = mf.Model(mf.Attention(beta=2.0, amplitude="peak"))
    >>> atom = mf.Measure([[0.0, 0.0, 1.0]], [1.0])
    >>> mf.energy(model, atom)
    0.25
    """
    return field(model, measure, method, tolerance).energy()


def moments(measure, degree):
    """Harmonic coefficients of a measure on S¹ or S² up to a degree, over all ranks.

    Parameters
    ----------
    measure : Measure
        d = 2 or 3.
    degree : int
        ≥ 0.

    Returns
    -------
    ndarray, complex
        In the layout of `meanfield.sphere.harmonics`: c_k = ∫ e^{−ikθ} dμ on S¹, shape
        (degree + 1,); √(4π) times the orthonormal moments on S².

    Examples
    --------
    >>> import meanfield as mf
    >>> quarter_turn = mf.Measure([[0.0, 1.0]], [1.0])
    >>> bool(np.allclose(mf.moments(quarter_turn, 3), [1, -1j, -1, 1j]))
    True
    """
    if degree < 0:
        raise ValueError(f"degree={degree}: expected an integer >= 0")
    harmonics = scattered_harmonics(
        measure.ambient_dim, degree, threads_per_rank(measure.comm)
    )
    return sum_over_ranks(harmonics.coefficients(measure.nodes, measure.masses), measure.comm)


def _fast_sum_obstacle(model, measure):
    """What the fast sum would need, or None."""
    if measure.ambient_dim not in (2, 3):
        return f"d = 2 or 3, not {measure.ambient_dim}"
    if model.attention.B is not None:
        return "the isotropic kernel; with B its harmonics do not decouple"
    return None


def _cheaper(model, measure, tolerance, targets, obstacle):
    if obstacle:
        return "direct", f"the fast sum needs {obstacle}"
    nodes = measure.global_count
    targets = nodes if targets is None else targets
    degree = truncation_degree(model.attention.beta, measure.ambient_dim, 0.1 * tolerance)
    direct = nodes * targets * (_NS_A_PAIR + _NS_A_PAIR_AND_DIMENSION * measure.ambient_dim)
    fast = (
        2 * _NS_A_TRANSFORM
        + _NS_A_POINT * (nodes + targets)
        + _NS_A_COEFFICIENT * degree ** (measure.ambient_dim - 1) * np.log2(degree + 2)
    )
    method = "direct" if direct < fast else "funk_hecke"
    return method, (
        f"{nodes} nodes and {targets} points: about {direct * 1e-6:.3g} ms directly, "
        f"{fast * 1e-6:.3g} ms through harmonics of degree {degree}"
    )
