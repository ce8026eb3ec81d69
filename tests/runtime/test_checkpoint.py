import numpy as np
import pytest

from meanfield.runtime.checkpoint import Checkpoint, restore
from meanfield.runtime.evolve import evolve
from meanfield.runtime.record import Record, read_record
from meanfield.runtime.stopping import AnyOf, UntilSettled
from tests.runtime.toy import Decay


def test_a_continued_run_and_its_table_are_those_of_an_uninterrupted_one(tmp_path):
    whole = Decay(5)
    evolve(whole, 2.0, [Record(tmp_path / "whole.h5", whole, interval=0.3)])

    class Crash(Exception):
        pass

    class Crashing:
        def next_time(self, time):
            return np.inf

        def observe(self, moment):
            if moment.step == 17:
                raise Crash

    path, checkpoint = tmp_path / "record.h5", tmp_path / "checkpoint.h5"
    first = Decay(5)
    observers = [Record(path, first, interval=0.3), Checkpoint(checkpoint, every=6), Crashing()]
    with pytest.raises(Crash):
        evolve(first, 2.0, observers)

    second = Decay(5)
    step = restore(checkpoint, second)
    assert step == 12
    record = Record(path, second, interval=0.3, append=True, from_step=step)
    evolve(second, 2.0, [record, Checkpoint(checkpoint, every=6)], first_step=step)
    np.testing.assert_array_equal(second.rows, whole.rows)
    expected, found = read_record(tmp_path / "whole.h5"), read_record(path)
    for name in expected.table:
        np.testing.assert_array_equal(found.table[name], expected.table[name])
    np.testing.assert_array_equal(found.snapshots["rows"], expected.snapshots["rows"])


def test_a_rule_remembers_its_window(tmp_path):
    def rule():
        return UntilSettled(lambda flow: 2, window=5, every=1, max_speed=1.0)

    flow = Decay(1)
    evolve(flow, rule(), [Checkpoint(tmp_path / "whole.h5")])
    short = Decay(1)
    half = rule()
    evolve_three = evolve(short, lambda moment: half(moment) or (moment.step == 3 and "three"))
    assert evolve_three.steps == 3
    remembered = rule()
    remembered.remember(half.memory())
    assert evolve(short, remembered, first_step=3).steps == 4


def test_what_is_no_checkpoint_is_refused(tmp_path):
    flow = Decay(2)
    path = tmp_path / "checkpoint.h5"
    with pytest.raises(FileNotFoundError, match="no such checkpoint"):
        restore(path, flow)
    evolve(flow, 0.1, [Checkpoint(path)])
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"plain text"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged or no checkpoint"):
            restore(path, flow)
    evolve(Decay(1), 0.1, [Record(tmp_path / "record.h5", Decay(1), every=1)])
    with pytest.raises(ValueError, match="format"):
        restore(tmp_path / "record.h5", flow)


def test_other_settings_are_named(tmp_path):
    path = tmp_path / "checkpoint.h5"
    evolve(Decay(2), 0.1, [Checkpoint(path)])
    with pytest.raises(ValueError, match=r"length was 0\.1 and is 0\.2"):
        restore(path, Decay(2, length=0.2))


def test_the_last_checkpoint_stays_whole_when_writing_fails(tmp_path):
    class Unwritable(Decay):
        def state(self):
            if self.time > 0.35:
                raise RuntimeError("disk full")
            return super().state()

    path = tmp_path / "checkpoint.h5"
    with pytest.raises(RuntimeError, match="disk full"):
        evolve(Unwritable(2), 1.0, [Checkpoint(path, every=1)])
    flow = Decay(2)
    assert restore(path, flow) == 3
    assert flow.time == pytest.approx(0.3)


def continued(path, checkpoint, until):
    flow = Decay(2)
    step = restore(checkpoint, flow)
    record = Record(path, flow, interval=0.3, append=True, from_step=step)
    return evolve(flow, until, [record, Checkpoint(checkpoint)], first_step=step), flow


def test_a_run_that_had_ended_is_not_taken_further_unless_asked(tmp_path):
    path, checkpoint = tmp_path / "record.h5", tmp_path / "checkpoint.h5"
    flow = Decay(2)
    ended = evolve(flow, 1.2, [Record(path, flow, interval=0.3), Checkpoint(checkpoint)])
    before = read_record(path)
    assert continued(path, checkpoint, 1.2)[0] == ended
    after = read_record(path)
    np.testing.assert_array_equal(after.table["time"], before.table["time"])
    np.testing.assert_array_equal(after.snapshots["time"], before.snapshots["time"])

    whole = Decay(2)
    expected = evolve(whole, 2.1, [Record(tmp_path / "whole.h5", whole, interval=0.3)])
    outcome, further = continued(path, checkpoint, 2.1)
    assert outcome == expected
    np.testing.assert_array_equal(further.rows, whole.rows)
    np.testing.assert_array_equal(
        read_record(path).table["time"], read_record(tmp_path / "whole.h5").table["time"]
    )


def test_the_memory_of_another_rule_is_refused(tmp_path):
    rule = UntilSettled(lambda flow: 1, window=2, every=1, max_speed=1.0)
    evolve(Decay(1), rule, [Checkpoint(tmp_path / "checkpoint.h5")])
    with pytest.raises(ValueError, match="another stopping rule"):
        restore(tmp_path / "checkpoint.h5", Decay(1), AnyOf(rule))


def test_a_run_killed_in_its_first_step_can_be_continued(tmp_path):
    path, checkpoint = tmp_path / "record.h5", tmp_path / "checkpoint.h5"
    flow = Decay(2, fail_at=(0, 0))
    with pytest.raises(FloatingPointError):
        evolve(flow, 0.9, [Record(path, flow, interval=0.3), Checkpoint(checkpoint, minutes=10)])
    continued(path, checkpoint, 0.9)
    np.testing.assert_allclose(read_record(path).table["time"], [0, 0.3, 0.6, 0.9])
