"""The posterior contract: latent functions at new inputs, in chunks of bounded memory."""

import abc
from typing import Any

import equinox as eqx
import numpy as np

from errorband import linalg
from errorband.latents import Latent
from errorband.means import Mean
from errorband.predictive import Predictive
from errorband.programs import program
from errorband.rows import at_rows


class Posterior(eqx.Module):
    """Posterior of the L latent functions."""

    jitter: eqx.AbstractVar[float]

    @abc.abstractmethod
    def marginals(self, X: np.ndarray, variance: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean (n, L) and, if asked for, covariance (n, L, L) at each of n inputs, in chunks of bounded memory."""

    @abc.abstractmethod
    def joint(self, X: np.ndarray, latent: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of one latent function at n inputs together."""

    def predictive(
        self,
        likelihood: Any,
        X: np.ndarray,
        noise_variance: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Predictive:
        """Distribution of the targets at each of n inputs.

        ``noise_variance`` (n,) is known noise on top of the likelihood's own; it acts like variance of the function.
        ``offset`` (n,) is a known part of the first latent function.
        """
        mean, cov = self.marginals(X)
        assert cov is not None  # asked for by default
        if offset is not None:
            mean = np.concatenate([mean[:, :1] + offset[:, None], mean[:, 1:]], axis=1)
        return likelihood.predictive(mean, cov if noise_variance is None else cov + noise_variance[:, None, None])


def latent_of(latents: tuple[Latent, ...], l: int) -> Latent:
    """Prior of latent function l: its own, or the one that all share."""
    return latents[0] if len(latents) == 1 else latents[l]


def checked_variance(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Clip variances that round-off made negative; anything worse raises an error."""
    worst = float(np.min(variance / np.maximum(prior, np.finfo(float).tiny), initial=0.0))
    if worst < -1e-5:
        raise linalg.NotPositiveDefinite(
            f"A predictive variance came out at {worst:.2g} of the prior variance: the covariance is too close to "
            "singular. Raise the noise, or remove near-duplicate rows."
        )
    return np.maximum(variance, 0.0)


def prior_mean(mean: Mean, X: np.ndarray, size: int | None = None) -> np.ndarray:
    """m(X), padded to ``size`` rows for the compiler and cut again."""
    return at_rows(lambda rows: _mean(mean, rows), X, size)


@program
def _mean(mean: Mean, X: Any) -> Any:
    return mean.evaluate(X)
