"""Training data as the model sees them."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from errorband.rows import Spare, pad_rows, padded_size


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """Training inputs and targets, as the model sees them.

    Attributes
    ----------
    X : array (n, D)
        Or an object that reads some rows of a file at a time: it has ``len``, ``shape`` and ``[rows]``.
    y : array (n,)
        Or (n, K): K targets with the same prior and noise, each on its own given these.
    noise_variance : array (n,) or None
        Known variances of the noise of each target, on top of the likelihood's own.
    weights : array (n,) or None
        Power of each likelihood term: 2 counts a row twice.
    offset : array (n,) or None
        Known part of the first latent function at each row, such as the log of an exposure.
    basis : array (n, p) or None
        Basis functions at X of a mean whose coefficients are integrated out.
    layout : pytree or None
        How the approximation arranges these rows (:meth:`errorband.approximations.Approximation.layout`).
    """

    X: Any
    y: np.ndarray
    noise_variance: np.ndarray | None = None
    weights: np.ndarray | None = None
    offset: np.ndarray | None = None
    basis: np.ndarray | None = None
    layout: Any = None

    def rows(self, which: np.ndarray) -> "TrainingData":
        """Some of the rows."""
        optional = (None if a is None else a[which] for a in (self.noise_variance, self.weights, self.offset))
        return TrainingData(self.X[which], self.y[which], *optional)

    def noise(self, likelihood: Any) -> np.ndarray:
        """Variance of the noise of each target: that of the Gaussian likelihood plus what is known."""
        own = np.full(len(self.y), float(likelihood.noise_variance))
        return own if self.noise_variance is None else own + self.noise_variance

    def site_noise(self, likelihood: Any) -> np.ndarray:
        """Variance of the site of each target: the noise over the weight, as N(y; f, v)ʷ ∝ N(y; f, v/w)."""
        noise = self.noise(likelihood)
        return noise if self.weights is None else noise / self.weights

    @property
    def n_targets(self) -> int:
        """Number of targets in a row."""
        return 1 if self.y.ndim == 1 else self.y.shape[1]

    @property
    def size(self) -> float:
        """How many rows count: the sum of the weights."""
        return len(self.y) if self.weights is None else float(np.sum(self.weights))

    @functools.cached_property
    def padded(self) -> np.ndarray:
        """X with rows added up to a padded size, so that folds of any size share compiled code."""
        return pad_rows(np.asarray(self.X), padded_size(len(self.y)))

    @functools.cached_property
    def on_device(self) -> jax.Array:
        """The padded X where JAX has its arrays; in double precision, as is all that asks for it."""
        return jax.device_put(self.padded)

    @functools.cached_property
    def spare(self) -> Spare:
        """Memory of the last evaluation at these rows, for the next."""
        return Spare()


def over_targets(values: Any) -> Any:
    """Sum of values (n, K) over the targets of a row; values (n,) of one target as they are."""
    return values if values.ndim == 1 else values.sum(axis=1)
