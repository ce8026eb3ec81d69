"""When a density has gathered too far for its mesh, and what becomes of it then."""

import numpy as np
import pytest
from scipy.special import ive

pytest.importorskip("firedrake", reason="needs Firedrake (the finite-element tier)")

import meanfield as mf
from meanfield.coupling.atomization import atomization, concentrations, is_unresolved
from meanfield.coupling.hand_over import HandOver, as_particles
from meanfield.density.finite_element.flow import FiniteElementDensity
from meanfield.density.finite_element.meshes import build_mesh, define
from meanfield.runtime import checkpoint
from meanfield.runtime.checkpoint import Checkpoint
from meanfield.runtime.evolve import evolve
from meanfield.runtime.record import Record, read_record
from meanfield.sphere.geometry import geodesic_distance, normalise

ATTENTION = mf.Attention(beta=2.0, amplitude="peak")


def circle(cells):
    return build_mesh(define({"family": "circle", "cells": cells}))


def sphere(refinements):
    return build_mesh(define({"family": "icosahedral sphere", "refinements": refinements}))


def still(mesh, start, degree=0):
    """A density that is only looked at."""
    return FiniteElementDensity(mf.Model(ATTENTION), mesh, start, degree=degree)


def bumps(mesh, degree, centres, sharpness, shares):
    """A density of mass one with bumps ∝ exp(κ x·c) of given shares."""
    highest = 1 / ive(0, sharpness) if len(centres[0]) == 2 else 2 * sharpness

    def start(x):
        return sum(
            share * highest * np.exp(sharpness * (x @ centre - 1))
            for centre, share in zip(centres, shares, strict=True)
        )

    return still(mesh, start, degree)


def half_width(sharpness):
    """Where exp(κ cos t) is at half of its height: κ (1 − cos t) = log 2."""
    return 2 * np.arccos(1 - np.log(2) / sharpness)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize(
    ("mesh", "d", "cell"), [(circle(400), 2, 2 * np.pi / 400), (sphere(5), 3, 0.029)],
    ids=["circle", "sphere"],
)
def test_bumps_are_found_with_place_and_width(mesh, d, cell, degree):
    centres = normalise(np.vstack([np.eye(d)[0] + 0.1, 0.2 - np.eye(d)[1]]))
    density = bumps(mesh, degree, centres, 60.0, (0.7, 0.3))
    found = concentrations(density)
    assert len(found.points) == 2
    assert np.all(geodesic_distance(found.points, centres) < 2 * cell)
    np.testing.assert_allclose(found.widths, half_width(60.0), atol=2 * cell)
    # The mass of exp(κ cos t) above half height is half in two dimensions, erf-like in one.
    core = 0.5 if d == 3 else 0.761
    np.testing.assert_allclose(found.masses, core * np.array([0.7, 0.3]), rtol=0.08)
    np.testing.assert_allclose(found.cells_across, half_width(60.0) / cell, rtol=0.25)


def profile(levels):
    """A density on the circle with these levels at equal angles, linear in between."""
    mesh = circle(200)
    density = still(mesh, lambda x: 1 + 0 * x[:, 0])
    angle = np.arctan2(density.space.centres[:, 1], density.space.centres[:, 0])
    knots = np.linspace(-np.pi, np.pi, len(levels) + 1)
    # Slightly uneven, so that no two cells are equally high.
    values = np.interp(angle, knots, np.append(levels, levels[0])) * (1 + 1e-3 * np.sin(angle))
    density.values = (values / values.mean())[:, None]
    return density


def test_ripples_are_one_concentration_and_deep_valleys_separate():
    assert len(concentrations(profile([1.0, 0.6] * 10)).points) == 1
    assert len(concentrations(profile([1.0, 0.4] * 10)).points) == 10


def test_high_maxima_do_not_join_by_way_of_a_low_one():
    # Levels at maxima and valleys; cells near them are a little lower or higher.
    assert len(concentrations(profile([1.0, 0.25, 0.3, 0.2, 0.9, 0.01])).points) == 2
    # The middle one belongs to the first, over the higher valley, and so does not join the last.
    found = concentrations(profile([1.0, 0.5, 0.6, 0.4, 0.9, 0.01]))
    assert len(found.points) == 2
    angles = np.arctan2(found.points[:, 1], found.points[:, 0])
    np.testing.assert_allclose(np.abs(angles), [np.pi, np.pi / 3], atol=0.05)


