"""Huber's noise."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erf, ndtr, ndtri

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import robust_scale
from errorband.parameters import POSITIVE, SPREAD, hyperparameter
from errorband.special import LOG_2PI, log_exponential_tail, log_ndtr_between


class Huber(AdditiveNoise):
    """Gaussian within ``threshold`` scales, exponential beyond: p(y | f) = exp(−ρ(u))/(Z scale), u = (y − f)/scale.

        ρ(u) = u²/2 for |u| ≤ k,  k|u| − k²/2 beyond;    Z = √(2π) erf(k/√2) + (2/k) exp(−k²/2).

    ρ is the loss of Huber (1964) and p its density, properly normalised. Log-concave. The integral over N(f; m, v) is a
    normal between the two thresholds and two exponential tails.

    Parameters
    ----------
    scale : float, Parameter or None
        None starts the search at half the spread of the bulk of the targets.
    threshold : float, Parameter or None
        k. None starts at 1.345, which wastes 5% of perfectly normal data.

    Examples
    --------
    >>> import numpy as np
    >>> known = np.array([[0.0]]), np.array([[[0.0]]])  # a latent value of exactly 0
    >>> lower, upper = Huber(scale=1.0, threshold=1.345).predictive(*known).interval(0.99)
    >>> upper.round(3)  # 2.576 for normal noise of that scale
    array([3.664])
    """

    scale: Any = hyperparameter(POSITIVE, ndim=0, unit=SPREAD)
    threshold: Any = hyperparameter(POSITIVE, ndim=0)
    log_concave: ClassVar[bool] = True

    def log_prob(self, y, f):
        k, u = self.threshold, jnp.abs(y - f) / self.scale
        return -jnp.where(u <= k, 0.5 * u**2, k * u - 0.5 * k**2) - self._log_constant()

    def log_tilted(self, y, mean, cov):
        return self.log_tilted_power(y, mean, cov, 1.0)

    def log_tilted_power(self, y, mean, cov, power):
        k, u, v = self.threshold, (y - mean) / self.scale, cov / self.scale**2  # u − (y − f)/scale ~ N(0, v)
        shrink = 1 + power * v
        centre, spread = u / shrink, jnp.sqrt(v / shrink)
        middle = log_ndtr_between((-k - centre) / spread, (k - centre) / spread)
        middle = middle - 0.5 * (power * u**2 / shrink + jnp.log(shrink))
        right, left = (log_exponential_tail(power * k, side - k, v) - 0.5 * power * k**2 for side in (u, -u))
        return jax.nn.logsumexp(jnp.stack([middle, right, left])) - power * self._log_constant()

    def expected_log_prob(self, y, mean, cov):
        """In closed form, from partial moments of a normal between and beyond the thresholds."""
        k, u, s = self.threshold, (y - mean) / self.scale, jnp.sqrt(cov) / self.scale
        a, b = (-k - u) / s, (k - u) / s
        cdf, pdf = jax.scipy.special.ndtr, lambda x: jnp.exp(-0.5 * (x**2 + LOG_2PI))
        inside = (u**2 + s**2) * (cdf(b) - cdf(a)) - 2 * u * s * (pdf(b) - pdf(a)) - s**2 * (b * pdf(b) - a * pdf(a))
        above = k * (u * cdf(-b) + s * pdf(b)) - 0.5 * k**2 * cdf(-b)
        below = -k * (u * cdf(a) - s * pdf(a)) - 0.5 * k**2 * cdf(a)
        return -0.5 * inside - above - below - self._log_constant()

    def _log_constant(self) -> Any:
        k = self.threshold
        Z = np.sqrt(2 * np.pi) * jax.lax.erf(k / np.sqrt(2)) + 2 / k * jnp.exp(-0.5 * k**2)
        return jnp.log(Z) + jnp.log(self.scale)

    def feature(self, y):
        return y, self.scale

    def defaults(self, y):
        return {"scale": robust_scale(y), "threshold": 1.345}

    # ------------------------------------------------------------------ the noise, in units of its scale
    def _masses(self) -> tuple[float, float, float]:
        """k, Z and the probability of one tail."""
        k = float(self.threshold)
        edge = np.exp(-0.5 * k**2)
        Z = np.sqrt(2 * np.pi) * erf(k / np.sqrt(2)) + 2 / k * edge
        return k, Z, edge / (k * Z)

    def noise_moment(self):
        k, Z, _ = self._masses()
        moment = np.sqrt(2 * np.pi) * erf(k / np.sqrt(2)) + 4 * np.exp(-0.5 * k**2) * (1 / k + 1 / k**3)
        return float(self.scale) ** 2 * moment / Z

    def noise_cdf(self, r):
        k, Z, tail = self._masses()
        u = -np.abs(r) / float(self.scale)
        beyond = tail * np.exp(k * np.minimum(u + k, 0.0))
        lower = np.where(u < -k, beyond, 0.5 + np.sqrt(2 * np.pi) / Z * (ndtr(u) - 0.5))
        return np.where(r < 0, lower, 1 - lower)

    def noise_sample(self, size, rng):
        k, Z, tail = self._masses()
        q = rng.random(size)
        p = np.minimum(q, 1 - q)  # of the lower half
        with np.errstate(divide="ignore"):
            far = np.log(p / tail) / k - k
        u = np.where(p < tail, far, ndtri(np.clip(0.5 + (p - 0.5) * Z / np.sqrt(2 * np.pi), 1e-300, 0.5)))
        return float(self.scale) * np.where(q < 0.5, u, -u)
