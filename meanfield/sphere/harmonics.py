"""Spherical harmonics at scattered points of S¹ (FINUFFT) and S² (ducc0's SHT).

A measure's *coefficients* are those of its density with respect to the uniform
probability, whether or not it has one:

- S¹: c_k = ∫ e^{−ikθ} dμ for k = 0 … L, complex, and ρ(θ) = Σ_{|k|≤L} c_k e^{ikθ};
- S²: ρ = Σ a_lm Y_lm with Y orthonormal for the area 4π, complex, 0 ≤ m ≤ l ≤ L, stored
  by m, then l (length (L+1)(L+2)/2), so that a_00 = √(4π).

The orthonormal moments m_jℓ = ∫ Y_jℓ dμ of [L, §5.1] are the same numbers in another
normalisation; `power` gives Σ_ℓ m_jℓ².
"""

from functools import lru_cache

import numpy as np

from meanfield.runtime.blocks import by_rows, sum_by_rows
from meanfield.sphere.geometry import circle_angles, sphere_angles, sphere_frame

# The best that the transforms can be asked for.
FINEST_ACCURACY = 1e-14

# With less work than this another thread costs more than it saves.
_POINTS_A_THREAD = 10_000


@lru_cache(maxsize=16)
def scattered_harmonics(ambient_dim, degree, threads=1, accuracy=FINEST_ACCURACY):
    """Transforms between scattered points of S^{d-1} and coefficients up to `degree`.

    Parameters
    ----------
    ambient_dim : int
        2 or 3.
    degree : int
        Largest degree L ≥ 0.
    threads : int
        Cores to use.
    accuracy : float
        Relative error asked of the transforms, which reach it up to a small factor.

    Returns
    -------
    CircleHarmonics or SphereHarmonics
        Both offer ``coefficients(nodes, masses)``, ``value(c, x)`` (n,), ``gradient(c, x)``
        (n, d) tangent, ``hessian(c, x)`` (n, d, d), ``multiply(c, factors)`` by one
        factor a degree, ``power(c)`` and ``inner_by_degree(c, c')``. Points are unit rows
        or, when several transforms share them, what ``locate(points)`` makes of those once.

    Raises
    ------
    ValueError
        For another dimension.
    """
    if ambient_dim == 2:
        return CircleHarmonics(degree, threads, accuracy)
    if ambient_dim == 3:
        return SphereHarmonics(degree, threads, accuracy)
    raise ValueError(f"ambient_dim={ambient_dim}: harmonics at scattered points need 2 or 3")


class CircleHarmonics:
    """Fourier modes at scattered points of S¹."""

    ambient_dim = 2

    def __init__(self, degree, threads=1, accuracy=FINEST_ACCURACY):
        self.degree = degree
        self._threads = threads
        self._accuracy = accuracy
        self._frequency = np.arange(degree + 1)
        self._plans = {1: [], 2: []}

    def locate(self, points):
        """Points (n, 2) with their angles."""
        return points if isinstance(points, _Located) else _Located(points, self._angles(points))

    def coefficients(self, nodes, masses):
        """∫ e^{−ikθ} dμ, k = 0 … L, of this rank's nodes (n, 2) and masses (n,)."""
        angles = self.locate(nodes).angles

        def transform(rows):
            return self._transform(1, angles[rows], masses[rows].astype(complex))

        both_signs = sum_by_rows(transform, len(masses), self._threads)
        return both_signs[self.degree :]

    def value(self, coefficients, points):
        """Σ_k c_k e^{ikθ} at points (n, 2)."""
        return self._synthesis(coefficients, points)

    def gradient(self, coefficients, points):
        """Tangent gradient (n, 2)."""
        located = self.locate(points)
        slope = self._synthesis(1j * self._frequency * coefficients, located)
        return by_rows(
            lambda rows: slope[rows, None] * _counterclockwise(located.points[rows]),
            len(slope),
            self._threads,
        )

    def hessian(self, coefficients, points):
        """Second derivative along the circle, as a matrix of the plane (n, 2, 2)."""
        located = self.locate(points)
        curvature = self._synthesis(-(self._frequency**2) * coefficients, located)
        tangent = _counterclockwise(located.points)
        return np.einsum("i,ij,ik->ijk", curvature, tangent, tangent)

    def multiply(self, coefficients, factors):
        """Coefficients times one factor a degree, factors (L + 1,)."""
        return coefficients * factors

    def power(self, coefficients):
        """Σ_ℓ m_jℓ² for each degree, shape (L + 1,)."""
        return self.inner_by_degree(coefficients, coefficients)

    def inner_by_degree(self, first, second):
        """Σ_ℓ m_jℓ m'_jℓ for each degree, shape (L + 1,)."""
        product = 2 * (first * second.conj()).real
        product[0] /= 2
        return product

    def _angles(self, points):
        return by_rows(lambda rows: circle_angles(points[rows]), len(points), self._threads)

    def _synthesis(self, coefficients, points):
        angles = self.locate(points).angles
        both_signs = np.concatenate([coefficients[:0:-1].conj(), coefficients])
        return by_rows(
            lambda rows: self._transform(2, angles[rows], both_signs).real,
            len(angles),
            self._threads,
        )

    def _transform(self, kind, angles, data):
        """FINUFFT's transform of type 1 (to coefficients) or 2 (to points), on one core.

        Its plans are kept, because to make one costs more than to transform a thousand
        points, and a thread takes one for itself. Its own threads are not used: they wait
        for each other so eagerly that on a busy machine they cost a hundred times their work.
        """
        spare = self._plans[kind]
        try:
            plan = spare.pop()
        except IndexError:
            plan = self._new_plan(kind)
        plan.setpts(angles)
        result = plan.execute(data)
        spare.append(plan)
        return result

    def _new_plan(self, kind):
        from finufft import Plan

        return Plan(
            kind,
            (2 * self.degree + 1,),
            eps=self._accuracy,
            isign=-1 if kind == 1 else 1,
            nthreads=1,
            # Left to itself it depends on the points that a plan saw first.
            upsampfac=2.0,
        )


