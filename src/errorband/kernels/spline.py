"""B-spline kernels: stationary, of compact support."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import by_rows
from errorband.kernels.stationary import Stationary


class BSpline(Stationary):
    """k = variance · ∏_d B_p((x_d − z_d)/ℓ_d)/B_p(0), B_p the centred B-spline of odd degree p = 2n + 1.

    B_p is the density of the sum of p + 1 uniform variables on [−½, ½]; odd degrees have a non-negative Fourier
    transform, sinc^(p+1). Inputs further apart than (p + 1)/2 length-scales are uncorrelated exactly. (Smola, *Bayesian
    Kernel Methods*, 2002.)

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`~errorband.kernels.stationary.Stationary`.
    degree : {1, 3, 5, 7}
        Degree of the spline.

    Examples
    --------
    >>> BSpline(1.0, 1.0, degree=1)([[0.0]], [[0.0], [0.5], [1.5]])
    array([[1. , 0.5, 0. ]])
    """

    degree: int = eqx.field(default=3, static=True, kw_only=True)

    def __check_init__(self):
        if self.degree not in (1, 3, 5, 7):
            raise ValueError(f"degree={self.degree!r}: a B-spline kernel needs an odd degree, 1, 3, 5 or 7.")

    def evaluate(self, X, Z):
        def row(x, Z):
            return jnp.prod(self._spline(jnp.abs(x - Z)), axis=1)

        return self.variance * by_rows(row, X / self.lengthscale, Z / self.lengthscale)

    def _spline(self, t):
        """B_p(t)/B_p(0) for t ≥ 0, as a sum of truncated powers from the far end, where few terms are not zero."""
        p = self.degree
        terms = [(-1) ** k * math.comb(p + 1, k) for k in range((p + 1) // 2 + 1)]
        half = (p + 1) / 2
        value = sum(c * jnp.maximum(half - k - t, 0.0) ** p for k, c in enumerate(terms))
        centre = sum(c * max(half - k, 0.0) ** p for k, c in enumerate(terms))
        return value / centre

    def standard_spectrum(self, rng, n, n_features):
        # Density ∝ (sin(ω/2)/(ω/2))^(p+1) per input: rejection from the envelope min(1, |2/ω|^(p+1)).
        power, wanted, draws = self.degree + 1, n * n_features, np.zeros(0)
        inside = 2.0 / (2.0 + 2.0 / (power - 1))  # mass of the flat part of the envelope
        while len(draws) < wanted:
            u = rng.random((4, 2 * wanted))
            tail = 2.0 * u[0] ** (-1.0 / (power - 1))
            omega = np.where(u[1] < inside, 2.0 * u[0], tail)
            accept = u[2] * np.minimum(1.0, (2.0 / omega) ** power) < np.sinc(omega / (2 * np.pi)) ** power
            draws = np.concatenate([draws, (np.sign(u[3] - 0.5) * omega)[accept]])
        return draws[:wanted].reshape(n, n_features)
