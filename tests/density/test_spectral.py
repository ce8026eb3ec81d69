"""The spectral density against closed forms, moved particles and the laws it must keep."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import meanfield as mf
from meanfield.density.spectral import SpectralDensity
from meanfield.density.starts import perturbed_uniform, uniform
from meanfield.runtime.runge_kutta import DormandPrince
from meanfield.sphere.geometry import normalise
from meanfield.sphere.grids import change_degree, degree_of, regular_grid
from meanfield.sphere.harmonics import scattered_harmonics

DIMENSIONS = [2, 3]
PEAK = mf.Attention(beta=3.0, amplitude="peak")


def bump(x):
    """A smooth density without symmetries."""
    values = 1 + 0.4 * x[:, 0]
    return values + 0.2 * x[:, 0] * x[:, 1] - 0.1 * x[:, -1] * (x[:, -1] ** 2 - 0.5) * x[:, 0]


def bump_mean(ambient_dim):
    grid = regular_grid(ambient_dim, 8)
    return grid.weights @ bump(grid.nodes)


def start(ambient_dim):
    mean = bump_mean(ambient_dim)
    return lambda x: bump(x) / mean


def peaked(x):
    """exp(60 x₁), normalised."""
    mean = np.i0(60.0) if x.shape[1] == 2 else np.sinh(60.0) / 60.0
    return np.exp(60.0 * x[:, 0]) / mean


def run(flow, until):
    while flow.time < until and flow.finished is None:
        flow.step(until - flow.time)
    return flow


def norm(coefficients, ambient_dim):
    degree = degree_of(coefficients, ambient_dim)
    return np.sqrt(scattered_harmonics(ambient_dim, degree).power(coefficients).sum())


def smooth_perceptron(ambient_dim, activation="tanh"):
    rng = np.random.default_rng(5)
    a = normalise(rng.normal(size=(3, ambient_dim)))
    return mf.Perceptron(a, [0.5, -0.4, 0.3], bias=[0.1, 0.0, -0.2], activation=activation)


# Attention alone, linearised

@pytest.mark.parametrize("direction", ["ascent", "descent"])
@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8])
def test_small_harmonics_grow_and_decay_at_the_linear_rate(ambient_dim, degree, direction):
    """(s/β) λ_j j(j+d−2) with λ_j as the integral of the kernel against Legendre's P_j."""
    model = mf.Model(PEAK, direction=direction)
    amplitude = 1e-6
    perturbed = perturbed_uniform(ambient_dim, degree, amplitude, order=degree * (ambient_dim - 2))
    flow = SpectralDensity(model, perturbed, ambient_dim=ambient_dim, degree=16, tolerance=1e-12)
    run(flow, 1.0)
    other = change_degree(uniform(ambient_dim), ambient_dim, flow.degree)
    found = np.log(norm(flow.coefficients - other, ambient_dim) / amplitude)
    t, weights = np.polynomial.legendre.leggauss(200)
    if ambient_dim == 2:
        angle = np.pi * (t + 1)
        eigenvalue = weights @ (np.exp(3 * (np.cos(angle) - 1)) * np.cos(degree * angle)) / 2
    else:
        legendre = np.polynomial.legendre.legval(t, np.eye(degree + 1)[degree])
        eigenvalue = weights @ (np.exp(3 * (t - 1)) * legendre) / 2
    expected = model.sign / 3.0 * eigenvalue * degree * (degree + ambient_dim - 2)
    assert found == pytest.approx(expected, rel=1e-5)


# Transport in a linear field x' = P_x A x, whose flow is x(t) ∝ e^{tA} x

LINEAR = {
    2: np.array([[0.3, -0.8], [0.5, -0.2]]),
    3: np.array([[0.3, -0.8, 0.1], [0.5, -0.2, 0.0], [0.2, 0.4, 0.1]]),
}


def linear_model(ambient_dim):
    """u = P_x A x: no gradient, because A is not symmetric."""
    return mf.Model(None, mf.Perceptron(np.eye(ambient_dim), LINEAR[ambient_dim].T,
                                        activation="identity"))


