"""The time loop of all flows."""

import math
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from meanfield.runtime.parallel import max_over_ranks
from meanfield.runtime.stopping import UntilTime

# An event this close to another, or to the end of a step, in units of the step, is the same.
_SLIVER = 1e-9


@dataclass
class Moment:
    """A flow between two steps, as observers and stopping rules see it.

    Attributes
    ----------
    flow : Flow
    step : int
        Steps taken so far.
    rule : callable
        The stopping rule.
    last : bool
        Whether the run ends here for good.
    interrupted : bool
        Whether it stops here to be continued later.
    """

    flow: object
    step: int
    rule: object
    last: bool = False
    interrupted: bool = False
    _row: dict | None = field(default=None, repr=False)

    @property
    def row(self):
        """The flow's description, computed once; asking is collective."""
        if self._row is None:
            self._row = self.flow.describe()
        return self._row


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    reason : str
    time : float
    steps : int
    interrupted : bool
        Whether it was told to stop from outside, and can be continued.
    """

    reason: str
    time: float
    steps: int
    interrupted: bool


def evolve(flow, until, observers=(), first_step=0):
    """Let a flow run until a rule says stop. Collective over the flow's ranks.

    When a process is asked to end (SIGTERM), the run stops after the step under way.

    Parameters
    ----------
    flow : Flow
    until : float or callable
        The final time; or a rule ``rule(moment) -> reason or None`` (see
        `meanfield.runtime.stopping`).
    observers : sequence
        Each has ``observe(moment)``, called before the first step and after every one, and
        ``next_time(time)``, the next time that must not be stepped over (inf for none).
    first_step : int
        Steps taken before, when a run continues. Rules and observers then meet the moment
        at which it was left for a second time; those that keep count tell by its step.

    Returns
    -------
    Outcome

    Raises
    ------
    Exception
        Whatever a step raises, with a note that names step and time.

    Examples
    --------
    >>> import numpy as np, meanfield as mf
    >>> from meanfield.particles.flow import ParticleFlow
    >>> pair = mf.Measure([[1.0, 0.0], [0.6, 0.8]], [0.5, 0.5])
    >>> flow = ParticleFlow(mf.Model(mf.Attention(beta=1.0)), pair)
    >>> evolve(flow, until=2.0).reason
    'reached time 2'
    """
    rule = until if callable(until) else UntilTime(until)
    step = first_step
    with _termination_requests() as requested:
        while True:
            moment = Moment(flow, step, rule)
            reason = flow.finished or rule(moment) or None
            moment.last = reason is not None
            # Agreed by all ranks, of which some may not have been told yet.
            told = bool(max_over_ranks(float(requested.is_set()), flow.comm))
            moment.interrupted = told and not moment.last
            for observer in observers:
                observer.observe(moment)
            if moment.interrupted:
                return Outcome("told to stop (SIGTERM)", flow.time, step, True)
            if moment.last:
                return Outcome(reason, flow.time, step, False)
            try:
                step += _advance(flow, step, rule, observers)
            except Exception as problem:
                problem.add_note(f"in step {step + 1}, from time {flow.time:.9g}")
                raise


def _advance(flow, step, rule, observers):
    """One step up to the next event at most; the number of steps taken."""
    event = _next_event(flow.time, rule, observers)
    length = flow.step(event - flow.time)
    # A time that so many lengths have been added up to carries the rounding of each.
    rounding = step * np.spacing(event)
    if abs(flow.time - event) <= _SLIVER * length + rounding:
        flow.time = event
    return 1 if length > 0 else 0


def _next_event(time, rule, observers):
    """The first time that someone waits for; the last of those that differ by rounding."""
    times = [float(one.next_time(time)) for one in (rule, *observers) if hasattr(one, "next_time")]
    first = min(times, default=math.inf)
    near = first + _SLIVER * (first - time)
    return max((other for other in times if other <= near), default=math.inf)


def next_multiple(time, interval):
    """The first multiple of `interval` that lies beyond `time`, apart from rounding."""
    return (math.floor(time / interval * (1 + 1e-12) + 1e-9) + 1) * interval


def is_multiple(time, interval):
    """Whether `time` is a multiple of `interval`, apart from rounding."""
    return abs(time - round(time / interval) * interval) <= 1e-9 * interval


@contextmanager
def _termination_requests():
    """An event that is set when this process is asked to end (SIGTERM)."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    previous = signal.signal(signal.SIGTERM, lambda number, frame: requested.set())
    try:
        yield requested
    finally:
        signal.signal(signal.SIGTERM, previous)
