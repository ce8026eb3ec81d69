"""Blocks of rows: the same as whole arrays, on any number of threads."""

import numpy as np
import pytest

from meanfield.runtime.blocks import by_rows, for_each, sum_by_rows

COUNTS = (0, 1, 8191, 8192, 8193, 50_000)


@pytest.mark.parametrize("threads", (1, 3))
@pytest.mark.parametrize("count", COUNTS)
def test_blocks_cover_every_row_once(count, threads):
    x = np.arange(2.0 * count).reshape(count, 2)
    result = by_rows(lambda rows: x[rows] ** 2, count, threads)
    np.testing.assert_array_equal(result, x**2)


@pytest.mark.parametrize("threads", (1, 3))
@pytest.mark.parametrize("count", COUNTS)
def test_sums_count_every_row_once(count, threads):
    x = np.arange(count, dtype=np.int64)
    result = sum_by_rows(lambda rows: np.array([len(x[rows]), x[rows].sum()]), count, threads)
    np.testing.assert_array_equal(result, [count, count * (count - 1) // 2])


def test_sums_are_bitwise_the_same_on_any_number_of_threads():
    x = np.random.default_rng(0).normal(size=100_000)
    one, four = (sum_by_rows(lambda rows: x[rows].sum(), len(x), threads) for threads in (1, 4))
    assert one == four


def test_an_error_in_a_thread_is_raised():
    def fail(item):
        if item == 7:
            raise OverflowError("item 7")

    with pytest.raises(OverflowError, match="item 7"):
        for_each(fail, range(10), threads=2)
