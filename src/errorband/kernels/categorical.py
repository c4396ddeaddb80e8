"""Labels: rows are alike, or they are not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import Kernel, squared_distance
from errorband.parameters import POSITIVE, VARIANCE, hyperparameter


class Categorical(Kernel):
    """k = variance · exp(−[x ≠ z]/lengthscale): all labels are equally far from each other.

    The active inputs together are one label: a column of numbers that stand for words, or the 0/1 columns made from one
    (of which a length-scale each would be too many). The correlation of two different labels is
    exp(−1/lengthscale), so that a short length-scale learns each label for itself and a long one ignores them. A label
    that training did not have is as far from all others. Several columns of labels are a product of these kernels.
    The inputs are never standardised, and inducing inputs keep to labels that occur.

    Parameters
    ----------
    lengthscale : float or None
        How much different labels have in common.
    variance : float or None
        Prior variance.
    active_dims : sequence of int or str, optional
        The inputs that are the label.

    Examples
    --------
    >>> Categorical(1.0, 1.0)([[0], [1], [2]], [[1]]).round(3)
    array([[0.368],
           [1.   ],
           [0.368]])
    >>> from errorband.kernels import SquaredExponential
    >>> k = SquaredExponential(active_dims=["age"]) * Categorical(active_dims=["tree=ash", "tree=elm", "tree=oak"])
    """

    lengthscale: Any = hyperparameter(POSITIVE, ndim=0)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        same = squared_distance(*jax.lax.stop_gradient((X, Z))) == 0
        return jnp.where(same, self.variance, self.variance * jnp.exp(-1.0 / self.lengthscale))

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def scale_free(self):
        return False

    def defaults(self, X: np.ndarray, y_variance: float) -> dict[str, Any]:
        return {"lengthscale": 1.0, "variance": y_variance}
