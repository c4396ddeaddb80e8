"""White noise as a kernel."""

from typing import Any

import jax
import jax.numpy as jnp

from errorband.kernels.base import Kernel, squared_distance
from errorband.parameters import POSITIVE, VARIANCE, hyperparameter


class White(Kernel):
    """k = variance where x = z, else 0: values that have nothing to do with each other.

    Rows with equal inputs share their value. Noise of the targets belongs to the likelihood; this is for a latent
    function without any smoothness, such as a gate of :class:`~errorband.likelihoods.Twinned` that opens and closes
    from row to row.

    Parameters
    ----------
    variance : float or None
        Prior variance. None starts at the variance of the targets.
    active_dims : sequence of int or str, optional
        Inputs that must be equal.

    Examples
    --------
    >>> White(0.5)([[0.0], [3.0]], [[3.0], [3.1]])
    array([[0. , 0. ],
           [0.5, 0. ]])
    """

    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        apart = squared_distance(*jax.lax.stop_gradient((X, Z)))
        return jnp.where(apart == 0, self.variance, 0.0)

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def defaults(self, X, y_variance):
        return {"variance": y_variance}
