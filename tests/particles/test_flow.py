"""Particles: orders, closed forms, the laws of the flow, noise, and what goes wrong."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import meanfield as mf
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.evolve import evolve
from meanfield.sphere.funk_hecke import eigenvalues, growth_rates
from meanfield.sphere.geometry import circle_angles, circle_points, geodesic_distance, normalise
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.sampling import even_uniform
from tests.strategies import (
    between,
    measures,
    perceptrons,
    random_measure,
    random_points,
    rotations,
)

PEAK = mf.Attention(3.0, "peak")


def smooth_model(ambient_dim, direction="ascent", normalisation="none"):
    perceptron = mf.Perceptron(
        random_points(2, ambient_dim, seed=7), [0.4, -0.6], [0.1, -0.2], activation="tanh"
    )
    return mf.Model(mf.Attention(3.0, "peak", normalisation), perceptron, direction)


def ended(model, measure, time, *options, **more):
    flow = ParticleFlow(model, measure, *options, **more)
    evolve(flow, until=time)
    return flow.measure.nodes


def uniform_cloud(ambient_dim, count):
    nodes = even_uniform(count, ambient_dim)
    return mf.Measure(nodes, np.full(count, 1 / count))


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("rk4", 4)])
@pytest.mark.parametrize("ambient_dim", [2, 3, 5])
@pytest.mark.parametrize("normalisation", ["none", "softmax"])
def test_orders_of_the_fixed_steps(integrator, order, ambient_dim, normalisation):
    model = smooth_model(ambient_dim, normalisation=normalisation)
    start = random_measure(6, ambient_dim, seed=1)
    exact = ended(model, start, 1.0, "rk4", length=1 / 320)
    errors = [
        np.abs(ended(model, start, 1.0, integrator, length=1 / steps) - exact).max()
        for steps in (10, 20, 40)
    ]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, order, atol=0.35)


def test_euler_steps_on_the_circle_are_euler_steps_in_the_angle():
    flow = ParticleFlow(smooth_model(2), random_measure(6, 2, seed=1), "euler", length=0.3)
    before, velocity = flow.measure.nodes, flow.velocity()
    speed = before[:, 0] * velocity[:, 1] - before[:, 1] * velocity[:, 0]
    flow.step(np.inf)
    expected = circle_points(circle_angles(before) + 0.3 * speed)
    np.testing.assert_allclose(flow.measure.nodes, expected, rtol=0, atol=1e-15)


def test_softmax_moves_particles_without_mass_far_from_all_others():
    """Their denominator is e^{-2β} of the largest; its relative error is what counts."""
    nodes = np.array([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.0]])
    start = mf.Measure(nodes, [0.5, 0.5, 0.0])
    model = mf.Model(mf.Attention(30.0, "peak", "softmax"))
    ends = [
        ended(model, start, 0.1, "euler", length=0.1, method=method)
        for method in ("direct", "funk_hecke")
    ]
    assert geodesic_distance(ends[0][2], nodes[2]) > 0.05
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-10)


@pytest.mark.parametrize("ambient_dim", [2, 4])
def test_adaptive_errors_follow_the_tolerance(ambient_dim):
    model, start = smooth_model(ambient_dim), random_measure(6, ambient_dim, seed=1)
    exact = ended(model, start, 5.0, tolerance=1e-12)
    errors = []
    for tolerance in (1e-5, 1e-7, 1e-9):
        error = np.abs(ended(model, start, 5.0, tolerance=tolerance) - exact).max()
        assert error < 10 * tolerance
        errors.append(error)
    # Four decades of the tolerance are worth two of the error at least.
    assert errors[0] / errors[2] > 100


@pytest.mark.parametrize("options", [("euler", 0.1), ("rk4", 0.1), ("adaptive", None)])
@pytest.mark.parametrize("ambient_dim", [2, 3, 20])
def test_particles_stay_on_the_sphere(options, ambient_dim):
    flow = ParticleFlow(smooth_model(ambient_dim), random_measure(20, ambient_dim, 3), *options)
    for _ in range(100):
        flow.step(np.inf)
    radius = np.linalg.norm(flow.measure.nodes, axis=1)
    np.testing.assert_allclose(radius, 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("options", [("adaptive", None, 1e-12), ("rk4", 0.01)])
@pytest.mark.parametrize(("direction", "end"), [("ascent", 0.3), ("descent", 1.6)])
@pytest.mark.parametrize("beta", [0.5, 4.0])
def test_two_particles_on_the_circle(beta, direction, end, options):
    """Half the mass each, angle a apart: a' = ∓ s e^{β cos a} sin a, + for descent.

    The time from one angle to another is an integral.
    """
    start = 1.2
    time = abs(quad(lambda a: 1 / (np.exp(beta * (np.cos(a) - 1)) * np.sin(a)), start, end)[0])
    pair = mf.Measure(circle_points([2.0, 2.0 + start]), [0.5, 0.5])
    nodes = ended(mf.Model(mf.Attention(beta, "peak"), None, direction), pair, time, *options)
    assert geodesic_distance(*nodes) == pytest.approx(end, abs=1e-9)
    # The middle stays where it was.
    assert circle_angles(nodes).mean() == pytest.approx(2.0 + start / 2, abs=1e-12)


def test_two_unequal_particles_meet_where_the_masses_say():
    """Angles move as −m_other and +m_one times one function, so the mean angle is kept."""
    pair = mf.Measure(circle_points([1.0, 2.0]), [0.8, 0.2])
    nodes = ended(mf.Model(PEAK), pair, 60.0)
    np.testing.assert_allclose(circle_angles(nodes), 0.8 * 1.0 + 0.2 * 2.0, atol=1e-7)


def test_softmax_of_two_particles():
    """a' = −2 sin a · e^{β cos a} / (e^β + e^{β cos a}) for the softmax average."""
    beta, start, end = 2.0, 1.5, 0.2

    def slowness(a):
        return (np.exp(beta * (1 - np.cos(a))) + 1) / (2 * np.sin(a))

    time = quad(slowness, end, start)[0]
    pair = mf.Measure(circle_points([0.0, start]), [0.5, 0.5])
    for prefactor in (1.0, 3.0):
        attention = mf.Attention(beta, normalisation="softmax", prefactor=prefactor)
        nodes = ended(mf.Model(attention), pair, time / prefactor, tolerance=1e-12)
        assert geodesic_distance(*nodes) == pytest.approx(end, abs=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("ambient_dim", [2, 3])
@pytest.mark.parametrize("direction", ["ascent", "descent"])
def test_small_harmonics_of_the_uniform_measure_grow_at_the_known_rates(
    ambient_dim, degree, direction
):
    """At the rate (s/β) λ_j j(j+d−2), to four digits: weights perturb what positions keep."""
    beta, size = 4.0, 1e-4
    nodes, masses = quadrature(ambient_dim)
    zonal = np.polynomial.legendre.Legendre.basis(degree)(nodes[:, -1])
    if ambient_dim == 2:
        zonal = np.cos(degree * np.arctan2(nodes[:, 0], nodes[:, 1]))
    start = mf.Measure(nodes, masses * (1 + size * zonal))
    model = mf.Model(mf.Attention(beta, "peak"), None, direction)
    flow = ParticleFlow(model, start, tolerance=1e-12, method="funk_hecke")

    def harmonic():
        moments = mf.moments(flow.measure, degree)
        return np.sqrt(scattered_harmonics(ambient_dim, degree).power(moments)[degree])

    before = harmonic()
    evolve(flow, until=0.25)
    rate = model.sign * np.log(harmonic() / before) / 0.25
    expected = growth_rates(beta, ambient_dim, degree)[degree]
    assert rate == pytest.approx(expected, rel=1e-4)


def quadrature(ambient_dim):
    """Nodes and masses that integrate high degrees exactly: a uniform measure without noise."""
    if ambient_dim == 2:
        return circle_points(2 * np.pi * np.arange(64) / 64), np.full(64, 1 / 64)
    height, weight = np.polynomial.legendre.leggauss(32)
    angle = 2 * np.pi * np.arange(64) / 64
    radius = np.sqrt(1 - height**2)
    nodes = np.stack(
        [np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle)),
         np.outer(height, np.ones(64))], axis=-1,
    ).reshape(-1, 3)
    return normalise(nodes), np.repeat(weight / 128, 64)


