"""Several classes by a two-class model for each against the others, taken together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import softmax

# Standard deviation of the logarithm of the power before the rows are seen, and the least probability of a label.
SPREAD, LEAST = 0.3, 1e-6


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


def together(probabilities: Sequence[np.ndarray], sharpness: float = 1.0) -> np.ndarray:
    """Probability of each class from those of the two-class models (n, 2): a power of each, divided by their sum."""
    logs = np.log(np.maximum(np.stack([p[:, 1] for p in probabilities], axis=1), np.finfo(float).tiny))
    return softmax(sharpness * logs, axis=1)


def learned_sharpness(probabilities: Sequence[np.ndarray], codes: np.ndarray) -> float:
    """The power with which rows left out have the highest log probability of their labels.

    Each model knows of its own class and of all others as one, so that their shares, divided by the sum, are not sure
    enough: for ten classes the nine others, each unlikely, add up. The logarithm of the power has a normal prior around
    zero, and is between those of ½ and 4.
    """
    rows = np.arange(len(codes))

    def minus_log_posterior(log_power: float) -> float:
        p = together(probabilities, float(np.exp(log_power)))[rows, codes]
        return -float(np.sum(np.log(np.maximum(p, LEAST)))) + 0.5 * (log_power / SPREAD) ** 2

    found = scipy.optimize.minimize_scalar(minus_log_posterior, bounds=np.log([0.5, 4.0]), method="bounded")
    return float(np.exp(found.x))
