"""Eigenvalues against forty digits and quadrature; tail bounds that are bounds, and sharp."""

import json
from math import comb
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.sphere.funk_hecke import (
    eigenvalues,
    growth_rates,
    laplacian_eigenvalues,
    multiplicities,
    tail_bound,
    truncation_degree,
)
from tests.strategies import between

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "fields.json").read_text())
SOME = [(2, 0.01), (2, 30.0), (3, 0.3), (3, 120.0), (5, 4.0), (20, 50.0)]


def exact_eigenvalue(beta, d, j):
    """e^{−β} λ_j."""
    order, beta = j + mp.mpf(d) / 2 - 1, mp.mpf(beta)
    return (
        mp.gamma(mp.mpf(d) / 2) * (2 / beta) ** (mp.mpf(d) / 2 - 1)
        * mp.besseli(order, beta) * mp.exp(-beta)
    )


def exact_multiplicity(d, j):
    return comb(d + j - 1, j) - (comb(d + j - 3, j - 2) if j >= 2 else 0)


def exact_terms(beta, d, degree):
    """λ_j N_j well beyond `degree`, as mpmath numbers."""
    last = degree + int(30 + 8 * np.sqrt(beta))
    with mp.workdps(max(40, mp.mp.dps)):
        return [exact_eigenvalue(beta, d, j) * exact_multiplicity(d, j) for j in range(last)]


def legendre(d, degree, t):
    """P_0 … P_degree of the dimension at t, with P_j(1) = 1, by their recurrence."""
    values = [mp.mpf(1), mp.mpf(t)]
    for j in range(1, degree):
        values.append(((2 * j + d - 2) * t * values[j] - j * values[j - 1]) / (j + d - 2))
    return values[: degree + 1]


@pytest.mark.parametrize(
    "case",
    REFERENCE["funk_hecke"],
    ids=lambda case: f"d{case['ambient_dim']}-beta{case['beta']:g}-j{case['degree']}",
)
def test_reference_values(case):
    exact = float(case["scaled_eigenvalue"])
    found = eigenvalues(case["beta"], case["ambient_dim"], case["degree"])[-1]
    assert found == pytest.approx(exact, rel=1e-12 if exact > 1e-300 else 1, abs=1e-300)


@given(between(1e-6, 1e5), st.integers(2, 30), st.integers(0, 60))
@settings(max_examples=200)
def test_eigenvalues_against_many_digits(beta, d, j):
    with mp.workdps(40):
        exact = float(exact_eigenvalue(beta, d, j))
    found = eigenvalues(beta, d, j)[-1]
    assert found == pytest.approx(exact, rel=1e-12 if exact > 1e-300 else 1, abs=1e-300)


@pytest.mark.parametrize(("d", "beta"), SOME)
def test_eigenvalues_are_those_of_the_kernel(d, beta):
    """λ_j is the mean of exp(β(t − 1)) P_j(t) over the sphere: quadrature on the axis."""
    with mp.workdps(15):
        # By t = cos θ, which takes the circle's singular weight away.
        def integral(f):
            return mp.quad(lambda s: f(mp.cos(s)) * mp.sin(s) ** (d - 2), mp.linspace(0, mp.pi, 9))

        area = integral(lambda t: 1)
        for j in (0, 1, 4):
            mean = integral(lambda t: mp.exp(beta * (t - 1)) * legendre(d, j, t)[j]) / area  # noqa: B023
            assert eigenvalues(beta, d, j)[-1] == pytest.approx(float(mean), rel=1e-10)


def test_unscaled_eigenvalues_and_their_overflow():
    scaled, plain = (eigenvalues(3.0, 4, 5, scaled=scaled) for scaled in (True, False))
    np.testing.assert_allclose(plain, np.exp(3.0) * scaled, rtol=1e-15)
    with pytest.raises(OverflowError, match=r"beta=1000.*ask for scaled"):
        eigenvalues(1000.0, 3, 5, scaled=False)


def test_results_are_the_callers_own():
    first = eigenvalues(2.0, 3, 4)
    first[:] = 0
    assert eigenvalues(2.0, 3, 4)[0] > 0


@pytest.mark.parametrize("d", [2, 3, 4, 7, 20, 50])
def test_multiplicities_are_exact_integers(d):
    exact = [exact_multiplicity(d, j) for j in range(40)]
    np.testing.assert_allclose(multiplicities(d, 39), np.array(exact, dtype=float), rtol=1e-12)
    small = [value for value in exact if value < 1e9]
    np.testing.assert_array_equal(multiplicities(d, len(small) - 1), small)


