"""Distances between measures: Wasserstein W2 with the geodesic as cost, and the kernel distance.

All are collective. Measures may be spread over ranks, or whole on each of them.
"""

from dataclasses import dataclass

import numpy as np

from meanfield.coupling.circle_transport import squared_wasserstein
from meanfield.runtime.parallel import broadcast, gather_rows, raise_together, rank
from meanfield.sphere.funk_hecke import eigenvalues, tail_bound
from meanfield.sphere.geometry import circle_angles, circle_points, geodesic_distance, normalise
from meanfield.sphere.grids import degree_of
from meanfield.sphere.harmonics import scattered_harmonics
from meanfield.sphere.streams import normals

# The network simplex ends long before; without a bound it stops at 1e5 iterations.
_SIMPLEX_ITERATIONS = 10**8


@dataclass(frozen=True)
class Distance:
    """A distance, how far it may be off, and what was computed.

    Attributes
    ----------
    value : float
    error : float
        Bound or estimate of |value − exact|, apart from rounding; the method's docstring
        says of what.
    method : str
    """

    value: float
    error: float
    method: str


def circle_wasserstein(a, b, quantisation_error=0.0):
    """W2 between measures on S¹ with geodesic cost, exact for weighted nodes.

    Parameters
    ----------
    a, b : Measure
        On S¹.
    quantisation_error : float
        W2 between a density and the nodes that stand for it, see `quantise_on_circle`; by the
        triangle inequality it is the error of the value.

    Returns
    -------
    Distance
        In radians. Masses are added up in double precision: a rounding error of ε in mass that
        has to cross the circle costs π√ε ≈ 5e-8; within a cluster it costs nothing.

    Raises
    ------
    ValueError
        If a measure is not on S¹.

    Examples
    --------
    >>> from meanfield.fields.measure import Measure
    >>> east, north = Measure([[1.0, 0.0]], [1.0]), Measure([[0.0, 1.0]], [1.0])
    >>> round(circle_wasserstein(east, north).value, 12) == round(np.pi / 2, 12)
    True
    """
    comm = _common_ranks(a, b)
    for name, measure in (("a", a), ("b", b)):
        if measure.ambient_dim != 2:
            raise ValueError(
                f"{name} lives in R^{measure.ambient_dim}; expected S¹ in R², "
                f"use sphere_wasserstein"
            )
    (nodes_a, masses_a), (nodes_b, masses_b) = _whole(a), _whole(b)
    value = None
    if rank(comm) == 0:
        squared = squared_wasserstein(
            circle_angles(nodes_a), masses_a, circle_angles(nodes_b), masses_b
        )
        value = float(np.sqrt(squared))
    return Distance(broadcast(value, comm), float(quantisation_error), "exact on the circle")


def quantise_on_circle(density, count=2**20):
    """Weighted nodes that stand for a density on S¹, and their W2 distance from it.

    The circle is cut in equal cells, and each cell's mass is moved to its mean angle.

    Parameters
    ----------
    density : callable
        Unit rows (n, 2) -> values (n,) ≥ 0, with respect to the uniform probability; smooth
        at the scale of a cell.
    count : int
        Number of cells.

    Returns
    -------
    nodes : ndarray, shape (n, 2)
        Of the n ≤ count cells that hold mass.
    masses : ndarray, shape (n,)
    error : float
        The cost of moving each cell's mass, at most π/count.

    Raises
    ------
    ValueError
        If the density is negative or not finite somewhere.

    Examples
    --------
    >>> nodes, masses, error = quantise_on_circle(lambda x: 1 + x[:, 0], count=1000)
    >>> bool(np.isclose(masses.sum(), 1)), round(error * 1000 / np.pi, 3)
    (True, 0.577)
    """
    half = np.pi / count
    middle = half * (2 * np.arange(count) + 1)
    # Gauss's two-point rule is exact for cubics, such as a linear density's second moment.
    offset = half / np.sqrt(3)
    values = np.asarray(
        [density(circle_points(middle - offset)), density(circle_points(middle + offset))]
    )
    bad = ~(np.isfinite(values) & (values >= 0))
    if np.any(bad):
        sign, cell = np.argwhere(bad)[0]
        angle = middle[cell] + (2 * sign - 1) * offset
        raise ValueError(
            f"density is {values[sign, cell]:.6g} at angle {angle:.6g}; expected a number >= 0"
        )
    left, right = values / (2 * count)
    masses = left + right
    held = masses > 0
    left, right, masses = left[held], right[held], masses[held]
    mean = offset * (right - left) / masses
    cost = np.sum(masses * (offset**2 - mean**2))
    return circle_points(middle[held] + mean), masses, float(np.sqrt(cost))


