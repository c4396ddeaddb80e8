"""The two problems of ``sampler_cost.py`` and ``sampler_peer.py``: 100 rows of a sine, as numbers and as labels."""

import numpy as np

SPREAD = 0.7  # of the normal prior of each logarithm
NOISE, KERNEL = 0.1, (1.0, 1.0)  # where that prior is centred: variance of the noise; length-scale and variance
PROBIT = 1.0, 4.0  # length-scale and variance of the classifier, which are given


def data(problem: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, (100, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=100)
    return X, y if problem == "hyperparameters" else np.where(y > 0, 1.0, -1.0)