def test_growth_rates():
    """(s/β) λ_j j(j+d−2), with s e^β the scaled amplitude."""
    rates = growth_rates(2.0, 3, 2)
    # On S²: λ_1 = cosh β/β − sinh β/β², j(j+1) = 2.
    first = (np.cosh(2.0) / 2 - np.sinh(2.0) / 4) * np.exp(-2.0)
    assert rates[0] == 0
    assert rates[1] == pytest.approx(2 * first / 2.0, rel=1e-14)
    unit = growth_rates(2.0, 3, 2, scaled_amplitude=np.exp(2.0))
    np.testing.assert_allclose(unit, np.exp(2.0) * rates)
    np.testing.assert_array_equal(laplacian_eigenvalues(2, 3), [0, 1, 4, 9])
    np.testing.assert_array_equal(laplacian_eigenvalues(5, 2), [0, 4, 10])


@pytest.mark.parametrize("degree", [0, 3, 10, 40])
@pytest.mark.parametrize(("d", "beta"), SOME)
def test_tail_bound_is_a_bound_and_sharp(d, beta, degree):
    with mp.workdps(40):
        tail = float(mp.fsum(exact_terms(beta, d, degree)[degree + 1 :]))
    found = tail_bound(beta, d, degree)
    assert tail * (1 - 1e-11) <= found
    if tail > 1e-290:
        assert found <= tail * 1.001


@pytest.mark.parametrize("degree", [1, 6, 15])
@pytest.mark.parametrize(("d", "beta"), SOME)
def test_tail_bound_holds_for_the_kernel_itself(d, beta, degree):
    with mp.workdps(80):
        terms = exact_terms(beta, d, degree)[: degree + 1]
        errors = []
        for t in mp.linspace(-1, 1, 9):
            series = mp.fdot(terms, legendre(d, degree, t))
            errors.append(abs(mp.exp(beta * (t - 1)) - series))
        worst = float(max(errors))
    bound = tail_bound(beta, d, degree)
    assert worst <= bound * (1 + 1e-11)
    # Where x = y nothing cancels, so the bound is attained.
    assert bound <= worst * 1.001


@pytest.mark.parametrize("tolerance", [1e-13, 1e-8, 1e-3])
@pytest.mark.parametrize(("d", "beta"), [*SOME, (2, 1e-6), (2, 4e-5), (3, 1e-3), (3, 400.0)])
def test_truncation_degree_is_the_smallest_that_will_do(d, beta, tolerance):
    """Tails of f, of its gradient and of its Hessian, relative to λ_0 times 1, β, max(β, β²)."""
    degree = truncation_degree(beta, d, tolerance)

    def within(degree):
        with mp.workdps(40):
            terms = exact_terms(beta, d, degree)
            tails = [mp.mpf(0)] * 3
            for j in range(degree + 1, len(terms)):
                slope = mp.mpf(j * (j + d - 2)) / (d - 1)
                bend = slope * (j - 1) * (j + d - 1) / (d + 1)
                for i, weight in enumerate((1, slope, slope + bend)):
                    tails[i] += weight * terms[j]
            sizes = (1, beta, max(beta, beta**2))
            shares = zip(tails, sizes, strict=True)
            return max(tail / size for tail, size in shares) <= tolerance * terms[0]

    assert within(degree)
    assert degree == 0 or not within(degree - 1)


def test_the_degree_grows_as_the_root_of_beta():
    """57 at β = 50 on the circle for 1e-13 of the value alone; derivatives want a few more."""
    assert 57 <= truncation_degree(50.0, 2, 1e-13) <= 70
    ratio = truncation_degree(8e4, 2, 1e-13) / truncation_degree(2e4, 2, 1e-13)
    assert ratio == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, np.inf])
def test_beta_out_of_range_is_refused(beta):
    for function in (eigenvalues, tail_bound):
        with pytest.raises(ValueError, match=r"beta=.*: expected a finite number > 0"):
            function(beta, 3, 2)
    with pytest.raises(ValueError, match=r"beta=.*: expected a finite number > 0"):
        truncation_degree(beta, 3, 1e-10)


def test_dimension_out_of_range_is_refused():
    with pytest.raises(ValueError, match="ambient_dim=1: expected an integer >= 2"):
        eigenvalues(1.0, 1, 2)
