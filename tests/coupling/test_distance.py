"""Distances between measures against closed forms, other solvers and the direct double sum."""

import numpy as np
import ot
import pytest
from scipy.stats import norm

from meanfield.coupling.distance import (
    circle_wasserstein,
    great_circles,
    kernel_distance,
    quantise_on_circle,
    sphere_wasserstein,
)
from meanfield.fields.measure import Measure
from meanfield.sphere.funk_hecke import truncation_degree
from meanfield.sphere.geometry import circle_points, normalise
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.sampling import even_uniform, random_uniform
from meanfield.sphere.von_mises_fisher import VonMisesFisherMixture


def equal_masses(nodes):
    return Measure(nodes, np.full(len(nodes), 1 / len(nodes)))


def weighted(count, dim, seed):
    return Measure(
        random_uniform(count, dim, seed), np.random.default_rng(seed).dirichlet(np.ones(count))
    )


def atom(point):
    return Measure(np.array([point], dtype=float), [1.0])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 3.1, 4.0, 6.0])
def test_two_atoms_are_their_geodesic_apart(angle):
    short_way = min(angle, 2 * np.pi - angle)
    for dim, distance in ((2, circle_wasserstein), (3, sphere_wasserstein)):
        start, end = np.zeros(dim), np.zeros(dim)
        start[0], end[:2] = 1, circle_points(angle)
        assert np.isclose(distance(atom(start), atom(end)).value, short_way, rtol=1e-6, atol=1e-15)


def test_the_quantised_density_has_its_mass_mean_and_error():
    density = VonMisesFisherMixture([[0.6, 0.8]], [4.0]).density
    nodes, masses, error = quantise_on_circle(density, 500)
    assert np.isclose(masses.sum(), 1, rtol=1e-9)
    finer = Measure(*quantise_on_circle(density, 500 * 1001)[:2])
    coarse = Measure(nodes, masses / masses.sum())
    # The finer nodes stand for the density, from which the coarse ones are `error` away.
    assert np.isclose(circle_wasserstein(coarse, finer).value, error, rtol=1e-3)


def test_the_error_of_a_density_is_stated():
    nodes, masses, error = quantise_on_circle(lambda x: 1 + x[:, 0], 100)
    fine = Measure(*quantise_on_circle(lambda x: 1 + x[:, 0], 10**5)[:2])
    cloud = equal_masses(random_uniform(30, 2, seed=1))
    rough = circle_wasserstein(cloud, Measure(nodes, masses), error)
    assert rough.error == error
    assert 0 < abs(rough.value - circle_wasserstein(cloud, fine).value) <= error


def test_uniform_random_points_follow_the_law_of_their_bridge():
    # √n (F_n − F) is near a Brownian bridge B, and the best cut takes off its mean, so that
    # n W2² has mean (2π)² (E∫B² − E(∫B)²) = (2π)² (1/6 − 1/12).
    nodes, masses, _ = quantise_on_circle(lambda x: np.ones(len(x)), 2**14)
    uniform = Measure(nodes, masses)
    squares = [
        100 * circle_wasserstein(equal_masses(random_uniform(100, 2, seed=s)), uniform).value ** 2
        for s in range(200)
    ]
    spread = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - (2 * np.pi) ** 2 / 12) < norm.isf(1e-4) * spread


def test_an_empty_part_of_the_circle_holds_no_nodes():
    nodes, masses, _ = quantise_on_circle(lambda x: 2.0 * (x[:, 1] > 0), 1000)
    assert len(nodes) == 500
    assert np.isclose(masses.sum(), 1)


def test_a_negative_density_is_refused():
    with pytest.raises(ValueError, match="density is -"):
        quantise_on_circle(lambda x: 1 + 2 * x[:, 0], 1000)


def test_transport_of_rotated_clouds_near_a_pole():
    # Turning a small cap about an axis through it moves nothing far; about one across it, all.
    cap = normalise(np.array([0, 0, 1]) + 1e-3 * np.random.default_rng(0).normal(size=(200, 3)))
    angle = 0.5
    turn = np.array(
        [
            [np.cos(angle), 0, np.sin(angle)],
            [0, 1, 0],
            [-np.sin(angle), 0, np.cos(angle)],
        ]
    )
    moved = sphere_wasserstein(equal_masses(cap), equal_masses(cap @ turn.T))
    assert moved.method == "exact transport" and moved.error == 0
    assert np.isclose(moved.value, angle, rtol=1e-5)


