"""A cloud of particles in any dimension, until a time, until it is slow, or until it settles.

Shows how particles gather (ascent) or spread (descent) under attention and a perceptron: the
clusters they end in, their masses, energy and speeds [L, §4]. A run that stops because it is slow
may be metastable: the report does not call it stationary.

With the defaults (1000 particles on the circle) it costs a few seconds; a right-hand side costs
about 0.4 µs a particle and core on S¹ and S², and grows like n² in higher dimensions. Start it with

    mpirun -n 2 python drivers/particles.py --output output/particles

The published runs of [L] are those with --integrator euler --length 0.1 --settle. All options
can be given as flags or in a TOML file (--config FILE.toml).
"""

import time
from types import SimpleNamespace

import numpy as np

from meanfield.fields.measure import Measure
from meanfield.model.options import MODEL_OPTIONS, model_from_options
from meanfield.particles.flow import INTEGRATORS, ParticleFlow
from meanfield.plotting.cloud import CloudPicture, save_cloud
from meanfield.runtime.checkpoint import CHECKPOINT_NAME, Checkpoint, restore
from meanfield.runtime.evolve import evolve
from meanfield.runtime.launch import launch
from meanfield.runtime.options import Option, at_least, not_negative, parse, positive
from meanfield.runtime.output import prepare_directory, write_summary
from meanfield.runtime.parallel import gather_rows, rank, size
from meanfield.runtime.paraview import FOLDER_NAME, ParaviewSeries, particles_of
from meanfield.runtime.progress import Progress
from meanfield.runtime.record import RECORD_NAME, Record, read_record
from meanfield.runtime.stopping import AnyOf, UntilSettled, UntilSlow, UntilTime
from meanfield.sphere.pictures import picture_points
from meanfield.sphere.point_files import read_points
from meanfield.sphere.sampling import even_from_density, even_uniform, random_uniform
from meanfield.sphere.von_mises_fisher import random_mixture
from meanfield.stationary.clusters import cluster_threshold, count_if_tight, find_clusters

STARTS = ("random", "even", "mixture", "even_mixture", "file")

OPTIONS = (
    Option("output", str, "output/particles", "directory to write into"),
    Option("overwrite", bool, False, "replace what an earlier run has written there"),
    Option("restart", bool, False, "continue the run in the output directory"),
    Option("until", float, 100.0, "final time, if nothing stops the run before", check=positive),
    Option("max_speed", float, None, "stop when no particle is faster", check=positive),
    Option(
        "settle", bool, False,
        "stop by the rule of [L, §4]: cluster count constant over 5 snapshots, one every 10 "
        "steps, and largest speed <= 1e-4",
    ),
    Option("interval", float, 1.0, "time between rows of the table", check=positive),
    Option("paraview", bool, False, "also write rows as a series that ParaView opens (S¹ and S²)"),
    Option("checkpoint_minutes", float, 10.0, "minutes between checkpoints", check=positive),
    Option("seed", int, 1, "seed of random starts and noise", check=at_least(0)),
    Option("ambient_dim", int, 2, "dimension d of the space around S^{d-1}", check=at_least(2)),
    *MODEL_OPTIONS,
    Option(
        "start", str, "random", "uniform random points, evenly spread ones, the same for a mixture "
        "of bumps, or points from a file", choices=STARTS, group="start",
    ),
    Option("start_file", str, None, "a .npy, .npz or .csv file of unit rows", group="start"),
    Option("count", int, 1000, "number of particles", check=at_least(1), group="start"),
    Option(
        "concentration", float, 2.0, "κ of the bumps of a mixture", check=not_negative,
        group="start",
    ),
    Option("bumps", int, 2, "number of bumps", check=at_least(1), group="start"),
    Option("start_seed", int, 3, "seed of the bumps' places", check=at_least(0), group="start"),
    Option(
        "integrator", str, "adaptive", "time integration", choices=INTEGRATORS, group="particles",
    ),
    Option("length", float, None, "step of rk4 and euler", check=positive, group="particles"),
    Option(
        "tolerance", float, None, "error of an adaptive step in radians (default 1e-8)",
        check=positive, group="particles",
    ),
    Option(
        "diffusion", float, 0.0, "strength κ of the noise (needs rk4 or euler)",
        check=not_negative, group="particles",
    ),
)


