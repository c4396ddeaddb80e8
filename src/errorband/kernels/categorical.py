"""Labels: rows are alike or not, or some labels are more alike than others."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import Kernel, squared_distance
from errorband.parameters import POSITIVE, REAL, SPREAD, VARIANCE, hyperparameter, value_of


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


class Hamming(Kernel):
    """k = variance · exp(−½ Σ_d [x_d ≠ z_d]/ℓ_d²): rows with more labels in common are more alike.

    Each input is a label of its own, such as the base at a place of a gene: a product of :class:`Categorical`, one for
    each input, where the squared exponential would take one label to be between two others. A short length-scale ℓ_d
    says that the label matters, a long one that it does not; it has no unit. Inducing inputs keep to labels that occur.

    Parameters
    ----------
    lengthscale : float, array or None
        One number for all inputs, or one per input. None begins with the square root of their number.
    variance : float or None
        Prior variance. None takes the variance of the targets.
    active_dims : sequence of int or str, optional
        The inputs that are labels.

    Examples
    --------
    >>> Hamming(1.0, 1.0)([[0, 0, 0]], [[0, 0, 0], [0, 0, 7], [0, 5, 1]]).round(3)
    array([[1.   , 0.607, 0.368]])
    """

    lengthscale: Any = hyperparameter(POSITIVE, ndim=1)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        # One input at a time, computed again for derivatives: nothing of size N · M · D is kept.
        def more(r2, column):
            x, z, weight = column
            return r2 + weight * (x[:, None] != z), None

        start = jnp.zeros((X.shape[0], Z.shape[0]), X.dtype)
        weights = jnp.broadcast_to(self.lengthscale, X.shape[1:]) ** -2
        columns = (*jax.lax.stop_gradient((X.T, Z.T)), weights)
        r2, _ = jax.lax.scan(jax.checkpoint(more), start, columns)
        return self.variance * jnp.exp(-0.5 * r2)

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def defaults(self, X: np.ndarray, y_variance: float) -> dict[str, Any]:
        D = X.shape[1]
        return {"lengthscale": np.full(D, np.sqrt(D)), "variance": y_variance}


class LowRankCategorical(Kernel):
    """k = B_cd for labels c and d, B = WWᵀ + diag(variance): which labels are alike is learned.

    W has a row of ``rank`` numbers for each label, so that C labels take C(rank + 1) numbers instead of C(C + 1)/2. Two
    labels with alike rows share what is learned of them, with opposite ones one goes up where the other goes down; the
    variance of a label is its own (Bonilla, Chai & Williams 2008, *Multi-task Gaussian process prediction*, where B
    times a kernel of the other inputs is a prior for many related tasks). Few rows for each label ask for
    :class:`Categorical`, which has one number for all.

    The active inputs are the 0/1 columns of the labels, one for each; they are never standardised. A row with none of
    them has a label that training did not have: independent of the others, with their mean variance.

    Parameters
    ----------
    rank : int
        Columns of W.
    weights : array (C, rank) or None
        Starting value of W.
    variance : array (C,), float or None
        What each label has for itself.
    active_dims : sequence of int or str, optional
        The columns of the labels.

    Examples
    --------
    >>> k = LowRankCategorical(1, weights=[[1.0], [1.0], [-1.0]], variance=0.1)
    >>> k(np.eye(3))
    array([[ 1.1,  1. , -1. ],
           [ 1. ,  1.1, -1. ],
           [-1. , -1. ,  1.1]])
    >>> k([[0, 0, 0]], [[0, 0, 0], [1, 0, 0]])  # a label that training did not have
    array([[1.1, 0. ]])
    """

    rank: int = eqx.field(default=1, static=True)
    weights: Any = hyperparameter(REAL, unit=SPREAD)
    variance: Any = hyperparameter(POSITIVE, ndim=1, unit=VARIANCE)

    def __check_init__(self):
        given = value_of(self.weights)
        if given is not None and (np.ndim(given) != 2 or np.shape(given)[1] != self.rank):
            raise ValueError(f"weights must have shape (labels, {self.rank}); got {np.shape(given)}.")

    def evaluate(self, X, Z):
        none = (1.0 - X.sum(axis=1))[:, None] * (1.0 - Z.sum(axis=1))
        return (X @ self.weights) @ (Z @ self.weights).T + (X * self.variance) @ Z.T + none * self._mean()

    def evaluate_diag(self, X):
        own = jnp.sum((X @ self.weights) ** 2, axis=1) + jnp.sum(X**2 * self.variance, axis=1)
        return own + (1.0 - X.sum(axis=1)) ** 2 * self._mean()

    def _mean(self):
        """Mean variance of the labels."""
        return jnp.mean(jnp.sum(self.weights**2, axis=1)) + jnp.mean(self.variance)

    def scale_free(self):
        return False

    def check_inputs(self, X):
        super().check_inputs(X)
        given = value_of(self.weights)
        if given is not None and len(given) != X.shape[1]:
            raise ValueError(f"weights of LowRankCategorical has {len(given)} rows for {X.shape[1]} columns of labels.")
        if not (np.isin(X, (0.0, 1.0)).all() and np.all(X.sum(axis=1) <= 1)):
            raise ValueError(
                "LowRankCategorical reads 0/1 columns, one for each label, of which one is 1 in a row, or none; name "
                "them with active_dims. For a column of numbers that stand for labels use Categorical."
            )

    def defaults(self, X: np.ndarray, y_variance: float) -> dict[str, Any]:
        """Half of the variance in common, and columns that differ, so that a search can tell them apart."""
        n, half = X.shape[1], np.sqrt(0.5 * y_variance)
        wave = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(self.rank)) / n)
        size = np.where(np.arange(self.rank) == 0, 1.0, 0.3)
        return {"weights": half * size * wave, "variance": np.full(n, half**2)}