def transported(ambient_dim, time, x):
    """ρ(t, x) = ρ₀(y/|y|) det(e^{−tA}) |y|^{−d} with y = e^{−tA} x."""
    back = expm(-time * LINEAR[ambient_dim])
    y = x @ back.T
    length = np.linalg.norm(y, axis=1)
    return start(ambient_dim)(y / length[:, None]) * np.linalg.det(back) / length**ambient_dim


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_transport_converges_exponentially_to_the_closed_form(ambient_dim):
    x = normalise(np.random.default_rng(3).normal(size=(200, ambient_dim)))
    exact = transported(ambient_dim, 1.0, x)
    errors = []
    for degree in (8, 16, 24, 56):
        flow = SpectralDensity(
            linear_model(ambient_dim), start(ambient_dim), degree=degree, max_degree=degree,
            tolerance=1e-13, tail_tolerance=1.0,
        )
        run(flow, 1.0)
        errors.append(np.abs(flow.density(x) - exact).max())
    assert errors[0] > 1e-4
    assert all(later < 0.1 * earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 1e-10


def test_the_raised_degree_reaches_the_closed_form_too():
    x = normalise(np.random.default_rng(3).normal(size=(50, 2)))
    flow = SpectralDensity(linear_model(2), start(2), degree=8, tail_tolerance=1e-11,
                           tolerance=1e-12)
    run(flow, 3.0)
    assert flow.degree > 8 and flow.finished is None
    exact = transported(2, 3.0, x)
    assert np.abs(flow.density(x) - exact).max() < 1e-8 * exact.max()


# Attention and perceptron together, against particles that carry quadrature masses

def moved_nodes(model, nodes, masses, time):
    """The nodes of a measure after `time`, by the direct sum over all of them."""
    def rate(x):
        return mf.field(model, mf.Measure(normalise(x), masses), method="direct").velocity(x)

    pair = DormandPrince(rate, lambda e: np.abs(e).max() / 1e-12, retract=normalise)
    reached = 0.0
    while reached < time:
        nodes, length = pair.step(nodes, time - reached)
        reached += length
    return nodes


@pytest.mark.parametrize("normalisation", ["none", "softmax"])
@pytest.mark.parametrize(("ambient_dim", "activation", "direction"), [
    (2, "gelu", "descent"), (2, "tanh", "ascent"), (3, "tanh", "descent"),
])
def test_density_and_moved_quadrature_nodes_agree_to_1e_10(
    ambient_dim, activation, direction, normalisation
):
    """A quadrature stays spectrally exact when a smooth flow carries its nodes along."""
    attention = mf.Attention(beta=2.0, amplitude="peak", normalisation=normalisation)
    model = mf.Model(attention, smooth_perceptron(ambient_dim, activation), direction=direction)
    grid = regular_grid(ambient_dim, 64 if ambient_dim == 2 else 18)
    masses = grid.weights * start(ambient_dim)(grid.nodes)
    time = 1.0 if ambient_dim == 2 else 0.4
    particles = moved_nodes(model, grid.nodes, masses, time)
    moments = scattered_harmonics(ambient_dim, 4).coefficients(particles, masses)
    errors = []
    for degree in (8, 16, 48):
        flow = SpectralDensity(
            model, start(ambient_dim), degree=degree, max_degree=degree, tolerance=1e-12,
            tail_tolerance=1.0,
        )
        run(flow, time)
        found = change_degree(flow.coefficients, ambient_dim, 4)
        errors.append(np.abs(found - moments).max())
    assert errors[0] > 10 * errors[-1]
    assert errors[-1] < 1e-10


@pytest.mark.parametrize("normalisation", ["none", "softmax"])
@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_velocity_density_energy_and_measure_are_those_of_the_direct_sum(
    ambient_dim, normalisation
):
    attention = mf.Attention(beta=4.0, normalisation=normalisation)
    model = mf.Model(attention, smooth_perceptron(ambient_dim, "gelu"), direction="descent")
    flow = SpectralDensity(model, start(ambient_dim))
    x = normalise(np.random.default_rng(1).normal(size=(40, ambient_dim)))
    assert np.allclose(flow.density(x), start(ambient_dim)(x), atol=1e-12)
    field = mf.field(model, mf.Measure(*flow.measure()), method="direct")
    expected = field.velocity(x)
    assert np.abs(flow.velocity(x) - expected).max() < 1e-11 * np.abs(expected).max()
    row = flow.describe()
    grid_speed = np.linalg.norm(field.velocity(flow.measure()[0]), axis=1).max()
    assert row["max_speed"] == pytest.approx(grid_speed, rel=1e-11)
    if normalisation == "none":
        assert row["energy"] == pytest.approx(field.energy(), rel=1e-12)
    else:
        assert "energy" not in row


# Where descent ends

@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_descent_with_the_identity_ends_in_the_closed_form(ambient_dim):
    """ρ = 1 − β/(2sλ_2) (v − ∫v dσ) [L, Rem. 5.5]."""
    # Modes of degree j settle at rates like λ_j j²: at small β the higher ones never do.
    beta = 8.0
    attention = mf.Attention(beta)
    weights = {2: np.array([20.0, -13.0]), 3: np.array([5.0, -3.0, 1.0])}[ambient_dim]
    model = mf.Model(
        attention, mf.Perceptron(np.eye(ambient_dim), weights, activation="identity"),
        direction="descent",
    )
    flow = SpectralDensity(model, uniform(ambient_dim), tail_tolerance=1e-8)
    energies = [flow.describe()["energy"]]
    while flow.time < 2.0:
        flow.step(2.0 - flow.time)
        energies.append(flow.describe()["energy"])
    assert flow.finished is None
    x = normalise(np.random.default_rng(2).normal(size=(50, ambient_dim)))
    eigenvalue = mf.funk_hecke_eigenvalues(beta, ambient_dim, 2, scaled=False)[2]
    v = (weights * x**2).sum(axis=1)
    exact = 1 - beta / (2 * eigenvalue) * (v - weights.sum() / ambient_dim)
    assert exact.min() > 0 and np.ptp(exact) > 0.1
    assert np.abs(flow.density(x) - exact).max() < 1e-6
    assert flow.describe()["max_speed"] < 1e-5
    # To rounding of the energy.
    assert np.all(np.diff(energies) < 1e-14 * energies[0])


@pytest.mark.parametrize("direction", ["ascent", "descent"])
def test_energy_changes_at_the_rate_of_the_mean_square_speed(direction):
    """dE/dt = ±∫|∇H|² dμ."""
    model = mf.Model(PEAK, smooth_perceptron(2), direction=direction)
    flow = run(SpectralDensity(model, start(2), tolerance=1e-12, tail_tolerance=1e-9), 0.3)
    before = flow.describe()
    run(flow, flow.time + 1e-3)
    middle = flow.describe()
    run(flow, flow.time + 1e-3)
    after = flow.describe()
    slope = (after["energy"] - before["energy"]) / 2e-3
    assert slope == pytest.approx(model.sign * middle["mean_square_speed"], rel=1e-5)


# Noise

@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_noise_alone_makes_each_mode_decay_exactly(ambient_dim):
    flow = SpectralDensity(mf.Model(), start(ambient_dim), ambient_dim=ambient_dim, diffusion=0.3)
    before = flow.coefficients
    run(flow, 2.0)
    j = np.arange(flow.degree + 1)
    decay = np.exp(-0.3 * j * (j + ambient_dim - 2.0) * 2.0)
    expected = scattered_harmonics(ambient_dim, flow.degree).multiply(before, decay)
    assert np.abs(flow.coefficients - expected).max() < 1e-14


@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_noise_and_potential_end_in_the_gibbs_density(ambient_dim):
    """Ascent in ½v with noise κ settles on exp(v/(2κ)),, normalised."""
    perceptron = smooth_perceptron(ambient_dim)
    flow = SpectralDensity(mf.Model(None, perceptron), uniform(ambient_dim), diffusion=1.0)
    run(flow, 25.0 if ambient_dim == 2 else 10.0)
    grid = regular_grid(ambient_dim, 40)
    partition = grid.weights @ np.exp(perceptron.potential(grid.nodes) / 2)
    x = grid.nodes[::7]
    exact = np.exp(perceptron.potential(x) / 2) / partition
    assert np.ptp(exact) > 0.15
    assert np.abs(flow.density(x) - exact).max() < 1e-7


def test_stiff_noise_costs_no_more_steps():
    """κL² would allow explicit steps of 10⁻⁴ at degree 128."""
    model = mf.Model(PEAK, smooth_perceptron(2), direction="descent")
    flow = SpectralDensity(model, start(2), degree=128, diffusion=1.0, tolerance=1e-7)
    steps = 0
    while flow.time < 1.0:
        flow.step(1.0 - flow.time)
        steps += 1
    assert steps < 100


# Laws

@given(st.sampled_from(DIMENSIONS), st.integers(0, 999), st.sampled_from(["none", "softmax"]))
@settings(deadline=None, max_examples=5)
def test_rotated_models_make_rotated_densities_of_mass_one(ambient_dim, seed, normalisation):
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(ambient_dim, ambient_dim)))[0]
    a, w = rng.normal(size=(2, ambient_dim)), 0.5 * rng.normal(size=(2, ambient_dim))
    attention = mf.Attention(beta=2.0, amplitude="peak", normalisation=normalisation)
    x = normalise(rng.normal(size=(30, ambient_dim)))
    flows = [
        SpectralDensity(
            mf.Model(attention, mf.Perceptron(a @ turn.T, w @ turn.T, activation="tanh")),
            lambda x, turn=turn: start(ambient_dim)(x @ turn), tail_tolerance=1e-7,
            tolerance=1e-9,
        )
        for turn in (np.eye(ambient_dim), rotation)
    ]
    for flow in flows:
        run(flow, 0.2)
        assert flow.finished is None
        assert flow.describe()["mass"] == 1.0
    plain, turned = flows[0].density(x), flows[1].density(x @ rotation.T)
    assert np.abs(plain - turned).max() < 1e-5 * plain.max()


