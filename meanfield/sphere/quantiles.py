"""The map that takes the uniform square (or interval) to a density on S² (or S¹).

It is the inverse of the Knothe–Rosenblatt map: the first variate is the mass at smaller
colatitude, the second the share of mass at smaller longitude on that parallel. Random
variates give random points, evenly spread variates evenly spread points of equal mass.

The density is represented by polynomials on cells (S¹) or on the tensor products of cells in
colatitude and longitude (S²), which are halved until the last Legendre coefficients carry no
mass. The density's kinks and peaks may lie anywhere.
"""

import numpy as np
from numpy.polynomial import legendre

from meanfield.sphere.geometry import circle_points, sphere_points

# Gauss nodes of a cell in each direction.
NODES = 8
# Mass that a cell's last two Legendre coefficients may carry.
CELL_TOLERANCE = 1e-13
# How far the integral of a given density may be from one.
MASS_TOLERANCE = 1e-6
# How far below zero the density may dip, against its largest value, as expansions do by rounding.
NEGATIVE_TOLERANCE = 1e-8
# Values of the density that are kept; refinement ends there.
MOST_VALUES = 2**22
# Narrowest features that the first cells see are about their share of π / (cells · NODES).
_FIRST_CELLS = 32
_BLOCK = 2**15


def quantile_map(density, ambient_dim, tolerance=1e-4):
    """Map of uniform variates to a density on S¹ or S².

    Parameters
    ----------
    density : callable
        Unit rows (n, d) -> values (n,) ≥ 0, with respect to the uniform probability.
    ambient_dim : int
        2 or 3.
    tolerance : float
        Largest mass that the representation may put in a wrong place. Smooth densities
        come to about 1e-11 whatever is asked for; what has kinks or jumps across a sphere
        may not come below 1e-5 or 1e-2.

    Returns
    -------
    CircleQuantiles or SphereQuantiles
        Called with variates in [0, 1], shape (n, d − 1), it returns points (n, d). Its
        `error` estimates the mass that is put in a wrong place.

    Raises
    ------
    ValueError
        For another dimension, when the density is not finite, is negative, or has an
        integral that differs from one by more than 1e-6, or when `error` exceeds the tolerance.

    Examples
    --------
    By symmetry, half of the mass of 1 + ½ cos θ has angles from 0 to π.

    >>> points = quantile_map(lambda x: 1 + x[:, 0] / 2, 2)(np.array([[0.5]]))
    >>> np.allclose(points, [[-1.0, 0.0]])
    True
    """
    if ambient_dim not in (2, 3):
        raise ValueError(f"ambient_dim={ambient_dim}: densities are mapped for 2 and 3 only")
    quantiles = (CircleQuantiles if ambient_dim == 2 else SphereQuantiles)(density)
    if quantiles.error > tolerance:
        raise ValueError(
            f"the density is resolved up to a mass of {quantiles.error:.2g} only, more than "
            f"tolerance={tolerance:g}: raise the tolerance, or smooth the density's jumps"
        )
    return quantiles


class CircleQuantiles:
    """Quantiles of a density on S¹, counted counterclockwise from angle zero."""

    def __init__(self, density):
        edges = np.linspace(0, 2 * np.pi, 2 * _FIRST_CELLS + 1)
        while True:
            values = _evaluate(density, circle_points(_nodes(edges))) / (2 * np.pi)
            unresolved = _unresolved_mass(edges, values)
            self.error = float(unresolved.sum())
            refined = _halve(edges, unresolved > CELL_TOLERANCE)
            if len(refined) == len(edges) or NODES * len(refined) > MOST_VALUES:
                break
            edges = refined
        self._cumulative = _Cumulative(edges, values[None])
        _check_mass(self._cumulative.totals[0])

    def __call__(self, variates):
        """Points (n, 2) for variates (n, 1) in [0, 1]."""
        return circle_points(_in_blocks(self._cumulative.solve_first, variates[:, 0]))


