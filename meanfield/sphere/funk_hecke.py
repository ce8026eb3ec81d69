"""The attention kernel on spherical harmonics: Funk–Hecke eigenvalues and their tails [L, §5.1].

All eigenvalues are scaled by e^{-β}, so that none overflows and the kernel is
exp(β(x·y − 1)), whose largest value is one.
"""

from functools import lru_cache

import numpy as np
from scipy.special import gammaln, ive


def eigenvalues(beta, ambient_dim, degree, scaled=True):
    """Eigenvalues λ_j(β) of the kernel exp(β x·y) on S^{d-1} [L, (5.1)].

    ∫ exp(β x·y) Y_j(y) dσ_d(y) = λ_j Y_j(x), with
    λ_j = Γ(d/2) (2/β)^{d/2−1} I_{j+d/2−1}(β).

    Parameters
    ----------
    beta : float
        Inverse temperature, > 0.
    ambient_dim : int
        d ≥ 2.
    degree : int
        Largest degree.
    scaled : bool
        Return e^{-β} λ_j, which never overflows.

    Returns
    -------
    ndarray, shape (degree + 1,)

    Raises
    ------
    OverflowError
        If ``scaled=False`` and an eigenvalue exceeds the largest double.

    Examples
    --------
    The kernel's mean is λ_0; on S² it is sinh(β)/β.

    >>> bool(np.isclose(eigenvalues(2.0, 3, 0, scaled=False)[0], np.sinh(2.0) / 2.0))
    True
    """
    _check(beta, ambient_dim)
    values = _scaled_eigenvalues(float(beta), int(ambient_dim), int(degree))
    if scaled:
        return values.copy()
    with np.errstate(over="ignore"):
        unscaled = np.exp(beta) * values
    if not np.all(np.isfinite(unscaled)):
        raise OverflowError(
            f"λ_0 at beta={beta} exceeds the largest double; ask for scaled eigenvalues"
        )
    return unscaled


def multiplicities(ambient_dim, degree):
    """Dimensions N_0 … N_degree of the spaces of spherical harmonics on S^{d-1}.

    Examples
    --------
    >>> multiplicities(3, 4)
    array([1., 3., 5., 7., 9.])
    """
    j = np.arange(degree + 1)
    if ambient_dim == 2:
        return np.where(j == 0, 1.0, 2.0)
    d = ambient_dim
    # C(d+j−1, j) − C(d+j−3, j−2) = (2j+d−2)/(d−2) · C(j+d−3, j)
    log_binomial = gammaln(j + d - 2) - gammaln(j + 1) - gammaln(d - 2)
    return np.rint((2 * j + d - 2) / (d - 2) * np.exp(log_binomial))


def laplacian_eigenvalues(ambient_dim, degree):
    """j(j+d−2), the eigenvalues of −Δ on S^{d-1}, for j = 0 … degree."""
    j = np.arange(degree + 1)
    return (j * (j + ambient_dim - 2)).astype(float)


def growth_rates(beta, ambient_dim, degree, scaled_amplitude=1.0):
    """Rates (s/β) λ_j j(j+d−2) at which harmonics of the uniform measure grow under ascent.

    Parameters
    ----------
    scaled_amplitude : float
        s e^β: 1 for peak amplitude, e^β for unit amplitude.
    """
    rates = eigenvalues(beta, ambient_dim, degree) * laplacian_eigenvalues(ambient_dim, degree)
    return scaled_amplitude / beta * rates


def truncation_degree(beta, ambient_dim, tolerance):
    """Smallest degree whose tail leaves value, gradient and Hessian within `tolerance`.

    By the addition theorem the terms beyond degree L change exp(β(x·y − 1)), for every
    pair of points, by at most Σ_{j>L} λ_j N_j; their gradients by at most
    Σ λ_j N_j P_j'(1) and their Hessians by Σ λ_j N_j (P_j'(1) + P_j''(1)), P_j the Legendre
    polynomial of the dimension, with P_j'(1) = j(j+d−2)/(d−1) and
    P_j''(1) = P_j'(1) (j−1)(j+d−1)/(d+1). The last bound holds the others.

    Parameters
    ----------
    tolerance : float
        Relative to the field's own size: to λ_0, the mean of f over the sphere, for the
        value, to β λ_0 for the gradient and to max(β, β²) λ_0 for the Hessian.

    Returns
    -------
    int
    """
    _check(beta, ambient_dim)
    return _truncation_degree(float(beta), int(ambient_dim), float(tolerance))