@pytest.mark.parametrize("diffusion", [0.0, 0.05])
def test_a_restored_flow_continues_bitwise(diffusion):
    model = mf.Model(PEAK, smooth_perceptron(3))

    def new(density):
        return SpectralDensity(model, density, degree=12, diffusion=diffusion,
                               tail_tolerance=1e-4, max_degree=64)

    flow = run(new(start(3)), 0.2)
    other = new(uniform(3))
    other.restore(flow.state())
    for _ in range(3):
        assert flow.step(np.inf) == other.step(np.inf)
    assert flow.time == other.time
    assert np.array_equal(flow.coefficients, other.coefficients)


@pytest.mark.parametrize("diffusion", [0.0, 0.2])
def test_the_density_within_a_step_is_that_of_a_shorter_run(diffusion):
    model = mf.Model(PEAK, smooth_perceptron(2), direction="descent")

    def new():
        return SpectralDensity(model, start(2), degree=48, diffusion=diffusion, tolerance=1e-8)

    flow = run(new(), 0.5)
    begin = flow.time
    length = flow.step(np.inf)
    assert np.allclose(flow.interpolate(1.0), flow.coefficients, rtol=0, atol=1e-14)
    exact = run(new(), begin + 0.3 * length).coefficients
    assert norm(flow.interpolate(0.3) - exact, 2) < 1e-6 * length
    assert norm(flow.coefficients - exact, 2) > 1e-3 * length