class SphereHarmonics:
    """Spherical harmonics at scattered points of S²."""

    ambient_dim = 3

    def __init__(self, degree, threads=1, accuracy=FINEST_ACCURACY):
        self.degree = degree
        self._threads = threads
        self._accuracy = accuracy
        order_of = np.concatenate([np.full(degree + 1 - m, m) for m in range(degree + 1)])
        self._degree_of = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
        self._weight = np.where(order_of == 0, 1.0, 2.0)

    def locate(self, points):
        """Points (n, 3) with their angles."""
        return points if isinstance(points, _Located) else _Located(points, self._angles(points))

    def coefficients(self, nodes, masses):
        """√(4π) times the orthonormal moments of this rank's nodes (n, 3) and masses (n,)."""
        if len(masses) == 0:
            return np.zeros(len(self._degree_of), dtype=complex)
        from ducc0 import sht

        adjoint = sht.adjoint_synthesis_general(
            map=masses[None, :], spin=0, **self._options(self.locate(nodes).angles)
        )
        return 4 * np.pi * adjoint[0]

    def value(self, coefficients, points):
        """Σ a_lm Y_lm at points (n, 3)."""
        return self._synthesis(coefficients[None, :], points, spin=0)[0]

    def gradient(self, coefficients, points):
        """Tangent gradient (n, 3)."""
        located = self.locate(points)
        towards_south, towards_east = self._synthesis(
            coefficients[None, :], located, spin=1, mode="DERIV1"
        )

        def gradient(rows):
            south, east = sphere_frame(located.points[rows])
            return towards_south[rows, None] * south + towards_east[rows, None] * east

        return by_rows(gradient, len(towards_south), self._threads)

    def hessian(self, coefficients, points):
        """Riemannian Hessian as a matrix of space (n, 3, 3).

        Half the Laplacian is its isotropic part; the trace-free part is the spin-2
        transform of the coefficients times √((l+2)!/(l−2)!).
        """
        located = self.locate(points)
        l = self._degree_of  # noqa: E741
        laplacian = self.value(-(l * (l + 1.0)) * coefficients, located)
        # The transform's spin-2 harmonics carry the sign of the astronomers' convention.
        spin_two = -np.sqrt((l - 1.0) * l * (l + 1.0) * (l + 2.0)) * coefficients
        pair = np.stack([spin_two, np.zeros_like(spin_two)])
        stretch, shear = self._synthesis(pair, located, spin=2)

        def hessian(rows):
            south, east = sphere_frame(located.points[rows])
            south_south = south[:, :, None] * south[:, None, :]
            east_east = east[:, :, None] * east[:, None, :]
            mixed = south[:, :, None] * east[:, None, :]
            mixed += mixed.transpose(0, 2, 1)
            return 0.5 * (
                laplacian[rows, None, None] * (south_south + east_east)
                + stretch[rows, None, None] * (south_south - east_east)
                + shear[rows, None, None] * mixed
            )

        return by_rows(hessian, len(laplacian), self._threads)

    def multiply(self, coefficients, factors):
        """Coefficients times one factor a degree, factors (L + 1,)."""
        return coefficients * np.asarray(factors)[self._degree_of]

    def power(self, coefficients):
        """Σ_ℓ m_jℓ² for each degree, shape (L + 1,)."""
        return self.inner_by_degree(coefficients, coefficients)

    def inner_by_degree(self, first, second):
        """Σ_ℓ m_jℓ m'_jℓ for each degree, shape (L + 1,)."""
        product = self._weight * (first * second.conj()).real / (4 * np.pi)
        return np.bincount(self._degree_of, weights=product, minlength=self.degree + 1)

    def _angles(self, points):
        return by_rows(
            lambda rows: np.stack(sphere_angles(points[rows]), axis=1), len(points), self._threads
        )

    def _synthesis(self, alm, points, spin, **mode):
        angles = self.locate(points).angles
        # No harmonics of that spin are of a lower degree.
        if len(angles) == 0 or self.degree < spin:
            return np.zeros((1 if spin == 0 else 2, len(angles)))
        from ducc0 import sht

        return sht.synthesis_general(alm=alm, spin=spin, **mode, **self._options(angles))

    def _options(self, angles):
        work = len(angles) + len(self._degree_of)
        return {
            "lmax": self.degree,
            "loc": angles,
            "epsilon": self._accuracy,
            "nthreads": min(self._threads, 1 + work // _POINTS_A_THREAD),
        }


class _Located:
    def __init__(self, points, angles):
        self.points = points
        self.angles = angles


def _counterclockwise(points):
    return np.stack([-points[:, 1], points[:, 0]], axis=1)
