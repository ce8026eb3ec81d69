"""The spectral right-hand side at one degree against the same at three times that degree."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.density.continuity import SpectralContinuity
from meanfield.density.starts import uniform
from meanfield.sphere.grids import change_degree


@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_the_rate_of_a_full_spectrum_is_not_aliased(ambient_dim):
    """All modes up to L are there, so that the product reaches degree 2L."""
    model = mf.Model(mf.Attention(beta=30.0, amplitude="peak"))
    degree = 10
    coefficients = change_degree(uniform(ambient_dim), ambient_dim, degree)
    rng = np.random.default_rng(0)
    coefficients[1:] += 0.1 * rng.normal(size=len(coefficients) - 1)
    rate = SpectralContinuity(model, ambient_dim, degree).rate(coefficients)
    finer = SpectralContinuity(model, ambient_dim, 3 * degree)
    expected = finer.rate(change_degree(coefficients, ambient_dim, 3 * degree))
    expected = change_degree(expected, ambient_dim, degree)
    assert rate[0] == 0
    assert np.abs(expected[1:]).max() > 1e-3
    assert np.abs(rate - expected).max() < 1e-13


@pytest.mark.parametrize("ambient_dim", [2, 3])
def test_the_energy_with_relu_converges_to_an_exact_integral(ambient_dim):
    """∫ max(x₁, 0)² dσ = 1/(2d), the error falling at least like L^{−2}."""
    a = np.eye(ambient_dim)[:1]
    model = mf.Model(None, mf.Perceptron(a, [2.0], bias=[0.0], activation="relu"))

    def error(degree):
        flat = uniform(ambient_dim, degree)
        energy = SpectralContinuity(model, ambient_dim, degree).energy(flat)
        return abs(energy - 1 / (2 * ambient_dim))

    assert error(64) < 1e-4
    assert error(64) < error(8) / 30 or error(64) < 1e-15


def test_a_drift_without_energy_says_why():
    model = mf.Model(None, mf.Perceptron(np.eye(2), [[0.0, 1.0], [-1.0, 0.0]]))
    continuity = SpectralContinuity(model, 2, 8)
    with pytest.raises(ValueError, match="no gradient"):
        continuity.energy(uniform(2, 8))
