"""Lagrangian tracers: points that follow a density's velocity and do not act on it."""

import numpy as np

from meanfield.runtime.flow import State
from meanfield.runtime.parallel import max_over_ranks, sum_over_ranks
from meanfield.runtime.runge_kutta import CLASSICAL, explicit_step
from meanfield.sphere.geometry import normalise

# Classical steps within one step of the density, whose pair is of higher order.
_SUBSTEPS = 4


class Tracers:
    """A spectral density with tracers in its flow.

    A step is the density's own; within it the tracers take classical Runge–Kutta steps,
    for which the density between the ends comes from its continuous extension.

    Parameters
    ----------
    density : SpectralDensity
        Without noise, which has no trajectories.
    measure : Measure
        Where the tracers start; spread over the density's ranks.

    Raises
    ------
    ValueError
        If the density has noise, or the dimensions differ.
    """

    def __init__(self, density, measure):
        if density.diffusion > 0:
            raise ValueError(
                f"diffusion={density.diffusion:g}: tracers follow a velocity; expected 0"
            )
        if density.ambient_dim != measure.ambient_dim:
            raise ValueError(
                f"the tracers live in R^{measure.ambient_dim} but the density in "
                f"R^{density.ambient_dim}; expected one dimension"
            )
        self.density = density
        self.measure = measure
        self.comm = measure.comm

    @property
    def time(self):
        """The density's time."""
        return self.density.time

    @time.setter
    def time(self, value):
        self.density.time = value

    @property
    def finished(self):
        """The density's reason to stop."""
        return self.density.finished

    def step(self, limit):
        """One step of the density with its tracers; see `Flow`."""
        length = self.density.step(limit)
        if length > 0:
            fractions = np.linspace(0, 1, 2 * _SUBSTEPS + 1)
            instants = [self.density.interpolate(fraction) for fraction in fractions]
            velocity = self.density.continuity.velocity
            nodes = self.measure.nodes
            for begin in range(0, 2 * _SUBSTEPS, 2):
                start, middle, end = instants[begin : begin + 3]
                # The classical stages look at the beginning, twice at the middle, at the end.
                stages = iter((start, middle, middle, end))
                nodes = explicit_step(
                    CLASSICAL,
                    lambda x, stages=stages: velocity(next(stages), x),
                    nodes,
                    length / _SUBSTEPS,
                    normalise,
                )
            self.measure = self.measure.moved(nodes)
        return length

    def describe(self):
        """The density's numbers, and the tracers' greatest and mean square speeds."""
        velocity = self.density.velocity(self.measure.nodes)
        squares = np.einsum("ij,ij->i", velocity, velocity)
        largest = max_over_ranks(float(squares.max(initial=0.0)), self.comm)
        mean = sum_over_ranks(float(self.measure.masses @ squares), self.comm)
        return self.density.describe() | {
            "tracer_max_speed": float(np.sqrt(largest)),
            "tracer_mean_square_speed": mean,
        }

    def snapshot(self):
        """The density's snapshot and the tracers' nodes and masses."""
        state = self.density.snapshot()
        state.distributed |= {"nodes": self.measure.nodes, "masses": self.measure.masses}
        return state

    def state(self):
        """The density's state and the tracers."""
        state = self.density.state()
        return State(
            state.distributed | {"nodes": self.measure.nodes, "masses": self.measure.masses},
            state.replicated,
        )

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        self.density.restore(state)
        self.measure = self.measure.moved(np.ascontiguousarray(state.distributed["nodes"]))
        self.measure.masses = np.ascontiguousarray(state.distributed["masses"])

    def settings(self):
        """JSON-able description."""
        return self.density.settings() | {"tracers": self.measure.global_count}
