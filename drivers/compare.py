"""Particles beside densities: the same model, the same start, on the circle and on the sphere.

Shows how well clouds of n particles follow the density that they sample: the distance between
them in time, and how it falls with n, for random and for evenly spread starts. The density is
spectral and, where Firedrake is installed, also on a mesh of finite elements. Where mass gathers
until the spectral resolution ends, the run says when, and goes on with particles and mesh if
there is one [L, §2.3, §4].

With the defaults it costs about half a minute on 2 cores, more for more particles. Start it with

    mpirun -n 2 python drivers/compare.py --output output/compare

All options can be given as flags or in a TOML file (--config FILE.toml).
"""

import time
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np

from meanfield.coupling.comparison import DensityComparison, MeshComparison, separation
from meanfield.coupling.side_by_side import SideBySide
from meanfield.coupling.summary import as_text, summarise
from meanfield.coupling.tracers import Tracers
from meanfield.density.spectral import SpectralDensity
from meanfield.fields.measure import Measure
from meanfield.model.options import MODEL_OPTIONS, model_from_options
from meanfield.particles.flow import INTEGRATORS, ParticleFlow
from meanfield.plotting.comparison import ComparisonPicture, save_comparison
from meanfield.runtime.checkpoint import CHECKPOINT_NAME, Checkpoint, restore
from meanfield.runtime.evolve import evolve
from meanfield.runtime.launch import launch
from meanfield.runtime.options import Check, Option, at_least, not_negative, parse, positive
from meanfield.runtime.output import prepare_directory, write_summary
from meanfield.runtime.parallel import rank, size
from meanfield.runtime.paraview import FOLDER_NAME, ParaviewSeries, particles_of
from meanfield.runtime.progress import Progress
from meanfield.runtime.record import RECORD_NAME, Record, read_record
from meanfield.sphere.pictures import picture_points
from meanfield.sphere.sampling import even_from_density, random_from_density
from meanfield.sphere.von_mises_fisher import random_mixture

NAMES = {2: "circle", 3: "sphere"}
STARTS = {"random": "independent random", "even": "evenly spread"}

OPTIONS = (
    Option("output", str, "output/compare", "directory to write into"),
    Option("overwrite", bool, False, "replace what an earlier run has written there"),
    Option("restart", bool, False, "continue the run in the output directory"),
    Option(
        "ambient_dims", "integers", [2, 3], "spheres to run on: 2 the circle, 3 the sphere",
        choices=(2, 3),
    ),
    Option("until", float, 4.0, "final time", check=positive),
    Option("interval", float, 0.25, "time between rows of the table", check=positive),
    Option(
        "paraview", bool, False, "also write rows of particles and mesh as series that ParaView "
        "opens",
    ),
    Option("checkpoint_minutes", float, 10.0, "minutes between checkpoints", check=positive),
    Option("seed", int, 1, "seed of random starts and noise", check=at_least(0)),
    *MODEL_OPTIONS,
    Option(
        "concentration", float, 2.0, "κ of the bumps that the start is a mixture of; 0: uniform",
        check=not_negative, group="start",
    ),
    Option("bumps", int, 2, "number of bumps", check=at_least(1), group="start"),
    Option("start_seed", int, 3, "seed of the bumps' places", check=at_least(0), group="start"),
    Option(
        "particles", "integers", [1000, 10000, 100000], "sizes of the clouds",
        check=at_least(1), group="particles",
    ),
    Option(
        "integrator", str, "adaptive", "time integration of particles", choices=INTEGRATORS,
        group="particles",
    ),
    Option("length", float, None, "step of rk4 and euler", check=positive, group="particles"),
    Option(
        "tolerance", float, 1e-6, "error of an adaptive step: radians for particles, relative "
        "in L² for the density", check=positive, group="particles",
    ),
    Option("degree", int, 32, "degree to begin with", check=at_least(8), group="density"),
    Option(
        "max_degree", int, None, "degree up to which resolution is raised (default 2048 on the "
        "circle, 256 on the sphere)", check=at_least(8), group="density",
    ),
    Option(
        "tail_tolerance", float, 1e-6, "share of the density's norm that its last sixth of "
        "degrees may carry; kinked activations such as relu need about 1e-2", group="density",
        check=Check(lambda value: 0 < value < 1, "between 0 and 1"),
    ),
    Option(
        "diffusion", float, 0.0, "strength κ of the noise (needs a fixed step of the particles)",
        check=not_negative, group="density",
    ),
    Option(
        "finite_elements", str, "auto", "compare with a mesh density too; auto: where Firedrake is "
        "installed", choices=("auto", "on", "off"), group="mesh",
    ),
    Option("mesh_circle", str, "circle", "mesh of the circle, see meshes/", group="mesh"),
    Option("mesh_sphere", str, "icosahedral", "mesh of the sphere, see meshes/", group="mesh"),
    Option(
        "mesh_degree", int, 1, "degree of the mesh density's polynomials", choices=(0, 1),
        group="mesh",
    ),
)