def sphere_wasserstein(a, b, max_points=2000, projections=32, seed=0):
    """W2 between measures on S^{d-1}, d ≥ 3, with geodesic cost, or its sliced relative.

    Parameters
    ----------
    a, b : Measure
    max_points : int
        While neither measure has more nodes, the optimal transport problem is solved exactly
        (memory and time grow like the square of the nodes and faster).
    projections : int
        Beyond that, random great circles of the sliced distance (≥ 2): the root mean square,
        over great circles, of W2 on the circle between the projected measures. It
        vanishes only for equal measures but is not W2: use it to see how distances change.
    seed : int
        Of the great circles.

    Returns
    -------
    Distance
        In radians. For the sliced distance the error is one standard error of the
        average over great circles.

    Raises
    ------
    ValueError
        If the dimensions differ or are 2.
    RuntimeError
        If the transport problem was not solved.

    References
    ----------
    C. Bonet et al., Spherical sliced-Wasserstein, ICLR 2023.
    """
    comm = _common_ranks(a, b)
    if a.ambient_dim != b.ambient_dim or a.ambient_dim < 3:
        raise ValueError(
            f"measures in R^{a.ambient_dim} and R^{b.ambient_dim}: expected one dimension >= 3; "
            f"on S¹ use circle_wasserstein"
        )
    if projections < 2:
        raise ValueError(f"projections={projections}: expected an integer >= 2")
    exact = max(a.global_count, b.global_count) <= max_points
    (nodes_a, masses_a), (nodes_b, masses_b) = _whole(a), _whole(b)
    problem = value = error = None
    if rank(comm) == 0:
        if exact:
            value, problem = _transport(nodes_a, masses_a, nodes_b, masses_b)
            error = 0.0
        else:
            frames = great_circles(seed, projections, a.ambient_dim)
            value, error = _sliced(nodes_a, masses_a, nodes_b, masses_b, frames)
    raise_together(problem, comm, RuntimeError)
    value, error = broadcast((value, error), comm)
    method = "exact transport" if exact else f"sliced over {projections} great circles"
    return Distance(value, error, method)


def kernel_distance(coefficients_a, coefficients_b, beta, ambient_dim):
    """Distance in the attention kernel's Hilbert space, from harmonic coefficients.

    √(∬ exp(β(x·y − 1)) d(μ−μ')(x) d(μ−μ')(y)) = √(Σ_j λ_j Σ_ℓ (m_jℓ − m'_jℓ)²) with scaled
    Funk–Hecke eigenvalues, so that the kernel's largest value is one.

    Parameters
    ----------
    coefficients_a, coefficients_b : ndarray, complex
        As laid out in `meanfield.sphere.harmonics`, of one degree, the same on all ranks.
    beta : float
        > 0.
    ambient_dim : int
        2 or 3.

    Returns
    -------
    Distance
        The error bounds the degrees that are missing, whatever the two probability measures.

    Raises
    ------
    ValueError
        If the coefficients differ in degree.
    """
    if len(coefficients_a) != len(coefficients_b):
        raise ValueError(
            f"{len(coefficients_a)} and {len(coefficients_b)} coefficients: expected one degree "
            f"(meanfield.sphere.grids.change_degree pads)"
        )
    degree = degree_of(coefficients_a, ambient_dim)
    harmonics = scattered_harmonics(ambient_dim, degree)
    power = harmonics.power(coefficients_a - coefficients_b)
    squared = float(eigenvalues(beta, ambient_dim, degree) @ power)
    # Two probability measures' moments of one degree differ by at most 4 N_j in square.
    missing = 4 * tail_bound(beta, ambient_dim, degree)
    value = np.sqrt(squared)
    return Distance(
        float(value), float(np.sqrt(squared + missing) - value), f"harmonics to degree {degree}"
    )


def _common_ranks(a, b):
    return b.comm if a.comm is None else a.comm


def _whole(measure):
    """All nodes and masses on rank 0 (nothing elsewhere, or the same where it is whole)."""
    return gather_rows(measure.nodes, measure.comm), gather_rows(measure.masses, measure.comm)


def _transport(nodes_a, masses_a, nodes_b, masses_b):
    """W2 by the network simplex, and what went wrong or None."""
    import ot

    cost = np.stack([geodesic_distance(node, nodes_b) for node in nodes_a]) ** 2
    squared, log = ot.emd2(
        masses_a / masses_a.sum(),
        masses_b / masses_b.sum(),
        cost,
        numItermax=_SIMPLEX_ITERATIONS,
        log=True,
    )
    return float(np.sqrt(max(squared, 0.0))), log["warning"]


def great_circles(seed, count, ambient_dim):
    """Random orthonormal pairs of vectors, each spanning a great circle, shape (count, 2, d)."""
    pairs = normals(seed, "great circles", 0, slice(0, count), 2 * ambient_dim)
    first, second = np.split(pairs, 2, axis=1)
    first = normalise(first)
    second = normalise(second - np.einsum("ij,ij->i", first, second)[:, None] * first)
    return np.stack([first, second], axis=1)


def _sliced(nodes_a, masses_a, nodes_b, masses_b, frames):
    """The sliced distance and its standard error."""
    return average_over_circles(
        [
            squared_wasserstein(
                circle_angles(nodes_a @ frame.T),
                masses_a,
                circle_angles(nodes_b @ frame.T),
                masses_b,
            )
            for frame in frames
        ]
    )


def average_over_circles(squares):
    """Root mean square of distances given by their squares, and its standard error."""
    value = np.sqrt(np.mean(squares))
    spread = np.std(squares, ddof=1) / np.sqrt(len(squares))
    return float(value), float(spread / (2 * value)) if value > 0 else 0.0
