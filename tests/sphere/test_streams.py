"""Random rows belong to their global numbers, and to seed, purpose and step."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from meanfield.sphere.streams import CHUNK_ROWS, draw_rows, normals, uniforms

LENGTH = 3 * CHUNK_ROWS + 17


@given(cuts=st.lists(st.integers(0, LENGTH), max_size=5))
def test_blocks_make_the_whole_wherever_it_is_cut(cuts):
    whole = normals(3, "test", 5, slice(0, LENGTH), 2)
    ends = [0, *sorted(cuts), LENGTH]
    blocks = [normals(3, "test", 5, slice(begin, end), 2) for begin, end in pairwise(ends)]
    assert np.array_equal(np.concatenate(blocks), whole)


def test_a_longer_cloud_begins_with_the_shorter():
    short = uniforms(1, "test", 0, slice(0, 10), 3)
    assert np.array_equal(uniforms(1, "test", 0, slice(0, LENGTH), 3)[:10], short)


@pytest.mark.parametrize(
    "other",
    [(2, "test", 0), (2**40, "test", 0), (1, "tes", 0), (1, "test2", 0), (1, "test", 1)],
)
def test_seed_purpose_and_step_give_numbers_of_their_own(other):
    rows = slice(0, 5000)
    first, second = normals(1, "test", 0, rows, 1)[:, 0], normals(*other, rows, 1)[:, 0]
    # The correlation of independent samples is normal with deviation n^{-1/2}.
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(5000)


def test_no_chunk_repeats_another():
    rows = uniforms(1, "test", 0, slice(0, 20 * CHUNK_ROWS), 1).reshape(20, CHUNK_ROWS)
    assert len(np.unique(rows)) == rows.size


def test_distributions():
    rows = slice(500, 40_500)
    assert kstest(normals(1, "test", 0, rows, 1)[:, 0], "norm").pvalue > 1e-3
    assert kstest(uniforms(1, "test", 0, rows, 1)[:, 0], "uniform").pvalue > 1e-3


def test_a_recipe_may_use_any_number_of_variates():
    def draw(generator, count):
        generator.random(generator.integers(1, 100))
        return generator.random(count)

    whole = draw_rows(1, "test", 0, slice(0, LENGTH), draw)
    part = draw_rows(1, "test", 0, slice(CHUNK_ROWS + 5, LENGTH), draw)
    assert np.array_equal(part, whole[CHUNK_ROWS + 5 :])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((-1, "test", 0, slice(0, 1), 1), "seed=-1"),
        ((1.5, "test", 0, slice(0, 1), 1), "seed=1.5"),
        ((1, "test", -2, slice(0, 1), 1), "step=-2"),
        ((1, "test", 0, slice(3, 1), 1), "rows"),
        ((1, "test", 0, slice(0, 4, 2), 1), "rows"),
    ],
)
def test_what_is_no_stream_is_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        normals(*arguments)
