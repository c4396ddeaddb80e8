"""Several classes by a two-class model for each against the others, taken together.

Each model knows of its own class and of all others as one, so that their probabilities, divided by the sum, are not
sure enough: for ten classes the nine others, each unlikely, add up. A power mends that (:mod:`.sharpness`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def fitted_attributes(models: Sequence[Any]) -> dict[str, Any]:
    """What the classifier made of them shows: a list of what each found, a summary where one word says it all."""
    first = models[0]
    each = ["kernel_", "likelihood_", "mean_", "approximation_", "approximation_reason_"]
    optional = ("active_rows_", "inducing_sweep_", "moved_inducing_", "candidates_")
    each += [name for name in optional if hasattr(first, name)]
    return {name: [getattr(m, name) for m in models] for name in each} | {
        "fit_result_": None if first.fit_result_ is None else [m.fit_result_ for m in models],
        "inference_": first.inference_,
        "scaling_": first.scaling_,
        "inference_status_": min((m.inference_status_ for m in models), key=lambda s: s.converged),
        "log_evidence_": sum(m.log_evidence_ for m in models),
        "jitter_": max(m.jitter_ for m in models),
    }


def latent(models: Sequence[Any], scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, C) and covariance (n, C, C) of their latent functions, which are independent of each other."""
    found = [m._latent(scaled) for m in models]
    mean = np.concatenate([mean for mean, _ in found], axis=1)
    cov = np.zeros((*mean.shape, mean.shape[1]))
    for c, (_, variance) in enumerate(found):
        cov[:, c, c] = variance[:, 0, 0]
    return mean, cov


def shares(probabilities: Sequence[np.ndarray]) -> np.ndarray:
    """What each class has by its own two-class model, of which the probabilities are (n, 2): (n, C)."""
    return np.stack([p[:, 1] for p in probabilities], axis=1)