@pytest.mark.parametrize("direction", ["ascent", "descent"])
@given(st.data(), st.integers(2, 4), between(0.2, 10.0))
@settings(max_examples=10)
def test_energy_is_monotone_and_changes_at_the_mean_square_speed(direction, data, d, beta):
    measure = data.draw(measures(d))
    p = data.draw(perceptrons(d, activations=("gelu", "tanh", "identity")))
    model = mf.Model(mf.Attention(beta, "peak"), p, direction)
    flow = ParticleFlow(model, measure, tolerance=1e-10)
    rows = [flow.describe()]
    for _ in range(20):
        flow.step(0.2)
        rows.append(flow.describe())
    energies = np.array([row["energy"] for row in rows])
    assert np.all(model.sign * np.diff(energies) >= -1e-13 * (1 + np.abs(energies[1:])))
    # Over a short symmetric interval of time.
    here, step = rows[0], 1e-4
    around = []
    for sign in ("ascent", "descent"):
        other = ParticleFlow(mf.Model(model.attention, p, sign), measure, "rk4", length=step)
        other.step(step)
        around.append(other.describe()["energy"])
    rate = (around[0] - around[1]) / (2 * step)
    assert rate == pytest.approx(here["mean_square_speed"], rel=1e-5, abs=1e-8)


