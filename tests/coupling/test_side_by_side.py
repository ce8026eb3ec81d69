import numpy as np
import pytest

from meanfield.coupling.side_by_side import SideBySide
from meanfield.coupling.summary import as_text, observed_slope, summarise
from meanfield.runtime.evolve import evolve
from tests.runtime.toy import Decay


class Ends(Decay):
    """Stops by itself at a time of its own."""

    def __init__(self, count, ends_at):
        super().__init__(count, length=0.07)
        self.ends_at = ends_at

    def step(self, limit):
        if self.time + self.length > self.ends_at:
            self.finished = f"resolution exhausted at {self.time:.2f}"
            return 0.0
        return super().step(limit)


def test_members_keep_their_steps_and_meet_at_common_times():
    members = {"slow": Decay(2, length=0.3), "fast": Decay(3, length=0.07)}
    flow = SideBySide(members, 0.5)
    assert flow.step(np.inf) == 0.5
    assert flow.step(0.2) == 0.2
    assert members["slow"].time == members["fast"].time == flow.time == 0.7
    np.testing.assert_allclose(members["fast"].rows, np.exp(-0.7) * np.array([1, 2, 3]))


def test_rows_and_states_carry_the_members_names():
    flow = SideBySide(
        {"a": Decay(1), "b": Decay(2)}, 0.5,
        compare=lambda members: {"ratio": members["b"].rows.sum() / members["a"].rows.sum()},
        pictured=["b"],
    )
    assert flow.describe() == {
        "a.energy": 1.0, "a.max_speed": 1.0, "b.energy": 3.0, "b.max_speed": 1.0, "ratio": 3.0,
    }
    assert list(flow.snapshot().distributed) == ["b.rows"]
    assert set(flow.state().distributed) == {"a.rows", "b.rows"}


def test_a_restored_comparison_continues_bitwise():
    def fresh():
        return SideBySide({"a": Decay(1), "b": Decay(2, length=0.03)}, 0.25)

    flow, other = fresh(), fresh()
    flow.step(np.inf)
    other.restore(flow.state())
    flow.step(np.inf)
    other.step(np.inf)
    assert other.time == flow.time == 0.5
    np.testing.assert_array_equal(other.members["b"].rows, flow.members["b"].rows)


def test_all_stop_with_the_first_at_the_last_common_time():
    flow = SideBySide({"a": Decay(2), "b": Ends(1, ends_at=1.3)}, 0.5)
    outcome = evolve(flow, 5.0)
    assert outcome.time == 1.0
    assert outcome.reason.startswith("b: resolution exhausted")
    np.testing.assert_allclose(flow.members["a"].rows, np.exp(-1.0) * np.array([1, 2]))


def test_members_that_may_stop_leave_and_the_others_go_on():
    def fresh():
        members = {"a": Decay(2), "b": Ends(1, ends_at=1.3)}
        return SideBySide(members, 0.5, compare=lambda running: {"count": len(running)},
                          may_stop=["b"])

    flow = fresh()
    assert evolve(flow, 2.0).reason == "reached time 2"
    assert flow.stopped == {"b": "resolution exhausted at 1.28"}
    # The one that left waits at the last common time.
    assert flow.members["b"].time == 1.0
    row = flow.describe()
    assert row["count"] == 1 and "b.energy" not in row
    other = fresh()
    other.restore(flow.state())
    assert other.stopped == flow.stopped
    assert list(other.running) == ["a"]


def test_an_error_names_the_member():
    flow = SideBySide({"a": Decay(1), "b": Decay(1, fail_at=(0, 1))}, 0.5)
    with pytest.raises(FloatingPointError, match="b: the position of particle 3"):
        flow.step(np.inf)


def test_members_must_begin_together():
    late = Decay(1)
    late.time = 1.0
    with pytest.raises(ValueError, match="different times"):
        SideBySide({"a": Decay(1), "b": late}, 0.5)
    with pytest.raises(ValueError, match="at least one"):
        SideBySide({}, 0.5)
    with pytest.raises(ValueError, match="interval"):
        SideBySide({"a": Decay(1)}, 0.0)


def test_slope_of_a_power_law():
    counts = [10, 100, 1000]
    assert observed_slope(counts, [3 * n**-0.5 for n in counts]) == pytest.approx(-0.5)
    assert observed_slope([10], [1.0]) is None


def test_summary_takes_the_last_row_and_prints_every_size():
    class Of:
        def __init__(self, value):
            self.value, self.error, self.method = value, 0.01 * value, "exact"

    names = [f"{kind}_{n}" for kind in ("random", "even") for n in (10, 1000)]
    table = {"time": np.array([0.0, 2.0]), "step": np.array([0.0, 1.0])}
    for name in ("density", *names):
        table[f"{name}.energy"] = np.array([1.0, 0.5])
    for name in ("degree", "tail", "mass", "minimum_density"):
        table[f"density.{name}"] = np.array([1.0, 1.0])
    distances = {name: (Of(1 / int(name.split("_")[1])), Of(2.0)) for name in names}
    summary = summarise(table, distances, [10, 1000], ("random", "even"))
    assert summary["time"] == 2.0
    assert summary["w2"]["random"] == [0.1, 0.001]
    assert summary["w2_slope"]["even"] == pytest.approx(-1)
    assert summary["energy_error"]["even"] == [0.0, 0.0]
    assert summary["energy_error_slope"]["even"] is None
    summary |= {
        "title": "title", "outcome": "reached", "seconds": 1.0, "ranks": 1, "start_error": 0.0,
        "tail_tolerance": 1e-6,
    }
    text = as_text(summary, table, {"random": "r", "even": "e"}, "even_10")
    assert "n^-1.00" in text
    assert "      1000" in text
