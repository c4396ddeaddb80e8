"""Gamma-distributed positive targets."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.special import gammainc

from errorband.likelihoods.base import Likelihood
from errorband.likelihoods.counts import log_link_moments
from errorband.parameters import POSITIVE, hyperparameter
from errorband.special import exp_linear


class Gamma(Likelihood):
    """Positive targets of mean e^f and relative variance 1/shape: y ~ Gamma(shape k, rate k e^−f).

    Parameters
    ----------
    shape : float, Parameter or None
        k; 1 is the exponential distribution. None starts the search from the spread of log y.

    Examples
    --------
    >>> import numpy as np
    >>> at_one = Gamma(shape=4.0).predictive(np.array([[0.0]]), np.array([[[0.0]]]))  # f = 0 exactly
    >>> at_one.mean.round(4), at_one.variance.round(4)  # e⁰ and 1/4
    (array([1.]), array([0.25]))
    """

    shape: Any = hyperparameter(POSITIVE, ndim=0)
    log_concave: ClassVar[bool] = True
    closed_conditionals: ClassVar[bool] = True
    support: ClassVar[str] = "positive"

    def log_prob(self, y, f):
        return self._log_prob(y, f, -f)

    def expected_log_prob(self, y, mean, cov):
        return self._log_prob(y, mean, -mean + 0.5 * cov)

    def _log_prob(self, y: Any, f: Any, exponent: Any) -> Any:
        k = self.shape
        return k * (jnp.log(k) - f) - gammaln(k) + (k - 1) * jnp.log(y) - k * y * exp_linear(exponent)

    def feature(self, y):
        return jnp.log(y), 1 / jnp.sqrt(self.shape)

    def defaults(self, y):
        return {"shape": np.clip(4 / (np.var(np.log(y)) or 1.0), 0.5, 1e3)}

    def predictive_moments(self, mean, variance):
        return log_link_moments(mean, variance, 0.0, 1 / float(self.shape))

    def conditional_mean(self, f):
        return np.exp(np.clip(f, -350.0, 350.0))

    def conditional_variance(self, f):
        return self.conditional_mean(f) ** 2 / float(self.shape)

    def conditional_cdf(self, y, f):
        k = float(self.shape)
        with np.errstate(over="ignore"):  # an infinite ratio is far beyond all that is likely
            return gammainc(k, k * np.asarray(y) / self.conditional_mean(f))

    def conditional_sample(self, f, rng):
        k = float(self.shape)
        return self.conditional_mean(f) * rng.gamma(k, 1 / k, np.shape(f))
