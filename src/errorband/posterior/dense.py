"""Posterior of exact inference."""

from typing import Any

import jax
import numpy as np

from errorband import linalg
from errorband.kernels import Kernel
from errorband.kernels.padded import diagonal, gram
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, at_rows, in_double_precision, padded_size, slices
from errorband.posterior.base import Posterior, checked_variance, prior_mean


class DensePosterior(Posterior):
    """Posterior of one latent function from all training points.

    f* | data ~ N( m* + k*ᵀg + h*ᵀβ,  k** − ‖v*‖² + ‖C⁻¹R*‖² ),  v* = L⁻¹(s ∘ k*),  R* = h* − Bᵀv*

    Attributes
    ----------
    weights : array (n,)
        g, the weights of the kernels.
    factor, scale : arrays (n, n), (n,)
        L and s with (K + Π⁻¹)⁻¹ = s L⁻ᵀL⁻¹ s. Exact inference: L is the Cholesky factor of K + Σ and s = 1.
    coefficients, basis_factor, whitened_basis : arrays (p,), (p, p), (n, p)
        β, C and B = L⁻¹(s ∘ H): the mean's coefficients that were integrated out; p = 0 if none.
    jitter : float
        What had to be added to the diagonal to factorise.
    """

    kernel: Kernel
    mean: Mean
    X: np.ndarray
    weights: np.ndarray
    factor: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    basis_factor: np.ndarray
    whitened_basis: np.ndarray
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        n = len(X)
        chunk = min(padded_size(n), max(16, MEMORY_BUDGET // (24 * padded_size(len(self.X)))))
        means, variances = np.empty(n), np.empty(n)
        for part in slices(n, chunk):
            means[part], cross, h = self._cross(X[part], chunk)
            if variance:
                prior = diagonal(self.kernel, X[part], chunk)
                v, r = self._whiten(cross, h)
                variances[part] = checked_variance(prior - np.sum(v * v, axis=0), prior) + np.sum(r * r, axis=0)
        return means[:, None], variances[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        mean, cross, h = self._cross(X)
        v, r = self._whiten(cross, h)
        return mean, gram(self.kernel, X, X) - v.T @ v + r.T @ r

    def _cross(self, rows: np.ndarray, size: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean at some rows, their covariance with the training points (rows, n), and their basis (rows, p)."""
        cross = gram(self.kernel, rows, self.X, size)
        mean = prior_mean(self.mean, rows, size) + cross @ self.weights
        if len(self.coefficients) == 0:
            return mean, cross, np.zeros((len(rows), 0))
        h = at_rows(lambda padded: _basis(self.mean, padded), rows, size)
        return mean + h @ self.coefficients, cross, h

    def _whiten(self, cross: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v* (n, rows) and C⁻¹R* (p, rows)."""
        v = linalg.solve_lower(self.factor, (cross * self.scale).T)
        if h.shape[1] == 0:
            return v, np.zeros((0, len(h)))
        return v, linalg.solve_lower(self.basis_factor, np.asfortranarray(h.T - self.whitened_basis.T @ v))


@jax.jit
def _basis(mean: Mean, X: Any) -> Any:
    return mean.basis(X)
