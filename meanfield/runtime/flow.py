"""What the time loop asks of a flow, whatever it evolves."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


@dataclass
class State:
    """Arrays that describe a flow at one time.

    Attributes
    ----------
    distributed : dict of str to ndarray
        This rank's rows of global arrays, cut in blocks in rank order.
    replicated : dict of str to ndarray or number
        Arrays and numbers that every rank holds alike.
    """

    distributed: dict[str, np.ndarray] = field(default_factory=dict)
    replicated: dict[str, np.ndarray | float | int] = field(default_factory=dict)


class Flow(Protocol):
    """A measure that moves: particles, a density, or several side by side.

    All methods are collective over ``comm``.

    Attributes
    ----------
    comm : communicator or None
    time : float
        Set by the flow as it steps; the time loop may round it to an event it has reached.
    finished : str or None
        A reason to stop that the flow found by itself.
    """

    comm: object
    time: float
    finished: str | None

    def step(self, limit):
        """Advance by at most `limit` of time and return the length taken.

        Raises
        ------
        FloatingPointError
            When something is not finite; the message names the particle or coefficient.
        """

    def describe(self):
        """A row of the time table: names to numbers."""

    def snapshot(self):
        """The `State` that a figure needs."""

    def state(self):
        """The `State` from which `restore` continues bitwise."""

    def restore(self, state):
        """Continue from a `state` whose distributed arrays hold this rank's rows."""

    def settings(self):
        """What this flow is, as a JSON-able dict."""
