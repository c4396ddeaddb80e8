"""Training data as the model sees them."""

import dataclasses
import functools
from typing import Any

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
    noise_variance : array (n,) or None
        Known variances of the noise of each target, on top of the likelihood's own.
    weights : array (n,) or None
        Power of each likelihood term: 2 counts a row twice.
    basis : array (n, p) or None
        Basis functions at X of a mean whose coefficients are integrated out.
    layout : pytree or None
        How the approximation arranges these rows (:meth:`errorband.approximations.Approximation.layout`).
    """

    X: Any
    y: np.ndarray
    noise_variance: np.ndarray | None = None
    weights: np.ndarray | None = None
    basis: np.ndarray | None = None
    layout: Any = None

    def rows(self, which: np.ndarray) -> "TrainingData":
        """Some of the rows."""
        optional = (None if a is None else a[which] for a in (self.noise_variance, self.weights))
        return TrainingData(self.X[which], self.y[which], *optional)

    def noise(self, likelihood: Any) -> np.ndarray:
        """Variance of the noise of each target: that of the Gaussian likelihood plus what is known."""
        own = np.full(len(self.y), float(likelihood.noise_variance))
        return own if self.noise_variance is None else own + self.noise_variance

    @functools.cached_property
    def padded(self) -> np.ndarray:
        """X with rows added up to a padded size, so that folds of any size share compiled code."""
        return pad_rows(np.asarray(self.X), padded_size(len(self.y)))

    @functools.cached_property
    def spare(self) -> Spare:
        """Memory of the last evaluation at these rows, for the next."""
        return Spare()
