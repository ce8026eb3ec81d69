"""When an expansion resolves its density, and what degree to try when it does not."""

import numpy as np


def tail(power):
    """Share of a density's L² norm carried by the last sixth of its degrees, in [0, 1].

    Several degrees are taken together because an even density has no odd ones.

    Parameters
    ----------
    power : ndarray, shape (L + 1,)
        Σ_ℓ m_jℓ² for each degree j.

    Examples
    --------
    >>> tail(np.array([1.0, 0.0, 0.0, 0.01, 0.0, 0.0]))
    0.0
    >>> round(tail(np.array([1.0, 0.0, 0.0, 0.0, 0.01, 0.0])), 3)
    0.1
    """
    last = max(2, len(power) // 6)
    return float(np.sqrt(power[-last:].sum() / power.sum()))


def higher_degree(degree, max_degree):
    """One and a half times the degree, at most `max_degree`."""
    return min(max_degree, degree + max(2, degree // 2))
