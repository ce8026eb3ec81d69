"""Lagrangian tracers in the flow of a density on a mesh, each on the rank of its cell."""

from meanfield.coupling.location import CellFinder
from meanfield.coupling.residence import ResidentParticles
from meanfield.coupling.tracers import DensityWithTracers
from meanfield.fields.measure import Measure
from meanfield.sphere.geometry import normalise


class MeshTracers(DensityWithTracers):
    """A finite-element density with tracers that follow its velocity and do not act on it.

    Tracers take Heun's steps between the velocity fields at the two ends of the density's own
    steps: second order in time, as the density is at best.

    Parameters
    ----------
    density : FiniteElementDensity
        Without noise, which has no trajectories.
    measure : Measure
        Where the tracers start, over the density's ranks; a tracer's number is its global row.

    Attributes
    ----------
    tracers : ResidentParticles
        Where they are.

    Raises
    ------
    ValueError
        If the density has noise, or the dimensions differ.
    """

    def __init__(self, density, measure):
        super().__init__(density)
        self.comm = density.comm
        self.tracers = ResidentParticles(CellFinder(density.space.mesh), measure)

    def step(self, limit):
        """One step of the density with its tracers; see `Flow`."""
        nodes = self.tracers.nodes
        before = self.density.velocity(nodes)
        length = self.density.step(limit)
        if length > 0:
            after = self.density.velocity(normalise(nodes + length * before))
            self.tracers.move(normalise(nodes + length / 2 * (before + after)))
        return length

    def densities(self):
        """The density's mean over the cell of each of this rank's tracers, shape (n,)."""
        return self.density.space.means(self.density.values)[self.tracers.cells]

    def describe(self):
        """The density's numbers, and the tracers' greatest and mean square speeds."""
        return self._with_speeds_of(self.tracers)

    def snapshot(self):
        """The density's snapshot, and the tracers in the order of their numbers."""
        state = self.density.snapshot()
        state.distributed |= self._rows()
        return state

    def state(self):
        """The density's state and the tracers in the order of their numbers."""
        state = self.density.state()
        state.distributed |= self._rows()
        return state

    def restore(self, state):
        """Continue from `state`, whose rows are this rank's."""
        self.density.restore(state)
        rows = state.distributed
        measure = Measure(rows["tracers"], rows["tracer_masses"], self.comm)
        self.tracers = ResidentParticles(self.tracers.finder, measure)

    def settings(self):
        """JSON-able description."""
        return self.density.settings() | {"tracers": self.tracers.total}

    def _rows(self):
        nodes, masses = self.tracers.in_global_order()
        return {"tracers": nodes, "tracer_masses": masses}
