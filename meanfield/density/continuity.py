"""The continuity equation's right-hand side in harmonics up to one degree, on S¹ and S²."""

import numpy as np

from meanfield.model.attention import KernelSums
from meanfield.model.model import Model
from meanfield.sphere.funk_hecke import eigenvalues
from meanfield.sphere.grids import regular_grid, to_ambient, to_frame
from meanfield.sphere.harmonics import scattered_harmonics


class SpectralContinuity:
    """−div(ρ V[ρ]) and what belongs to it, from the coefficients of ρ [L, eq. (2.6)].

    The attention part of V takes one Funk–Hecke multiplier a degree [L, §5.1]. The product
    ρV is formed on a grid that integrates degree 3L exactly, because it is the product of
    two fields of degree L tested against harmonics of degree L: nothing beyond degree L in
    it is taken for something below. The perceptron's drift is taken at the grid's nodes: its
    part of degree p meets the mode j of ρ without aliasing in the result's degree l as long
    as p + j + l ≤ 3L. What aliases is below rounding for smooth activations once L resolves
    them, and falls like a power of 1/L for kinked ones.

    Parameters
    ----------
    model : Model
        Attention without B.
    ambient_dim : int
        2 or 3.
    degree : int
        L.
    threads : int

    Attributes
    ----------
    harmonics : CircleHarmonics or SphereHarmonics
        Transforms at scattered points.
    grid : CircleGrid or SphereGrid
    """

    def __init__(self, model, ambient_dim, degree, threads=1):
        self.harmonics = scattered_harmonics(ambient_dim, degree, threads)
        self.grid = regular_grid(ambient_dim, degree, 3 * degree, threads)
        self._model = model
        if model.attention is not None:
            self._eigenvalues = eigenvalues(model.attention.beta, ambient_dim, degree)
            self._attention_alone = Model(model.attention, None, model.direction)
        # The perceptron's part of the velocity does not change with the density.
        self._perceptron_velocity = 0.0 * self.grid.frame[..., 0]
        if model.perceptron is not None:
            perceptron_alone = Model(None, model.perceptron, model.direction)
            drift = perceptron_alone.velocity(self.grid.nodes, KernelSums(0.0))
            self._perceptron_velocity = to_frame(self.grid, drift)

    def rate(self, coefficients):
        """Coefficients of −div(ρV); the one of degree 0 vanishes exactly."""
        density = self.grid.value(coefficients)
        return -self.grid.divergence(density * self.velocity_on_grid(coefficients))

    def velocity_on_grid(self, coefficients):
        """V at the grid's nodes by components in its frame, shape (d − 1, n)."""
        if self._model.attention is None:
            return self._perceptron_velocity
        grid = self.grid
        sums = self._kernel_sums(
            coefficients, grid.value, lambda c: to_ambient(grid, grid.gradient(c))
        )
        velocity = self._attention_alone.velocity(grid.nodes, sums)
        return to_frame(grid, velocity) + self._perceptron_velocity

    def velocity(self, coefficients, x):
        """V at unit rows x (n, d), tangent, shape (n, d)."""
        sums = KernelSums(0.0)
        if self._model.attention is not None:
            sums = self._kernel_sums(
                coefficients,
                lambda c: self.harmonics.value(c, x),
                lambda c: self.harmonics.gradient(c, x),
            )
        return self._model.velocity(x, sums)

    def energy(self, coefficients):
        """E[ρ] = s/(2β) Σ_j λ_j Σ_ℓ m_jℓ² + ½ ∫ v ρ dσ.

        The integral is the grid's: exact for the part of v up to degree 2L, so to rounding
        for smooth activations; for ReLU it errs by about (2L)^{−3}.

        Raises
        ------
        ValueError
            If the model's drift is no gradient.
        """
        self._model.require_energy("energy")
        total = 0.0
        attention = self._model.attention
        if attention is not None:
            interaction = np.float64(self._eigenvalues @ self.harmonics.power(coefficients))
            total += 0.5 * float(attention.scale(interaction, 0.0, power_of_beta=-1))
        if self._model.perceptron is not None:
            potential = self._model.perceptron.potential(self.grid.nodes)
            masses = self.grid.weights * self.grid.value(coefficients)
            total += 0.5 * float(masses @ potential)
        return total

    def smallest_denominator(self, coefficients):
        """min over the grid of ∫ exp(β x·y) dμ(y), relative to its largest value there."""
        denominator = self.grid.value(self.harmonics.multiply(coefficients, self._eigenvalues))
        return float(denominator.min() / denominator.max())

    def _kernel_sums(self, coefficients, value, gradient):
        """∫ k dμ, where needed, and its gradient where `value` and `gradient` synthesise."""
        potential = self.harmonics.multiply(coefficients, self._eigenvalues)
        return KernelSums(
            0.0,
            value(potential) if self._model.is_softmax else None,
            gradient(potential / self._model.attention.beta),
        )
