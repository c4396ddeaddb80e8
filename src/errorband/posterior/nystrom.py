"""Predictions of the Nyström approximation."""

import warnings

import numpy as np

from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.posterior.base import Posterior, prior_mean
from errorband.precision import in_double_precision
from errorband.rows import padded_size, rows_within_budget, slices


class NystromPosterior(Posterior):
    """What the Nyström approximation predicts; not the posterior of any process, and variances may have to be clipped.

    With A⁻¹ = E − HHᵀ the inverse of what stands in for the covariance of the targets, and k* = k(X, x*),

        mean  m* + k*ᵀg,     variance  k** − k*ᵀEk* + ‖Hᵀk*‖².

    Attributes
    ----------
    weights, precision, half : arrays (n,), (n,), (n, M)
        g, E and H.
    """

    latent: Latent
    X: np.ndarray
    weights: np.ndarray
    precision: np.ndarray
    half: np.ndarray
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        means, variances = np.empty(len(X)), np.empty(len(X))
        chunk = rows_within_budget(32 * padded_size(len(self.X)))
        for part in slices(len(X), chunk):
            cross = gram(self.latent.kernel, X[part], self.X)
            means[part] = prior_mean(self.latent.mean, X[part]) + cross @ self.weights
            if variance:
                taken = np.sum(cross**2 * self.precision, axis=1) - np.sum((cross @ self.half) ** 2, axis=1)
                variances[part] = diagonal(self.latent.kernel, X[part]) - taken
        return means[:, None], clipped_variance(variances)[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X, latent=0):
        cross = gram(self.latent.kernel, X, self.X)
        half = cross @ self.half
        cov = gram(self.latent.kernel, X, X) - (cross * self.precision) @ cross.T + half @ half.T
        return prior_mean(self.latent.mean, X) + cross @ self.weights, cov


def clipped_variance(variance: np.ndarray) -> np.ndarray:
    """Zero in place of variances below zero, which the Nyström approximation can have; a warning says how many."""
    below = int(np.sum(variance < 0))
    if below:
        warnings.warn(
            f"{below} of {len(variance)} variances of the Nyström approximation came out below zero and were set to "
            "zero: its bands cannot be trusted there. Use FITC or VFE, or more inducing inputs.",
            RuntimeWarning,
            stacklevel=5,
        )
    return np.maximum(variance, 0.0)
