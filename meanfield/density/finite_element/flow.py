"""The continuity equation on meshes of S¹ and S², by discontinuous Galerkin methods."""

import numpy as np
from scipy.special import xlogy

from meanfield.density.finite_element.diffusion import make_diffusion
from meanfield.density.finite_element.implicit import ImplicitTransport
from meanfield.density.finite_element.layout import Layout
from meanfield.density.finite_element.limiter import limit
from meanfield.density.finite_element.spaces import DiscontinuousSpace
from meanfield.density.finite_element.transport import UpwindTransport
from meanfield.density.finite_element.two_point import TwoPointFluxes
from meanfield.fields.field import field
from meanfield.fields.measure import Measure
from meanfield.runtime.flow import State
from meanfield.runtime.parallel import max_over_ranks, raise_together, sum_over_ranks
from meanfield.sphere.pictures import picture_points

# How far the mass of a start may be from one on the mesh.
MASS_TOLERANCE = 0.1
_ENERGY_ROUNDING = 1e-14
SCHEMES = ("upwind", "energy", "implicit")
# Share of the longest step that keeps means nonnegative. Degree 1 is stable up to 2/3 of it
# on the circle; a backward Euler step may be longer than it.
_COURANT = {("upwind", 0): 0.9, ("upwind", 1): 0.5, ("energy", 0): 0.9, ("implicit", 0): 10.0}