# Where resolution ends

@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_collapse_ends_with_a_reason_and_a_resolved_density(ambient_dim):
    model = mf.Model(mf.Attention(beta=20.0, amplitude="peak"), direction="ascent")
    flow = SpectralDensity(model, start(ambient_dim), ambient_dim=ambient_dim, max_degree=72,
                           tolerance=1e-6)
    run(flow, 1e5)
    assert flow.degree == 72
    assert f"{flow.time:.9g}" in flow.finished and "max_degree" in flow.finished
    row = flow.describe()
    assert row["tail"] <= flow.tail_tolerance
    assert row["max_speed"] > 1e-3
    assert flow.step(1.0) == 0.0


def test_the_resolved_density_is_right_up_to_its_end():
    """A larger degree, given from the start, finds the same density at that time."""
    model = mf.Model(mf.Attention(beta=20.0, amplitude="peak"), direction="ascent")
    flow = SpectralDensity(model, start(2), ambient_dim=2, max_degree=72)
    run(flow, 1e5)
    finer = SpectralDensity(model, start(2), ambient_dim=2, degree=300, tolerance=1e-10)
    run(finer, flow.time)
    difference = finer.coefficients - change_degree(flow.coefficients, 2, 300)
    assert norm(difference, 2) < 10 * flow.tail_tolerance * norm(finer.coefficients, 2)