class SphereQuantiles:
    """Quantiles in colatitude, then in longitude, of a density on S²."""

    def __init__(self, density):
        south = np.linspace(0, np.pi, _FIRST_CELLS + 1)
        east = np.linspace(0, 2 * np.pi, 2 * _FIRST_CELLS + 1)
        while True:
            colatitude, longitude = _nodes(south), _nodes(east)
            points = sphere_points(
                np.repeat(colatitude, len(longitude)), np.tile(longitude, len(colatitude))
            )
            values = _evaluate(density, points).reshape(len(colatitude), -1) / (4 * np.pi)
            values *= np.sin(colatitude)[:, None]
            split_south = _unresolved_mass(south, values.T, _weights(east)[:, None])
            split_east = _unresolved_mass(east, values, _weights(south)[:, None])
            self.error = float(split_south.sum() + split_east.sum())
            new_south = _halve(south, split_south > CELL_TOLERANCE)
            new_east = _halve(east, split_east > CELL_TOLERANCE)
            same = len(new_south) == len(south) and len(new_east) == len(east)
            if same or NODES**2 * len(new_south) * len(new_east) > MOST_VALUES:
                break
            south, east = new_south, new_east
        self._longitude = _Cumulative(east, values)
        self._colatitude = _Cumulative(south, self._longitude.totals[None])
        _check_mass(self._colatitude.totals[0])

    def __call__(self, variates):
        """Points (n, 3) for variates (n, 2) in [0, 1]."""
        return _in_blocks(self._map, variates)

    def _map(self, variates):
        colatitude = self._colatitude.solve_first(variates[:, 0])
        rows, weights = _interpolation(self._colatitude.edges, colatitude)
        longitude = self._longitude.solve(rows, weights, variates[:, 1])
        return sphere_points(colatitude, longitude)


class _Cumulative:
    """Integrals from the first edge of functions given at the cells' Gauss nodes, row by row."""

    def __init__(self, edges, values):
        self.edges = edges
        half = np.diff(edges) / 2
        scaled = values.reshape(len(values), len(half), NODES) * half[:, None]
        # On each cell, coefficients of powers of the coordinate in [−1, 1].
        self._polynomials = scaled @ _ANTIDERIVATIVE.T
        self._at_edges = np.zeros((len(values), len(edges)))
        np.cumsum(scaled @ _GAUSS_WEIGHTS, axis=1, out=self._at_edges[:, 1:])
        self.totals = self._at_edges[:, -1]

    def solve_first(self, fractions):
        """Where the integral of the first row is these fractions (n,) of its total."""
        count = len(fractions)
        return self.solve(np.zeros((count, 1), dtype=int), np.ones((count, 1)), fractions)

    def solve(self, rows, weights, fractions):
        """The same for combinations of rows (n, q) with weights (n, q), one for each fraction."""
        target = fractions * np.einsum("ij,ij->i", weights, self.totals[rows])
        low = np.zeros(len(target), dtype=int)
        high = np.full(len(target), len(self.edges) - 1)
        while np.any(high - low > 1):
            middle = (low + high) // 2
            here = np.einsum("ij,ij->i", weights, self._at_edges[rows, middle[:, None]])
            below = here <= target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        target -= np.einsum("ij,ij->i", weights, self._at_edges[rows, low[:, None]])
        polynomials = np.einsum("ij,ijk->ik", weights, self._polynomials[rows, low[:, None]])
        begin, end = self.edges[low], self.edges[low + 1]
        return begin + (end - begin) * (_solve_polynomials(polynomials, target) + 1) / 2


