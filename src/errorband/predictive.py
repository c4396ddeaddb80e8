"""Predictive distributions: what ``predictive(X)`` returns. Plain NumPy."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri


class Predictive(abc.ABC):
    """Distribution of a target at each of n inputs, independent of one another."""

    mean: np.ndarray
    std: np.ndarray

    @abc.abstractmethod
    def cdf(self, y: Any) -> np.ndarray:
        """P(target ≤ y), for one y per input."""

    @abc.abstractmethod
    def log_density(self, y: Any) -> np.ndarray:
        """Log density (or log probability) of one y per input."""

    @abc.abstractmethod
    def quantile(self, q: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """Quantile q per input: (n,) for a number, (n, len(q)) for a sequence."""

    @abc.abstractmethod
    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent draws: (n_samples, n)."""

    @abc.abstractmethod
    def rescaled(self, scale: float, shift: float) -> "Predictive":
        """Distribution of ``scale * target + shift``."""

    @property
    def variance(self) -> np.ndarray:
        """Square of ``std``."""
        return self.std**2

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval that holds the target with probability ``level``."""
        if not 0 < level < 1:
            raise ValueError(f"level={level!r} must be a probability between 0 and 1, e.g. 0.95.")
        bounds = self.quantile([0.5 - level / 2, 0.5 + level / 2])
        return bounds[:, 0], bounds[:, 1]

    def __len__(self) -> int:
        return len(self.mean)


class GaussianPredictive(Predictive):
    """A normal distribution at each input.

    Examples
    --------
    >>> p = GaussianPredictive([0.0, 1.0], [1.0, 2.0])
    >>> p.quantile(0.975).round(2)
    array([1.96, 4.92])
    >>> p.log_density([0.0, 1.0]).round(4)
    array([-0.9189, -1.6121])
    """

    def __init__(self, mean: Any, std: Any):
        self.mean = np.asarray(mean, dtype=np.float64)
        self.std = np.asarray(std, dtype=np.float64)

    def cdf(self, y):  # noqa: D102
        return ndtr(self._z(y))

    def log_density(self, y):  # noqa: D102
        return -0.5 * self._z(y) ** 2 - np.log(self.std) - 0.5 * np.log(2 * np.pi)

    def quantile(self, q):  # noqa: D102
        q = check_probabilities(q)
        return self.mean + self.std * ndtri(q) if q.ndim == 0 else self.mean[:, None] + self.std[:, None] * ndtri(q)

    def sample(self, n_samples=1, random_state=None):  # noqa: D102
        rng = np.random.default_rng(random_state)
        return self.mean + self.std * rng.standard_normal((n_samples, len(self.mean)))

    def rescaled(self, scale, shift):  # noqa: D102
        return GaussianPredictive(scale * self.mean + shift, scale * self.std)

    def _z(self, y: Any) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        if y.shape not in ((), self.mean.shape):
            raise ValueError(f"One y per input is needed: expected shape {self.mean.shape}, got {y.shape}.")
        return (y - self.mean) / self.std


def check_probabilities(q: Any) -> np.ndarray:
    """Quantile levels as an array, each strictly between 0 and 1."""
    q = np.asarray(q, dtype=np.float64)
    if q.ndim > 1 or not np.all((q > 0) & (q < 1)):
        raise ValueError(f"Quantile levels must lie strictly between 0 and 1; got {q}.")
    return q
