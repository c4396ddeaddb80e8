"""The posterior contract: the latent posterior at new inputs, a chunk at a time."""

import abc
from typing import Any

import equinox as eqx
import jax
import numpy as np

from errorband import linalg
from errorband.means import Mean
from errorband.numerics import at_rows


class Posterior(eqx.Module):
    """Posterior of the latent function."""

    jitter: eqx.AbstractVar[float]

    @abc.abstractmethod
    def marginals(self, X: np.ndarray, variance: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean (n, L) and, if asked for, covariance (n, L, L) at each of n inputs, in chunks of bounded memory."""

    @abc.abstractmethod
    def joint(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of the latent function at n inputs together."""


def check_one_latent(n_latents: int) -> None:
    """Refuse joint covariances of several latent functions."""
    if n_latents > 1:
        raise ValueError(f"Joint covariances are for one latent function; this model has {n_latents}. Use return_std.")


def checked_variance(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Clip variances that round-off made negative; anything worse is an error, not a number to hide."""
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


@jax.jit
def _mean(mean: Mean, X: Any) -> Any:
    return mean.evaluate(X)
