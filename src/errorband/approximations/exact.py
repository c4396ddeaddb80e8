"""No approximation."""

import jax.numpy as jnp

from errorband.approximations.base import Approximation, for_each_latent
from errorband.structures import Dense
from errorband.structures.rows import sum_over_rows

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

    def inner(self, kernel, X, n_latents, bar, residual_bar=None):
        """A block of rows of K at a time, recomputed in the backward pass: nothing of size N² is kept for it."""
        n = X.shape[0]

        def rows(piece):
            summed = jnp.sum(bar.rows(piece.start, piece.size), axis=0)
            return jnp.vdot(piece.new_only(summed), kernel.gram(piece.of(X), X))

        return sum_over_rows(rows, n, min(n, max(8, BLOCK // n)))

    def cross(self, kernel, anchors, X_new, n_latents):
        return for_each_latent(kernel.gram(X_new, anchors), n_latents)
