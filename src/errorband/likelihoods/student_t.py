"""Student-t noise."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import stdtr

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import robust_scale
from errorband.parameters import POSITIVE, SPREAD, GreaterThan, hyperparameter
from errorband.special import log_gamma_ratio


class StudentT(AdditiveNoise):
    """y = f + scale·t, t of a Student distribution: outliers have little effect (Naish-Guzman 2007, eq. 3.2).

        p(y | f) = Γ((ν+1)/2) / (Γ(ν/2) √(πν) scale) · (1 + (y − f)²/(ν scale²))^(−(ν+1)/2)

    Not log-concave: the pull of a datum far from f decreases with its distance.

    Parameters
    ----------
    df : float, Parameter or None
        ν > 1, the degrees of freedom. None starts the search at 4. Up to 2 the variance of the noise is infinite.
    scale : float, Parameter or None
        None starts at half the spread of the bulk of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> known = np.array([[0.0]]), np.array([[[0.0]]])  # a latent value of exactly 0
    >>> lower, upper = StudentT(df=4.0, scale=1.0).predictive(*known).interval(0.99)
    >>> upper.round(3)  # 2.576 for normal noise of that scale
    array([4.604])
    """

    df: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    scale: Any = hyperparameter(POSITIVE, ndim=0, unit=SPREAD)

    def log_prob(self, y, f):
        nu, z = self.df, (y - f) / self.scale
        constant = log_gamma_ratio(0.5 * nu, 0.5) - 0.5 * jnp.log(jnp.pi * nu) - jnp.log(self.scale)
        return constant - 0.5 * (nu + 1) * jnp.log1p(z**2 / nu)

    def feature(self, y):
        return y, self.scale

    def defaults(self, y):
        return {"df": 4.0, "scale": robust_scale(y)}

    def noise_moment(self):
        nu = float(self.df)
        return float(self.scale) ** 2 * nu / (nu - 2) if nu > 2 else np.inf

    def noise_cdf(self, r):
        return stdtr(float(self.df), r / float(self.scale))

    def noise_sample(self, size, rng):
        return float(self.scale) * rng.standard_t(float(self.df), size)
