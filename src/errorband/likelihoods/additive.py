"""Noise that is added to the latent value."""

import itertools
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from errorband.likelihoods.base import SMOOTHER, Likelihood, floored, in_rows, log_prob_of
from errorband.quadrature import REACH, panel_rule


class AdditiveNoise(Likelihood):
    """y = f + ε, ε of a fixed distribution with heavy tails. A subclass implements variance, cdf and draws of ε."""

    closed_conditionals: ClassVar[bool] = True
    location_scale: ClassVar[bool] = True
    further_starts: ClassVar[tuple[dict[str, float], ...]] = SMOOTHER, SMOOTHER | {"likelihood.scale": 0.4}

    def noise_moment(self) -> float:
        """Var ε."""
        raise NotImplementedError

    def noise_cdf(self, r: Any) -> Any:
        """P(ε ≤ r)."""
        raise NotImplementedError

    def noise_sample(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of ε."""
        raise NotImplementedError

    def outlier_probability(self, y: Any, mean: Any, variance: Any) -> np.ndarray:
        """P(|ε| > 3s | y), given the latent mean and variance (n,) predicted without y (its cavity).

        s is the standard deviation of the bulk: that of a normal distribution with the quartiles of ε.
        """
        y, mean = np.asarray(y, float), np.asarray(mean, float)
        std = np.sqrt(floored(mean[:, None], np.asarray(variance, float)[:, None, None])[1][:, 0, 0])
        limit = self._outlier_limit()
        low, high = np.minimum(mean, y) - REACH * std - limit, np.maximum(mean, y) + REACH * std + limit
        edges = [np.clip(e, low, high) for e in (low, y - limit, y + limit, high)]
        centres, widths = np.stack([mean, y], axis=1), np.stack([std, np.minimum(std, limit / 3)], axis=1)

        def log_mass(a, b):  # of ε between two limits
            f, w = panel_rule(centres, widths, a, b, xp=np)
            log_p = in_rows(log_prob_of, self, np.repeat(y, f.shape[1]), f.reshape(-1, 1)).reshape(f.shape)
            log_p = log_p - 0.5 * ((f - mean[:, None]) / std[:, None]) ** 2
            return np.asarray(logsumexp(log_p, b=w, axis=1))

        below, inside, above = (log_mass(a, b) for a, b in itertools.pairwise(edges))
        return expit(np.logaddexp(below, above) - inside)

    def outlier_rate(self, mean: Any, variance: Any) -> np.ndarray:
        """P(|ε| > 3s) of targets not seen yet, whatever the latent mean and variance (n,)."""
        limit = self._outlier_limit()
        return np.full(np.shape(mean), 1 - float(self.noise_cdf(limit) - self.noise_cdf(-limit)))

    def _outlier_limit(self) -> float:
        """Three standard deviations of the bulk of the noise, which is symmetric."""
        scale = 1.0
        while self.noise_cdf(scale) < 0.75:
            scale *= 2
        quartile: Any = brentq(lambda r: self.noise_cdf(r) - 0.75, 0.0, scale)
        return 3 * float(quartile) / 0.6745

    def predictive_moments(self, mean, variance):
        """Mean and variance of y: the variances of f and ε add up."""
        return mean, variance + self.noise_moment()

    def conditional_mean(self, f):
        """E(y | f) = f."""
        return np.asarray(f, float)

    def conditional_variance(self, f):
        """Var(y | f) = Var ε."""
        return np.full(np.shape(f), self.noise_moment())

    def conditional_cdf(self, y, f):
        """P(ε ≤ y − f)."""
        return self.noise_cdf(np.asarray(y) - f)

    def conditional_sample(self, f, rng):
        """Draws of f + ε."""
        return f + self.noise_sample(np.shape(f), rng)
