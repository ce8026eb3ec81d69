import os
import signal

import numpy as np
import pytest

from meanfield.runtime.evolve import evolve, is_multiple, next_multiple
from meanfield.runtime.stopping import AnyOf, UntilSettled, UntilSlow, UntilTime
from tests.runtime.toy import Decay


class Watch:
    """An observer that remembers when it looked, and asks for given times."""

    def __init__(self, *times):
        self.times = times
        self.seen = []

    def next_time(self, time):
        return min((t for t in self.times if t > time), default=np.inf)

    def observe(self, moment):
        self.seen.append((moment.step, moment.flow.time))


def test_ends_exactly_at_the_final_time_and_says_so():
    flow = Decay(3)
    outcome = evolve(flow, 1.05)
    assert (flow.time, outcome.steps, outcome.interrupted) == (1.05, 11, False)
    assert outcome.reason == "reached time 1.05"
    np.testing.assert_allclose(flow.rows, np.exp(-1.05) * np.array([1, 2, 3]))


def test_events_are_hit_exactly_and_no_sliver_is_taken():
    watch = Watch(0.3, 0.7)
    outcome = evolve(Decay(1), 1.0, [watch])
    # 0.1 + 0.1 + 0.1 is not 0.3, nor would ten such steps end at 1: rounding adds no steps.
    assert outcome.steps == 10
    assert {0.3, 0.7, 1.0} <= {time for _, time in watch.seen}


def test_observers_see_the_start_and_every_step():
    watch = Watch()
    evolve(Decay(1), 0.5, [watch])
    assert [step for step, _ in watch.seen] == [0, 1, 2, 3, 4, 5]


def test_a_flow_may_stop_by_itself():
    flow = Decay(1)

    class Stopper(Watch):
        def observe(self, moment):
            if moment.step == 3:
                flow.finished = "resolution exhausted"

    outcome = evolve(flow, 1.0, [Stopper()])
    assert (outcome.reason, outcome.steps) == ("resolution exhausted", 3)


def test_an_error_is_told_where_it_happened():
    with pytest.raises(FloatingPointError, match="particle 3") as caught:
        evolve(Decay(4, fail_at=(0, 2)), 1.0)
    assert caught.value.__notes__ == ["in step 3, from time 0.2"]


def test_a_termination_request_ends_the_run_after_the_step():
    class Asks(Watch):
        def observe(self, moment):
            super().observe(moment)
            if moment.step == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            assert not moment.last

    before = signal.getsignal(signal.SIGTERM)
    outcome = evolve(Decay(1), 1.0, [asks := Asks()])
    assert outcome.interrupted
    assert asks.seen[-1][0] <= 5
    assert signal.getsignal(signal.SIGTERM) is before


def test_slow_rule_stops_at_the_first_slow_step():
    # The toy's speed is e^{-t}, below 1/2 first at t = 0.7.
    outcome = evolve(Decay(1), UntilSlow(0.5))
    assert outcome.steps == 7
    assert "metastable" in outcome.reason


def test_settled_rule_needs_a_full_window_of_equal_counts():
    counts = iter([5, 3, 2, 2, None, 2, 2, 2, 2])
    rule = UntilSettled(lambda flow: next(counts), window=3, every=2, max_speed=1.0)
    outcome = evolve(Decay(1), AnyOf(rule, UntilTime(10.0)))
    assert outcome.steps == 14
    assert outcome.reason.startswith("2 clusters over 3 snapshots")


def test_settled_rule_waits_for_slowness():
    rule = UntilSettled(lambda flow: 1, window=2, every=1, max_speed=0.5)
    assert evolve(Decay(1), rule).steps == 7


def test_any_of_stops_at_the_earliest():
    assert evolve(Decay(1), AnyOf(UntilTime(0.25), UntilSlow(0.5))).time == 0.25


@pytest.mark.parametrize("make", [lambda: UntilTime(np.nan), lambda: UntilSlow(0.0)])
def test_rules_check_their_numbers(make):
    with pytest.raises(ValueError, match="expected a finite"):
        make()


@pytest.mark.parametrize("interval", [0.1, 0.25, 1 / 3, 7.0])
def test_multiples_survive_rounding(interval):
    time = 0.0
    for k in range(1, 200):
        following = next_multiple(time, interval)
        assert following == pytest.approx(k * interval, rel=1e-14)
        assert is_multiple(following, interval)
        # What adding steps up would give instead.
        time = time + interval
        assert is_multiple(time, interval)
    assert not is_multiple(0.5 * interval, interval)


def test_adding_up_many_steps_leaves_no_sliver_at_the_end():
    # Twenty thousand times 0.1 falls short of 2000 by 3e-9: rounding, not a step.
    assert evolve(Decay(1), 2000.0).steps == 20000


def test_events_that_differ_by_rounding_are_one():
    assert 3 * 0.1 > 0.3
    assert evolve(Decay(1, length=0.3), 3 * 0.1, [Watch(0.3)]).steps == 1


def test_slow_rule_needs_a_speed():
    class Silent(Decay):
        def describe(self):
            return {"energy": 0.0}

    with pytest.raises(ValueError, match="describes energy: expected max_speed"):
        evolve(Silent(1), UntilSlow(0.5))
