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
    def standardise(cls, X: np.ndarray, y: np.ndarray | None, kernel: Kernel) -> "Scaling":
        """From the training data; columns a kernel reads as labels stay as they are, and targets if not given."""
        raw = kernel.raw_columns(X.shape[1])
        shift, scale = np.where(raw, 0.0, X.mean(axis=0)), np.where(raw, 1.0, _spread(X))
        if y is None:
            return cls(shift, scale, 0.0, 1.0)
        return cls(shift, scale, float(y.mean()), float(_spread(y[:, None])[0]))

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs as the model sees them."""
        return (X - self.x_shift) / self.x_scale

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets as the model sees them."""
        return (y - self.y_shift) / self.y_scale


def _spread(X: np.ndarray) -> np.ndarray:
    """Standard deviation of each column; 1 where it is zero to rounding."""
    std = X.std(axis=0)
    rounding = 10 * np.finfo(float).eps * np.max(np.abs(X), axis=0)
    return np.where(std > rounding, std, 1.0)