def test_transport_on_a_great_circle_is_that_of_the_circle():
    first, second = (weighted(40, 2, seed) for seed in (1, 2))
    lifted = [Measure(np.pad(m.nodes, ((0, 0), (0, 2))), m.masses) for m in (first, second)]
    expected = circle_wasserstein(first, second).value
    assert np.isclose(sphere_wasserstein(*lifted).value, expected, rtol=1e-9)


def test_sliced_distance_is_that_of_pot():
    first, second = weighted(300, 3, 1), weighted(200, 3, 2)
    found = sphere_wasserstein(first, second, max_points=100, projections=20, seed=5)
    assert "sliced" in found.method
    frames = great_circles(5, 20, 3).transpose(0, 2, 1)
    theirs = ot.sliced_wasserstein_sphere(
        first.nodes, second.nodes, first.masses, second.masses, 20, p=2, projections=frames
    )
    assert np.isclose(found.value, 2 * np.pi * theirs, rtol=1e-5)


def testgreat_circles_are_orthonormal_and_isotropic():
    frames = great_circles(1, 4000, 4)
    products = frames @ frames.transpose(0, 2, 1)
    assert np.allclose(products, np.eye(2), atol=1e-14)
    projector = np.einsum("kai,kaj->ij", frames, frames) / 4000
    assert np.allclose(projector, np.eye(4) / 2, atol=4 / np.sqrt(4000))


def test_sliced_distance_states_its_error():
    first, second = (equal_masses(random_uniform(300, 3, seed)) for seed in (1, 2))
    values = [
        sphere_wasserstein(first, second, max_points=10, projections=16, seed=seed)
        for seed in range(40)
    ]
    observed = np.std([found.value for found in values], ddof=1)
    stated = np.sqrt(np.mean([found.error**2 for found in values]))
    assert 0.6 < stated / observed < 1.6


def test_sliced_distance_of_a_measure_from_itself_vanishes():
    cloud = equal_masses(even_uniform(100, 3))
    found = sphere_wasserstein(cloud, cloud, max_points=10)
    assert found.value < 1e-12 and found.error < 1e-12


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("beta", [0.5, 20.0])
def test_kernel_distance_is_the_direct_double_sum(dim, beta):
    first, second = weighted(30, dim, 1), weighted(40, dim, 2)
    harmonics = scattered_harmonics(dim, truncation_degree(beta, dim, 1e-15))
    coefficients = [harmonics.coefficients(m.nodes, m.masses) for m in (first, second)]
    found = kernel_distance(*coefficients, beta, dim)
    nodes = np.concatenate([first.nodes, second.nodes])
    charges = np.concatenate([first.masses, -second.masses])
    expected = np.sqrt(charges @ np.exp(beta * (nodes @ nodes.T - 1)) @ charges)
    assert np.isclose(found.value, expected, rtol=1e-10)
    assert found.error < 1e-6


@pytest.mark.parametrize("dim", [2, 3])
def test_kernel_distance_bounds_what_it_leaves_out(dim):
    first, second = weighted(5, dim, 1), weighted(5, dim, 2)
    beta, values = 30.0, []
    for degree in (4, 8, 16, 60):
        harmonics = scattered_harmonics(dim, degree)
        coefficients = [harmonics.coefficients(m.nodes, m.masses) for m in (first, second)]
        values.append(kernel_distance(*coefficients, beta, dim))
    for found in values[:-1]:
        assert 0 <= values[-1].value - found.value <= found.error
    assert values[0].value < values[-1].value - 1e-3


def test_measures_that_do_not_fit_are_refused():
    circle, sphere = weighted(3, 2, 1), weighted(3, 3, 1)
    with pytest.raises(ValueError, match="sphere_wasserstein"):
        circle_wasserstein(circle, sphere)
    with pytest.raises(ValueError, match="circle_wasserstein"):
        sphere_wasserstein(circle, circle)
    with pytest.raises(ValueError, match="R\\^3 and R\\^2"):
        sphere_wasserstein(sphere, circle)
    with pytest.raises(ValueError, match="projections=1"):
        sphere_wasserstein(sphere, sphere, max_points=1, projections=1)
    with pytest.raises(ValueError, match="one degree"):
        kernel_distance(np.ones(3), np.ones(4), 1.0, 2)
