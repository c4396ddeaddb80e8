"""Posterior from draws of the latent values at the training inputs."""

from typing import Any

import numpy as np

from errorband import linalg
from errorband.kernels.padded import diagonal, gram
from errorband.latents import Latent
from errorband.posterior.base import Posterior, checked_variance, latent_of, prior_mean
from errorband.precision import in_double_precision
from errorband.predictive import MixturePredictive
from errorband.rows import rows_within_budget, slices


class DrawsPosterior(Posterior):
    """Average over S draws of the latent values f at the training inputs; given f, new values are normal.

        f* | f ~ N( m* + k*ᵀK⁻¹(f − m),  k** − k*ᵀK⁻¹k* ),

    the same covariance for each draw. :meth:`predictive` is the mixture over the draws, :meth:`marginals` and
    :meth:`joint` its mean and covariance.

    Attributes
    ----------
    latents : tuple of Latent
        One that all latent functions share, or one for each.
    X : array (n, D)
    weights : array (S, L, n)
        K⁻¹(f − m) of each draw.
    factors : tuple of arrays (n, n)
        Cholesky factor of the prior covariance of each latent prior.
    rhat, effective : arrays (n, L)
        R̂ and effective number of draws of each latent value.
    jitter : float
    """

    latents: tuple[Latent, ...]
    X: np.ndarray
    weights: np.ndarray
    factors: tuple[np.ndarray, ...]
    rhat: np.ndarray
    effective: np.ndarray
    jitter: float = 0.0

    @in_double_precision
    def _given_draws(self, X: np.ndarray, variance: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Means (S, n, L) of the latent values for each draw, and their variances (n, L), the same for all."""
        S, L, N = self.weights.shape
        means, variances = np.empty((S, len(X), L)), np.empty((len(X), L))
        for part in slices(len(X), max(1, rows_within_budget(8 * (N + S * L)))):
            rows = X[part]
            cross = [gram(latent.kernel, rows, self.X) for latent in self.latents]
            for l in range(L):
                k, latent = cross[l if len(cross) > 1 else 0], latent_of(self.latents, l)
                means[:, part, l] = prior_mean(latent.mean, rows) + self.weights[:, l] @ k.T
                if variance:
                    v = linalg.solve_lower(self.factors[l if len(cross) > 1 else 0], np.asfortranarray(k.T))
                    prior = diagonal(latent.kernel, rows)
                    variances[part, l] = checked_variance(prior - np.sum(v * v, axis=0), prior)
        return means, variances if variance else None

    def marginals(self, X, variance=True):
        means, within = self._given_draws(X, variance)
        mean = means.mean(axis=0)
        if within is None:
            return mean, None
        off = means - mean
        return mean, np.einsum("snl,snk->nlk", off, off) / len(means) + within[:, :, None] * np.eye(within.shape[1])

    @in_double_precision
    def joint(self, X, latent=0):
        prior, factor = latent_of(self.latents, latent), self.factors[latent if len(self.factors) > 1 else 0]
        means = self._given_draws(X, variance=False)[0][:, :, latent]
        v = linalg.solve_lower(factor, np.asfortranarray(gram(prior.kernel, self.X, X)))
        off = means - means.mean(axis=0)
        return means.mean(axis=0), gram(prior.kernel, X, X) - v.T @ v + off.T @ off / len(off)

    def predictive(self, likelihood: Any, X, noise_variance=None, offset=None):
        means, variances = self._given_draws(X)
        assert variances is not None  # asked for by default
        if offset is not None:
            means[:, :, 0] += offset
        extra = 0.0 if noise_variance is None else noise_variance[:, None]
        cov = (variances + extra)[:, :, None] * np.eye(variances.shape[1])
        return MixturePredictive(np.ones(len(means)), [likelihood.predictive(mean, cov) for mean in means])
