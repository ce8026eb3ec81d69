"""Integrators: observed orders, error control, what they remember."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.runtime.runge_kutta import CLASSICAL, EULER, DormandPrince, explicit_step
from meanfield.sphere.geometry import normalise, project_tangent

# A rotation that speeds up and down, on the sphere: y' = (1 + y₁) ω × y.
AXIS = np.array([0.0, 0.0, 1.0])


def spin(y):
    return (1 + 0.5 * y[:, :1]) * np.cross(AXIS, y)


def exact_spin(angle, time):
    """Angle at a time: φ' = 1 + cos φ/2, solved by tan(φ/2) = √3 tan(√3 t/4 + c)."""
    half = np.sqrt(3) / 4
    start = np.arctan(np.tan(angle / 2) / np.sqrt(3))
    return 2 * np.arctan(np.sqrt(3) * np.tan(half * time + start))


def spun(tableau, steps, time=1.0):
    y = np.array([[np.cos(0.3), np.sin(0.3), 0.0]])
    for _ in range(steps):
        y = explicit_step(tableau, spin, y, time / steps, normalise)
    return y, abs(np.arctan2(y[0, 1], y[0, 0]) - exact_spin(0.3, time))


@pytest.mark.parametrize(("tableau", "order"), [(EULER, 1), (CLASSICAL, 4)])
def test_orders_on_the_sphere(tableau, order):
    errors = [spun(tableau, steps)[1] for steps in (20, 40, 80)]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, order, atol=0.15)


def test_steps_end_on_the_sphere():
    y, _ = spun(CLASSICAL, 50)
    assert np.linalg.norm(y) == pytest.approx(1, abs=1e-15)


def test_one_classical_step_by_hand():
    """For y' = y it is the exponential's series up to the fourth term."""
    y = explicit_step(CLASSICAL, lambda y: y, np.ones(1), 0.5)
    assert y[0] == pytest.approx(1 + 0.5 + 0.125 + 0.125 / 6 + 0.0625 / 24, rel=1e-15)


def adaptive(rate, state, until, tolerance, **options):
    pair = DormandPrince(rate, lambda e: float(np.abs(e).max()) / tolerance, **options)
    time, steps = 0.0, 0
    while time < until:
        state, length = pair.step(state, until - time)
        time += length
        steps += 1
    return pair, state, time, steps


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10])
def test_errors_follow_the_tolerance(tolerance):
    start = np.array([[np.cos(0.3), np.sin(0.3), 0.0]])
    _, y, time, steps = adaptive(spin, start, 3.0, tolerance, retract=normalise)
    assert time == pytest.approx(3.0, abs=1e-14)
    angle = np.arctan2(y[0, 1], y[0, 0])
    error = abs(np.angle(np.exp(1j * (angle - exact_spin(0.3, 3.0)))))
    assert 1e-3 * tolerance < error < 10 * tolerance
    # The fifth order shows in the cost.
    assert steps < 6 + 10 * (1e-4 / tolerance) ** 0.2
    assert np.linalg.norm(y) == pytest.approx(1, abs=1e-15)


def test_the_order_of_the_pair_is_five():
    """With steps of one length the error falls by 2⁵."""
    errors = []
    for steps in (8, 16, 32):
        pair = DormandPrince(lambda y: y, lambda e: 0.0, first_length=1.0)
        y = np.ones(1)
        for _ in range(steps):
            y, length = pair.step(y, 1 / steps)
            assert length == 1 / steps
        errors.append(abs(y[0] - np.e))
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 5, atol=0.2)


def test_a_step_too_long_is_taken_back():
    calls = []

    def rate(y):
        calls.append(1)
        return -50 * y

    pair = DormandPrince(rate, lambda e: float(np.abs(e).max()) / 1e-8, first_length=1.0)
    y, length = pair.step(np.ones(1), np.inf)
    assert pair.rejected > 0
    assert length < 0.1
    assert y[0] == pytest.approx(np.exp(-50 * length), abs=1e-7)
    # One slope to begin with, then six a try: the last of a step is the first of the next.
    assert len(calls) == 1 + 6 * (1 + pair.rejected)
    before = len(calls), pair.rejected
    pair.step(y, np.inf)
    assert len(calls) - before[0] == 6 * (1 + pair.rejected - before[1])


def test_limits_are_met_without_slivers():
    pair = DormandPrince(lambda y: -y, lambda e: 0.0, first_length=1.0)
    # Three halves of a step: two equal ones rather than a whole and a half.
    _, length = pair.step(np.ones(1), 1.5)
    assert length == 0.75
    pair = DormandPrince(lambda y: -y, lambda e: 0.0, first_length=1.0)
    assert pair.step(np.ones(1), 0.25)[1] == 0.25
    # A step cut short does not make the next one short.
    assert pair.step(np.ones(1), np.inf)[1] >= 1.0


def test_interpolation_is_of_fourth_order():
    errors = []
    for length in (0.4, 0.2, 0.1):
        pair = DormandPrince(lambda y: y, lambda e: 0.0, first_length=length)
        end, _ = pair.step(np.ones(1), length)
        np.testing.assert_allclose(pair.interpolate(0.0), 1.0, rtol=1e-15)
        np.testing.assert_allclose(pair.interpolate(1.0), end, rtol=1e-15)
        inside = [abs(pair.interpolate(t)[0] - np.exp(t * length)) for t in (0.25, 0.5, 0.8)]
        errors.append(max(inside))
    # Local error of one order more.
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(rates > 4.7)


@given(st.floats(0.0, 2.0))
def test_memory_continues_bitwise(when):
    rate, norm = spin, lambda e: float(np.abs(e).max()) / 1e-6
    start = np.array([[np.cos(0.3), np.sin(0.3), 0.0]])
    pair, y, *_ = adaptive(rate, start, when, 1e-6, retract=normalise)
    other = DormandPrince(rate, norm, retract=normalise)
    other.remember(*pair.memory())
    one, again = y, y
    for _ in range(5):
        one, length = pair.step(one, np.inf)
        again, same = other.step(again, np.inf)
        assert length == same
        np.testing.assert_array_equal(one, again)


def test_no_motion_is_no_error():
    pair = DormandPrince(lambda y: 0 * y, lambda e: float(np.abs(e).max()) / 1e-8)
    y, length = pair.step(np.ones(3), np.inf)
    np.testing.assert_array_equal(y, 1)
    assert 0 < length < np.inf


def test_what_is_not_finite_is_an_error():
    pair = DormandPrince(lambda y: np.nan * y, lambda e: float(np.abs(e).max()), first_length=0.1)
    with pytest.raises(FloatingPointError, match="error of a step is not finite"):
        pair.step(np.ones(1), np.inf)


def test_a_tolerance_that_cannot_be_met_is_an_error():
    pair = DormandPrince(lambda y: y, lambda e: 2.0, first_length=0.1)
    with pytest.raises(FloatingPointError, match="no step longer than 1e-14"):
        pair.step(np.ones(1), np.inf)


def test_retraction_keeps_the_tangent_rate_tangent():
    """Every stage is evaluated on the sphere."""

    def rate(y):
        np.testing.assert_allclose(np.linalg.norm(y, axis=1), 1, atol=1e-15)
        return project_tangent(y, np.ones_like(y))

    y = normalise(np.array([[1.0, 0.2, -0.3]]))
    explicit_step(CLASSICAL, rate, y, 0.5, normalise)
    DormandPrince(rate, lambda e: 0.0, retract=normalise, first_length=0.5).step(y, 1.0)