def tail_bound(beta, ambient_dim, degree):
    """Σ_{j>degree} λ_j N_j, scaled by e^{-β}: the error of f for every probability measure."""
    _check(beta, ambient_dim)
    return _tail_bound(float(beta), int(ambient_dim), int(degree))


@lru_cache(maxsize=256)
def _tail_bound(beta, ambient_dim, degree):
    terms, ratio = _value_terms(beta, ambient_dim, degree)
    tail = terms[degree + 1 :]
    return float(tail.sum() + tail[-1] * ratio / (1 - ratio))


@lru_cache(maxsize=256)
def _scaled_eigenvalues(beta, ambient_dim, degree):
    order = np.arange(degree + 1) + ambient_dim / 2 - 1
    log_prefactor = gammaln(ambient_dim / 2) + (ambient_dim / 2 - 1) * np.log(2 / beta)
    bessel = ive(order, beta)
    with np.errstate(divide="ignore"):
        values = np.exp(log_prefactor + np.log(bessel))
    # ive underflows before Γ(d/2)(2/β)^{d/2−1} I does when β is small against the order;
    # there the series' first terms are exact: (β²/4)^k / (k! Γ(ν+k+1)).
    small = (bessel < 1e-280) & (beta < np.sqrt(order + 1))
    if np.any(small):
        values[small] = _small_argument(beta, ambient_dim, order[small])
    values.setflags(write=False)
    return values


def _small_argument(beta, ambient_dim, order):
    """e^{-β} λ_j from the power series of I_ν, for β² ≤ ν + 1."""
    k = np.arange(30)
    j = order - (ambient_dim / 2 - 1)
    log_terms = (
        2 * k * np.log(beta / 2) - gammaln(k + 1) - gammaln(order[:, None] + k + 1)
    )
    log_front = gammaln(ambient_dim / 2) + j * np.log(beta / 2) - beta
    return np.exp(log_front[:, None] + log_terms).sum(axis=1)


@lru_cache(maxsize=256)
def _truncation_degree(beta, ambient_dim, tolerance):
    terms, ratio = _value_terms(beta, ambient_dim, 0)
    slope, curvature = _legendre_derivatives(ambient_dim, len(terms) - 1)
    # Beyond the last term the derivatives multiply the ratio of neighbours by at most this.
    widened = ratio * (1 + 1 / (len(terms) - 1)) ** 4
    tails = []
    orders = ((1.0, 1.0), (slope, beta), (slope + curvature, max(beta, beta**2)))
    for weight, size in orders:
        weighted = terms * weight / size
        closing = weighted[-1] * widened / (1 - widened)
        tails.append(np.append(weighted[1:], 0.0)[::-1].cumsum()[::-1] + closing)
    return int(np.flatnonzero(np.max(tails, axis=0) <= tolerance * terms[0])[0])


def _value_terms(beta, ambient_dim, degree):
    """λ_j N_j far beyond `degree`, and a bound < 0.9 for the ratio of neighbours after them."""
    d, last = ambient_dim, 2 * degree + int(40 + 12 * np.sqrt(beta) + 2 * ambient_dim)
    while True:
        # I_{ν+1}(β)/I_ν(β) ≤ β/(2ν+2), and N_{j+1}/N_j falls with j ≥ 1.
        growth = (2 * last + d) * (last + d - 2) / ((2 * last + d - 2) * (last + 1))
        ratio = beta / (2 * last + d) * growth
        if ratio < 0.9 * (1 - 4 / last):
            break
        last *= 2
    return _scaled_eigenvalues(beta, d, last) * multiplicities(d, last), ratio


def _legendre_derivatives(ambient_dim, degree):
    j = np.arange(degree + 1)
    slope = j * (j + ambient_dim - 2) / (ambient_dim - 1)
    return slope, slope * (j - 1) * (j + ambient_dim - 1) / (ambient_dim + 1)


def _check(beta, ambient_dim):
    if not (np.isfinite(beta) and beta > 0):
        raise ValueError(f"beta={beta!r}: expected a finite number > 0")
    if ambient_dim < 2:
        raise ValueError(f"ambient_dim={ambient_dim!r}: expected an integer >= 2")