def test_maxima_that_are_too_low_belong_to_no_core():
    found = concentrations(profile([1.0, 0.0, 0.15, 0.0, 0.09, 0.0]))
    # A triangle is at least half as high over half of its base, two of the six intervals.
    np.testing.assert_allclose(found.widths, np.pi / 3, atol=0.04)
    assert len(found.widths) == 2


def test_numbers_of_the_uniform_density_and_of_an_atom():
    mesh = circle(100)
    density = still(mesh, lambda x: 1 + 0 * x[:, 0])
    row = atomization(density)
    assert row["effective_cells"] == pytest.approx(100)
    assert row["largest_cell_mass"] == pytest.approx(0.01)
    assert row["relative_entropy"] == pytest.approx(0, abs=1e-13)
    assert row["cells_across"] == pytest.approx(100)
    assert not is_unresolved(density, 3.0)
    # Nine tenths stay where they are, a tenth sits in one cell.
    density.values[:] = 0.9
    density.values[17] = 0.9 + 10.0
    row = atomization(density)
    assert row["effective_cells"] == pytest.approx(1 / (99 * 0.009**2 + 0.109**2))
    assert row["largest_cell_mass"] == pytest.approx(0.109)
    assert row["relative_entropy"] == pytest.approx(
        0.891 * np.log(0.9) + 0.109 * np.log(10.9)
    )
    assert row["cells_across"] == pytest.approx(1)
    assert row["narrowest_width"] == pytest.approx(2 * np.pi / 100, rel=1e-3)
    assert is_unresolved(density, 1.5)
    assert not is_unresolved(density, 1.5, least_mass=0.2)


