"""Posterior of exact inference."""

from typing import Any

import numpy as np

from errorband import linalg
from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.means import Mean
from errorband.posterior.base import Posterior, checked_variance, prior_mean
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.rows import at_rows, padded_size, rows_within_budget, slices


class DensePosterior(Posterior):
    """Posterior of one latent function from all training points.

    f* | data ~ N( m* + k*ᵀα + h*ᵀβ,  k** − ‖v*‖² + ‖C⁻¹R*‖² ),  v* = L⁻¹k*,  R* = h* − Bᵀv*

    Attributes
    ----------
    latent : Latent
        Prior of the function.
    weights : array (n,)
        α, the weights of the kernels.
    factor : array (n, n)
        Cholesky factor L of K + Σ.
    coefficients, basis_factor, whitened_basis : arrays (p,), (p, p), (n, p)
        β, C and B = L⁻¹H: the mean's coefficients that were integrated out; p = 0 if none.
    jitter : float
        What had to be added to the diagonal to factorise.
    """

    latent: Latent
    X: np.ndarray
    weights: np.ndarray
    factor: np.ndarray
    coefficients: np.ndarray
    basis_factor: np.ndarray
    whitened_basis: np.ndarray
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        n = len(X)
        chunk = min(padded_size(n), rows_within_budget(24 * padded_size(len(self.X))))
        means, variances = np.empty(n), np.empty(n)
        for part in slices(n, chunk):
            means[part], cross, h = self._cross(X[part], chunk)
            if variance:
                prior = diagonal(self.latent.kernel, X[part], chunk)
                v, r = self._whiten(cross, h)
                variances[part] = checked_variance(prior - np.sum(v * v, axis=0), prior) + np.sum(r * r, axis=0)
        return means[:, None], variances[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X, latent=0):
        mean, cross, h = self._cross(X)
        v, r = self._whiten(cross, h)
        return mean, gram(self.latent.kernel, X, X) - v.T @ v + r.T @ r

    def _cross(self, rows: np.ndarray, size: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean at some rows, their covariance with the training points (rows, n), and their basis (rows, p)."""
        cross = gram(self.latent.kernel, rows, self.X, size)
        mean = prior_mean(self.latent.mean, rows, size) + cross @ self.weights
        if len(self.coefficients) == 0:
            return mean, cross, np.zeros((len(rows), 0))
        h = at_rows(lambda padded: _basis(self.latent.mean, padded), rows, size)
        return mean + h @ self.coefficients, cross, h

    def _whiten(self, cross: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v* (n, rows) and C⁻¹R* (p, rows)."""
        v = linalg.solve_lower(self.factor, cross.T)
        if h.shape[1] == 0:
            return v, np.zeros((0, len(h)))
        return v, linalg.solve_lower(self.basis_factor, np.asfortranarray(h.T - self.whitened_basis.T @ v))


@program
def _basis(mean: Mean, X: Any) -> Any:
    return mean.basis(X)
