"""Coefficients of densities to start from, on S¹ and S²."""

import numpy as np

from meanfield.density.resolution import higher_degree, tail
from meanfield.sphere.grids import change_degree, regular_grid
from meanfield.sphere.harmonics import scattered_harmonics

# How far the integral of a given density may be from one.
MASS_TOLERANCE = 1e-6


def perturbed_uniform(ambient_dim, harmonic_degree, amplitude, order=0):
    """The density 1 + amplitude · Y with Y one real harmonic of unit mean square.

    Parameters
    ----------
    ambient_dim : int
        2: Y = √2 cos jθ; or 3: Y = √(2j+1) P_j(cos θ) for order 0, and the real
        harmonic that varies as cos(order · longitude) otherwise.
    harmonic_degree : int
        j ≥ 1.
    amplitude : float
        The density is negative somewhere unless this is small.
    order : int
        0 … j on S²; 0 on S¹.

    Returns
    -------
    ndarray, complex
        Coefficients up to degree j.

    Examples
    --------
    >>> perturbed_uniform(2, 2, 0.1).round(6)
    array([1.      +0.j, 0.      +0.j, 0.070711+0.j])
    """
    if harmonic_degree < 1:
        raise ValueError(f"harmonic_degree={harmonic_degree}: expected an integer >= 1")
    if not 0 <= order <= (harmonic_degree if ambient_dim == 3 else 0):
        raise ValueError(f"order={order}: expected 0 to harmonic_degree on S², 0 on S¹")
    if ambient_dim == 2:
        coefficients = np.zeros(harmonic_degree + 1, dtype=complex)
        coefficients[0] = 1.0
        coefficients[-1] = amplitude / np.sqrt(2)
        return coefficients
    coefficients = uniform(ambient_dim, harmonic_degree)
    first_of_order = order * (harmonic_degree + 1) - order * (order - 1) // 2
    both_signs = 1.0 if order == 0 else 1 / np.sqrt(2)
    coefficients[first_of_order + harmonic_degree - order] = (
        amplitude * np.sqrt(4 * np.pi) * both_signs
    )
    return coefficients


def uniform(ambient_dim, degree=0):
    """Coefficients of the uniform density, 1."""
    mean = 1.0 if ambient_dim == 2 else np.sqrt(4 * np.pi)
    return change_degree(np.array([mean], dtype=complex), ambient_dim, degree)


def project(density, ambient_dim, degree, max_degree, tail_tolerance, threads=1):
    """Coefficients of a density given pointwise, of a degree that resolves it.

    Parameters
    ----------
    density : callable
        Density with respect to the uniform probability: unit rows (n, d) -> (n,).
    ambient_dim : int
        2 or 3.
    degree, max_degree : int
        The degree grows from the first, up to the second, until both the expansion's
        `tail` and its distance from its expansion are small enough.
    tail_tolerance : float

    Returns
    -------
    coefficients : ndarray, complex
        Of mass one exactly.
    error : float
        ‖density − expansion‖ / ‖density‖ in L² on a grid finer than the expansion's own.

    Raises
    ------
    ValueError
        When `max_degree` does not resolve the density, it is not finite, or its integral
        differs from one by more than 1e-6.
    """
    while True:
        harmonics = scattered_harmonics(ambient_dim, degree)
        grid = regular_grid(ambient_dim, degree, 3 * degree, threads)
        values = np.asarray(density(grid.nodes), dtype=float)
        if values.shape != grid.weights.shape:
            raise ValueError(
                f"density returned shape {values.shape} at points of shape {grid.nodes.shape}: "
                f"expected one value a point"
            )
        if not np.all(np.isfinite(values)):
            point = grid.nodes[np.argmin(np.isfinite(values))]
            raise ValueError(f"density is not finite at {point}; expected real numbers")
        coefficients = grid.analyse(values)
        distance = (grid.value(coefficients) - values) ** 2 @ grid.weights
        error = float(np.sqrt(distance / (values**2 @ grid.weights)))
        lost = max(error, tail(harmonics.power(coefficients)))
        if lost <= tail_tolerance:
            break
        if degree >= max_degree:
            raise ValueError(
                f"the density is not resolved by degree {degree}: its last modes carry "
                f"{lost:.2g} of its norm, more than tail_tolerance={tail_tolerance:g}; "
                f"raise max_degree or tail_tolerance, or start from a smoother density"
            )
        degree = higher_degree(degree, max_degree)
    mass = float(values @ grid.weights)
    if abs(mass - 1) > MASS_TOLERANCE:
        raise ValueError(
            f"the density integrates to {mass:.9g} against the uniform probability; expected 1 "
            f"(divide it by that number)"
        )
    coefficients = coefficients / mass
    coefficients[0] = uniform(ambient_dim)[0]
    return coefficients, error
