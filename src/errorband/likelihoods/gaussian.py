"""Gaussian noise."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.base import Likelihood
from errorband.parameters import POSITIVE, VARIANCE, GreaterThan, Real, hyperparameter
from errorband.predictive import GaussianPredictive
from errorband.special import LOG_2PI


class Gaussian(Likelihood):
    """y = f + ε, ε ~ N(0, noise_variance): the only likelihood with exact inference.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        Variance of the noise. None starts the search at a quarter of the variance of the targets.
    min_noise_variance : float
        Lower bound of the variance, such as bin²/12 for targets recorded in bins.

    Examples
    --------
    >>> Gaussian(noise_variance=0.25)
    Gaussian(noise_variance=0.25)
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    min_noise_variance: float = eqx.field(default=0.0, static=True, metadata={"unit": VARIANCE})
    conjugate: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True
    location_scale: ClassVar[bool] = True

    def __check_init__(self):
        if not (np.isfinite(self.min_noise_variance) and self.min_noise_variance >= 0):
            raise ValueError(f"min_noise_variance={self.min_noise_variance!r} must be a finite number, zero or more.")

    @property
    def constraints(self) -> dict[str, Real]:
        """The noise variance is above ``min_noise_variance``."""
        return {"noise_variance": GreaterThan(float(self.min_noise_variance))}

    def log_prob(self, y, f):
        return log_normal(y, f, self.noise_variance)

    def log_tilted(self, y, mean, cov):
        return log_normal(y, mean, cov + self.noise_variance)

    def log_tilted_power(self, y, mean, cov, power):
        """N(y; f, σ²)^p is N(y; f, σ²/p) up to a constant."""
        constant = log_power_constant(jnp.log(self.noise_variance), power)
        return constant + log_normal(y, mean, cov + self.noise_variance / power)

    def expected_log_prob(self, y, mean, cov):
        return self.log_prob(y, mean) - 0.5 * cov / self.noise_variance

    def defaults(self, y):
        variance = float(np.var(y)) or 1.0
        return {"noise_variance": max(0.25 * variance, 1.5 * self.min_noise_variance)}

    def predictive(self, mean, cov):
        return GaussianPredictive(mean[:, 0], np.sqrt(cov[:, 0, 0] + float(self.noise_variance)))

    def conditional_sample(self, f, rng):
        """Draws of f + ε."""
        return f + np.sqrt(float(self.noise_variance)) * rng.standard_normal(np.shape(f))


def log_normal(y: Any, mean: Any, variance: Any) -> Any:
    """Log N(y; mean, variance)."""
    return -0.5 * ((y - mean) ** 2 / variance + jnp.log(variance) + LOG_2PI)


def log_power_constant(log_variance: Any, power: Any) -> Any:
    """Log of N(y; f, variance)^power / N(y; f, variance/power)."""
    return 0.5 * ((1 - power) * (LOG_2PI + log_variance) - jnp.log(power))
