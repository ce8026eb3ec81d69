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

from meanfield.sphere.geometry import circle_angles, sphere_angles, sphere_frame

# What the transforms are asked for; they reach it up to a small factor.
TRANSFORM_ACCURACY = 1e-14


@lru_cache(maxsize=16)
def scattered_harmonics(ambient_dim, degree, threads=1):
    """Transforms between scattered points of S^{d-1} and coefficients up to `degree`.

    Parameters
    ----------
    ambient_dim : int
        2 or 3.
    degree : int
        Largest degree L ≥ 0.
    threads : int
        Cores to use.

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
        return CircleHarmonics(degree, threads)
    if ambient_dim == 3:
        return SphereHarmonics(degree, threads)
    raise ValueError(f"ambient_dim={ambient_dim}: harmonics at scattered points need 2 or 3")


class CircleHarmonics:
    """Fourier modes at scattered points of S¹."""

    ambient_dim = 2

    def __init__(self, degree, threads=1):
        self.degree = degree
        self._options = {"eps": TRANSFORM_ACCURACY, "nthreads": threads}
        self._frequency = np.arange(degree + 1)

    @staticmethod
    def locate(points):
        """Points (n, 2) with their angles."""
        return points if isinstance(points, _OnCircle) else _OnCircle(points)

    def coefficients(self, nodes, masses):
        """∫ e^{−ikθ} dμ, k = 0 … L, of this rank's nodes (n, 2) and masses (n,)."""
        if len(masses) == 0:
            return np.zeros(self.degree + 1, dtype=complex)
        import finufft

        both_signs = finufft.nufft1d1(
            self.locate(nodes).angles,
            masses.astype(complex),
            2 * self.degree + 1,
            isign=-1,
            **self._options,
        )
        return both_signs[self.degree :]

    def value(self, coefficients, points):
        """Σ_k c_k e^{ikθ} at points (n, 2)."""
        return self._synthesis(coefficients, points)

    def gradient(self, coefficients, points):
        """Tangent gradient (n, 2)."""
        located = self.locate(points)
        slope = self._synthesis(1j * self._frequency * coefficients, located)
        return slope[:, None] * _counterclockwise(located.points)

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

    def _synthesis(self, coefficients, points):
        angles = self.locate(points).angles
        if len(angles) == 0:
            return np.zeros(0)
        import finufft

        both_signs = np.concatenate([coefficients[:0:-1].conj(), coefficients])
        return finufft.nufft1d2(angles, both_signs, isign=1, **self._options).real


class SphereHarmonics:
    """Spherical harmonics at scattered points of S²."""

    ambient_dim = 3

    def __init__(self, degree, threads=1):
        self.degree = degree
        self._options = {"epsilon": TRANSFORM_ACCURACY, "nthreads": threads}
        order_of = np.concatenate([np.full(degree + 1 - m, m) for m in range(degree + 1)])
        self._degree_of = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
        self._weight = np.where(order_of == 0, 1.0, 2.0)

    @staticmethod
    def locate(points):
        """Points (n, 3) with their angles and tangent frames."""
        return points if isinstance(points, _OnSphere) else _OnSphere(points)

    def coefficients(self, nodes, masses):
        """√(4π) times the orthonormal moments of this rank's nodes (n, 3) and masses (n,)."""
        if len(masses) == 0:
            return np.zeros(len(self._degree_of), dtype=complex)
        from ducc0 import sht

        adjoint = sht.adjoint_synthesis_general(
            map=masses[None, :],
            spin=0,
            lmax=self.degree,
            loc=self.locate(nodes).angles,
            **self._options,
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
        south, east = located.frame
        return towards_south[:, None] * south + towards_east[:, None] * east

    def hessian(self, coefficients, points):
        """Riemannian Hessian as a matrix of space (n, 3, 3).

        Half the Laplacian is its isotropic part; the trace-free part is the spin-2
        transform of the coefficients times √((l+2)!/(l−2)!).
        """
        located = self.locate(points)
        l = self._degree_of  # noqa: E741
        laplacian = self.value(-(l * (l + 1.0)) * coefficients, located)
        if self.degree < 2:
            stretch = shear = 0.0 * laplacian
        else:
            # The transform's spin-2 harmonics carry the sign of the astronomers' convention.
            spin_two = -np.sqrt((l - 1.0) * l * (l + 1.0) * (l + 2.0)) * coefficients
            pair = np.stack([spin_two, np.zeros_like(spin_two)])
            stretch, shear = self._synthesis(pair, located, spin=2)
        south, east = located.frame
        isotropic = np.einsum("ij,ik->ijk", south, south) + np.einsum("ij,ik->ijk", east, east)
        difference = np.einsum("ij,ik->ijk", south, south) - np.einsum("ij,ik->ijk", east, east)
        mixed = np.einsum("ij,ik->ijk", south, east)
        mixed += mixed.transpose(0, 2, 1)
        return 0.5 * (
            laplacian[:, None, None] * isotropic
            + stretch[:, None, None] * difference
            + shear[:, None, None] * mixed
        )

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

    def _synthesis(self, alm, points, spin, **mode):
        angles = self.locate(points).angles
        if len(angles) == 0:
            return np.zeros((1 if spin == 0 else 2, 0))
        from ducc0 import sht

        return sht.synthesis_general(
            alm=alm, spin=spin, lmax=self.degree, loc=angles, **mode, **self._options
        )


class _OnCircle:
    def __init__(self, points):
        self.points = points
        self.angles = circle_angles(points)


class _OnSphere:
    def __init__(self, points):
        self._points = points
        self.angles = np.stack(sphere_angles(points), axis=1)
        self._frame = None

    @property
    def frame(self):
        if self._frame is None:
            self._frame = sphere_frame(self._points)
        return self._frame


def _counterclockwise(points):
    return np.stack([-points[:, 1], points[:, 0]], axis=1)
