"""No approximation."""

import jax
import jax.numpy as jnp

from errorband.approximations.base import Approximation, for_each_latent
from errorband.structures import Dense

BLOCK = 2**18  # entries of K recomputed at once for its derivatives: they fit the cache


class Exact(Approximation):
    """Keep the whole N × N covariance: O(N³) time and O(N²) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband.kernels import SquaredExponential
    >>> X = np.array([[0.0], [1.0]])
    >>> Exact().structure(SquaredExponential(1.0, 2.0), X, n_latents=1).diagonal()[:, 0].tolist()
    [2.0, 2.0]
    """

    def structure(self, kernel, X, n_latents):
        return Dense(for_each_latent(kernel.gram(X, X), n_latents))

    def inner(self, kernel, X, n_latents, bar):
        """A block of rows of K at a time, recomputed in the backward pass: nothing of size N² is kept for it."""
        n = X.shape[0]
        size = min(n, max(8, BLOCK // n))
        if size == n:  # quicker to compile
            return jnp.vdot(jnp.sum(bar.rows(0, n), axis=0), kernel.gram(X, X))

        @jax.checkpoint
        def block(total, number):
            start = jnp.minimum(number * size, n - size)  # the last block overlaps the one before: not counted twice
            new = start + jnp.arange(size) >= number * size
            rows = jnp.where(new[:, None], jnp.sum(bar.rows(start, size), axis=0), 0.0)
            return total + jnp.vdot(rows, kernel.gram(jax.lax.dynamic_slice_in_dim(X, start, size), X)), None

        return jax.lax.scan(block, 0.0, jnp.arange(-(-n // size)))[0]

    def cross(self, kernel, anchors, X_new, n_latents):
        return for_each_latent(kernel.gram(X_new, anchors), n_latents)
