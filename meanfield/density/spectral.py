"""The continuity equation on S¹ and S² in spherical harmonics."""

import numpy as np
from scipy.special import xlogy

from meanfield.density.continuity import SpectralContinuity
from meanfield.density.integrating_factor import DecayingDormandPrince
from meanfield.density.resolution import higher_degree, tail
from meanfield.density.starts import project, uniform
from meanfield.runtime.flow import State
from meanfield.runtime.parallel import broadcast, local_slice, threads_per_rank
from meanfield.sphere.funk_hecke import laplacian_eigenvalues
from meanfield.sphere.grids import change_degree, degree_of
from meanfield.sphere.pictures import picture_points

MAX_DEGREE = {2: 2048, 3: 256}
# Below this share of its largest value, rounding spoils softmax's denominator: a transform
# errs by about 1e-15 of the largest value, so the velocity there by more than 1e-6.
_LEAST_DENOMINATOR = 1e-9


class SpectralDensity:
    """A density ρ that follows ∂_t ρ + div(ρ V[ρ]) = κ Δρ, pseudo-spectrally [L, eq. (2.6)].

    ρ is a sum of harmonics up to a degree L; `SpectralContinuity` says how −div(ρV) is made
    from them. The mass never changes, and noise makes each mode decay exactly.

    Time steps are those of the Dormand–Prince pair, its error measured in L² of the uniform
    probability, relative to ‖ρ‖. After each step the `tail` of the spectrum is compared with
    ``tail_tolerance``. When it is larger, the step is taken back and repeated with a degree
    one and a half times higher. At ``max_degree`` the flow stops instead: ``finished`` says
    so, and the density remains the last one that was resolved.

    Parameters
    ----------
    model : Model
        Attention without B; any perceptron; either may be missing.
    start : callable or array_like
        Density with respect to the uniform probability, unit rows (n, d) -> (n,), of
        integral one; or coefficients in the layout of `meanfield.sphere.harmonics`
        (see `meanfield.density.starts`), whose first is that of the uniform density.
    ambient_dim : int, optional
        2 or 3; needed when the model's weights do not say it.
    degree : int
        Degree to begin with, ≥ 8; raised at once when it does not resolve the start.
    max_degree : int, optional
        By default 2048 on S¹ and 256 on S².
    tolerance : float
        Error allowed in a step, relative to ‖ρ‖ in L².
    tail_tolerance : float
        Share of ‖ρ‖ that the last sixth of the degrees may carry.
    diffusion : float
        κ ≥ 0.
    comm : communicator, optional
        All ranks hold and evolve the same density; nothing is distributed.

    Attributes
    ----------
    coefficients : ndarray, complex
    degree : int
    continuity : SpectralContinuity
        The discretisation at this degree; it gives the velocity of any coefficients.
    time : float
    finished : str or None
        Why no further step can be taken.
    start_error : float
        What projecting a callable start lost of ‖ρ‖; 0 for coefficients.

    Raises
    ------
    ValueError
        When an argument is out of range, or the start is not a density or not resolved.

    Examples
    --------
    Repulsive attention spreads a bump; its mass stays one.

    >>> import numpy as np
    >>> from meanfield import Attention, Model
    >>> model = Model(Attention(beta=2.0), direction="descent")
    >>> flow = SpectralDensity(model, lambda x: 1 + 0.5 * x[:, 0], ambient_dim=2)
    >>> before = flow.describe()["energy"]
    >>> while flow.time < 1.0:
    ...     length = flow.step(1.0 - flow.time)
    >>> flow.describe()["mass"], flow.describe()["energy"] < before
    (1.0, True)
    """

    def __init__(self, model, start, ambient_dim=None, degree=32, max_degree=None,
                 tolerance=1e-9, tail_tolerance=1e-6, diffusion=0.0, comm=None):
        self.model = model
        self.ambient_dim = _dimension(model, ambient_dim)
        self.max_degree = MAX_DEGREE[self.ambient_dim] if max_degree is None else max_degree
        self.tolerance = tolerance
        self.tail_tolerance = tail_tolerance
        self.diffusion = diffusion
        self.comm = comm
        self._check(degree)
        self.time = 0.0
        self.finished = None
        self._threads = threads_per_rank(comm)
        self._picture_points = picture_points(self.ambient_dim)
        if callable(start):
            self.coefficients, self.start_error = project(
                start, self.ambient_dim, degree, self.max_degree, tail_tolerance, self._threads
            )
        else:
            self.coefficients = self._given(start, degree)
            self.start_error = 0.0
        self._set_degree(degree_of(self.coefficients, self.ambient_dim))
        while self._tail() > tail_tolerance:
            if self.degree == self.max_degree:
                raise ValueError(
                    f"start: the last modes of degree {self.degree} = max_degree carry "
                    f"{self._tail():.2g} of its norm, more than tail_tolerance={tail_tolerance:g};"
                    f" raise either"
                )
            self._set_degree(higher_degree(self.degree, self.max_degree))
        self._begin_stepping(first_length=None)

    # The time loop's side

    def step(self, limit):
        """Advance by at most `limit` of time; returns the length taken, 0 when finished.

        Raises
        ------
        FloatingPointError
            When a coefficient is not finite, or no step meets the tolerance.
        """
        while self.finished is None:
            self.finished = self._denominator_problem()
            if self.finished:
                break
            coefficients, length = self._try_step(limit)
            lost = tail(self.continuity.harmonics.power(coefficients))
            if broadcast(lost <= self.tail_tolerance, self.comm):
                self.coefficients = coefficients
                self.time += length
                return length
            if self.degree < self.max_degree:
                next_length = self._pair.memory()[0]
                self._set_degree(higher_degree(self.degree, self.max_degree))
                self._begin_stepping(first_length=next_length)
            else:
                self.finished = (
                    f"resolution exhausted at time {self.time:.9g}: in the next step the last "
                    f"modes of degree {self.degree} = max_degree would carry {lost:.2g} of the "
                    f"density's norm, more than tail_tolerance={self.tail_tolerance:g}"
                )
        return 0.0

    def describe(self):
        """Numbers of the present density.

        "energy" (when the model has one), "max_speed" and "minimum_density" over the grid,
        "mean_square_speed" = ∫|V|² dμ (the rate of the energy along unnormalised flows without
        noise), "entropy" = ∫ ρ log|ρ| dσ, "mass", "tail", "degree".
        """
        grid = self.continuity.grid
        density = grid.value(self.coefficients)
        speed = np.linalg.norm(self.continuity.velocity_on_grid(self.coefficients), axis=0)
        row = {} if self.model.no_energy_because else {"energy": self.energy()}
        row |= {
            "max_speed": float(speed.max()),
            "mean_square_speed": float((grid.weights * density) @ speed**2),
            "minimum_density": float(density.min()),
            "entropy": float(grid.weights @ xlogy(density, np.abs(density))),
            "mass": float(self.coefficients[0].real / uniform(self.ambient_dim)[0].real),
            "tail": self._tail(),
            "degree": float(self.degree),
        }
        return row

    def snapshot(self):
        """ρ at the points of pictures, whose number does not change with the degree."""
        return State(replicated={"density": self.density(self._picture_points)})

    def state(self):
        """Coefficients, time and the step control's memory."""
        replicated = {"coefficients": self.coefficients, "time": self.time}
        length, last_error, slope = self._pair.memory()
        # Before the first step there is nothing to remember.
        if slope is not None:
            replicated |= {"length": length, "last_error": last_error, "slope": slope}
        return State(replicated=replicated)

    def restore(self, state):
        """Continue from a `state`, bitwise."""
        saved = state.replicated
        self.coefficients = np.array(saved["coefficients"], dtype=complex)
        self.time = float(saved["time"])
        self.finished = None
        self._set_degree(degree_of(self.coefficients, self.ambient_dim))
        self._begin_stepping(first_length=None)
        if "slope" in saved:
            slope = np.array(saved["slope"], dtype=complex)
            self._pair.remember(float(saved["length"]), float(saved["last_error"]), slope)

    def settings(self):
        """JSON-able description."""
        return {
            "flow": "spectral density",
            "model": self.model.settings(),
            "ambient_dim": self.ambient_dim,
            "max_degree": self.max_degree,
            "tolerance": self.tolerance,
            "tail_tolerance": self.tail_tolerance,
            "diffusion": self.diffusion,
            "start_error": self.start_error,
        }

    # The density and its field, for others

    def density(self, x):
        """ρ at this rank's unit rows (n, d), shape (n,)."""
        return self.continuity.harmonics.value(self.coefficients, x)

    def velocity(self, x):
        """V[ρ] at this rank's unit rows (n, d), tangent, shape (n, d): what moves the density.

        Noise is no part of it.
        """
        return self.continuity.velocity(self.coefficients, x)

    def interpolate(self, fraction):
        """Coefficients at a fraction in [0, 1] of the step just taken, to fourth order.

        ``flow.continuity.velocity(flow.interpolate(0.5), x)`` is the velocity half-way, what
        tracers need inside a step.
        """
        return self._pair.interpolate(fraction)

    def measure(self):
        """This rank's share of the grid as ``(nodes, masses)``, masses summing to one over ranks.

        Integrals against it are exact for polynomials of degree 2L. Where the truncated
        density dips below zero, so do its masses.
        """
        grid = self.continuity.grid
        here = local_slice(len(grid.weights), self.comm)
        masses = grid.weights * grid.value(self.coefficients)
        return grid.nodes[here].copy(), masses[here]

    def energy(self):
        """E[ρ]; see `SpectralContinuity.energy`."""
        return self.continuity.energy(self.coefficients)

    # Stepping

    def _set_degree(self, degree):
        """Pad the coefficients to `degree` and make what depends on it."""
        self.degree = degree
        self.coefficients = change_degree(self.coefficients, self.ambient_dim, degree)
        self.continuity = SpectralContinuity(self.model, self.ambient_dim, degree, self._threads)

    def _begin_stepping(self, first_length):
        unit = np.ones_like(self.coefficients)
        laplacian = laplacian_eigenvalues(self.ambient_dim, self.degree)
        decay = self.continuity.harmonics.multiply(unit, self.diffusion * laplacian).real
        self._pair = DecayingDormandPrince(
            self.continuity.rate, self._error_norm, decay, first_length
        )

    def _try_step(self, limit):
        finite = np.isfinite(self.coefficients)
        if not np.all(finite):
            raise FloatingPointError(
                f"coefficient {int(np.argmin(finite))} of the density is not finite at time "
                f"{self.time:.9g}"
            )
        self._size = np.sqrt(self.continuity.harmonics.power(self.coefficients).sum())
        try:
            return self._pair.step(self.coefficients, limit)
        except FloatingPointError as problem:
            raise FloatingPointError(
                f"the density of degree {self.degree} at time {self.time:.9g}: {problem}"
            ) from problem

    def _denominator_problem(self):
        """Why softmax cannot be trusted with the present density, or None when it can."""
        if not self.model.is_softmax:
            return None
        share = broadcast(self.continuity.smallest_denominator(self.coefficients), self.comm)
        if share >= _LEAST_DENOMINATOR:
            return None
        return (
            f"softmax exhausted at time {self.time:.9g}: its denominator has fallen to "
            f"{share:.2g} of its largest value somewhere, where rounding spoils the velocity; "
            f"particles can go on, with the direct sum"
        )

    def _error_norm(self, error):
        size = np.sqrt(self.continuity.harmonics.power(error).sum())
        return broadcast(float(size / (self.tolerance * self._size)), self.comm)

    def _tail(self):
        return tail(self.continuity.harmonics.power(self.coefficients))

    # Input

    def _check(self, degree):
        if degree < 8:
            raise ValueError(f"degree={degree!r}: expected an integer >= 8")
        if self.max_degree < degree:
            raise ValueError(f"max_degree={self.max_degree!r}: expected at least degree={degree}")
        for name, least in (("tolerance", 1e-14), ("tail_tolerance", 0.0), ("diffusion", 0.0)):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= least):
                raise ValueError(f"{name}={value!r}: expected a finite number >= {least:g}")
        if self.model.attention is not None and self.model.attention.B is not None:
            raise ValueError(
                "the spectral density needs attention without B, whose harmonics do not "
                "decouple; use particles"
            )

    def _given(self, start, degree):
        """Checked coefficients of a start, padded to `degree` at least."""
        start = np.array(start, dtype=complex)
        if start.ndim != 1:
            raise ValueError(f"start has shape {start.shape}: expected a vector of coefficients")
        given = degree_of(start, self.ambient_dim)
        if given > self.max_degree:
            raise ValueError(f"start has degree {given}: expected at most {self.max_degree}")
        first = uniform(self.ambient_dim)[0]
        if not abs(start[0] - first) <= 1e-12:
            raise ValueError(f"start[0]={start[0]}: expected {first:.12g}, a density of mass one")
        # The transforms take modes that do not vary with longitude for real numbers.
        real = start[: 1 if self.ambient_dim == 2 else given + 1]
        if not (np.all(np.isfinite(start)) and np.all(real.imag == 0)):
            raise ValueError("start: expected finite coefficients, real where they have order 0")
        start[0] = first
        return change_degree(start, self.ambient_dim, max(given, degree))


def _dimension(model, ambient_dim):
    known = model.ambient_dim
    if known is not None and ambient_dim not in (None, known):
        raise ValueError(f"ambient_dim={ambient_dim}: the model's weights live in R^{known}")
    dimension = known if ambient_dim is None else ambient_dim
    if dimension not in MAX_DEGREE:
        raise ValueError(
            f"ambient_dim={dimension}: the spectral density lives on S¹ or S²; expected 2 or 3"
        )
    return dimension