def prepare(argv, comm):
    """Everything that can go wrong because of the input does so here."""
    options = parse(OPTIONS, __doc__, argv)
    directory = prepare_directory(options.output, options.overwrite, options.restart, comm)
    comparisons = [
        Comparison(options, ambient_dim, directory / NAMES[ambient_dim], comm)
        for ambient_dim in options.ambient_dims
    ]
    for comparison in comparisons:
        comparison.open_files()
    return SimpleNamespace(options=options, directory=directory, comparisons=comparisons)


def run(prepared, comm):
    """Evolve, compare, report."""
    summaries = {}
    for comparison in prepared.comparisons:
        outcome = comparison.evolve()
        if outcome.interrupted:
            if rank(comm) == 0:
                print(f"{outcome.reason}; continue with --restart")
            return 143
        summaries[comparison.name] = comparison.report(outcome)
    if rank(comm) == 0:
        write_summary(prepared.directory / "summary.json", summaries)
        print(f"\nSummary, records and figures are in {prepared.directory}/")
    return 0


class Comparison:
    """The comparison on one sphere."""

    def __init__(self, options, ambient_dim, directory, comm):
        self.options = options
        self.ambient_dim = ambient_dim
        self.name = NAMES[ambient_dim]
        self.directory = directory
        self.comm = comm
        self.model = model_from_options(options, ambient_dim)
        self.start = random_mixture(
            ambient_dim, options.bumps, options.concentration, options.start_seed
        )
        self.sizes = sorted(set(options.particles))
        self.density = SpectralDensity(
            self.model,
            self.start.density,
            ambient_dim=ambient_dim,
            degree=options.degree,
            max_degree=options.max_degree,
            tolerance=options.tolerance,
            tail_tolerance=options.tail_tolerance,
            diffusion=options.diffusion,
            comm=comm,
        )
        self.distances = DensityComparison(self.density, options.beta)
        clouds = {
            f"{kind}_{count}": self._cloud(kind, count) for count in self.sizes for kind in STARTS
        }
        self.smallest = f"even_{self.sizes[0]}"
        self.has_tracers = options.diffusion == 0
        density = self.density
        if self.has_tracers:
            density = Tracers(self.density, clouds[self.smallest].measure)
        members = {"density": density}
        self.mesh = None
        if uses_finite_elements(options):
            members["mesh"] = self._mesh_density()
            self.mesh = MeshComparison(members["mesh"], options.beta)
        self.flow = SideBySide(
            members | clouds,
            options.interval,
            self._compare,
            pictured=[*members, self.smallest],
            # With a mesh density to compare with, particles can do without the spectral one.
            may_stop=["density"] if self.mesh else [],
        )
        self.first_step = 0

    def _cloud(self, kind, count):
        options = self.options
        if kind == "random":
            nodes = random_from_density(
                self.start.density, count, self.ambient_dim, options.seed, self.comm
            )
        else:
            nodes = even_from_density(self.start.density, count, self.ambient_dim, self.comm)
        return ParticleFlow(
            self.model,
            Measure(nodes, np.full(len(nodes), 1 / count), self.comm),
            integrator=options.integrator,
            length=options.length,
            tolerance=options.tolerance if options.integrator == "adaptive" else None,
            diffusion=options.diffusion,
            seed=options.seed,
        )

    def _mesh_density(self):
        from meanfield.density.finite_element.flow import FiniteElementDensity
        from meanfield.density.finite_element.meshes import build_mesh, load_definition

        name = getattr(self.options, f"mesh_{self.name}")
        return FiniteElementDensity(
            self.model,
            build_mesh(load_definition(name), self.comm),
            self.start.density,
            degree=self.options.mesh_degree,
            diffusion=self.options.diffusion,
        )

    def open_files(self):
        """Record and checkpoint; with --restart also the state they hold."""
        options = self.options
        checkpoint = self.directory / CHECKPOINT_NAME
        continues = options.restart and checkpoint.exists()
        prepare_directory(self.directory, options.overwrite, continues, self.comm)
        if continues:
            self.first_step = restore(checkpoint, self.flow)
        points = picture_points(self.ambient_dim)
        constants = {"masses": np.full(self.sizes[0], 1 / self.sizes[0])}
        perceptron = self.model.perceptron
        if perceptron is not None:
            constants["preactivations"] = perceptron.preactivation(points)
            if not perceptron.no_potential_because:
                constants["potential"] = perceptron.potential(points)
        self.record = Record(
            self.directory / RECORD_NAME,
            self.flow,
            interval=options.interval,
            settings=vars(options),
            constants=constants,
            append=continues,
            from_step=self.first_step,
        )
        self.series = []
        if options.paraview:
            series = ParaviewSeries(
                self.directory / FOLDER_NAME,
                self._shows(),
                self.comm,
                interval=options.interval,
                append=continues,
                from_step=self.first_step,
            )
            self.series.append(series)

    def _shows(self):
        """What ParaView shows: clouds, the mesh, and tracers while their density runs."""
        members = dict(self.flow.members)
        density, mesh = members.pop("density"), members.pop("mesh", None)
        shows = {name: particles_of(flow) for name, flow in members.items()}
        if mesh:
            from meanfield.density.finite_element.paraview import density_on_cells

            shows["mesh"] = density_on_cells(mesh)
        if self.has_tracers:
            tracers = particles_of(density)
            shows["tracers"] = lambda: None if "density" in self.flow.stopped else tracers()
        return shows

    def evolve(self):
        """Run to the final time or to the end of the density's resolution."""
        began = time.monotonic()
        outcome = evolve(
            self.flow,
            self.options.until,
            [
                self.record,
                *self.series,
                Checkpoint(
                    self.directory / CHECKPOINT_NAME, minutes=self.options.checkpoint_minutes
                ),
                Progress(self.options.until, every=1, label=self.name),
            ],
            self.first_step,
        )
        self.seconds = time.monotonic() - began
        return outcome

    def _compare(self, members):
        """Distances of all from the densities that run, the costly ones of the smallest only."""
        row = {}
        small = [f"{kind}_{self.sizes[0]}" for kind in STARTS]
        measures = {
            name: flow.measure for name, flow in members.items() if name not in ("density", "mesh")
        }
        if self.mesh:
            measures["mesh"] = self.mesh.measure
            for name in small:
                row[f"{name}.w2_to_mesh"] = self.mesh.wasserstein(measures[name]).value
        if "density" in members:
            for name, measure in measures.items():
                row[f"{name}.kernel_distance"] = self.distances.kernel_distance(measure).value
                if name in small or name == "mesh":
                    row[f"{name}.w2"] = self.distances.wasserstein(measure).value
            if self.has_tracers:
                mean, largest = separation(
                    members["density"].measure, members[self.smallest].measure
                )
                row["tracers.mean_separation"] = mean
                row["tracers.largest_separation"] = largest
        return row

    def report(self, outcome):
        """Final distances, text and figure; the summary, on rank 0."""
        # The spectral density is the reference as long as it is resolved.
        left = self.flow.stopped if self.mesh else {}
        reference = "mesh" if "density" in left else "spectral"
        judge = self.mesh if reference == "mesh" else self.distances
        distances = {
            name: (judge.wasserstein(flow.measure), judge.kernel_distance(flow.measure))
            for name, flow in self.flow.members.items()
            if name not in ("density", "mesh")
        }
        transport = {}
        if self.ambient_dim == 3 and self.sizes[0] <= 2000 and reference == "spectral":
            for kind in STARTS:
                measure = self.flow.members[f"{kind}_{self.sizes[0]}"].measure
                transport[kind] = self.distances.transport(measure)
        settings = self.flow.settings()
        if rank(self.comm) != 0:
            return None
        stored = read_record(self.directory / RECORD_NAME)
        noise = f", noise κ = {self.options.diffusion:g}" if self.options.diffusion else ""
        summary = summarise(stored.table, distances, self.sizes, tuple(STARTS), reference)
        summary["exact_w2"] = {
            kind: {"value": found.value, "error": found.error, "method": found.method}
            for kind, found in transport.items()
        }
        summary |= {
            "title": f"{self.name} S{'¹²'[self.ambient_dim - 2]}, {self.model.title()}{noise}",
            "outcome": "; ".join([*left.values(), outcome.reason]),
            "seconds": self.seconds,
            "ranks": size(self.comm),
            "start_error": self.density.start_error,
            "tail_tolerance": self.density.tail_tolerance,
            "flow": settings,
        }
        print(as_text(summary, stored.table, STARTS, self.smallest))
        save_comparison(self.directory / "comparison.png", self._picture(stored, summary))
        write_summary(self.directory / "summary.json", summary)
        return summary

    def _picture(self, stored, summary):
        table, snapshots, constants = stored.table, stored.snapshots, stored.constants
        energies = {
            label: table[f"{name}.energy"]
            for label, name in {
                "spectral density": "density", "mesh density": "mesh", self.smallest: self.smallest
            }.items()
            if f"{name}.energy" in table
        }
        densities = snapshots["density.density"]
        distances = {
            f"{STARTS[kind]}, n = {self.sizes[0]}": table[f"{kind}_{self.sizes[0]}.w2"]
            for kind in STARTS
        }
        if self.mesh:
            # The mesh shows what the spectral density no longer resolves.
            densities = np.where(np.isnan(densities), snapshots["mesh.density"], densities)
            distances["mesh density"] = table["mesh.w2"]
            distances |= {
                f"{STARTS[kind]}, to the mesh": table[f"{kind}_{self.sizes[0]}.w2_to_mesh"]
                for kind in STARTS
            }
        return ComparisonPicture(
            title=summary["title"],
            times=snapshots["time"],
            densities=densities,
            nodes=snapshots[f"{self.smallest}.nodes"],
            masses=constants["masses"],
            cloud=f"{self.sizes[0]} particles, evenly spread at first",
            table_times=table["time"],
            energies=energies,
            distances=distances,
            counts=np.array(self.sizes, dtype=float),
            errors={STARTS[kind]: np.array(summary["w2"][kind]) for kind in STARTS},
            slopes={STARTS[kind]: summary["w2_slope"][kind] for kind in STARTS},
            distance_label=f"{'W2' if self.ambient_dim == 2 else 'sliced W2'} (radians)",
            potential=constants.get("potential"),
            active=[column > 0 for column in constants.get("preactivations", np.empty((0, 0))).T],
        )


def uses_finite_elements(options):
    """Whether a mesh density takes part."""
    if options.finite_elements == "off":
        return False
    installed = find_spec("firedrake") is not None
    if options.finite_elements == "on" and not installed:
        raise ValueError(
            "finite_elements='on' but Firedrake is not installed here; `make fem` installs it on "
            "Debian and Ubuntu"
        )
    return installed


if __name__ == "__main__":
    launch(prepare, run)
