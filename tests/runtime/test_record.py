import json

import numpy as np
import pytest
import xarray

from meanfield.runtime.evolve import evolve
from meanfield.runtime.flow import State
from meanfield.runtime.record import Record, read_record
from tests.runtime.toy import Decay


def test_table_snapshots_and_description_come_back(tmp_path):
    path = tmp_path / "record.h5"
    flow = Decay(3)
    constants = {"grid": np.arange(6.0).reshape(2, 3)}
    record = Record(
        path, flow, interval=0.5, snapshot_every=2, settings={"seed": 4}, constants=constants
    )
    evolve(flow, 2.0, [record])
    stored = read_record(path)
    np.testing.assert_array_equal(stored.table["time"], [0, 0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(stored.table["step"], [0, 5, 10, 15, 20])
    np.testing.assert_allclose(stored.table["energy"], 6 * np.exp(-stored.table["time"]))
    np.testing.assert_array_equal(stored.snapshots["time"], [0, 1, 2])
    expected = np.exp(-stored.snapshots["time"])[:, None] * np.array([1, 2, 3])
    np.testing.assert_allclose(stored.snapshots["rows"], expected)
    np.testing.assert_array_equal(stored.constants["grid"], constants["grid"])
    assert stored.description["settings"] == {"seed": 4}
    assert stored.description["flow"] == {"flow": "decay", "length": 0.1}
    assert stored.description["versions"]["numpy"] == np.__version__


def test_xarray_opens_it(tmp_path):
    path = tmp_path / "record.h5"
    flow = Decay(2)
    evolve(flow, 1.0, [Record(path, flow, every=2)])
    with xarray.open_dataset(path, engine="h5netcdf") as table:
        assert dict(table.sizes) == {"time": 6}
        np.testing.assert_allclose(table["energy"].sel(time=1.0), 3 * np.exp(-1.0))
        assert json.loads(table.attrs["ranks"]) == 1
    with xarray.open_dataset(path, group="snapshots", engine="h5netcdf") as snapshots:
        assert snapshots["rows"].shape == (6, 2)


def test_a_number_that_appears_late_is_missing_before(tmp_path):
    class Late(Decay):
        def describe(self):
            row = super().describe()
            return row | {"late": 1.0} if self.time > 0.15 else row

    path = tmp_path / "record.h5"
    flow = Late(1)
    evolve(flow, 0.3, [Record(path, flow, every=1)])
    np.testing.assert_array_equal(read_record(path).table["late"], [np.nan, np.nan, 1, 1])


def test_appending_cuts_back_to_the_given_step(tmp_path):
    path = tmp_path / "record.h5"
    flow = Decay(1)
    evolve(flow, 1.0, [Record(path, flow, every=1)])
    Record(path, flow, every=1, append=True, from_step=4)
    assert list(read_record(path).table["step"]) == [0, 1, 2, 3, 4]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match="missing"):
        Record(tmp_path / "missing" / "record.h5", Decay(1), every=1)


def test_one_interval_is_needed(tmp_path):
    with pytest.raises(ValueError, match="exactly one"):
        Record(tmp_path / "record.h5", Decay(1))


def test_a_flow_that_ends_where_a_row_was_written_gets_no_second_one(tmp_path):
    class Exhausted(Decay):
        def step(self, limit):
            if self.taken == 4:
                self.finished = "exhausted"
            return super().step(limit)

    path = tmp_path / "record.h5"
    flow = Exhausted(1)
    outcome = evolve(flow, 1.0, [Record(path, flow, every=2)])
    assert (outcome.reason, outcome.steps) == ("exhausted", 4)
    stored = read_record(path)
    assert list(stored.table["step"]) == list(stored.snapshots["step"]) == [0, 2, 4]


def test_a_complex_snapshot_is_refused_and_not_cut_to_its_real_part(tmp_path):
    class Wave(Decay):
        def snapshot(self):
            return State({}, {"coefficients": np.array([1j])})

    flow = Wave(1)
    with pytest.raises(TypeError, match="coefficients of the snapshot is complex"):
        evolve(flow, 1.0, [Record(tmp_path / "record.h5", flow, every=2)])
