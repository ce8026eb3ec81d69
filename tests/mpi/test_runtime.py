"""Checkpoints, records and rank helpers, on however many ranks there are."""

import numpy as np
import pytest

from meanfield.runtime.checkpoint import Checkpoint, restore
from meanfield.runtime.evolve import evolve
from meanfield.runtime.output import prepare_directory
from meanfield.runtime.parallel import (
    gather_rows,
    local_slice,
    max_over_ranks,
    raise_together,
    row_offset,
    sum_over_ranks,
)
from meanfield.runtime.record import Record, read_record
from tests.runtime.toy import Decay


def local_count(total, comm):
    rows = local_slice(total, comm)
    return rows.stop - rows.start


@pytest.mark.parametrize("total", [0, 1, 2, 7])
def test_blocks_cover_the_rows_in_order(comm, total):
    rows = local_slice(total, comm)
    mine = np.arange(total, dtype=float)[rows]
    assert row_offset(len(mine), comm) == rows.start
    assert sum_over_ranks(len(mine), comm) == total
    gathered = gather_rows(mine, comm)
    if comm.Get_rank() == 0:
        np.testing.assert_array_equal(gathered, np.arange(total))
    else:
        assert gathered is None


def test_a_nan_on_one_rank_is_seen_by_all(comm):
    last = comm.Get_rank() == comm.Get_size() - 1
    assert np.isnan(max_over_ranks(np.nan if last else 1.0, comm))
    assert max_over_ranks(float(comm.Get_rank()), comm) == comm.Get_size() - 1


def test_errors_are_raised_by_all_or_none(comm):
    raise_together(None, comm)
    last = comm.Get_size() - 1
    with pytest.raises(ValueError, match=f"rank {last}"):
        raise_together(f"rank {last}" if comm.Get_rank() == last else None, comm)


@pytest.mark.parametrize("total", [2, 7])
def test_record_and_checkpoint_do_not_depend_on_the_rank_count(comm, shared_folder, total):
    path, checkpoint = shared_folder / f"record{total}.h5", shared_folder / f"check{total}.h5"
    flow = Decay(local_count(total, comm), comm)
    evolve(flow, 1.0, [Record(path, flow, interval=0.5), Checkpoint(checkpoint, every=3)])
    comm.Barrier()
    serial = Decay(total)
    assert restore(checkpoint, serial) == 10
    gathered = gather_rows(flow.rows, comm)
    if comm.Get_rank() == 0:
        np.testing.assert_array_equal(serial.rows, gathered)
        stored = read_record(path)
        expected = np.arange(1, total + 1) * np.exp(-stored.snapshots["time"])[:, None]
        np.testing.assert_allclose(stored.snapshots["rows"], expected)
    again = Decay(local_count(total, comm), comm)
    restore(checkpoint, again)
    np.testing.assert_array_equal(again.rows, flow.rows)


def test_the_same_rank_count_shares_rows_as_before(comm, shared_folder):
    # 3 rows on the last rank, 6 on the one before, ...: not how they would be cut anew.
    count = 3 * (comm.Get_size() - comm.Get_rank())
    flow = Decay(count, comm)
    evolve(flow, 0.5, [Checkpoint(shared_folder / "uneven.h5")])
    comm.Barrier()
    again = Decay(count, comm)
    restore(shared_folder / "uneven.h5", again)
    np.testing.assert_array_equal(again.rows, flow.rows)


def test_a_continued_record_takes_its_snapshots_in_turn(comm, shared_folder):
    def run(name, stops):
        path = shared_folder / f"{name}.h5"
        flow, step = Decay(2, comm), 0
        for stop in stops:
            record = Record(
                path, flow, every=1, snapshot_every=3, append=step > 0, from_step=step
            )
            step = evolve(flow, lambda moment, stop=stop: moment.step == stop and "stop",
                          [record], first_step=step).steps
        comm.Barrier()
        return read_record(path)

    whole, parts = run("whole", [9]), run("parts", [3, 9])
    assert list(whole.snapshots["step"]) == list(parts.snapshots["step"]) == [0, 3, 6, 9]
    assert list(whole.table["step"]) == list(parts.table["step"]) == list(range(10))


def test_a_folder_that_cannot_be_cleared_is_an_error_on_all_ranks(comm, shared_folder):
    if comm.Get_rank() == 0:
        (shared_folder / "record.h5").mkdir()
    comm.Barrier()
    with pytest.raises(OSError, match="cannot be written"):
        prepare_directory(shared_folder, overwrite=True, comm=comm)
