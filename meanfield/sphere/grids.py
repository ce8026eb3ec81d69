"""Quadrature and harmonic transforms on regular grids: equispaced on S¹, Gauss–Legendre on S².

Coefficients are laid out as in `meanfield.sphere.harmonics`. Tangent vectors are given by
their components in the grid's orthonormal frame: one on S¹ (counterclockwise), two on S²
(towards growing colatitude, towards growing longitude).
"""

import numpy as np

from meanfield.sphere.geometry import circle_points, sphere_points


def regular_grid(ambient_dim, degree, product_degree=None, threads=1):
    """A grid of S¹ or S² whose quadrature is exact for polynomials up to `product_degree`.

    Parameters
    ----------
    ambient_dim : int
        2 or 3.
    degree : int
        Largest degree L ≥ 0 of the coefficients.
    product_degree : int, optional
        By default 2L, with which analysis inverts synthesis. The product of two expansions
        of degree L has degree 2L; its part up to degree L is found without aliasing when
        products with a third are integrated exactly, so with 3L.
    threads : int
        Cores to use.

    Returns
    -------
    CircleGrid or SphereGrid

    Raises
    ------
    ValueError
        For another dimension, or when the quadrature would be too coarse for `degree`.

    Examples
    --------
    >>> grid = regular_grid(3, degree=4)
    >>> height = grid.analyse(grid.nodes[:, 2])
    >>> bool(np.allclose(grid.value(height), grid.nodes[:, 2]))
    True
    """
    if degree < 0:
        raise ValueError(f"degree={degree}: expected an integer >= 0")
    if product_degree is None:
        product_degree = 2 * degree
    if product_degree < 2 * degree:
        raise ValueError(
            f"product_degree={product_degree}: expected at least twice degree={degree}, "
            f"without which analysis does not invert synthesis"
        )
    if ambient_dim == 2:
        return CircleGrid(degree, product_degree, threads)
    if ambient_dim == 3:
        return SphereGrid(degree, product_degree, threads)
    raise ValueError(f"ambient_dim={ambient_dim}: regular grids need 2 or 3")