class FiniteElementDensity:
    """A density ρ on a mesh that follows ∂_t ρ + div(ρ V[ρ]) = κ Δρ [L, eq. (2.6)].

    ρ is a polynomial of degree 0 or 1 on each cell. Fluxes take it from the upwind side, and
    V from the field of the measure that ρ makes at the quadrature nodes. What each scheme
    guarantees, whatever the density:

    - all: mass to rounding, ρ ≥ 0;
    - "upwind": forward Euler (degree 0, first order) or Heun's strong-stability-preserving
      steps and the limiter of Zhang and Shu (degree 1, second order), with V at the facets;
    - "energy" (degree 0, unnormalised gradient flows): the velocity through a facet is the
      difference quotient of the first variation between two cells, and a step that moves the
      discrete energy the wrong way is halved. So the energy is monotone;
    - "implicit" (degree 0): backward Euler in ρ, V from the step's beginning, for steps
      longer than the mesh's velocity allows explicit ones.

    Noise acts for half a step before and half a step after, implicitly: no limit on the step;
    see `meanfield.density.finite_element.diffusion`.

    Parameters
    ----------
    model : Model
        Attention without B; any perceptron; either may be missing.
    mesh : firedrake mesh
        Closed, of circle or sphere; its communicator is the flow's.
    start : callable
        Density with respect to the uniform probability, unit rows (n, d) -> (n,), ≥ 0, of
        integral one. Its mass on the mesh is made one exactly.
    degree : 0 or 1
    scheme : "upwind", "energy" or "implicit"
    diffusion : float
        κ ≥ 0.
    courant : float, optional
        Step as a share of the longest that keeps ρ ≥ 0 explicitly: at most 1 for explicit
        schemes, by default 0.9 (degree 0) and 0.5 (degree 1), and 10 when implicit.
    longest_step : float
        Steps are never longer, however slow the flow.
    tolerance : float
        Relative error of the field's sums.

    Attributes
    ----------
    values : ndarray, shape (cells, n)
        This rank's cells: means, or corner values.
    space : DiscontinuousSpace
    time : float
    finished : None
    rejected : int
        Steps repeated because a later stage or the energy asked for a shorter one.
    start_error : float
        How far the start's mass on the mesh was from one.

    Raises
    ------
    ValueError
        On all ranks, when an argument is out of range, a scheme does not fit the model,
        degree or mesh, or the start is not a density on this mesh.
    """

    def __init__(self, model, mesh, start, degree=0, scheme="upwind", diffusion=0.0,
                 courant=None, longest_step=0.5, tolerance=1e-12):
        self.model = model
        self.degree = degree
        self.scheme = scheme
        self.diffusion = diffusion
        self.longest_step = longest_step
        self.tolerance = tolerance
        self.courant = _COURANT.get((scheme, degree)) if courant is None else courant
        self.comm = mesh.comm
        self.space = DiscontinuousSpace(mesh, degree)
        self.ambient_dim = self.space.ambient_dim
        self._check()
        self.time = 0.0
        self.finished = None
        self.rejected = 0
        self._transport = UpwindTransport(self.space)
        self._two_point = TwoPointFluxes(self.space) if scheme == "energy" else None
        self._implicit = ImplicitTransport(self.space) if scheme == "implicit" else None
        self._noise = make_diffusion(self.space, diffusion) if diffusion > 0 else None
        nodes = self.space.nodes if self._two_point is None else self._two_point.centres
        self._nodes = np.ascontiguousarray(nodes.reshape(-1, self.ambient_dim))
        self._unloaded = Measure(self._nodes, self.space.weights.ravel(), self.comm)
        self._layout = Layout(self.space)
        self._picture_cells = self._layout.nearest_cells(picture_points(self.ambient_dim))
        self.values = self._projected(start)

    # The time loop's side

    def step(self, limit):
        """Advance by at most `limit` of time; returns the length taken.

        Raises
        ------
        FloatingPointError
            When a velocity is not finite.
        """
        made = self._field(self.values)
        outflow = self._outflow(made)
        length = self._allowed(outflow, limit)
        while True:
            values = self._attempt(length, made, outflow)
            if values is not None:
                break
            self.rejected += 1
            length *= 0.5
        self.values = values
        self.time += length
        return length

    def describe(self):
        """Numbers of the present density.

        "energy" (when the model has one), "mass", "minimum_density", "maximum_density",
        "max_speed" and "mean_square_speed" = ∫|V|² dμ at the quadrature nodes, "entropy" =
        ∫ ρ log ρ dσ, and how far the mass has gathered: "effective_cells" = 1/Σ m_K² and
        "largest_cell_mass".
        """
        space, measure = self.space, self._measure(self.values)
        made = self._make_field(measure)
        speed = np.linalg.norm(made.velocity(measure.nodes), axis=1)
        density = self.values @ space.basis.T
        masses = space.masses(self.values)
        sums = np.array([
            masses.sum(),
            measure.masses @ speed**2,
            np.sum(space.weights * xlogy(density, density)),
            masses @ masses,
        ])
        mass, square, entropy, concentration = sum_over_ranks(sums, self.comm)
        extremes = np.array([
            np.max(speed, initial=0.0),
            np.max(self.values, initial=-np.inf),
            np.max(-self.values, initial=-np.inf),
            np.max(masses, initial=0.0),
        ])
        fastest, largest, least, heaviest = max_over_ranks(extremes, self.comm)
        row = {} if self.model.no_energy_because else {"energy": made.energy()}
        return row | {
            "mass": float(mass),
            "minimum_density": float(-least),
            "maximum_density": float(largest),
            "max_speed": float(fastest),
            "mean_square_speed": float(square),
            "entropy": float(entropy),
            "effective_cells": float(1 / concentration),
            "largest_cell_mass": float(heaviest),
        }

    def snapshot(self):
        """Cells' centres and masses, and ρ at the points of pictures.

        A picture's point shows the mean of the cell whose centre is nearest.
        """
        masses = self.space.masses(self.values)
        density = self._layout.at_cells(self.space.means(self.values), self._picture_cells)
        return State(
            distributed={"nodes": self.space.centres, "masses": masses},
            replicated={"density": density},
        )

    def state(self):
        """The values and where they sit, so that any number of ranks can continue."""
        return State(
            distributed={"places": self._layout.places, "values": self.values.ravel()},
            replicated={"time": self.time},
        )

    def restore(self, state):
        """Continue from a `state` of the same mesh.

        Bitwise where ranks share the mesh as they did, to rounding on other ranks.

        Raises
        ------
        ValueError
            When the state belongs to another mesh or degree.
        """
        values = self._layout.sort(state.distributed["places"], state.distributed["values"])
        self.values = values.reshape(self.values.shape)
        self.time = float(state.replicated["time"])

    def settings(self):
        """JSON-able description."""
        return {
            "flow": "finite-element density",
            "model": self.model.settings(),
            "ambient_dim": self.ambient_dim,
            "cells": self.space.global_cells,
            "cell": self.space.mesh.ufl_cell().cellname,
            "degree": self.degree,
            "scheme": self.scheme,
            "diffusion": self.diffusion,
            "courant": self.courant,
            "longest_step": self.longest_step,
            "tolerance": self.tolerance,
            "start_error": self.start_error,
        }

    # The density and its field, for others

    def velocity(self, x):
        """V[ρ] at this rank's unit rows (n, d), tangent, shape (n, d). Noise is no part of it."""
        return self._field(self.values).velocity(x)

    def measure(self):
        """This rank's quadrature nodes and masses, ≥ 0, that sum to one over the ranks."""
        measure = self._measure(self.values)
        return measure.nodes.copy(), measure.masses

    def energy(self):
        """E of `measure`."""
        return self._field(self.values).energy()

    # Stepping

    def _attempt(self, length, made, outflow):
        """Values after a step of this length, or None when it has to be shorter.

        Noise, transport, noise: symmetric, so that degree 1 keeps its order.
        """
        if self._noise is None:
            return self._transported(self.values, length, made, outflow)
        values = self._noise.step(self.values, length / 2)
        made = self._field(values)
        outflow = self._outflow(made)
        values = self._transported(values, length, made, outflow)
        return None if values is None else self._noise.step(values, length / 2)

    def _transported(self, values, length, made, outflow):
        if self.scheme == "implicit":
            return self._implicit.step(values, outflow, length)
        if self._transport.longest_step(outflow) < length:
            return None
        ahead = values + length * self._rate(values, made, outflow)
        if self.scheme == "energy" and not self._energy_follows(made, ahead):
            return None
        if self.degree == 0:
            return ahead
        stage = self._limited(ahead)
        made = self._field(stage)
        outflow = self._outflow(made)
        if self._transport.longest_step(outflow) < length:
            return None
        ahead = stage + length * self._rate(stage, made, outflow)
        return self._limited(0.5 * (values + ahead))

    def _energy_follows(self, made, ahead):
        before = made.energy()
        gain = self.model.sign * (self._field(ahead).energy() - before)
        # Below this, energies differ by rounding and the errors of sums.
        return gain >= -_ENERGY_ROUNDING * abs(before)

    def _allowed(self, outflow, limit):
        longest = min(self.courant * self._transport.longest_step(outflow), self.longest_step)
        # Two equal steps rather than a long one and a sliver before an event.
        return limit / 2 if limit / 2 < longest < limit else min(limit, longest)

    def _outflow(self, made):
        if self._two_point is not None:
            variation = made.first_variation(self._nodes)
            outflow = self._two_point.outflow(self.model.sign * variation)
        else:
            outflow = self._transport.outflow(made.velocity(self.space.facet_nodes))
        finite = np.all(np.isfinite(outflow), axis=1)
        problem = None
        if not np.all(finite):
            problem = (
                f"the velocity at the cell around {self.space.centres[np.argmin(finite)]} is "
                f"not finite at time {self.time:.9g}"
            )
        raise_together(problem, self.comm, FloatingPointError)
        return outflow

    def _rate(self, values, made, outflow):
        velocity = None
        if self.degree:
            velocity = made.velocity(made.measure.nodes).reshape(self.space.nodes.shape)
        return self._transport.rate(values, outflow, velocity)

    def _limited(self, values):
        return limit(values, self.space.means(values))

    def _measure(self, values):
        masses = self.space.weights * (values @ self.space.basis.T)
        # Nodes stay where they are: they were checked once.
        measure = self._unloaded.moved(self._nodes)
        measure.masses = masses.ravel()
        return measure

    def _field(self, values):
        return self._make_field(self._measure(values))

    def _make_field(self, measure):
        if self.model.attention is None:
            return field(self.model, measure)
        return field(
            self.model, measure, "funk_hecke", self.tolerance, pointwise=self.model.is_softmax
        )

    # Input

    def _projected(self, start):
        """Values of the start's projection, nonnegative and of mass one."""
        space = self.space
        nodes = space.nodes.reshape(-1, self.ambient_dim)
        density = np.asarray(start(nodes), dtype=float)
        problem = None
        if density.shape != (space.weights.size,):
            problem = f"start returned shape {density.shape}: expected one value a point"
        elif not np.all(density >= 0) or not np.all(np.isfinite(density)):
            problem = "start is negative or not finite at a quadrature node; expected a density"
        raise_together(problem, self.comm)
        loads = (space.weights * density.reshape(space.weights.shape)) @ space.basis
        values = np.einsum("kij,kj->ki", space.inverse_mass, loads)
        values = self._limited(values)
        mass = space.total(values)
        self.start_error = abs(mass - 1)
        if not self.start_error <= MASS_TOLERANCE:
            raise ValueError(
                f"start has mass {mass:.6g} on this mesh; expected 1 within {MASS_TOLERANCE:g}: "
                f"refine the mesh if the start is sharper than its cells, else divide it by "
                f"its integral"
            )
        return values / mass

    def _check(self):
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme={self.scheme!r}: expected one of {', '.join(SCHEMES)}")
        if (self.scheme, self.degree) not in _COURANT:
            raise ValueError(
                f"degree={self.degree} with scheme={self.scheme!r}: expected degree 0, or 'upwind'"
            )
        most = np.inf if self.scheme == "implicit" else 1.0
        if not 0 < self.courant <= most:
            raise ValueError(f"courant={self.courant!r}: expected above 0, at most {most:g}")
        if not 0 < self.longest_step < np.inf:
            raise ValueError(f"longest_step={self.longest_step!r}: expected a finite number > 0")
        if not 0 <= self.diffusion < np.inf:
            raise ValueError(f"diffusion={self.diffusion!r}: expected a finite number >= 0")
        if self.model.attention is not None and self.model.attention.B is not None:
            raise ValueError(
                "the finite-element density needs attention without B, whose harmonics do not "
                "decouple; use particles"
            )
        if self.model.ambient_dim not in (None, self.ambient_dim):
            raise ValueError(
                f"the model's weights live in R^{self.model.ambient_dim} but the mesh in "
                f"R^{self.ambient_dim}; expected one dimension"
            )
        if self.scheme == "energy":
            self.model.require_energy("energy to be monotone")
            if self.diffusion > 0:
                raise ValueError(
                    f"diffusion={self.diffusion:g} with scheme='energy': noise changes the energy "
                    f"in its own way; expected 0, or scheme='upwind'"
                )