def _solve_polynomials(polynomials, targets):
    """Where polynomials (n, p) that vanish at −1 take their target, in [−1, 1], shape (n,).

    Newton's method, kept in a bracket by bisection.
    """
    result = np.zeros(len(targets))
    active = np.arange(len(targets))
    low, high, position = -np.ones_like(targets), np.ones_like(targets), result.copy()
    # Bisection alone ends in as many halvings as a double has bits.
    for _ in range(60):
        value, slope = np.zeros_like(position), np.zeros_like(position)
        for coefficient in polynomials.T[::-1]:
            slope = slope * position + value
            value = value * position + coefficient
        below = value < targets
        low, high = np.where(below, position, low), np.where(below, high, position)
        step = np.divide(targets - value, slope, out=np.full_like(slope, np.inf), where=slope > 0)
        newton = position + step
        inside = (newton >= low) & (newton <= high)
        following = np.where(inside, newton, (low + high) / 2)
        result[active] = following
        going = np.abs(following - position) > 1e-15
        if not np.any(going):
            break
        active, position = active[going], following[going]
        low, high = low[going], high[going]
        targets, polynomials = targets[going], polynomials[going]
    return result


def _interpolation(edges, positions):
    """The Gauss nodes of the positions' cells, and weights that interpolate there, (n, NODES)."""
    cell = np.clip(np.searchsorted(edges, positions, "right") - 1, 0, len(edges) - 2)
    local = 2 * (positions - edges[cell]) / (edges[cell + 1] - edges[cell]) - 1
    # Not by BLAS, which rounds a single row otherwise than the same row among others.
    weights = np.einsum("ij,jk->ik", legendre.legvander(local, NODES - 1), _TO_LEGENDRE)
    return NODES * cell[:, None] + np.arange(NODES), weights


def _nodes(edges):
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * _GAUSS_NODES).ravel()


def _weights(edges):
    return (np.diff(edges)[:, None] / 2 * _GAUSS_WEIGHTS).ravel()


def _unresolved_mass(edges, values, weights=1.0):
    """Mass in the last two Legendre coefficients of each cell, summed over weighted rows."""
    cells = values.reshape(-1, len(edges) - 1, NODES)
    last = np.abs(cells @ _TO_LEGENDRE[-2:].T).sum(axis=2)
    return np.diff(edges) / 2 * (weights * last).sum(axis=0)


def _halve(edges, chosen):
    middle = (edges[1:] + edges[:-1]) / 2
    # A cell at the limit of double precision stays.
    chosen = chosen & (middle > edges[:-1]) & (middle < edges[1:])
    return np.sort(np.concatenate([edges, middle[chosen]]))


def _in_blocks(function, variates):
    blocks = range(0, max(len(variates), 1), _BLOCK)
    return np.concatenate([function(variates[begin : begin + _BLOCK]) for begin in blocks])


def _evaluate(density, points):
    values = _in_blocks(lambda block: _density_values(density, block), points)
    if values.min() < -NEGATIVE_TOLERANCE * values.max():
        worst = int(np.argmin(values))
        raise ValueError(
            f"density is {values[worst]:.6g} at {points[worst].tolist()}; expected values >= 0"
        )
    return values


def _density_values(density, points):
    values = np.asarray(density(points), dtype=float)
    if values.shape != (len(points),):
        raise ValueError(
            f"density returned shape {values.shape} at points of shape {points.shape}: "
            f"expected one value a point"
        )
    if not np.all(np.isfinite(values)):
        point = points[np.argmin(np.isfinite(values))].tolist()
        raise ValueError(f"density is not finite at {point}; expected real numbers")
    return values


def _check_mass(mass):
    if abs(mass - 1) > MASS_TOLERANCE:
        raise ValueError(
            f"the density integrates to {mass:.9g} against the uniform probability; expected 1 "
            f"(divide it by that number, unless it has a peak too narrow to be seen)"
        )


_GAUSS_NODES, _GAUSS_WEIGHTS = legendre.leggauss(NODES)
_DEGREES = np.arange(NODES)
# From values at the Gauss nodes to Legendre coefficients, and to the powers of the integral
# from −1.
_TO_LEGENDRE = (
    (_DEGREES + 0.5)[:, None] * legendre.legvander(_GAUSS_NODES, NODES - 1).T * _GAUSS_WEIGHTS
)
_ANTIDERIVATIVE = np.stack(
    [legendre.leg2poly(legendre.legint(column, lbnd=-1)) for column in _TO_LEGENDRE.T], axis=1
)
