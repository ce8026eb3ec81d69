"""Particles that carry the mass, on a mesh that carries their field."""

import numpy as np

from meanfield.coupling.deposition import deposit
from meanfield.coupling.location import CellFinder
from meanfield.coupling.residence import ResidentParticles
from meanfield.fields.field import field
from meanfield.fields.measure import Measure, speeds
from meanfield.runtime.flow import State
from meanfield.runtime.parallel import max_over_ranks, raise_together, sum_over_ranks
from meanfield.runtime.runge_kutta import CLASSICAL, EULER, explicit_step
from meanfield.sphere.geometry import normalise

TABLEAUS = {"rk4": CLASSICAL, "euler": EULER}


class ParticleInCell:
    """Particles in the field of the cells' masses, each mass in the middle of its cell.

    The field sees the cells, however many particles there are, and a mass at most a cell's
    radius from where it is: the velocity is off by O(h), and attraction within a cell is to
    the cell's middle. Deposition jumps as particles change cells, so steps are of fixed length.

    Parameters
    ----------
    model : Model
    mesh : firedrake mesh
        Closed, of circle or sphere.
    measure : Measure
        The start, over the mesh's ranks; a particle's number is its global row.
    length : float
        Step > 0 in units of time.
    integrator : "rk4" or "euler"
    tolerance : float
        Relative error of the field's sums.

    Attributes
    ----------
    particles : ResidentParticles
    time : float
    finished : None

    Raises
    ------
    ValueError
        When options are out of range, or dimensions differ.
    """

    def __init__(self, model, mesh, measure, length, integrator="rk4", tolerance=1e-10):
        if integrator not in TABLEAUS:
            raise ValueError(f"integrator={integrator!r}: expected one of {', '.join(TABLEAUS)}")
        if not 0 < length < np.inf:
            raise ValueError(f"length={length!r}: expected a finite step > 0")
        self.model = model
        self.length = length
        self.integrator = integrator
        self.tolerance = tolerance
        self.finder = CellFinder(mesh)
        self.particles = ResidentParticles(self.finder, measure)
        self.comm = self.finder.comm
        self.time = 0.0
        self.finished = None

    def step(self, limit):
        """Advance by at most `limit`; returns the length taken. See `Flow`."""
        length = min(self.length, limit)
        tableau = TABLEAUS[self.integrator]
        # Within a step only masses travel; particles move house at its end.
        nodes = explicit_step(tableau, self._velocity, self.particles.nodes, length, normalise)
        self.particles.move(nodes)
        self.time += length
        return length

    def cell_masses(self):
        """Masses of this rank's cells, shape (cells,)."""
        particles = self.particles
        return deposit(self.finder, particles.nodes, particles.masses, particles.cells)

    def describe(self):
        """Energy of the cells' masses where there is one, and the particles' speeds."""
        made = self._field(self.particles.nodes)
        greatest, mean_square = speeds(
            made.velocity(self.particles.nodes), self.particles.masses, self.comm
        )
        row = {} if self.model.no_energy_because else {"energy": made.energy()}
        masses = made.measure.masses
        return row | {
            "max_speed": greatest,
            "mean_square_speed": mean_square,
            "mass": sum_over_ranks(float(masses.sum()), self.comm),
            "effective_cells": 1 / sum_over_ranks(float(masses @ masses), self.comm),
            "largest_cell_mass": max_over_ranks(float(masses.max(initial=0.0)), self.comm),
        }

    def snapshot(self):
        """Particles in the order of their numbers."""
        nodes, masses = self.particles.in_global_order()
        return State({"nodes": nodes, "masses": masses})

    def state(self):
        """Particles in the order of their numbers, and the time."""
        state = self.snapshot()
        state.replicated["time"] = self.time
        return state

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        rows = state.distributed
        measure = Measure(rows["nodes"], rows["masses"], self.comm)
        self.particles = ResidentParticles(self.finder, measure)
        self.time = float(state.replicated["time"])

    def settings(self):
        """JSON-able description."""
        return {
            "flow": "particle in cell",
            "model": self.model.settings(),
            "particles": self.particles.total,
            "cells": sum_over_ranks(self.finder.cells, self.comm),
            "ambient_dim": self.finder.ambient_dim,
            "integrator": self.integrator,
            "length": self.length,
            "field_tolerance": self.tolerance,
        }

    def _field(self, nodes):
        """The field of the particles' masses with the particles at `nodes`."""
        masses = deposit(self.finder, nodes, self.particles.masses, self.particles.cells)
        cells = Measure(self.finder.centres, masses, self.comm)
        return field(
            self.model,
            cells,
            tolerance=self.tolerance,
            pointwise=self.model.is_softmax,
            targets=self.particles.total,
        )

    def _velocity(self, nodes):
        finite = np.isfinite(nodes).all(axis=1)
        problem = None
        if not np.all(finite):
            number = self.particles.ids[np.argmin(finite)]
            problem = f"the position of particle {number} is not finite at time {self.time:.9g}"
        raise_together(problem, self.comm, FloatingPointError)
        velocity = self._field(nodes).velocity(nodes)
        finite = np.isfinite(velocity).all(axis=1)
        if not np.all(finite):
            number = self.particles.ids[np.argmin(finite)]
            problem = f"the velocity of particle {number} is not finite at time {self.time:.9g}"
        raise_together(problem, self.comm, FloatingPointError)
        return velocity
