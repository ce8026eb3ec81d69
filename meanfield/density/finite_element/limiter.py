"""The scaling limiter of Zhang and Shu: nonnegative densities with the cells' means kept."""

import numpy as np

_ROUNDING = 16 * np.finfo(float).eps


def limit(density, means):
    """Pull corner values towards the cell's mean until none is negative.

    Where all are nonnegative nothing changes, so that smooth densities away from zero keep
    their order, and at a smooth minimum the change is of the order of the error.

    Parameters
    ----------
    density : ndarray, shape (cells, n)
        Corner values.
    means : ndarray, shape (cells,)
        Their means, ≥ 0 but for rounding of the largest value, which counts as zero.

    Returns
    -------
    ndarray, shape (cells, n)
        Nonnegative, of the same means.

    Raises
    ------
    ValueError
        If a mean is negative, which no scaling mends.

    Examples
    --------
    >>> limit(np.array([[-1.0, 3.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
    array([[0., 2.],
           [1., 3.]])
    """
    negative = means < -_ROUNDING * np.max(np.abs(density), initial=0.0)
    if np.any(negative):
        cell = int(np.argmax(negative))
        raise ValueError(f"the mean of cell {cell} is {means[cell]}: expected >= 0")
    means = np.maximum(means, 0.0)
    least = density.min(axis=1)
    needy = least < 0
    if not np.any(needy):
        return density
    limited = density.copy()
    mean, least = means[needy, None], least[needy, None]
    scaled = mean + (density[needy] - mean) * (mean / (mean - least))
    # The least value is zero but for rounding.
    limited[needy] = np.maximum(scaled, 0.0)
    return limited
