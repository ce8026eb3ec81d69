"""A density on a mesh that goes on as particles once the mesh no longer resolves it."""

import numpy as np

from meanfield.coupling.atomization import atomization, is_unresolved
from meanfield.fields.measure import Measure
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.flow import State
from meanfield.sphere.geometry import normalise

PARTICLES_A_CELL = ("nodes", "one")


def as_particles(density, particles_a_cell="nodes"):
    """The particles that stand for a density on a mesh; collective.

    Parameters
    ----------
    density : FiniteElementDensity
    particles_a_cell : "nodes" or "one"
        One at each quadrature node that carries mass, the measure that makes the density's own
        field: mass, moments, energy and velocity are the density's, to rounding. Or one for
        each cell that carries mass, at the direction of its centre of mass: mass is kept to
        rounding; a cell's ∫x dμ keeps its direction, and of its length all but the share
        1 − cos r ≤ r²/2, r the cell's radius, so ∫x dμ is off by at most max r²/2.

    Returns
    -------
    Measure
        Each rank's cells become its particles.

    Raises
    ------
    ValueError
        For another `particles_a_cell`.
    """
    if particles_a_cell not in PARTICLES_A_CELL:
        raise ValueError(
            f"particles_a_cell={particles_a_cell!r}: expected one of {', '.join(PARTICLES_A_CELL)}"
        )
    nodes, masses = density.measure()
    if particles_a_cell == "one":
        masses = masses.reshape(density.space.cells, -1)
        moments = np.einsum("kq,kqd->kd", masses, nodes.reshape(*masses.shape, -1))
        masses = masses.sum(axis=1)
        nodes = moments[masses > 0]
        nodes = normalise(nodes)
    else:
        nodes = nodes[masses > 0]
    masses = masses[masses > 0]
    return Measure(nodes, masses, density.comm)


class HandOver:
    """A finite-element density, and after it particles in its place.

    Before each step the density's `concentrations` are looked at. Once one is fewer than
    `fewest_cells` cells wide at half its height, the density becomes particles
    (`as_particles`), which take all further steps. In the table "is_particles" tells which of
    the two a row describes.

    Parameters
    ----------
    density : FiniteElementDensity
    fewest_cells : float
        Above 1, as no concentration is narrower than a cell. Upwind fluxes smear what is a few
        cells wide.
    least_mass : float
        Concentrations of less mass may be as narrow as they are.
    particles_a_cell : "nodes" or "one"
        See `as_particles`.
    make_particles : callable, optional
        Measure -> the flow of the particles; by default a `ParticleFlow` with the density's
        model, without noise.

    Attributes
    ----------
    density : FiniteElementDensity
        As it was last.
    particles : Flow or None
        None before the hand-over.
    hand_over_time : float
        NaN before the hand-over.

    Raises
    ------
    ValueError
        When an option is out of range, or the density has noise and `make_particles` is missing.
    """

    def __init__(self, density, fewest_cells=3.0, least_mass=0.01, particles_a_cell="nodes",
                 make_particles=None):
        if not 1 < fewest_cells < np.inf:
            raise ValueError(f"fewest_cells={fewest_cells!r}: expected a finite number > 1")
        if not 0 < least_mass <= 1:
            raise ValueError(f"least_mass={least_mass!r}: expected above 0, at most 1")
        if particles_a_cell not in PARTICLES_A_CELL:
            raise ValueError(
                f"particles_a_cell={particles_a_cell!r}: expected one of "
                f"{', '.join(PARTICLES_A_CELL)}"
            )
        if make_particles is None:
            if density.diffusion > 0:
                raise ValueError(
                    f"diffusion={density.diffusion:g}: give make_particles, which chooses a step "
                    f"and a seed for the noise of the particles"
                )
            make_particles = self._without_noise
        self.density = density
        self.fewest_cells = fewest_cells
        self.least_mass = least_mass
        self.particles_a_cell = particles_a_cell
        self.comm = density.comm
        self.particles = None
        self.hand_over_time = np.nan
        self._make_particles = make_particles

    @property
    def is_particles(self):
        """Whether the hand-over has happened."""
        return self.particles is not None

    @property
    def time(self):
        """The time of the flow in charge."""
        return self._in_charge.time

    @time.setter
    def time(self, value):
        self._in_charge.time = value

    @property
    def finished(self):
        """A reason to stop of the flow in charge."""
        return self._in_charge.finished

    def step(self, limit):
        """One step of the density, or of the particles; see `Flow`."""
        if not self.is_particles and is_unresolved(
            self.density, self.fewest_cells, self.least_mass
        ):
            self._begin_particles(as_particles(self.density, self.particles_a_cell))
            self.particles.time = self.density.time
            self.hand_over_time = self.density.time
        return self._in_charge.step(limit)

    def describe(self):
        """Numbers of the flow in charge, "is_particles", and before the hand-over the monitor."""
        row = self._in_charge.describe()
        if not self.is_particles:
            row |= atomization(self.density, self.least_mass)
        return row | {"is_particles": float(self.is_particles)}

    def snapshot(self):
        """The density's snapshot; after the hand-over "particles", their masses and its time."""
        if not self.is_particles:
            return self.density.snapshot()
        state = self.particles.snapshot()
        return State(
            {
                "particles": state.distributed["nodes"],
                "particle_masses": state.distributed["masses"],
            },
            {"hand_over_time": self.hand_over_time},
        )

    def state(self):
        """The state of the flow in charge, and when the hand-over was."""
        state = self._in_charge.state()
        return State(
            dict(state.distributed), state.replicated | {"hand_over_time": self.hand_over_time}
        )

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        self.hand_over_time = float(state.replicated["hand_over_time"])
        self.particles = None
        if not np.isnan(self.hand_over_time):
            rows = state.distributed
            self._begin_particles(Measure(rows["nodes"], rows["masses"], self.comm))
        self._in_charge.restore(state)

    def settings(self):
        """JSON-able description; the same before and after the hand-over."""
        return {
            "flow": "hand-over",
            "density": self.density.settings(),
            "fewest_cells": self.fewest_cells,
            "least_mass": self.least_mass,
            "particles_a_cell": self.particles_a_cell,
        }

    @property
    def _in_charge(self):
        return self.particles if self.is_particles else self.density

    def _begin_particles(self, measure):
        self.particles = self._make_particles(measure)

    def _without_noise(self, measure):
        return ParticleFlow(self.density.model, measure)