def test_softmax_alone_climbs_the_energy_too():
    model = mf.Model(mf.Attention(4.0, "peak", "softmax"))
    flow = ParticleFlow(model, random_measure(15, 3, seed=1), "rk4", length=0.1)
    energies = []
    for _ in range(30):
        energies.append(flow.describe()["energy"])
        flow.step(np.inf)
    assert np.all(np.diff(energies) > 0)


def test_no_energy_is_described_where_there_is_none():
    flow = ParticleFlow(smooth_model(3, normalisation="softmax"), random_measure(5, 3, seed=1))
    assert set(flow.describe()) == {"max_speed", "mean_square_speed"}
    speeds = np.linalg.norm(flow.velocity(), axis=1)
    assert flow.describe()["max_speed"] == pytest.approx(speeds.max(), rel=1e-14)


@given(st.data(), st.integers(2, 4))
@settings(max_examples=10)
def test_rotated_particles_move_rotated(data, ambient_dim):
    measure, Q = data.draw(measures(ambient_dim)), data.draw(rotations(ambient_dim))
    p = data.draw(perceptrons(ambient_dim, activations=("tanh",), vectors=True))
    turned = mf.Perceptron(p.a @ Q.T, p.omega @ Q.T, p.bias, "tanh")
    turned_start = measure.moved(normalise(measure.nodes @ Q.T))
    options = {"integrator": "rk4", "length": 0.1}
    end = ended(mf.Model(PEAK, p), measure, 1.0, **options)
    turned_end = ended(mf.Model(PEAK, turned), turned_start, 1.0, **options)
    np.testing.assert_allclose(turned_end, end @ Q.T, rtol=0, atol=1e-11)


def test_a_split_particle_moves_as_the_whole():
    start = random_measure(5, 3, seed=1)
    masses = np.append(start.masses, 0.3 * start.masses[0])
    masses[0] *= 0.7
    split = mf.Measure(np.concatenate([start.nodes, start.nodes[:1]]), masses)
    whole, pieces = (
        ended(smooth_model(3), measure, 2.0, "rk4", length=0.05) for measure in (start, split)
    )
    np.testing.assert_allclose(pieces, np.concatenate([whole, whole[:1]]), rtol=0, atol=1e-13)


def test_both_evaluators_move_particles_alike():
    start = random_measure(300, 3, seed=1)
    ends = [
        ended(smooth_model(3), start, 1.0, "rk4", length=0.1, method=method)
        for method in ("direct", "funk_hecke")
    ]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-10)


def test_descent_ends_in_the_closed_form_of_the_identity_activation():
    """σ(s) = s: H is constant for ρ = 1 − β/(2 s λ_2) (v − ∫v dσ), v quadratic [L, Rem. 5.5]."""
    beta, strength = 2.0, 0.05
    perceptron = mf.Perceptron([[1.0, 0.0]], [strength], activation="identity")
    model = mf.Model(mf.Attention(beta, "peak"), perceptron, "descent")
    flow = ParticleFlow(model, uniform_cloud(2, 200), tolerance=1e-9)
    evolve(flow, until=400.0)
    assert flow.describe()["max_speed"] < 1e-6
    # v = w cos²θ = w/2 + w/2 cos 2θ, so the only moment beside the mass is the second.
    scaled = eigenvalues(beta, 2, 2)[2]
    second = -beta / (2 * scaled) * strength / 4
    expected = np.array([1, 0, second, 0, 0])
    assert second < -0.05
    np.testing.assert_allclose(mf.moments(flow.measure, 4), expected, rtol=0, atol=2e-5)
    H = flow.field.first_variation(circle_points(np.linspace(0, 6, 50)))
    assert np.ptp(H) < 1e-4 * np.ptp(0.5 * perceptron.potential(circle_points([0.0, np.pi / 2])))
    # The points themselves are the density's quantiles.
    angles = np.sort(circle_angles(flow.measure.nodes))
    steps = np.diff(angles) * (1 + 2 * second * np.cos(angles[1:] + angles[:-1]))
    np.testing.assert_allclose(steps, 2 * np.pi / 200, rtol=2e-3)


