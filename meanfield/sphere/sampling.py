"""Starting points: this rank's rows of a cloud of a given size, random or evenly spread.

A cloud depends on its size and seed only, never on the rank count. All points of a cloud
carry the same mass. Von Mises–Fisher mixtures draw their own points, see
`meanfield.sphere.von_mises_fisher`.
"""

import numpy as np

from meanfield.runtime.parallel import local_slice
from meanfield.sphere.geometry import circle_points, normalise, sphere_points
from meanfield.sphere.quantiles import quantile_map
from meanfield.sphere.streams import normals, uniforms

GOLDEN_RATIO = (1 + np.sqrt(5)) / 2


def random_uniform(count, ambient_dim, seed, comm=None):
    """Independent uniform points of S^{d-1}.

    Parameters
    ----------
    count : int
        Size of the cloud over all ranks.
    ambient_dim : int
        d ≥ 2.
    seed : int
        ≥ 0.
    comm : communicator, optional

    Returns
    -------
    ndarray, shape (n, d)
        This rank's rows.
    """
    _check_count(count)
    if ambient_dim < 2:
        raise ValueError(f"ambient_dim={ambient_dim}: expected an integer >= 2")
    rows = local_slice(count, comm)
    return normalise(normals(seed, "uniform points", 0, rows, ambient_dim))


def random_from_density(density, count, ambient_dim, seed, comm=None, tolerance=1e-4):
    """Independent points of S¹ or S² with a given density.

    Parameters
    ----------
    density : callable
        Unit rows (n, d) -> values (n,) ≥ 0, with respect to the uniform probability.
    count, ambient_dim, seed, comm
        As for `random_uniform`; ambient_dim is 2 or 3.
    tolerance : float
        See `quantile_map`, which also says what raises a ValueError.
    """
    _check_count(count)
    to_density = quantile_map(density, ambient_dim, tolerance)
    rows = local_slice(count, comm)
    return to_density(uniforms(seed, "points of a density", 0, rows, ambient_dim - 1))


def even_uniform(count, ambient_dim, comm=None):
    """Evenly spread points of S¹ (equispaced) or S² (a Fibonacci spiral).

    On S² the spiral's moments of low degree differ from those of the uniform measure by
    O(n^{-3/2}), against O(n^{-1/2}) for random points.

    Parameters
    ----------
    count : int
        Size of the cloud over all ranks.
    ambient_dim : int
        2 or 3.
    comm : communicator, optional

    Returns
    -------
    ndarray, shape (n, d)
        This rank's rows.

    Examples
    --------
    >>> even_uniform(4, 2).round(3)
    array([[ 0.707,  0.707],
           [-0.707,  0.707],
           [-0.707, -0.707],
           [ 0.707, -0.707]])
    """
    variates = _even_variates(count, ambient_dim, comm)
    if ambient_dim == 2:
        return circle_points(2 * np.pi * variates[:, 0])
    # 1 − cos θ = 2u, written without cancellation at the poles.
    colatitude = 2 * np.arctan2(np.sqrt(variates[:, 0]), np.sqrt(1 - variates[:, 0]))
    return sphere_points(colatitude, 2 * np.pi * variates[:, 1])


def even_from_density(density, count, ambient_dim, comm=None, tolerance=1e-4):
    """Evenly spread points of equal mass for a density on S¹ or S².

    On S¹ they are the quantiles (i + ½)/n. For a smooth positive density their moments
    converge faster than any power of n, and W2 to the density like 1/n. On S² the spiral of
    `even_uniform` is carried over by the density's quantile map, which keeps mass but not
    shape: moments converge like n^{-1} to n^{-3/2}, the slower the more the mass is concentrated.

    Parameters
    ----------
    density, tolerance
        As for `random_from_density`.
    count, ambient_dim, comm
        As for `even_uniform`.

    Examples
    --------
    >>> points = even_from_density(lambda x: 1 + x[:, 2], 1000, ambient_dim=3)
    >>> bool(abs(points[:, 2].mean() - 1 / 3) < 1e-5)
    True
    """
    variates = _even_variates(count, ambient_dim, comm)
    return quantile_map(density, ambient_dim, tolerance)(variates)


def _even_variates(count, ambient_dim, comm):
    """Points of a lattice in the unit interval or square, in the order of their first entry."""
    _check_count(count)
    if ambient_dim not in (2, 3):
        raise ValueError(
            f"ambient_dim={ambient_dim}: evenly spread points need 2 or 3; draw random ones"
        )
    rows = local_slice(count, comm)
    number = np.arange(rows.start, rows.stop, dtype=float)
    variates = np.stack([(number + 0.5) / count, (number / GOLDEN_RATIO) % 1], axis=1)
    return np.ascontiguousarray(variates[:, : ambient_dim - 1])


def _check_count(count):
    if not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"count={count!r}: expected an integer >= 1")