def change_degree(coefficients, ambient_dim, degree):
    """The same expansion up to another degree: padded with zeros, or cut.

    Parameters
    ----------
    coefficients : ndarray, complex
    ambient_dim : int
        2 or 3.
    degree : int
        The new largest degree.
    """
    old = degree_of(coefficients, ambient_dim)
    common = min(old, degree)
    if ambient_dim == 2:
        changed = np.zeros(degree + 1, dtype=complex)
        changed[: common + 1] = coefficients[: common + 1]
        return changed
    changed = np.zeros((degree + 1) * (degree + 2) // 2, dtype=complex)
    for m in range(common + 1):
        source, target = _first_of_order(m, old), _first_of_order(m, degree)
        kept = common + 1 - m
        changed[target : target + kept] = coefficients[source : source + kept]
    return changed


def degree_of(coefficients, ambient_dim):
    """Largest degree of an array of coefficients.

    Raises
    ------
    ValueError
        When no degree has that many coefficients, or for a dimension other than 2 and 3.
    """
    if ambient_dim not in (2, 3):
        raise ValueError(f"ambient_dim={ambient_dim}: harmonic coefficients need 2 or 3")
    count = len(coefficients)
    if ambient_dim == 2:
        degree, expected = count - 1, count
    else:
        degree = int((np.sqrt(8 * count + 1) - 3) / 2 + 0.5)
        expected = (degree + 1) * (degree + 2) // 2
    if degree < 0 or count != expected:
        raise ValueError(
            f"{count} coefficients: expected (L+1)(L+2)/2 of them on S², at least one on S¹"
        )
    return degree


class CircleGrid:
    """Equispaced nodes on S¹ and the fast Fourier transform.

    Attributes
    ----------
    degree : int
    nodes : ndarray, shape (n, 2)
        Unit rows, the first at angle zero.
    weights : ndarray, shape (n,)
        Quadrature weights of the uniform probability; they sum to one.
    shape : tuple of int
        (n,), the grid's shape.
    frame : ndarray, shape (1, n, 2)
        The counterclockwise unit tangent.
    """

    ambient_dim = 2

    def __init__(self, degree, product_degree, threads=1):
        from scipy.fft import next_fast_len

        self.degree = degree
        # n equispaced nodes take a frequency for zero when it is a multiple of n.
        count = next_fast_len(product_degree + 1, real=True)
        self.shape = (count,)
        self.nodes = circle_points(2 * np.pi * np.arange(count) / count)
        self.weights = np.full(count, 1 / count)
        self.frame = np.stack([-self.nodes[:, 1], self.nodes[:, 0]], axis=1)[None]
        self._workers = threads
        self._derivative = 1j * np.arange(degree + 1)

    def value(self, coefficients):
        """Values at the nodes, shape (n,)."""
        from scipy.fft import irfft

        count = len(self.weights)
        return irfft(coefficients, count, norm="forward", workers=self._workers)

    def gradient(self, coefficients):
        """Components of the gradient in the frame, shape (1, n)."""
        return self.value(self._derivative * coefficients)[None]

    def analyse(self, values):
        """Coefficients up to the degree from values at the nodes (n,)."""
        from scipy.fft import rfft

        return rfft(values, norm="forward", workers=self._workers)[: self.degree + 1]

    def divergence(self, components):
        """Coefficients of div F from the components of F in the frame (1, n).

        Weak: each is −∫ ∇Ȳ·F by the grid's quadrature, so that the one of degree 0 vanishes.
        """
        return self._derivative * self.analyse(components[0])


class SphereGrid:
    """Gauss–Legendre rings with equispaced nodes on S², and ducc0's transforms.

    Attributes
    ----------
    degree : int
    nodes : ndarray, shape (n, 3)
        Unit rows, ring after ring from north to south, longitude 0 first in each.
    weights : ndarray, shape (n,)
        Quadrature weights of the uniform probability; they sum to one.
    shape : tuple of int
        (rings, nodes a ring).
    frame : ndarray, shape (2, n, 3)
        Unit tangents towards growing colatitude and growing longitude.
    """

    ambient_dim = 3

    def __init__(self, degree, product_degree, threads=1):
        from ducc0 import misc, sht
        from scipy.fft import next_fast_len

        self.degree = degree
        # Gauss's rule with n rings is exact to degree 2n − 1.
        rings = product_degree // 2 + 1
        around = next_fast_len(product_degree + 1, real=True)
        self.shape = (rings, around)
        colatitude = np.repeat(misc.GL_thetas(rings), around)
        longitude = np.tile(2 * np.pi * np.arange(around) / around, rings)
        self.nodes = sphere_points(colatitude, longitude)
        ring_weights = sht.get_gridweights("GL", rings)
        self.weights = np.repeat(ring_weights / (4 * np.pi * around), around)
        self.frame = np.stack(
            [
                sphere_points(colatitude + np.pi / 2, longitude),
                sphere_points(np.full_like(longitude, np.pi / 2), longitude + np.pi / 2),
            ]
        )
        self._options = {"lmax": degree, "geometry": "GL", "nthreads": threads}
        degrees = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
        self._derivative = np.sqrt(degrees * (degrees + 1.0))

    def value(self, coefficients):
        """Values at the nodes, shape (n,)."""
        return self._synthesis(coefficients, spin=0)[0]

    def gradient(self, coefficients):
        """Components of the gradient in the frame, shape (2, n)."""
        if self.degree == 0:
            return np.zeros((2, len(self.weights)))
        return self._synthesis(coefficients, spin=1, mode="DERIV1")

    def analyse(self, values):
        """Coefficients up to the degree from values at the nodes (n,)."""
        return self._analysis(values[None], spin=0)[0]

    def divergence(self, components):
        """Coefficients of div F from the components of F in the frame (2, n).

        Weak: each is −∫ ∇Ȳ·F by the grid's quadrature, so that the one of degree 0 vanishes.
        """
        if self.degree == 0:
            return np.zeros(1, dtype=complex)
        return -self._derivative * self._analysis(components, spin=1)[0]

    def _synthesis(self, coefficients, **transform):
        from ducc0 import sht

        rings, around = self.shape
        maps = sht.synthesis_2d(
            alm=coefficients[None], ntheta=rings, nphi=around, **transform, **self._options
        )
        return maps.reshape(len(maps), -1)

    def _analysis(self, maps, spin):
        from ducc0 import sht

        return sht.analysis_2d(map=maps.reshape(-1, *self.shape), spin=spin, **self._options)


def to_ambient(grid, components):
    """Tangent vectors (n, d) from their components (d − 1, n) in the grid's frame."""
    return np.einsum("kn,kni->ni", components, grid.frame)


def to_frame(grid, vectors):
    """Components (d − 1, n) in the grid's frame of tangent vectors (n, d)."""
    return np.einsum("ni,kni->kn", vectors, grid.frame)


def _first_of_order(m, degree):
    """Where order m begins in the coefficients of S²."""
    return m * (degree + 1) - m * (m - 1) // 2
