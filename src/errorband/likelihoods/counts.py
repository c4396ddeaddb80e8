"""Counts: Poisson, negative binomial, binomial."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.special import betainc, betaincc, expit, pdtr

from errorband.likelihoods.base import Likelihood
from errorband.parameters import POSITIVE, hyperparameter
from errorband.parameters.checks import check_whole
from errorband.special import exp_linear, log_gamma_ratio

HUGE = 1e100
MOST = 1e18  # largest mean for which NumPy draws counts


def log_link_moments(mean: np.ndarray, variance: np.ndarray, linear: float, square: float) -> tuple[Any, Any]:
    """Mean and variance of y if E(y | f) = e^f and Var(y | f) = linear·e^f + square·e^2f, by log-normal moments."""
    # In logarithms: factors that overflow and factors of zero meet where little is known.
    with np.errstate(over="ignore", divide="ignore"):
        log_average, log_excess = mean + 0.5 * variance, np.log(square - np.expm1(-variance))
        return np.exp(log_average), np.exp(log_average + np.log(linear)) + np.exp(2 * (mean + variance) + log_excess)


class Poisson(Likelihood):
    """Counts of mean e^f: p(y | f) = exp(yf − e^f)/y!.

    Examples
    --------
    >>> import numpy as np
    >>> counts = Poisson().predictive(np.array([[0.0]]), np.array([[[1.0]]]))  # f ~ N(0, 1)
    >>> counts.mean.round(4), counts.variance.round(4)  # √e, and √e + e(e − 1), larger than the mean
    (array([1.6487]), array([6.3195]))
    """

    log_concave: ClassVar[bool] = True
    closed_conditionals: ClassVar[bool] = True
    support: ClassVar[str] = "count"
    log_rate: ClassVar[bool] = True

    def log_prob(self, y, f):
        return y * f - exp_linear(f) - gammaln(y + 1.0)

    def expected_log_prob(self, y, mean, cov):
        return y * mean - exp_linear(mean + 0.5 * cov) - gammaln(y + 1.0)

    def feature(self, y):
        return jnp.log(y + 0.5), 1 / jnp.sqrt(y + 0.5)

    def predictive_moments(self, mean, variance):
        return log_link_moments(mean, variance, 1.0, 0.0)

    def conditional_mean(self, f):
        return np.exp(np.minimum(f, 700.0))

    def conditional_variance(self, f):
        return self.conditional_mean(f)

    def conditional_cdf(self, y, f):
        return pdtr(np.floor(y), self.conditional_mean(f))

    def conditional_sample(self, f, rng):
        return rng.poisson(np.minimum(self.conditional_mean(f), MOST)).astype(float)


class NegativeBinomial(Likelihood):
    """Counts of mean μ = e^f and variance μ + dispersion·μ²: a Poisson distribution with a gamma-distributed rate.

    With r = 1/dispersion,

        p(y | f) = Γ(y + r)/(Γ(r) y!) · (μ/(μ + r))^y (r/(μ + r))^r.

    Parameters
    ----------
    dispersion : float, Parameter or None
        Positive; towards 0 the distribution is Poisson. None starts from the variance of the counts.

    Examples
    --------
    >>> import numpy as np
    >>> f = np.log([[10.0]]), np.array([[[0.0]]])  # the rate is exactly 10
    >>> NegativeBinomial(dispersion=0.5).predictive(*f).variance.round(4)  # 10 + 0.5 · 10²
    array([60.])
    """

    dispersion: Any = hyperparameter(POSITIVE, ndim=0)
    log_concave: ClassVar[bool] = True
    closed_conditionals: ClassVar[bool] = True
    support: ClassVar[str] = "count"
    log_rate: ClassVar[bool] = True

    def log_prob(self, y, f):
        r, x = 1 / self.dispersion, f + jnp.log(self.dispersion)  # x = log(μ/r)
        return log_gamma_ratio(r, y) - gammaln(y + 1.0) + y * x - (y + r) * jax.nn.softplus(x)

    def feature(self, y):
        return jnp.log(y + 0.5), jnp.sqrt(1 / (y + 0.5) + self.dispersion)

    def defaults(self, y):
        mean = float(np.mean(y)) or 1.0
        return {"dispersion": np.clip(0.5 * (np.var(y) - mean) / mean**2, 0.05, 5.0)}

    def predictive_moments(self, mean, variance):
        return log_link_moments(mean, variance, 1.0, float(self.dispersion))

    def conditional_mean(self, f):
        return np.exp(np.minimum(f, 350.0))

    def conditional_variance(self, f):
        mu = self.conditional_mean(f)
        return mu + float(self.dispersion) * mu**2

    def conditional_cdf(self, y, f):
        # Of two forms of the cdf the one whose probability is the smaller, which no rounding loses. Of huge counts
        # only the product with r/(μ + r) matters, and the functions would overflow.
        r, y = 1 / float(self.dispersion), np.floor(y) + 1
        x = np.asarray(f) - np.log(r) - np.log(np.maximum(y, HUGE) / HUGE)
        y = np.minimum(y, HUGE)
        y, found, up = np.broadcast_to(y, np.shape(x)), np.empty(np.shape(x)), x > 0
        found[up] = betainc(r, y[up], expit(-x[up]))
        found[~up] = betaincc(y[~up], r, expit(x[~up]))
        return found

    def conditional_sample(self, f, rng):
        a = float(self.dispersion)
        rate = rng.gamma(1 / a, 1.0, np.shape(f)) * a * self.conditional_mean(f)
        return rng.poisson(np.minimum(rate, MOST)).astype(float)


class Binomial(Likelihood):
    """Successes in ``n_trials`` trials, each of probability 1/(1 + e^−f).

    Parameters
    ----------
    n_trials : int
        Number of trials of each count.

    Examples
    --------
    >>> import numpy as np
    >>> heads = Binomial(10).predictive(np.array([[0.0]]), np.array([[[0.0]]]))  # f = 0 exactly: a fair coin
    >>> heads.mean.round(4), heads.variance.round(4)
    (array([5.]), array([2.5]))
    """

    n_trials: int = eqx.field(static=True)
    log_concave: ClassVar[bool] = True
    closed_conditionals: ClassVar[bool] = True
    support: ClassVar[str] = "count"

    def __check_init__(self):
        check_whole("Binomial", "n_trials", self.n_trials)

    @property
    def upper(self) -> float:
        return float(self.n_trials)

    def log_prob(self, y, f):
        n = self.n_trials
        ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
        return ways - y * jax.nn.softplus(-f) - (n - y) * jax.nn.softplus(f)

    def feature(self, y):
        above, below = y + 0.5, self.n_trials - y + 0.5
        return jnp.log(above / below), jnp.sqrt(1 / above + 1 / below)

    def conditional_mean(self, f):
        return self.n_trials * expit(f)

    def conditional_variance(self, f):
        return self.n_trials * expit(f) * expit(-np.asarray(f))

    def conditional_cdf(self, y, f):
        y = np.floor(y)
        return np.where(y >= self.n_trials, 1.0, betaincc(y + 1, np.maximum(self.n_trials - y, 0.5), expit(f)))

    def conditional_sample(self, f, rng):
        return rng.binomial(self.n_trials, expit(f)).astype(float)
