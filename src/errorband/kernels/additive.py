"""A function of each input by itself, added up."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import squared_distance
from errorband.kernels.stationary import Matern


class Additive(Matern):
    """k = variance · (1/D) Σ_d c(|x_d − z_d|/ℓ_d): f(x) = Σ_d f_d(x_d), c the Matérn correlation of one input.

    What is learned of an input holds whatever the others are, so few rows say much of many inputs (Duvenaud, Nickisch &
    Rasmussen 2011, *Additive Gaussian processes*, whose first order this is). A radial kernel learns nothing of places
    where no row is near in all inputs at once. ``Additive() + SquaredExponential()`` has both: effects of single
    inputs, and what they do together. An input with a long length-scale adds a constant.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`~errorband.kernels.Stationary`; the variance is that of the sum.
    nu : {0.5, 1.5, 2.5}
        Smoothness, as in :class:`Matern`.

    Examples
    --------
    >>> Additive(1.0, 1.0, nu=0.5)([[0.0, 0.0]], [[0.0, 9.0], [9.0, 9.0]]).round(4)
    array([[5.001e-01, 1.000e-04]])
    """

    short_names: ClassVar = {"additive": {}}

    nu: float = eqx.field(default=2.5, static=True, kw_only=True)

    def evaluate(self, X, Z):
        # One input at a time, computed again for derivatives: nothing of size N · M · D is kept.
        of_one = jax.checkpoint(lambda x, z: self.profile(squared_distance(x[:, None], z[:, None])))
        start = jnp.zeros((X.shape[0], Z.shape[0]), X.dtype)
        columns = (X / self.lengthscale).T, (Z / self.lengthscale).T
        total, _ = jax.lax.scan(lambda total, pair: (total + of_one(*pair), None), start, columns)
        return self.variance * total / X.shape[1]

    def standard_spectrum(self, rng, n, n_features):
        # Each frequency is of one input: E cos(ωᵀτ) is then the mean over inputs of their own correlations.
        own = super().standard_spectrum(rng, n, 1)
        return own * (rng.integers(n_features, size=(n, 1)) == np.arange(n_features))
