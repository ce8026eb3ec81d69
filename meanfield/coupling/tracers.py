"""Lagrangian tracers: points that follow a density's velocity and do not act on it."""

import numpy as np

from meanfield.fields.measure import speeds
from meanfield.runtime.flow import State
from meanfield.runtime.runge_kutta import CLASSICAL, explicit_step
from meanfield.sphere.geometry import normalise

# Classical steps within one step of the density, whose pair is of higher order.
_SUBSTEPS = 4


class DensityWithTracers:
    """What tracers in the flow of any density share: its time, its end, their speeds.

    Parameters
    ----------
    density : Flow
        Without noise, which has no trajectories.

    Raises
    ------
    ValueError
        If the density has noise.
    """

    def __init__(self, density):
        if density.diffusion > 0:
            raise ValueError(
                f"diffusion={density.diffusion:g}: tracers follow a velocity; expected 0"
            )
        self.density = density

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

    def _with_speeds_of(self, tracers):
        """The density's numbers, and the greatest and mean square speed of nodes with masses."""
        greatest, mean_square = speeds(
            self.density.velocity(tracers.nodes), tracers.masses, self.comm
        )
        return self.density.describe() | {
            "tracer_max_speed": greatest,
            "tracer_mean_square_speed": mean_square,
        }


class Tracers(DensityWithTracers):
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
        super().__init__(density)
        if density.ambient_dim != measure.ambient_dim:
            raise ValueError(
                f"the tracers live in R^{measure.ambient_dim} but the density in "
                f"R^{density.ambient_dim}; expected one dimension"
            )
        self.measure = measure
        self.comm = measure.comm

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
        return self._with_speeds_of(self.measure)

    def snapshot(self):
        """The density's snapshot and the tracers' nodes and masses."""
        return self._with_rows(self.density.snapshot())

    def state(self):
        """The density's state and the tracers."""
        return self._with_rows(self.density.state())

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        self.density.restore(state)
        self.measure = self.measure.moved(np.ascontiguousarray(state.distributed["nodes"]))
        self.measure.masses = np.ascontiguousarray(state.distributed["masses"])

    def settings(self):
        """JSON-able description."""
        return self.density.settings() | {"tracers": self.measure.global_count}

    def _with_rows(self, state):
        rows = {"nodes": self.measure.nodes, "masses": self.measure.masses}
        return State(state.distributed | rows, state.replicated)
