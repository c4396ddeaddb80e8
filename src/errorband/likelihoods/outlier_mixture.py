"""A mixture of two normal distributions: regular noise and outliers."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from errorband.likelihoods.base import SMOOTHER, Likelihood, robust_scale
from errorband.likelihoods.gaussian import log_normal
from errorband.parameters import POSITIVE, VARIANCE, GreaterThan, Interval, hyperparameter
from errorband.predictive import GaussianMixturePredictive


class OutlierMixture(Likelihood):
    """p(y | f) = (1 − e) N(y; f, σ²) + e N(y; f, rσ²), r > 1 (Box & Tiao 1968; Naish-Guzman 2007, eq. 3.1).

    Integrated over N(f; m, v) it is the same mixture with v added to both variances. Not log-concave.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        σ², the noise variance of regular data.
    variance_ratio : float, Parameter or None
        r > 1, the ratio of the variance of outliers to σ². None starts the search at 100.
    outlier_fraction : float, Parameter or None
        e, the fraction of outliers, in (0, ½). None starts at 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = OutlierMixture(0.01, 100.0, 0.05)
    >>> likelihood.predictive(np.array([[0.0]]), np.array([[[0.0]]])).variance  # 0.95 · 0.01 + 0.05 · 1
    array([0.0595])
    """

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    variance_ratio: Any = hyperparameter(GreaterThan(1.0), ndim=0)
    outlier_fraction: Any = hyperparameter(Interval(0.0, 0.5), ndim=0)
    location_scale: ClassVar[bool] = True
    further_starts: ClassVar[tuple[dict[str, float], ...]] = SMOOTHER, SMOOTHER | {"likelihood.noise_variance": 0.2}

    @property
    def outlier_variance(self) -> Any:
        """Variance of outliers, rσ²."""
        return self.noise_variance * self.variance_ratio

    def log_prob(self, y, f):
        return self.log_tilted(y, f, 0.0)

    def log_tilted(self, y, mean, cov):
        regular = jnp.log1p(-self.outlier_fraction) + log_normal(y, mean, cov + self.noise_variance)
        outlier = jnp.log(self.outlier_fraction) + log_normal(y, mean, cov + self.outlier_variance)
        return jnp.logaddexp(regular, outlier)

    def feature(self, y):
        return y, jnp.sqrt(self.noise_variance)

    def defaults(self, y):
        return {"noise_variance": robust_scale(y) ** 2, "variance_ratio": 100.0, "outlier_fraction": 0.05}

    def predictive(self, mean, cov):
        variances = self._variances(cov[:, 0, 0])
        return GaussianMixturePredictive(self._weights(), mean, np.sqrt(variances))

    def outlier_probability(self, y: Any, mean: Any, variance: Any) -> np.ndarray:
        """P(outlier | y), given the latent mean and variance (n,) predicted without y (its cavity).

        Examples
        --------
        >>> OutlierMixture(0.01, 100.0, 0.05).outlier_probability([0.1, 1.0], [0.0, 0.0], [0.01, 0.01]).round(3)
        array([0.009, 1.   ])
        """
        variances = self._variances(np.asarray(variance, float))
        r = (np.asarray(y, float) - np.asarray(mean, float))[:, None]
        log_p = np.log(self._weights()) - 0.5 * (r**2 / variances + np.log(variances))
        return expit(log_p[:, 1] - log_p[:, 0])

    def outlier_rate(self, mean: Any, variance: Any) -> np.ndarray:
        """P(outlier) of targets not seen yet: e, whatever the latent mean and variance (n,)."""
        return np.full(np.shape(mean), float(self.outlier_fraction))

    def _weights(self) -> np.ndarray:
        e = float(self.outlier_fraction)
        return np.array([1 - e, e])

    def _variances(self, latent: np.ndarray) -> np.ndarray:
        return latent[:, None] + float(self.noise_variance) * np.array([1.0, float(self.variance_ratio)])
