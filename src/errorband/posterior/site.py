"""Posterior from a structure and its sites."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from errorband import linalg
from errorband.approximations import Approximation
from errorband.kernels import Kernel
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, in_double_precision, pad_rows, padded_size, slices
from errorband.posterior.base import Posterior, check_one_latent, checked_variance
from errorband.structures import Predictor


class SitePosterior(Posterior):
    """Posterior of one or several latent functions from a structure and its sites.

    Attributes
    ----------
    anchors : array
        What the approximation needs for the covariance of new inputs with what it is expressed in.
    predictor : Predictor
        What the structure kept.
    """

    kernel: Kernel
    mean: Mean
    approximation: Approximation
    n_latents: int = eqx.field(static=True)
    anchors: np.ndarray
    predictor: Predictor
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        n, L = len(X), self.n_latents
        chunk = min(
            padded_size(n), max(16, MEMORY_BUDGET // (48 * self.predictor.numbers_per_row))
        )  # several at a time
        means, covariances = np.empty((n, L)), np.empty((n, L, L))

        @in_double_precision
        def predict(part: slice) -> None:
            rows = X[part]
            if not variance:
                means[part] = np.asarray(_site_mean(self, pad_rows(rows, chunk)))[: len(rows)]
                return
            mean, cov, prior = _site_predict(self, pad_rows(rows, chunk))
            means[part] = np.asarray(mean)[: len(rows)]
            cov = np.array(cov)[: len(rows)]
            diagonal = np.einsum("nll->nl", cov)  # a view
            diagonal[:] = checked_variance(diagonal, np.asarray(prior)[: len(rows)])
            covariances[part] = cov

        for _ in linalg.in_parallel(predict, slices(n, chunk)):
            pass
        return means, covariances if variance else None

    @in_double_precision
    def joint(self, X):
        check_one_latent(self.n_latents)
        mean, cov = _site_joint(self, pad_rows(X, padded_size(len(X))))
        return np.asarray(mean)[: len(X)], np.asarray(cov)[: len(X), : len(X)]


@jax.jit
def _site_predict(posterior: SitePosterior, X: Any) -> tuple[Any, Any, Any]:
    L = posterior.n_latents
    cross = posterior.approximation.cross(posterior.kernel, posterior.anchors, X, L)
    prior = posterior.approximation.new_variance(posterior.kernel, X, cross)
    mean, cov = posterior.predictor(cross, prior)
    return mean.at[:, 0].add(posterior.mean.evaluate(X)), cov, prior


@jax.jit
def _site_mean(posterior: SitePosterior, X: Any) -> Any:
    weights = posterior.predictor.mean_weights
    mean = posterior.approximation.cross_times(posterior.kernel, posterior.anchors, X, weights)
    return mean.at[:, 0].add(posterior.mean.evaluate(X))


@jax.jit
def _site_joint(posterior: SitePosterior, X: Any) -> tuple[Any, Any]:
    cross = posterior.approximation.cross(posterior.kernel, posterior.anchors, X, 1)
    prior = posterior.approximation.new_covariance(posterior.kernel, X, cross[0])
    mean, cov = posterior.predictor.joint(cross[0], prior)
    return mean + posterior.mean.evaluate(X), cov
