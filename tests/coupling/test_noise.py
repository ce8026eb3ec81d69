"""Noise in particles and in the density is the same noise."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.density.spectral import SpectralDensity
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.evolve import evolve
from meanfield.sphere.sampling import random_from_density


@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_noisy_particles_sample_the_noisy_density(ambient_dim):
    count, kappa = 20_000, 0.3
    model = mf.Model(
        mf.Attention(beta=3.0, amplitude="peak"),
        mf.Perceptron(np.eye(ambient_dim)[:1], [0.8], activation="tanh"),
    )

    def start(x):
        return 1 + 0.6 * x[:, 0]

    density = SpectralDensity(model, start, degree=16, diffusion=kappa)
    nodes = random_from_density(start, count, ambient_dim, seed=8)
    particles = ParticleFlow(
        model, mf.Measure(nodes, np.full(count, 1 / count)), "euler", length=0.02,
        diffusion=kappa, seed=3,
    )
    evolve(density, 1.0)
    evolve(particles, 1.0)
    grid, weights = density.measure()
    for power in (1, 2):
        expected = weights @ grid[:, 0] ** power
        found = np.mean(particles.measure.nodes[:, 0] ** power)
        # Five standard errors, and the first-order error of the steps.
        assert found == pytest.approx(expected, abs=5 / np.sqrt(count) + 0.01)
    # The noise matters: without it, the mean moves much further.
    quiet = SpectralDensity(model, start, degree=16)
    evolve(quiet, 1.0)
    grid, weights = quiet.measure()
    assert weights @ grid[:, 0] > np.mean(particles.measure.nodes[:, 0]) + 0.05