def prepare(argv, comm):
    """Everything that can go wrong because of the input does so here."""
    options = parse(OPTIONS, __doc__, argv)
    model = model_from_options(options, options.ambient_dim)
    threshold = cluster_threshold(options.beta, options.ambient_dim)
    flow = ParticleFlow(
        model,
        start(options, comm),
        integrator=options.integrator,
        length=options.length,
        tolerance=options.tolerance,
        diffusion=options.diffusion,
        seed=options.seed,
        further=lambda flow: {"clusters": find_clusters(flow.measure, threshold).count},
    )
    rules = [UntilTime(options.until)]
    if options.max_speed is not None:
        rules.append(UntilSlow(options.max_speed))
    if options.settle:
        rules.append(UntilSettled(lambda flow: count_if_tight(flow.measure, threshold)))
    rule = AnyOf(*rules)
    directory = prepare_directory(options.output, options.overwrite, options.restart, comm)
    first_step = restore(directory / CHECKPOINT_NAME, flow, rule) if options.restart else 0
    series = []
    if options.paraview:
        series = [
            ParaviewSeries(
                directory / FOLDER_NAME,
                {"particles": particles_of(flow)},
                comm,
                interval=options.interval,
                append=options.restart,
                from_step=first_step,
            )
        ]
    constants = {"masses": gather_rows(flow.measure.masses, comm)}
    if options.ambient_dim <= 3 and model.perceptron and not model.perceptron.no_potential_because:
        constants["potential"] = model.perceptron.potential(picture_points(options.ambient_dim))
    record = Record(
        directory / RECORD_NAME,
        flow,
        interval=options.interval,
        settings=vars(options),
        constants=constants,
        append=options.restart,
        from_step=first_step,
    )
    return SimpleNamespace(
        options=options, model=model, threshold=threshold, flow=flow, rule=rule,
        directory=directory, observers=[record, *series], first_step=first_step,
    )


def start(options, comm):
    """The cloud at time zero."""
    count, ambient_dim = options.count, options.ambient_dim
    if (options.start == "file") != (options.start_file is not None):
        raise ValueError("start_file goes with start='file': expected both or neither")
    if options.start == "file":
        nodes, masses = read_points(options.start_file, comm)
        if nodes.shape[1] != ambient_dim:
            raise ValueError(
                f"{options.start_file} holds points of R^{nodes.shape[1]}: expected R^{ambient_dim}"
            )
        return Measure(nodes, masses, comm)
    if options.start == "random":
        nodes = random_uniform(count, ambient_dim, options.seed, comm)
    elif options.start == "even":
        nodes = even_uniform(count, ambient_dim, comm)
    else:
        mixture = random_mixture(
            ambient_dim, options.bumps, options.concentration, options.start_seed
        )
        if options.start == "mixture":
            nodes = mixture.sample(count, options.seed, comm)
        else:
            nodes = even_from_density(mixture.density, count, ambient_dim, comm)
    return Measure(nodes, np.full(len(nodes), 1 / count), comm)


def run(prepared, comm):
    """Evolve and report."""
    began = time.monotonic()
    options, flow, directory = prepared.options, prepared.flow, prepared.directory
    outcome = evolve(
        flow,
        prepared.rule,
        [
            *prepared.observers,
            Checkpoint(directory / CHECKPOINT_NAME, minutes=options.checkpoint_minutes),
            Progress(options.until, label="particles"),
        ],
        prepared.first_step,
    )
    if outcome.interrupted:
        if rank(comm) == 0:
            print(f"{outcome.reason}; continue with --restart")
        return 143
    clusters = find_clusters(flow.measure, prepared.threshold)
    count = flow.measure.global_count
    if rank(comm) != 0:
        return 0
    stored = read_record(directory / RECORD_NAME)
    final = {name: float(column[-1]) for name, column in stored.table.items()}
    title = f"{count} particles on S^{options.ambient_dim - 1}, {prepared.model.title()}"
    summary = {
        "title": title,
        "outcome": outcome.reason,
        "steps": outcome.steps,
        "seconds": time.monotonic() - began,
        "ranks": size(comm),
        "final": final,
        "cluster_threshold": clusters.threshold,
        "cluster_masses": clusters.masses,
        "cluster_centres": clusters.centres,
        "cluster_radii": clusters.radii,
        "stationary": "not certified",
    }
    write_summary(directory / "summary.json", summary)
    save_cloud(
        directory / "particles.png",
        CloudPicture(
            title=title,
            times=stored.snapshots["time"],
            nodes=stored.snapshots["nodes"],
            masses=stored.constants["masses"],
            table=stored.table,
            cluster_masses=clusters.masses,
            cluster_centres=clusters.centres,
            potential=stored.constants.get("potential"),
        ),
    )
    print(as_text(summary))
    print(f"Summary, record and figure are in {directory}/")
    return 0


def as_text(summary):
    """The summary as a page of text."""
    final = summary["final"]
    lines = [
        "",
        f"== {summary['title']}",
        f"   {summary['outcome']}; {summary['steps']} steps, {summary['seconds']:.1f} s on "
        f"{summary['ranks']} rank(s)",
        f"   t = {final['time']:g}: "
        + (f"energy {final['energy']:.9g}, " if "energy" in final else "no energy, ")
        + f"largest speed {final['max_speed']:.3g}; stationary: {summary['stationary']}",
        f"   {len(summary['cluster_masses'])} cluster(s), linked up to "
        f"{summary['cluster_threshold']:.4g} rad:",
    ]
    shown = zip(
        summary["cluster_masses"], summary["cluster_radii"], summary["cluster_centres"], strict=True
    )
    for number, (mass, radius, centre) in enumerate(shown):
        if number == 10:
            lines.append(f"   ... and {len(summary['cluster_masses']) - 10} lighter ones")
            break
        where = " ".join(f"{x:+.4f}" for x in centre[:5]) + (" ..." if len(centre) > 5 else "")
        lines.append(f"   mass {mass:.6f}  radius {radius:.2e}  centre {where}")
    return "\n".join(lines)


if __name__ == "__main__":
    launch(prepare, run)
