"""Beta-distributed fractions."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.special import betainc, expit

from errorband.likelihoods.base import Likelihood
from errorband.parameters import POSITIVE, hyperparameter


class Beta(Likelihood):
    """Fractions of mean μ = 1/(1 + e^−f): y ~ Beta(μφ, (1 − μ)φ), variance μ(1 − μ)/(1 + φ). Not log-concave.

    Parameters
    ----------
    precision : float, Parameter or None
        φ. None starts the search from the variance of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> at_half = Beta(precision=9.0).predictive(np.array([[0.0]]), np.array([[[0.0]]]))  # f = 0 exactly
    >>> at_half.mean.round(4), at_half.variance.round(4)  # ½ and ¼/(1 + 9)
    (array([0.5]), array([0.025]))
    """

    precision: Any = hyperparameter(POSITIVE, ndim=0)
    closed_conditionals: ClassVar[bool] = True
    support: ClassVar[str] = "unit"

    def log_prob(self, y, f):
        a, b = self.precision * jax.nn.sigmoid(f), self.precision * jax.nn.sigmoid(-f)
        # log Γ(a) = log Γ(1 + a) − log a, where log a is accurate even if a underflows.
        log_a, log_b = (jnp.log(self.precision) - jax.nn.softplus(x) for x in (-f, f))
        constant = gammaln(self.precision) - gammaln(1 + a) + log_a - gammaln(1 + b) + log_b
        return constant + (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y)

    def feature(self, y):
        return jnp.log(y) - jnp.log1p(-y), 1 / jnp.sqrt(self.precision * y * (1 - y) + 0.25)

    def defaults(self, y):
        mean, variance = float(np.mean(y)), float(np.var(y)) or 0.01
        return {"precision": np.clip(4 * mean * (1 - mean) / variance - 1, 1.0, 1e4)}

    def conditional_mean(self, f):
        return expit(f)

    def conditional_variance(self, f):
        return expit(f) * expit(-np.asarray(f)) / (1 + float(self.precision))

    def conditional_cdf(self, y, f):
        return betainc(*self._shapes(f), y)

    def conditional_sample(self, f, rng):
        return rng.beta(*self._shapes(f))

    def _shapes(self, f: Any) -> tuple[np.ndarray, np.ndarray]:
        phi = float(self.precision)
        return np.maximum(phi * expit(f), 1e-290), np.maximum(phi * expit(-np.asarray(f)), 1e-290)