@pytest.mark.parametrize("ambient_dim", [2, 3, 5])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_noise_alone_makes_the_mean_decay(ambient_dim, integrator):
    """Degree-one harmonics decay as e^{−κ(d−1)t}; a step of length h errs by O(h)."""
    count, kappa, time = 40_000, 0.3, 1.0
    nodes = np.tile(np.eye(ambient_dim)[0], (count, 1))
    start = mf.Measure(nodes, np.full(count, 1 / count))
    end = ended(mf.Model(), start, time, integrator, length=0.05, diffusion=kappa, seed=5)
    expected = np.exp(-kappa * (ambient_dim - 1) * time)
    deviation = end[:, 0].std() / np.sqrt(count)
    assert end[:, 0].mean() == pytest.approx(expected, abs=4 * deviation + 0.002)
    np.testing.assert_allclose(end[:, 1:].mean(axis=0), 0, atol=4 / np.sqrt(count))
    np.testing.assert_allclose(np.linalg.norm(end, axis=1), 1, rtol=0, atol=1e-14)


def test_noise_belongs_to_seed_and_step():
    start = random_measure(50, 3, seed=1)
    options = {"integrator": "euler", "length": 0.1, "diffusion": 0.1}
    one, same, other = (
        ended(smooth_model(3), start, 0.5, **options, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize(
    "options",
    [
        {"integrator": "adaptive"},
        {"integrator": "rk4", "length": 0.1},
        {"integrator": "euler", "length": 0.1, "diffusion": 0.2, "seed": 3},
    ],
)
def test_a_restored_flow_continues_bitwise(options):
    flow = ParticleFlow(smooth_model(3), random_measure(20, 3, seed=1), **options)
    for _ in range(3):
        flow.step(np.inf)
    again = ParticleFlow(smooth_model(3), random_measure(20, 3, seed=9), **options)
    again.restore(flow.state())
    assert (again.time, again.steps) == (flow.time, flow.steps)
    for _ in range(3):
        assert flow.step(np.inf) == again.step(np.inf)
    np.testing.assert_array_equal(flow.measure.nodes, again.measure.nodes)
    np.testing.assert_array_equal(flow.measure.masses, again.measure.masses)


def test_steps_are_no_longer_than_the_limit():
    for options, limit in ((("euler", 0.1), 0.01), (("adaptive", None), 1e-7)):
        flow = ParticleFlow(smooth_model(2), random_measure(5, 2, seed=1), *options)
        assert flow.step(limit) == limit
        assert flow.time == limit
    assert ParticleFlow(smooth_model(2), random_measure(5, 2, seed=1), "rk4", 0.1).step(9.0) == 0.1


@pytest.mark.parametrize("integrator", [("euler", 0.1), ("rk4", 0.1), ("adaptive", None)])
def test_a_particle_that_is_not_finite_is_named(integrator):
    flow = ParticleFlow(smooth_model(3), random_measure(10, 3, seed=1), *integrator)
    flow.step(0.01)
    flow.measure.nodes[7, 1] = np.nan
    with pytest.raises(FloatingPointError, match="particle 7 is not finite"):
        flow.step(0.01)
        flow.describe()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "heun"}, "integrator='heun': expected one of"),
        ({"integrator": "rk4"}, "length=None: expected a step > 0 for 'rk4'"),
        ({"integrator": "euler", "length": 0.0}, "length=0.0: expected a step > 0"),
        ({"integrator": "euler", "length": np.nan}, "length=nan: expected a step > 0"),
        ({"integrator": "euler", "length": 0.1, "tolerance": 1e-8}, "tolerance applies to 'adap"),
        ({"length": 0.1}, "length applies to 'rk4' and 'euler'"),
        ({"diffusion": 0.1}, "diffusion > 0 needs a fixed step"),
        ({"integrator": "rk4", "length": 0.1, "diffusion": -1.0}, "diffusion=-1.0: expected"),
        ({"tolerance": -1e-8}, "tolerance=-1e-08: expected"),
        ({"tolerance": 0.0}, "tolerance=0.0: expected"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ParticleFlow(smooth_model(2), random_measure(3, 2, seed=1), **options)


def test_settings_are_json():
    flow = ParticleFlow(smooth_model(2), random_measure(3, 2, seed=1), "rk4", length=0.1)
    settings = json.loads(json.dumps(flow.settings()))
    assert (settings["particles"], settings["integrator"], settings["length"]) == (3, "rk4", 0.1)
