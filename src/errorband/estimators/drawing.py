"""Draws of latent functions at given inputs."""

from typing import Any

import numpy as np

# Joint covariances and draws are for plotting and small sets: beyond this many rows they ask for too much memory.
MAX_JOINT_ROWS = 20_000


def joint(posterior: Any, scaled: np.ndarray, l: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n,) and covariance (n, n) of latent function l, as the model sees it."""
    if len(scaled) > MAX_JOINT_ROWS:
        raise ValueError(
            f"A joint covariance of {len(scaled)} rows needs {8e-9 * len(scaled) ** 2:.0f} GB. Use return_std, or at "
            f"most {MAX_JOINT_ROWS} rows at a time."
        )
    return posterior.joint(scaled, l)


def normal_draws(mean: np.ndarray, cov: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draws (n_samples, n) of N(mean, cov).

    By eigenvectors: the covariance of many close points is singular to rounding, where Cholesky gives up.
    """
    size, axes = np.linalg.eigh(0.5 * (cov + cov.T))
    root = axes * np.sqrt(np.maximum(size, 0.0))
    return mean + rng.standard_normal((n_samples, len(mean))) @ root.T