@pytest.mark.parametrize("particles_a_cell", ["nodes", "one"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("mesh", [circle(60), sphere(3)], ids=["circle", "sphere"])
def test_particles_keep_mass_and_first_moments(mesh, degree, particles_a_cell):
    d = mesh.geometric_dimension
    density = still(mesh, lambda x: 1 + 0.5 * x[:, 0] - 0.3 * x[:, 1], degree)
    particles = as_particles(density, particles_a_cell)
    assert abs(particles.masses.sum() - 1) < 1e-13
    nodes, masses = density.measure()
    radius = np.linalg.norm(
        density.space.corners - density.space.centres[:, None], axis=2
    ).max() if degree else 0.0
    bound = radius**2 / 2 if particles_a_cell == "one" else 0.0
    moment = particles.masses @ particles.nodes
    assert np.linalg.norm(moment - masses @ nodes) <= bound + 1e-13
    # ∫ x x_i dσ = e_i / d; the mesh differs from the sphere by O(h²).
    exact = (0.5 * np.eye(d)[0] - 0.3 * np.eye(d)[1]) / d
    np.testing.assert_allclose(moment, exact, atol=5e-3)
    count = density.space.cells * (1 if particles_a_cell == "one" else len(density.space.basis))
    assert len(particles.masses) == count


def test_one_particle_a_cell_is_in_the_direction_of_its_centre_of_mass():
    density = still(sphere(1), lambda x: 1 + 0 * x[:, 0], degree=1)
    # Nearly all mass at one corner of each cell.
    density.values[:] = [3.0, 0.0, 0.0]
    density.values /= density.space.total(density.values)
    particles = as_particles(density, "one")
    nodes, masses = density.measure()
    moments = np.sum((masses[:, None] * nodes).reshape(density.space.cells, -1, 3), axis=1)
    np.testing.assert_allclose(np.cross(particles.nodes, moments), 0, atol=1e-15)
    np.testing.assert_allclose(particles.masses, density.space.masses(density.values), rtol=1e-13)
    # It is far from the middle.
    assert geodesic_distance(particles.nodes, density.space.centres).min() > 0.05


@pytest.mark.parametrize("degree", [0, 1])
def test_nodes_as_particles_make_the_same_field(degree):
    density = still(sphere(2), lambda x: 1 + 0.9 * x[:, 0], degree)
    particles = as_particles(density)
    x = normalise(np.random.default_rng(0).normal(size=(20, 3)))
    made = mf.field(density.model, particles, "direct")
    np.testing.assert_allclose(made.velocity(x), density.velocity(x), atol=1e-9)
    assert made.energy() == pytest.approx(density.energy(), rel=1e-9)


def test_empty_cells_become_no_particles():
    density = still(circle(50), lambda x: 1 + 0 * x[:, 0])
    density.values[10:] = 0.0
    density.values[:10] = 5.0
    assert len(as_particles(density).masses) == len(as_particles(density, "one").masses) == 10


def relu_flow(cells=200, **options):
    perceptron = mf.Perceptron(np.eye(2), [1.0, 1.0], activation="relu")
    model = mf.Model(mf.Attention(beta=4.0, amplitude="peak"), perceptron)
    density = FiniteElementDensity(
        model, circle(cells), lambda x: 1 + 0.5 * x[:, 0] + 0.1 * x[:, 1], degree=1
    )
    return HandOver(density, **options)


def test_the_record_shows_the_hand_over(tmp_path):
    flow = relu_flow()
    evolve(flow, 2.6, [Record(tmp_path / "record.h5", flow, interval=0.1)])
    run = read_record(tmp_path / "record.h5")
    table, snapshots = run.table, run.snapshots
    switched = table["is_particles"] == 1
    assert not switched[0] and switched[-1] and np.all(np.diff(switched.astype(int)) >= 0)
    time = flow.hand_over_time
    np.testing.assert_array_equal(switched, table["time"] > time)
    assert snapshots["hand_over_time"][-1] == time
    assert np.isnan(snapshots["hand_over_time"][0])
    # As long as there is a density it is resolved, and it is handed over as soon as it is not.
    assert np.all(table["cells_across"][~switched] >= 3.0)
    assert table["cells_across"][~switched][-1] < 5.0
    assert np.all(np.isnan(table["cells_across"][switched]))
    # Ascent goes on over the switch.
    assert np.all(np.diff(table["energy"]) > 0)
    particles = snapshots["particles"][-1]
    np.testing.assert_allclose(np.linalg.norm(particles, axis=1), 1, atol=1e-12)
    assert abs(snapshots["particle_masses"][-1].sum() - 1) < 1e-13


def test_particles_end_in_the_atoms_of_particles():
    flow = relu_flow()
    evolve(flow, 8.0)
    assert flow.is_particles
    # The same start for particles alone: equal masses at quantiles of the density's marginal.
    angles = (np.arange(1500) + 0.5) / 1500 * 2 * np.pi
    nodes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weights = 1 + 0.5 * nodes[:, 0] + 0.1 * nodes[:, 1]
    alone = mf.ParticleFlow(flow.density.model, mf.Measure(nodes, weights / weights.sum()))
    evolve(alone, 8.0)
    assert flow.describe()["energy"] == pytest.approx(alone.describe()["energy"], rel=2e-3)
    moments = [m.masses @ m.nodes for m in (flow.particles.measure, alone.measure)]
    np.testing.assert_allclose(moments[0], moments[1], atol=5e-3)


@pytest.mark.parametrize("until", [1.0, 2.4])
def test_a_restored_run_continues_bitwise(tmp_path, until):
    flow, other = relu_flow(), relu_flow()
    path = tmp_path / "checkpoint.h5"
    evolve(flow, until, [Checkpoint(path, every=10**6)])
    checkpoint.restore(path, other)
    assert other.is_particles == flow.is_particles == (until > 2)
    for each in (flow, other):
        each.step(0.1)
    assert flow.time == other.time
    state, restored = flow.state(), other.state()
    for name, rows in state.distributed.items():
        np.testing.assert_array_equal(rows, restored.distributed[name])
    assert flow.hand_over_time == other.hand_over_time or until < 2


@pytest.mark.parametrize(
    "options", [{"fewest_cells": 1.0}, {"least_mass": 0.0}, {"particles_a_cell": "two"}]
)
def test_options_out_of_range_are_errors(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        relu_flow(cells=20, **options)