def test_softmax_stops_where_its_denominator_is_rounding():
    """One bump: opposite to it the denominator is e^(−2β) of its largest value."""
    attention = mf.Attention(beta=40.0, normalisation="softmax")
    flow = SpectralDensity(mf.Model(attention), peaked, ambient_dim=2)
    run(flow, 1e4)
    assert "denominator" in flow.finished
    assert np.all(np.isfinite(flow.coefficients))


# Input

@pytest.mark.parametrize("ambient_dim", DIMENSIONS)
def test_the_degree_rises_until_it_resolves_the_start(ambient_dim):
    flow = SpectralDensity(mf.Model(PEAK), peaked, ambient_dim=ambient_dim, degree=8)
    assert flow.degree > 20
    assert flow.start_error < flow.tail_tolerance
    x = np.eye(ambient_dim)
    assert np.abs(flow.density(x) - peaked(x)).max() < 1e-4 * peaked(x).max()


def test_a_mass_that_is_one_to_quadrature_error_is_made_one():
    exact = SpectralDensity(mf.Model(PEAK), start(2), ambient_dim=2)
    heavier = SpectralDensity(
        mf.Model(PEAK), lambda x: (1 + 5e-7) * start(2)(x), ambient_dim=2
    )
    assert np.abs(heavier.coefficients - exact.coefficients).max() < 1e-14


def test_polynomial_starts_are_padded_until_their_tail_is_empty():
    flow = SpectralDensity(mf.Model(PEAK), perturbed_uniform(3, 20, 0.1), ambient_dim=3, degree=8)
    assert flow.degree > 20 and flow.describe()["tail"] == 0.0


@pytest.mark.parametrize(("change", "message"), [
    ({"ambient_dim": 4}, "expected 2 or 3"),
    ({"ambient_dim": None}, "expected 2 or 3"),
    ({"degree": 2}, "degree=2"),
    ({"max_degree": 20}, "max_degree=20"),
    ({"tolerance": 0.0}, "tolerance=0.0"),
    ({"diffusion": -1.0}, "diffusion=-1.0"),
    ({"diffusion": np.nan}, "diffusion=nan"),
    ({"start": lambda x: 2 + 0 * x[:, 0]}, "integrates to 2"),
    ({"start": lambda x: x}, "one value a point"),
    ({"start": lambda x: np.nan * x[:, 0]}, "not finite"),
    ({"start": lambda x: 2.0 * (x[:, 0] > 0), "max_degree": 100}, "not resolved by degree 100"),
    ({"start": [2.0, 0.0]}, "mass one"),
    ({"start": [1.0, np.nan]}, "finite coefficients"),
    ({"start": [[1.0, 0.0]]}, "vector of coefficients"),
    ({"start": np.eye(300)[0]}, "degree 299"),
    ({"model": mf.Model(mf.Attention(2.0, B=np.eye(2)))}, "without B"),
    ({"model": mf.Model(PEAK, smooth_perceptron(3))}, "weights live in R.3"),
])
def test_bad_input_is_refused_by_name(change, message):
    arguments = {"model": mf.Model(PEAK), "start": uniform(2), "ambient_dim": 2, "max_degree": 200}
    with pytest.raises(ValueError, match=message):
        SpectralDensity(**(arguments | change))


def test_perturbations_must_exist():
    with pytest.raises(ValueError, match="harmonic_degree=0"):
        perturbed_uniform(2, 0, 0.1)
    with pytest.raises(ValueError, match="order=3"):
        perturbed_uniform(3, 2, 0.1, order=3)


def test_a_coefficient_that_is_not_finite_is_named():
    flow = SpectralDensity(mf.Model(PEAK), uniform(2), ambient_dim=2)
    flow.coefficients[5] = np.nan
    with pytest.raises(FloatingPointError, match="coefficient 5"):
        flow.step(1.0)
