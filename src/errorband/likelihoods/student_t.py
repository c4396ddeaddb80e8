"""Student-t noise."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import stdtr

from errorband.likelihoods.additive import AdditiveNoise
from errorband.likelihoods.base import robust_scale
from errorband.parameters import POSITIVE, SPREAD, GreaterThan, Parameter, hyperparameter
from errorband.priors import LogNormal
from errorband.special import log_gamma_ratio

# Its mode is 3.7; 2.05 and 100 are 3 and 4 nats less likely.
DF_PRIOR = LogNormal(location=np.log(16.0), scale=1.5, lower=2.0)


class StudentT(AdditiveNoise):
    """y = f + scale·t, t of a Student distribution: outliers have little effect (Naish-Guzman 2007, eq. 3.2).

        p(y | f) = Γ((ν+1)/2) / (Γ(ν/2) √(πν) scale) · (1 + (y − f)²/(ν scale²))^(−(ν+1)/2)

    Not log-concave: the pull of a datum far from f decreases with its distance.

    Parameters
    ----------
    df : float, Parameter or None
        ν > 1, the degrees of freedom. Up to 2 the variance of the noise is infinite. None starts the search at 4 with
        a prior above 2, weak in between: so bands stay finite, and the search ends where the evidence is highest at
        the limits, 2 for very heavy tails and infinity for none.
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

    def initialised(self, y):
        if self.df is None:
            df = Parameter(4.0, prior=DF_PRIOR, bounds=(2.0, None))
            return StudentT(df, self.scale).initialised(y)
        return super().initialised(y)

    def noise_moment(self):
        nu = float(self.df)
        return float(self.scale) ** 2 * nu / (nu - 2) if nu > 2 else np.inf

    def noise_cdf(self, r):
        return stdtr(float(self.df), r / float(self.scale))

    def noise_sample(self, size, rng):
        return float(self.scale) * rng.standard_t(float(self.df), size)
