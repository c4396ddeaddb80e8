"""No approximation."""

import jax.numpy as jnp

from errorband.approximations.base import Approximation
from errorband.structures import Dense


class Exact(Approximation):
    """Keep the whole N × N covariance: O(N³) time and O(N²) memory."""

    def structure(self, kernel, X, n_latents):
        return Dense(_for_each_latent(kernel.gram(X, X), n_latents))

    def cross(self, kernel, X, X_new, n_latents):
        return _for_each_latent(kernel.gram(X_new, X), n_latents)


def _for_each_latent(matrix, n_latents):
    """Latent functions share the kernel."""
    return jnp.broadcast_to(matrix[None], (n_latents, *matrix.shape))
