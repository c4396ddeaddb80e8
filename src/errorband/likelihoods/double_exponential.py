"""Double-exponential (Laplacian) noise."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import robust_scale
from errorband.parameters import POSITIVE, SPREAD, hyperparameter
from errorband.special import LOG_2PI, log_exponential_tail


class DoubleExponential(AdditiveNoise):
    """p(y | f) = exp(−|y − f|/scale) / (2 scale): robust, and log-concave (Naish-Guzman 2007, eq. 3.3).

    The variance of the noise is 2 scale². With r = y − m, the integral over N(f; m, v) is a sum of two normal tails,
    each computed without over- or underflow (its moments: Kuss 2006; Lázaro-Gredilla 2010, §5.3.1):

        Z = (1/2b) [T(r) + T(−r)],    T(r) = ∫₀^∞ exp(−t/b) N(t; r, v) dt = exp(v/2b² − r/b) Φ(r/√v − √v/b).

    The logarithm has a kink and zero curvature elsewhere, so use EP or variational inference, not Laplace.

    Parameters
    ----------
    scale : float, Parameter or None
        b. None starts the search at half the spread of the bulk of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> DoubleExponential(scale=0.5).predictive(np.array([[0.0]]), np.array([[[1.0]]])).variance  # 1 + 2 · 0.25
    array([1.5])
    """

    scale: Any = hyperparameter(POSITIVE, ndim=0, unit=SPREAD)
    log_concave: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def log_prob(self, y, f):
        return -jnp.abs(y - f) / self.scale - jnp.log(2 * self.scale)

    def log_tilted(self, y, mean, cov):
        return self.log_tilted_power(y, mean, cov, 1.0)

    def log_tilted_power(self, y, mean, cov, power):
        rate, r = power / self.scale, y - mean
        tails = jnp.logaddexp(log_exponential_tail(rate, r, cov), log_exponential_tail(rate, -r, cov))
        return tails - power * jnp.log(2 * self.scale)

    def expected_log_prob(self, y, mean, cov):
        """E|y − f| of a folded normal."""
        r = y - mean
        density = jnp.exp(-0.5 * (r**2 / cov + LOG_2PI))
        average = 2 * jnp.sqrt(cov) * density + r * jax.lax.erf(r / jnp.sqrt(2 * cov))
        return -average / self.scale - jnp.log(2 * self.scale)

    def feature(self, y):
        return y, self.scale

    def defaults(self, y):
        return {"scale": robust_scale(y)}

    def noise_moment(self):
        return 2 * float(self.scale) ** 2

    def noise_cdf(self, r):
        tail = 0.5 * np.exp(-np.abs(r) / float(self.scale))
        return np.where(r < 0, tail, 1 - tail)

    def noise_sample(self, size, rng):
        return rng.laplace(scale=float(self.scale), size=size)
