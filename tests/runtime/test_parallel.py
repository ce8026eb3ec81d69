"""What ranks do together, on one rank; tests/mpi has the rest."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.runtime.parallel import (
    broadcast,
    gather_rows,
    local_slice,
    max_over_ranks,
    raise_together,
    rank,
    row_offset,
    size,
    sum_over_ranks,
    threads_per_rank,
)


class Seat:
    """A rank's place among others, for functions that only ask for it."""

    def __init__(self, rank, size):
        self.Get_rank, self.Get_size = (lambda: rank), (lambda: size)


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_blocks_cover_all_rows_in_order_and_differ_by_one_at_most(total, ranks):
    blocks = [local_slice(total, Seat(r, ranks)) for r in range(ranks)]
    assert blocks[0].start == 0 and blocks[-1].stop == total
    assert all(one.stop == other.start for one, other in pairwise(blocks))
    lengths = [block.stop - block.start for block in blocks]
    assert max(lengths) - min(lengths) <= 1


def test_without_a_communicator_everything_is_itself():
    assert (rank(None), size(None), row_offset(7, None)) == (0, 1, 0)
    rows = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(gather_rows(rows, None), rows)
    assert sum_over_ranks(2.5, None) == 2.5
    assert np.isnan(max_over_ranks(np.nan, None))
    assert broadcast("x", None) == "x"


def test_problems_are_raised():
    raise_together(None, None)
    with pytest.raises(ValueError, match="too long"):
        raise_together("too long", None)
    with pytest.raises(OSError, match="too long"):
        raise_together("too long", None, OSError)


def test_threads_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_per_rank(None) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    assert threads_per_rank(None) == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads_per_rank(None) >= 1
