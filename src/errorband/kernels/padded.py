"""Covariances as NumPy arrays. Inputs are padded, so that few shapes are compiled, and the result is cut to size."""

import numpy as np

from errorband.kernels.base import Kernel, compiled_gram, compiled_gram_diag
from errorband.rows import at_rows, pad_rows, padded_size


def gram(kernel: Kernel, X: np.ndarray, Z: np.ndarray, size: int | None = None) -> np.ndarray:
    """k(X, Z). X is padded to ``size`` rows, so that chunks of unequal size can share compiled code."""
    padded = pad_rows(Z, padded_size(len(Z)))
    return at_rows(lambda rows: compiled_gram(kernel, rows, padded), X, size)[:, : len(Z)]


def diagonal(kernel: Kernel, X: np.ndarray, size: int | None = None) -> np.ndarray:
    """k(x, x) at each row."""
    return at_rows(lambda rows: compiled_gram_diag(kernel, rows), X, size)
