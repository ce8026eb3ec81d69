"""Measures: what is accepted, and what is refused with a helpful sentence."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.fields.measure import off_sphere_problem

SQUARE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
QUARTERS = np.full(4, 0.25)


def test_attributes():
    measure = mf.Measure(SQUARE.tolist(), QUARTERS.tolist())
    assert measure.nodes.flags.c_contiguous
    assert measure.nodes.dtype == measure.masses.dtype == np.float64
    assert (measure.ambient_dim, measure.global_count, measure.comm) == (2, 4, None)


def test_moving_keeps_the_masses():
    measure = mf.Measure(SQUARE, QUARTERS)
    moved = measure.moved(-SQUARE)
    assert moved.masses is measure.masses
    np.testing.assert_array_equal(moved.nodes, -SQUARE)
    np.testing.assert_array_equal(measure.nodes, SQUARE)


@pytest.mark.parametrize(
    ("nodes", "masses", "message"),
    [
        (SQUARE[0], QUARTERS, r"nodes has shape \(2,\): expected \(n, d\)"),
        (np.ones((4, 1)), QUARTERS, r"nodes has shape \(4, 1\): expected .* d >= 2"),
        (SQUARE, QUARTERS[:3], r"masses has shape \(3,\): expected .*\(4,\)"),
        (SQUARE, QUARTERS[:, None], r"masses has shape \(4, 1\)"),
        (SQUARE * [[1.0], [1.0], [1.001], [1.0]], QUARTERS, "node 2 = .* has length 1.001"),
        (SQUARE * [[1.0], [np.nan], [1.0], [1.0]], QUARTERS, "node 1 = .* has length nan"),
        (SQUARE * 0, QUARTERS, "node 0 .* has length 0; .*normalise"),
        (SQUARE, [0.5, 0.5, 0.5, -0.5], "mass 3 = -0.5; expected a finite number >= 0"),
        (SQUARE, [0.5, np.nan, 0.5, 0.5], "mass 1 = nan"),
        (SQUARE, [0.5, np.inf, 0.5, 0.5], "mass 1 = inf"),
        (SQUARE, 2 * QUARTERS, "masses sum to 2; expected 1"),
        (np.empty((0, 2)), [], "masses sum to 0; expected 1"),
    ],
)
def test_what_is_no_measure_is_refused(nodes, masses, message):
    with pytest.raises(ValueError, match=message):
        mf.Measure(nodes, masses)


def test_rounding_is_accepted():
    mf.Measure(SQUARE * (1 + 1e-9), QUARTERS * (1 - 1e-9))


def test_the_first_row_off_the_sphere_is_named():
    rows = SQUARE * [[1.0], [1.1], [1.2], [1.0]]
    assert off_sphere_problem("row", SQUARE) is None
    assert off_sphere_problem("row", SQUARE[:0]) is None
    assert off_sphere_problem("row", rows, offset=10).startswith("row 11 = [0.  1.1] has length")
