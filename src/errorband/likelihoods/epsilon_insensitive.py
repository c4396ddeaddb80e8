"""Noise without a preference among small errors."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import robust_scale
from errorband.parameters import POSITIVE, SPREAD, hyperparameter
from errorband.special import LOG_2PI, log_exponential_tail, log_ndtr_between


class EpsilonInsensitive(AdditiveNoise):
    """Flat within ``epsilon``, exponential beyond: p(y | f) = exp(−(|y − f| − ε)₊/s)/(2ε + 2s).

    The loss of support vector regression (Vapnik 1995) as a density. Log-concave. The integral over N(f; m, v) is a
    normal between −ε and ε and two exponential tails.

    Parameters
    ----------
    scale : float, Parameter or None
        s. None starts the search at half the spread of the bulk of the targets.
    epsilon : float, Parameter or None
        ε. None starts at half of the starting scale.

    Examples
    --------
    >>> likelihood = EpsilonInsensitive(scale=1.0, epsilon=0.5)
    >>> [round(float(likelihood.log_prob(y, 0.0)), 4) for y in (0.0, 0.4, 1.5)]  # log ⅓, log ⅓, log ⅓ − 1
    [-1.0986, -1.0986, -2.0986]
    """

    scale: Any = hyperparameter(POSITIVE, ndim=0, unit=SPREAD)
    epsilon: Any = hyperparameter(POSITIVE, ndim=0, unit=SPREAD)
    log_concave: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def log_prob(self, y, f):
        beyond = jnp.maximum(jnp.abs(y - f) - self.epsilon, 0.0)
        return -beyond / self.scale - self._log_constant()

    def log_tilted(self, y, mean, cov):
        return self.log_tilted_power(y, mean, cov, 1.0)

    def log_tilted_power(self, y, mean, cov, power):
        r, spread, e = y - mean, jnp.sqrt(cov), self.epsilon
        middle = log_ndtr_between((-e - r) / spread, (e - r) / spread)
        right, left = (log_exponential_tail(power / self.scale, side - e, cov) for side in (r, -r))
        return jax.nn.logsumexp(jnp.stack([middle, right, left])) - power * self._log_constant()

    def expected_log_prob(self, y, mean, cov):
        """In closed form, from partial moments of a normal beyond ±ε."""
        r, s = y - mean, jnp.sqrt(cov)

        def beyond(side):
            z = (side - self.epsilon) / s
            return s * (z * jax.scipy.special.ndtr(z) + jnp.exp(-0.5 * (z**2 + LOG_2PI)))

        return -(beyond(r) + beyond(-r)) / self.scale - self._log_constant()

    def _log_constant(self) -> Any:
        return jnp.log(2.0 * (self.epsilon + self.scale))

    def feature(self, y):
        return y, self.scale + self.epsilon

    def defaults(self, y):
        scale = robust_scale(y)
        return {"scale": scale, "epsilon": 0.5 * scale}

    # ------------------------------------------------------------------ the noise
    def noise_moment(self):
        s, e = float(self.scale), float(self.epsilon)
        return (e**3 / 3 + s * (e**2 + 2 * e * s + 2 * s**2)) / (e + s)

    def noise_cdf(self, r):
        s, e = float(self.scale), float(self.epsilon)
        r = np.asarray(r, float)
        below = -np.abs(r)
        lower = np.where(below < -e, s * np.exp(np.minimum((below + e) / s, 0.0)), s + e + below) / (2 * (e + s))
        return np.where(r < 0, lower, 1 - lower)

    def noise_sample(self, size, rng):
        s, e = float(self.scale), float(self.epsilon)
        q = rng.random(size)
        p = np.minimum(q, 1 - q) * 2 * (e + s)  # of the lower half, in units of the flat density
        with np.errstate(divide="ignore"):
            lower = np.where(p < s, s * np.log(p / s) - e, p - s - e)
        return np.where(q < 0.5, lower, -lower)
