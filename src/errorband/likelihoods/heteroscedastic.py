"""Gaussian noise whose log variance is a second latent function."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from errorband.likelihoods.base import Likelihood
from errorband.likelihoods.gaussian import log_normal, log_power_constant
from errorband.parameters import POSITIVE, VARIANCE, hyperparameter
from errorband.predictive import GaussianMixturePredictive
from errorband.quadrature import gauss_hermite, log_integral
from errorband.special import LOG_2PI, exp_linear


class HeteroscedasticGaussian(Likelihood):
    """y ~ N(f₁, noise_variance·exp(f₂)): the second latent function is the log of the relative noise variance.

    Integrals are exact in f₁: given f₂ it is normal, f₁ | f₂ ~ N(m₁ + c(f₂ − m₂), v₁ − c²v₂), c = v₁₂/v₂, hence

        ∫∫ p(y | f) N(f; m, V) df = ∫ N(y; m₁ + c(f₂ − m₂), v₁ − c²v₂ + noise_variance·exp(f₂)) N(f₂; m₂, v₂) df₂,

    a one-dimensional integral.

    Parameters
    ----------
    noise_variance : float, Parameter or None
        Variance where f₂ = 0, the prior's mean. None starts the search at a quarter of the variance of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> mean, cov = np.array([[0.0, 0.0]]), np.diag([0.0, 1.0])[None]  # f₁ = 0 exactly, f₂ ~ N(0, 1)
    >>> HeteroscedasticGaussian(0.1).predictive(mean, cov).variance.round(4)  # 0.1 √e
    array([0.1649])
    """

    short_names: ClassVar = {"heteroscedastic": {}}

    noise_variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    n_latents: ClassVar[int] = 2
    closed_conditionals: ClassVar[bool] = True
    location_scale: ClassVar[bool] = True

    @property
    def latent_names(self) -> tuple[str, ...]:
        return "mean", "log_noise"

    def latent_in_units(self, l):
        return self.latent_names[l] == "mean"

    def latent_variance(self, l, y_variance):
        """The log noise has no units and varies less than the mean: 0.25 is a standard deviation of a factor 1.6."""
        return y_variance if self.latent_names[l] == "mean" else 0.25

    def log_prob(self, y, f):
        log_variance = f[1] + jnp.log(self.noise_variance)
        return -0.5 * ((y - f[0]) ** 2 * exp_linear(-log_variance) + log_variance + LOG_2PI)

    def _log_tilted_quadrature(self, y, mean, cov, power):
        def log_g_of(likelihood, y, mean, cov, power):
            slope = cov[0, 1] / cov[1, 1]
            rest = jnp.maximum(cov[0, 0] - slope * cov[0, 1], 1e-14 * cov[0, 0])

            def log_g(f):
                log_noise = f + jnp.log(likelihood.noise_variance)
                at = mean[0] + slope * (f - mean[1])
                spread = rest + exp_linear(log_noise) / power
                return log_power_constant(log_noise, power) + log_normal(y, at, spread)

            return log_g

        arguments = (self, y, mean, cov, power)
        frozen = log_g_of(*jax.lax.stop_gradient(arguments))
        return log_integral(log_g_of(*arguments), mean[1], cov[1, 1], frozen=frozen, concave=False)

    def expected_log_prob(self, y, mean, cov):
        """In closed form: in E exp(−f₂)(y − f₁)² the weight exp(−f₂) shifts the mean of f₁ by −v₁₂."""
        log_variance = mean[1] + jnp.log(self.noise_variance)
        square = (y - mean[0] + cov[0, 1]) ** 2 + cov[0, 0]
        return -0.5 * (square * exp_linear(0.5 * cov[1, 1] - log_variance) + log_variance + LOG_2PI)

    def defaults(self, y):
        return {"noise_variance": 0.25 * (float(np.var(y)) or 1.0)}

    def predictive(self, mean, cov):
        """A mixture of normals, one for each quadrature node of the log variance."""
        nodes, log_weights = gauss_hermite(64)
        s = np.sqrt(np.maximum(cov[:, 1, 1], 1e-20))[:, None]
        means = mean[:, :1] + cov[:, :1, 1] / s * nodes[:, 0]
        rest = np.maximum(cov[:, :1, 0] - (cov[:, :1, 1] / s) ** 2, 0.0)
        variances = rest + self.conditional_variance(np.stack([means, mean[:, 1:] + s * nodes[:, 0]], axis=-1))
        return HeteroscedasticPredictive(self, mean, cov, np.exp(log_weights), means, np.sqrt(variances))

    def conditional_mean(self, f):
        return np.asarray(f, float)[..., 0]

    def conditional_variance(self, f):
        with np.errstate(over="ignore"):  # an infinite variance is what it comes to
            return float(self.noise_variance) * np.exp(np.asarray(f, float)[..., 1])

    def conditional_cdf(self, y, f):
        return ndtr((y - self.conditional_mean(f)) / np.sqrt(self.conditional_variance(f)))

    def conditional_sample(self, f, rng):
        mean = self.conditional_mean(f)
        return mean + np.sqrt(self.conditional_variance(f)) * rng.standard_normal(mean.shape)


class HeteroscedasticPredictive(GaussianMixturePredictive):
    """The mixture of normals, with a log density from adaptive quadrature: far out the mixture has too few nodes."""

    def __init__(self, likelihood: HeteroscedasticGaussian, mean: Any, cov: Any, weights: Any, means: Any, stds: Any):
        super().__init__(weights, means, stds)
        self.likelihood, self.latent_mean, self.latent_cov = likelihood, mean, cov

    def log_density(self, y):
        return self.likelihood.log_density(self._targets(y), self.latent_mean, self.latent_cov)
