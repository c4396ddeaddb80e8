"""Standardisation of inputs and targets: what ``normalize=True`` does."""

import dataclasses

import numpy as np

from errorband.kernels import Kernel


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Affine maps to zero mean and unit standard deviation. Constant columns are only shifted."""

    x_shift: np.ndarray
    x_scale: np.ndarray
    y_shift: float
    y_scale: float

    @classmethod
    def identity(cls, n_features: int) -> "Scaling":
        """Leave everything as it is."""
        return cls(np.zeros(n_features), np.ones(n_features), 0.0, 1.0)

    @classmethod
    def standardise(
        cls, X: np.ndarray, y: np.ndarray | None, kernel: Kernel, weights: np.ndarray | None = None
    ) -> "Scaling":
        """From the training data; columns a kernel reads as labels stay as they are, and targets if not given."""
        raw = kernel.raw_columns(X.shape[1])
        shift, scale = _moments(X, weights)
        shift, scale = np.where(raw, 0.0, shift), np.where(raw, 1.0, scale)
        if y is None:
            return cls(shift, scale, 0.0, 1.0)
        y_shift, y_scale = _moments(y[:, None], weights)
        return cls(shift, scale, float(y_shift[0]), float(y_scale[0]))

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs as the model sees them."""
        scaled = X - self.x_shift
        scaled /= self.x_scale  # in place: X may be large
        return scaled

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets as the model sees them."""
        return (y - self.y_shift) / self.y_scale


def _moments(X: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; the latter is 1 where it is zero to rounding."""
    if weights is None:
        mean, std = X.mean(axis=0), X.std(axis=0)
    else:
        mean = np.average(X, axis=0, weights=weights)
        std = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    rounding = 10 * np.finfo(float).eps * np.max(np.abs(X), axis=0)
    return mean, np.where(std > rounding, std, 1.0)
