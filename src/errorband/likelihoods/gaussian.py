"""Gaussian noise."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.likelihoods.base import Likelihood
from errorband.parameters import POSITIVE, GreaterThan, Real, hyperparameter
from errorband.predictive import GaussianPredictive

LOG_2PI = float(np.log(2 * np.pi))


class Gaussian(Likelihood):
    """y = f + ε, ε ~ N(0, noise_variance): the only likelihood with exact inference.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        Variance of the noise. None starts the search at a quarter of the variance of the targets.
    min_noise_variance : float
        Lower bound the search respects, such as bin²/12 for targets recorded in bins.

    Notes
    -----
    Like all hyperparameters, both are in the units the model sees: with ``normalize=True``, those of standardised
    targets.

    Examples
    --------
    >>> Gaussian(noise_variance=0.25)
    Gaussian(noise_variance=0.25)
    """

    noise_variance: Any = hyperparameter(POSITIVE)
    min_noise_variance: float = eqx.field(default=0.0, static=True)
    n_latents: ClassVar[int] = 1
    log_concave: ClassVar[bool] = True

    def __check_init__(self):
        if not (np.isfinite(self.min_noise_variance) and self.min_noise_variance >= 0):
            raise ValueError(f"min_noise_variance={self.min_noise_variance!r} must be a finite number, zero or more.")

    @property
    def constraints(self) -> dict[str, Real]:
        """The bound given at construction replaces the plain positivity."""
        return {"noise_variance": GreaterThan(float(self.min_noise_variance))}

    def log_prob(self, y, f):  # noqa: D102
        return -0.5 * ((y - f) ** 2 / self.noise_variance + jnp.log(self.noise_variance) + LOG_2PI)

    def log_tilted(self, y, mean, cov):  # noqa: D102
        total = cov + self.noise_variance
        return -0.5 * ((y - mean) ** 2 / total + jnp.log(total) + LOG_2PI)

    def defaults(self, y):  # noqa: D102
        variance = float(np.var(y)) or 1.0
        return {"noise_variance": max(0.25 * variance, 1.5 * self.min_noise_variance)}

    def predictive(self, mean, variance):  # noqa: D102
        return GaussianPredictive(mean[:, 0], np.sqrt(variance[:, 0, 0] + float(self.noise_variance)))
