"""Particles that move in the field they make together."""

import numpy as np

from meanfield.fields.field import field
from meanfield.fields.measure import speeds
from meanfield.runtime.flow import State
from meanfield.runtime.parallel import max_over_ranks, row_offset
from meanfield.runtime.runge_kutta import CLASSICAL, DormandPrince, explicit_step
from meanfield.sphere.geometry import exponential_map, normalise, project_tangent
from meanfield.sphere.streams import normals

INTEGRATORS = ("adaptive", "rk4", "euler")


class ParticleFlow:
    """A cloud of weighted particles under a model, spread over ranks.

    Parameters
    ----------
    model : Model
    measure : Measure
        The start; its masses stay with their particles.
    integrator : "adaptive", "rk4" or "euler"
        Dormand–Prince 5(4) with error control; the classical method; or geodesic Euler
        steps, which on S¹ are Euler steps in the angle, as in [L, §4].
    length : float, optional
        Step of "rk4" and "euler", in units of time.
    tolerance : float, optional
        Error of a step of "adaptive", in radians, for every particle: 1e-8 by default.
    diffusion : float
        κ ≥ 0 of the noisy flow with generator κΔ; needs a fixed step.
    seed : int
        Of the noise, which depends on the particle's global number and the step only.
    method, field_tolerance : str, float
        How the field is summed, see `meanfield.field`.
    further : callable, optional
        flow -> dict of more numbers for `describe`; collective.

    Attributes
    ----------
    measure : Measure
        Where the particles are.
    time : float
    steps : int
        Taken so far.

    Raises
    ------
    ValueError
        When options do not fit together.

    Examples
    --------
    Under pure attention two particles on the circle approach each other.

    >>> import numpy as np, meanfield as mf
    >>> from meanfield.sphere.geometry import circle_points, geodesic_distance
    >>> pair = mf.Measure(circle_points([0.0, 1.0]), [0.5, 0.5])
    >>> flow = ParticleFlow(mf.Model(mf.Attention(beta=1.0)), pair, "rk4", length=0.01)
    >>> for _ in range(100):
    ...     _ = flow.step(limit=np.inf)
    >>> bool(geodesic_distance(*flow.measure.nodes) < 1.0)
    True
    """

    def __init__(
        self,
        model,
        measure,
        integrator="adaptive",
        length=None,
        tolerance=None,
        diffusion=0.0,
        seed=0,
        method="auto",
        field_tolerance=1e-11,
        further=None,
    ):
        if integrator not in INTEGRATORS:
            raise ValueError(f"integrator={integrator!r}: expected one of {INTEGRATORS}")
        adaptive = integrator == "adaptive"
        if adaptive and length is not None:
            raise ValueError("length applies to 'rk4' and 'euler'; give tolerance to 'adaptive'")
        if not adaptive and tolerance is not None:
            raise ValueError(f"tolerance applies to 'adaptive' only; give length to {integrator!r}")
        if tolerance is not None and not 0 < tolerance < np.inf:
            raise ValueError(f"tolerance={tolerance!r}: expected a finite number > 0")
        if not adaptive and not (length is not None and 0 < length < np.inf):
            raise ValueError(f"length={length!r}: expected a step > 0 for {integrator!r}")
        if not (np.isfinite(diffusion) and diffusion >= 0):
            raise ValueError(f"diffusion={diffusion!r}: expected a finite number >= 0")
        if adaptive and diffusion > 0:
            raise ValueError("diffusion > 0 needs a fixed step: integrator 'rk4' or 'euler'")
        self.model = model
        self.measure = measure
        self.comm = measure.comm
        self.time = 0.0
        self.steps = 0
        self.finished = None
        self.integrator = integrator
        self.length = length
        self.tolerance = (1e-8 if tolerance is None else tolerance) if adaptive else None
        self.diffusion = float(diffusion)
        self.seed = seed
        self._field_options = {
            "method": method,
            "tolerance": field_tolerance,
            # Without softmax only the error against the largest field matters to the motion.
            "pointwise": model.is_softmax,
        }
        self._offset = row_offset(len(measure.masses), self.comm)
        self._further = further
        self._field = None
        self._pair = None
        if adaptive:
            self._pair = DormandPrince(self._velocity, self._error, retract=normalise)

    @property
    def field(self):
        """The field of the particles where they are."""
        if self._field is None:
            self._checked(self.measure.nodes, "position")
            self._field = field(self.model, self.measure, **self._field_options)
        return self._field

    def velocity(self):
        """Velocities of this rank's particles, shape (n, d)."""
        return self._checked(self.field.velocity(self.measure.nodes), "velocity")

    def step(self, limit):
        """Advance by at most `limit`; returns the length taken. See `Flow`."""
        nodes = self.measure.nodes
        if self.integrator == "adaptive":
            nodes, length = self._pair.step(nodes, limit)
        else:
            length = min(self.length, limit)
            if self.integrator == "euler":
                nodes = exponential_map(nodes, length * self._velocity(nodes))
            else:
                nodes = explicit_step(CLASSICAL, self._velocity, nodes, length, normalise)
            if self.diffusion:
                nodes = exponential_map(nodes, self._brownian_increments(nodes, length))
            self._checked(nodes, "position")
        self.measure = self.measure.moved(nodes)
        self._field = None
        self.time += length
        self.steps += 1
        return length

    def describe(self):
        """Energy where there is one, speeds (radians a unit of time)."""
        row = {}
        if self.model.no_energy_because is None:
            row["energy"] = self.field.energy()
        # Along an unnormalised gradient flow the mean square is |dE/dt|.
        row["max_speed"], row["mean_square_speed"] = speeds(
            self.velocity(), self.measure.masses, self.comm
        )
        if self._further is not None:
            row |= self._further(self)
        return row

    def snapshot(self):
        """Nodes and masses."""
        return State({"nodes": self.measure.nodes, "masses": self.measure.masses})

    def state(self):
        """All that is needed to continue bitwise."""
        state = self.snapshot()
        state.replicated = {"time": self.time, "steps": self.steps}
        if self._pair is not None:
            length, last_error, slope = self._pair.memory()
            state.distributed["slope"] = self.velocity() if slope is None else slope
            state.replicated["length"] = np.nan if length is None else length
            state.replicated["last_error"] = last_error
        return state

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        rows, numbers = state.distributed, state.replicated
        measure = self.measure.moved(np.ascontiguousarray(rows["nodes"]))
        measure.masses = np.ascontiguousarray(rows["masses"])
        self.measure = measure
        self._offset = row_offset(len(measure.masses), self.comm)
        self._field = None
        self.time, self.steps = float(numbers["time"]), int(numbers["steps"])
        if self._pair is not None:
            length = float(numbers["length"])
            self._pair.remember(
                None if np.isnan(length) else length,
                float(numbers["last_error"]),
                np.ascontiguousarray(rows["slope"]),
            )

    def settings(self):
        """JSON-able description."""
        return {
            "flow": "particles",
            "model": self.model.settings(),
            "particles": self.measure.global_count,
            "ambient_dim": self.measure.ambient_dim,
            "integrator": self.integrator,
            "length": self.length,
            "tolerance": self.tolerance,
            "diffusion": self.diffusion,
            "seed": self.seed,
            "field": self._field_options["method"],
            "field_tolerance": self._field_options["tolerance"],
        }

    def _velocity(self, nodes):
        moved = self.measure.moved(self._checked(nodes, "position"))
        here = field(self.model, moved, **self._field_options)
        return self._checked(here.velocity(nodes), "velocity")

    def _error(self, error):
        largest = np.sqrt(np.einsum("ij,ij->i", error, error).max(initial=0.0))
        return max_over_ranks(float(largest), self.comm) / self.tolerance

    def _brownian_increments(self, nodes, length):
        rows = slice(self._offset, self._offset + len(nodes))
        noise = normals(self.seed, "brownian", self.steps, rows, nodes.shape[1])
        return project_tangent(nodes, np.sqrt(2 * self.diffusion * length) * noise)

    def _checked(self, rows, quantity):
        """`rows`, or an error on every rank that names the first particle that is not finite."""
        bad = ~np.isfinite(rows).all(axis=1)
        first = -(self._offset + int(np.argmax(bad))) if np.any(bad) else -np.inf
        first = max_over_ranks(first, self.comm)
        if first > -np.inf:
            raise FloatingPointError(f"the {quantity} of particle {int(-first)} is not finite")
        return rows
