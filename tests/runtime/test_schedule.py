import numpy as np
import pytest

from meanfield.runtime.evolve import evolve
from meanfield.runtime.schedule import Schedule
from tests.runtime.toy import Decay


class Seen:
    """Notes the times at which its schedule is due."""

    def __init__(self, **options):
        self.schedule = Schedule(**options)
        self.next_time = self.schedule.next_time
        self.times = []

    def observe(self, moment):
        if self.schedule.is_due(moment):
            self.times.append(moment.flow.time)


@pytest.mark.parametrize(
    ("options", "times"),
    [({"interval": 0.25}, [0, 0.25, 0.5, 0.75, 0.9]), ({"every": 4}, [0, 0.4, 0.8, 0.9])],
)
def test_multiples_and_both_ends(options, times):
    seen = Seen(**options)
    evolve(Decay(1), 0.9, [seen])
    np.testing.assert_allclose(seen.times, times, atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"interval": 0.5, "every": 2}])
def test_one_of_the_two_is_needed(options):
    with pytest.raises(ValueError, match="exactly one"):
        Schedule(**options)
