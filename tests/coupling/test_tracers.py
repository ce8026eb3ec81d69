import numpy as np
import pytest

import meanfield as mf
from meanfield.coupling.tracers import Tracers
from meanfield.density.spectral import SpectralDensity
from meanfield.particles.flow import ParticleFlow
from meanfield.sphere.geometry import circle_angles, circle_points, geodesic_distance, normalise


def circle_model(normalisation="none"):
    attention = mf.Attention(beta=4.0, amplitude="peak", normalisation=normalisation)
    perceptron = mf.Perceptron([[0.8, 0.6], [-0.5, 1.0]], [0.4, -0.3], activation="gelu")
    return mf.Model(attention, perceptron, direction="ascent")


def mass_between(density, angles):
    """Exact integrals of ρ between neighbouring angles, from its Fourier coefficients."""
    k = np.arange(1, density.degree + 1)
    primitive = angles / (2 * np.pi) + np.array(
        [np.sum((density.coefficients[1:] * np.exp(1j * k * a) / (1j * k)).real) for a in angles]
    ) / np.pi
    return np.diff(np.append(primitive, primitive[0] + 1))


@pytest.mark.parametrize("normalisation", ["none", "softmax"])
def test_mass_between_neighbouring_tracers_is_conserved(normalisation):
    angles = np.sort(np.random.default_rng(3).uniform(0, 2 * np.pi, 40))
    density = SpectralDensity(circle_model(normalisation), lambda x: 1 + 0.5 * x[:, 0])
    flow = Tracers(density, mf.Measure(circle_points(angles), np.full(40, 1 / 40)))
    before = mass_between(density, angles)
    while flow.time < 2.0:
        flow.step(2.0 - flow.time)
    moved = circle_angles(flow.measure.nodes)
    assert np.abs(geodesic_distance(circle_points(angles), flow.measure.nodes)).max() > 0.3
    np.testing.assert_allclose(mass_between(density, np.unwrap(moved)), before, atol=1e-7)


def test_tracers_on_the_sphere_follow_particles_that_sample_the_density():
    # Quadrature nodes of the density, moved by the direct sum, make the same field.
    model = mf.Model(
        mf.Attention(beta=2.0, amplitude="peak"),
        mf.Perceptron(np.eye(3), [0.5, -0.3, 0.2], activation="tanh"),
    )
    density = SpectralDensity(model, lambda x: 1 + 0.4 * x[:, 2], degree=24)
    nodes, masses = density.measure()
    particles = ParticleFlow(model, mf.Measure(nodes, masses / masses.sum()), tolerance=1e-9)
    points = normalise(np.random.default_rng(5).normal(size=(30, 3)))
    flow = Tracers(density, mf.Measure(points, np.full(30, 1 / 30)))
    followers = mf.Measure(
        np.vstack([nodes, points]), np.append(masses / masses.sum(), np.zeros(30))
    )
    particles = ParticleFlow(model, followers, tolerance=1e-9)
    while flow.time < 1.0:
        flow.step(1.0 - flow.time)
    while particles.time < 1.0:
        particles.step(1.0 - particles.time)
    np.testing.assert_allclose(flow.measure.nodes, particles.measure.nodes[-30:], atol=1e-7)


def test_restored_tracers_continue_bitwise():
    angles = np.linspace(0, 6, 7)

    def fresh():
        density = SpectralDensity(circle_model(), lambda x: 1 + 0.5 * x[:, 0])
        return Tracers(density, mf.Measure(circle_points(angles), np.full(7, 1 / 7)))

    flow, other = fresh(), fresh()
    for _ in range(3):
        flow.step(np.inf)
    other.restore(flow.state())
    flow.step(np.inf)
    other.step(np.inf)
    np.testing.assert_array_equal(flow.measure.nodes, other.measure.nodes)
    assert flow.time == other.time


def test_noise_has_no_trajectories():
    density = SpectralDensity(circle_model(), lambda x: 1 + 0.5 * x[:, 0], diffusion=0.1)
    with pytest.raises(ValueError, match="diffusion"):
        Tracers(density, mf.Measure(circle_points([0.0]), [1.0]))
