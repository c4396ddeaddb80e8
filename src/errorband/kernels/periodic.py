"""Kernel of periodic functions."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from scipy.special import ive

from errorband.kernels.base import half_range, squared_distance
from errorband.kernels.stationary import Radial
from errorband.parameters import LENGTH, POSITIVE, hyperparameter, plain


class Periodic(Radial):
    """k = variance · exp(−2 Σ_d sin²(π(x_d − z_d)/p_d)/ℓ_d²): functions that repeat exactly (MacKay 1998).

    It is the squared exponential on the circle: φ(x) = (cos 2πx/p, sin 2πx/p) has ‖φ(x) − φ(z)‖² = 4 sin²(π(x − z)/p).

    Parameters
    ----------
    lengthscale : float, array or None
        Roughness within a period, in units of the circle's radius.
    variance : float or None
        Prior variance.
    period : float, array or None
        Length of the period, one or one per input. None starts at a quarter of the range. Give it if it is known: the
        evidence has a local optimum at every multiple.
    ard : bool
        With None: one length-scale and period per input (default) or a single one.
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.

    Examples
    --------
    >>> Periodic(1.0, 1.0, period=2.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    lengthscale: Any = hyperparameter(POSITIVE, ndim=1, label="roughness")
    period: Any = hyperparameter(POSITIVE, ndim=1, unit=LENGTH)
    spectrum_scales: ClassVar[tuple[str, ...]] = ("period", "variance")  # harmonics; the length-scale weighs them

    def profile(self, r2):
        return jnp.exp(-0.5 * r2)

    def scaled_distance(self, X, Z):
        return squared_distance(self._circle(X), self._circle(Z))

    def _circle(self, X):
        angle = 2 * jnp.pi * X / self.period
        return jnp.concatenate([jnp.cos(angle) / self.lengthscale, jnp.sin(angle) / self.lengthscale], axis=1)

    def defaults(self, X, y_variance):
        period = 0.5 * half_range(X)
        if not self.ard:
            period = np.mean(period)
        return {"lengthscale": np.ones_like(period), "variance": y_variance, "period": period}

    def standard_spectrum(self, rng, n, n_features):
        # exp(−2 sin²(θ/2)/ℓ²) = Σ_j e^−a I_j(a) cos jθ over all integers j, a = 1/ℓ²: harmonics of 1/p in each input.
        scale = plain(self).lengthscale
        columns = []
        for ell in np.broadcast_to(1.0 if scale is None else scale, (n_features,)):
            order = np.arange(int(20 + 20 / ell))  # the standard deviation of j is 1/ℓ
            weight = np.where(order == 0, 1, 2) * ive(order, 1 / ell**2)
            columns.append(rng.choice(order, size=n, p=weight / weight.sum()) * rng.choice([-1.0, 1.0], n))
        return np.stack(columns, axis=1)

    def scaled_spectrum(self, standard):
        return 2 * jnp.pi * standard / self.period
