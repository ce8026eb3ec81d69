"""Mixtures of von Mises–Fisher distributions on S^{d-1}: density and exact random points."""

import numpy as np

from meanfield.runtime.parallel import local_slice
from meanfield.sphere.funk_hecke import eigenvalues
from meanfield.sphere.geometry import normalise
from meanfield.sphere.streams import draw_rows

# How far the given means may be from unit length, and the weights from the sum one.
UNIT_TOLERANCE = 1e-8


class VonMisesFisherMixture:
    """Σ_k w_k vMF(m_k, κ_k), where vMF(m, κ) has density ∝ exp(κ m·x) on S^{d-1}.

    Parameters
    ----------
    means : array_like, shape (k, d)
        Unit rows m_k.
    concentrations : array_like, shape (k,)
        κ_k ≥ 0; zero is the uniform distribution.
    weights : array_like, shape (k,), optional
        w_k ≥ 0, which sum to one. Equal by default.

    Attributes
    ----------
    means, concentrations, weights
    ambient_dim : int

    Raises
    ------
    ValueError
        When shapes do not fit or a number is out of its range.

    Examples
    --------
    >>> mixture = VonMisesFisherMixture([[0.0, 0.0, 1.0]], [50.0])
    >>> points = mixture.sample(1000, seed=1)
    >>> points.shape, bool(points[:, 2].mean() > 0.95)
    ((1000, 3), True)
    """

    def __init__(self, means, concentrations, weights=None):
        self.means = np.ascontiguousarray(means, dtype=float)
        self.concentrations = np.ascontiguousarray(concentrations, dtype=float)
        count = len(self.concentrations) if self.concentrations.ndim else 0
        if weights is None:
            weights = np.full(count, 1 / max(count, 1))
        self.weights = np.ascontiguousarray(weights, dtype=float)
        self._check(count)
        self.ambient_dim = self.means.shape[1]
        self.means = normalise(self.means)

    def density(self, points):
        """Density with respect to the uniform probability at unit rows (n, d), shape (n,)."""
        total = np.zeros(len(points))
        for mean, kappa, weight in zip(self.means, self.concentrations, self.weights, strict=True):
            # m·x − 1 = −|x − m|²/2, which keeps its digits near the mean.
            offset = points - mean
            exponent = -0.5 * kappa * np.einsum("ij,ij->i", offset, offset)
            total += weight / self._mean_kernel(kappa) * np.exp(exponent)
        return total

    def sample(self, count, seed, comm=None):
        """This rank's rows of `count` independent points, shape (n, d).

        The points depend on the seed only, not on the rank count. The cosine of the angle to
        the mean is drawn by Ulrich's rejection from a transformed beta variate, as corrected by
        Wood (1994), written for the cosine's distance from one so that it is exact for any κ.
        """
        rows = local_slice(count, comm)
        return draw_rows(seed, "von Mises–Fisher mixture", 0, rows, self._draw)

    def _draw(self, generator, count):
        cumulative = np.cumsum(self.weights)
        chosen = np.searchsorted(cumulative / cumulative[-1], generator.random(count), "right")
        versine = self._draw_versine(generator, self.concentrations[chosen])
        around = normalise(generator.standard_normal((count, self.ambient_dim - 1)))
        # About the first axis; then a reflection brings that axis to the mean.
        points = np.empty((count, self.ambient_dim))
        points[:, 0] = 1 - versine
        points[:, 1:] = np.sqrt(versine * (2 - versine))[:, None] * around
        mean = self.means[chosen]
        # Of the two reflections that take the axis to ±mean, the one without cancellation.
        sign = np.where(mean[:, :1] >= 0, 1.0, -1.0)
        normal = sign * mean
        normal[:, 0] += 1.0
        scale = 2 * np.einsum("ij,ij->i", normal, points) / np.einsum("ij,ij->i", normal, normal)
        return normalise(sign * (scale[:, None] * normal - points))

    def _draw_versine(self, generator, kappa):
        """1 − cos of the angle to the mean, one for each κ."""
        dim = self.ambient_dim - 1
        b = dim / (2 * kappa + np.hypot(2 * kappa, dim))
        # Where the envelope touches: 1 − x_0 of Wood's x_0.
        touch = 2 * b / (1 + b)
        versine = np.empty_like(kappa)
        pending = np.arange(len(kappa))
        while len(pending):
            beta = generator.beta(dim / 2, dim / 2, len(pending))
            b_here, touch_here = b[pending], touch[pending]
            proposed = 2 * b_here * beta / (1 - (1 - b_here) * beta)
            log_ratio = kappa[pending] * (touch_here - proposed) + dim * np.log(
                (touch_here + proposed - touch_here * proposed) / (touch_here * (2 - touch_here))
            )
            accepted = log_ratio >= np.log1p(-generator.random(len(pending)))
            versine[pending[accepted]] = proposed[accepted]
            pending = pending[~accepted]
        return versine

    def _mean_kernel(self, kappa):
        """∫ exp(κ(m·x − 1)) dσ_d, the Funk–Hecke eigenvalue λ_0 scaled by e^{-κ}."""
        return 1.0 if kappa == 0 else eigenvalues(kappa, self.ambient_dim, 0)[0]

    def _check(self, count):
        shape = self.means.shape
        if self.means.ndim != 2 or shape[1] < 2 or shape[0] == 0:
            raise ValueError(f"means has shape {shape}: expected (k, d) with k >= 1, d >= 2")
        for name in ("concentrations", "weights"):
            values = getattr(self, name)
            if values.shape != (shape[0],):
                raise ValueError(
                    f"{name} has shape {values.shape}: expected one for each of the "
                    f"{shape[0]} means"
                )
            if not np.all((values >= 0) & np.isfinite(values)):
                raise ValueError(f"{name}={values.tolist()}: expected finite numbers >= 0")
        length = np.linalg.norm(self.means, axis=1)
        if not np.all(np.abs(length - 1) <= UNIT_TOLERANCE):
            row = int(np.argmax(~(np.abs(length - 1) <= UNIT_TOLERANCE)))
            raise ValueError(
                f"mean {row} = {self.means[row].tolist()} has length {length[row]:.12g}; "
                f"expected a unit vector"
            )
        if abs(self.weights.sum() - 1) > UNIT_TOLERANCE:
            raise ValueError(f"weights sum to {self.weights.sum():.12g}; expected 1")


def random_mixture(ambient_dim, bumps, concentration, seed):
    """Bumps of one concentration and random weights (between 1 and 3 times each other) anywhere.

    Parameters
    ----------
    ambient_dim, bumps : int
    concentration : float
        κ ≥ 0.
    seed : int

    Returns
    -------
    VonMisesFisherMixture
    """
    random = np.random.default_rng(seed)
    means = normalise(random.normal(size=(bumps, ambient_dim)))
    weights = 0.5 + random.uniform(size=bumps)
    return VonMisesFisherMixture(means, np.full(bumps, concentration), weights / weights.sum())
