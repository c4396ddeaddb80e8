"""Posteriors from what a structure keeps for prediction (:class:`~errorband.structures.base.Predictor`)."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from errorband.latents import Latent
from errorband.posterior.base import Posterior, checked_variance, latent_of
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.rows import joined, map_reduce, pad_rows, padded_size, rows_within_budget, slices
from errorband.structures import Predictor


class PredictorPosterior(Posterior):
    """Base: a predictor, and the prior of each latent function (or of one that all share).

    Subclasses say how the predictor's ``cross`` and the prior at new inputs are made. Traced.
    """

    latents: eqx.AbstractVar[tuple[Latent, ...]]
    predictor: eqx.AbstractVar[Predictor]

    @property
    def n_latents(self) -> int:
        """Number of latent functions L."""
        return len(self.predictor.mean_weights)

    @abc.abstractmethod
    def _cross(self, l: int, X: Any) -> Any:
        """Covariance (S, ·) of latent prior l at X with what the predictor is expressed in."""

    @abc.abstractmethod
    def _variance(self, l: int, X: Any, cross: Any) -> Any:
        """Prior variance (S,) at X."""

    @abc.abstractmethod
    def _covariance(self, l: int, X: Any, cross: Any) -> Any:
        """Prior covariance (S, S) at X."""

    @abc.abstractmethod
    def _weighted(self, l: int, X: Any, weights: Any) -> Any:
        """``cross`` times weights (·, L'): the means of L' latent functions with this prior, (S, L')."""

    @in_double_precision
    def marginals(self, X, variance=True):
        n = len(X)
        # Several chunks at a time.
        size = min(padded_size(n), rows_within_budget(48 * self.predictor.numbers_per_row))
        _, found = map_reduce(_predict_chunk, (self, size, variance), [X[part] for part in slices(n, size)])
        means, *rest = joined(found)
        if not variance:
            return means, None
        cov, prior = rest
        diagonal = np.einsum("nll->nl", cov)  # a view
        diagonal[:] = checked_variance(diagonal, prior)
        return means, cov

    @in_double_precision
    def joint(self, X, latent=0):
        mean, cov = _joint(self, pad_rows(X, padded_size(len(X))), latent)
        return np.asarray(mean)[: len(X)], np.asarray(cov)[: len(X), : len(X)]


class SitePosterior(PredictorPosterior):
    """Posterior from all training rows and their sites: ``cross`` is k(X*, X).

    Attributes
    ----------
    latents : tuple of Latent
        One that all latent functions share, or one for each.
    X : array (N, D)
        Training inputs, padded.
    predictor : Predictor
    """

    latents: tuple[Latent, ...]
    X: Any
    predictor: Predictor
    jitter: float

    def _cross(self, l, X):
        return self.latents[l].kernel.gram(X, self.X)

    def _variance(self, l, X, cross):
        return self.latents[l].kernel.gram_diag(X)

    def _covariance(self, l, X, cross):
        return self.latents[l].kernel.gram(X, X)

    def _weighted(self, l, X, weights):
        return self._cross(l, X) @ weights


class FeaturePosterior(PredictorPosterior):
    """Posterior from features alone: ``cross`` is Φ* = K_*u L⁻ᵀ. Nothing of the size of the data is kept.

    Attributes
    ----------
    latents : tuple of Latent
        One that all latent functions share, or one for each.
    factors : tuple of arrays (M, M) or None
        L with LLᵀ = K_uu of each latent prior; None where it is the identity.
    predictor : LowRankPredictor
    opens : bool
        Whether the prior variance at new inputs is that of the kernel; else that of Q, which goes to zero far away.
    """

    latents: tuple[Latent, ...]
    factors: tuple[np.ndarray | None, ...]
    predictor: Predictor
    opens: bool = eqx.field(static=True)
    jitter: float

    def _cross(self, l, X):
        cross = self.latents[l].whitened(self.factors[l], X)
        return jnp.pad(cross, [(0, 0), (0, self.predictor.mean_weights.shape[1] - cross.shape[1])])

    def _variance(self, l, X, cross):
        return self.latents[l].variance(X) if self.opens else jnp.sum(cross**2, axis=1)

    def _covariance(self, l, X, cross):
        if not self.opens:
            return cross @ cross.T
        features: Any = self.latents[l].features
        if features.weight_space:  # what the features leave of the variance is independent noise
            return cross @ cross.T + jnp.diag(self.latents[l].variance(X) - jnp.sum(cross**2, axis=1))
        return self.latents[l].kernel.gram(X, X)

    def _weighted(self, l, X, weights):
        """K_*u (L⁻ᵀγ): no triangular solve for each row."""
        latent, factor = self.latents[l], self.factors[l]
        features: Any = latent.features
        weights = weights[: features.size]
        return features.K_fu(latent.kernel, X) @ (weights if factor is None else solve_triangular(factor.T, weights))


@in_double_precision
def _predict_chunk(state: tuple[Any, ...], X: np.ndarray) -> tuple[Any, Any]:
    """Mean, covariance and prior variance at some rows, or the mean only."""
    posterior, size, variance = state
    padded = pad_rows(X, size)
    found = _marginals(posterior, padded) if variance else (_means(posterior, padded),)
    return (), tuple(np.array(a)[: len(X)] for a in found)


@program
def _marginals(posterior: PredictorPosterior, X: Any) -> tuple[Any, Any, Any]:
    """Mean, covariance and prior variance of all latents at each input."""
    priors, L, n = range(len(posterior.latents)), posterior.n_latents, X.shape[0]
    cross = [posterior._cross(l, X) for l in priors]
    variance = jnp.stack([posterior._variance(l, X, cross[l]) for l in priors], axis=1)
    variance = jnp.broadcast_to(variance, (n, L))
    mean, cov = posterior.predictor(jnp.broadcast_to(jnp.stack(cross), (L, *cross[0].shape)), variance)
    return mean + _prior_means(posterior, X), cov, variance


@program
def _means(posterior: PredictorPosterior, X: Any) -> Any:
    weights = posterior.predictor.mean_weights.T
    if len(posterior.latents) == 1:
        mean = posterior._weighted(0, X, weights)
    else:
        mean = jnp.concatenate([posterior._weighted(l, X, weights[:, [l]]) for l in range(weights.shape[1])], axis=1)
    return mean + _prior_means(posterior, X)


@program
def _prior_means(posterior: PredictorPosterior, X: Any) -> Any:
    return jnp.stack([latent.mean.evaluate(X) for latent in posterior.latents], axis=1)


@program(static_argnums=2)
def _joint(posterior: PredictorPosterior, X: Any, latent: int) -> tuple[Any, Any]:
    l = 0 if len(posterior.latents) == 1 else latent
    cross = posterior._cross(l, X)
    mean, cov = posterior.predictor.joint(cross, posterior._covariance(l, X, cross), latent)
    return mean + latent_of(posterior.latents, latent).mean.evaluate(X), cov
