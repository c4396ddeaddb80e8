"""Draws of latent moments: what every likelihood says of targets, from far below to far above."""

from typing import Any

import numpy as np

from errorband.likelihoods import ClassLikelihood
from fuzz.models import check_numbers, check_predictive, check_probabilities, redrawn
from fuzz.outcome import Wrong

POINTS = 4


def draw(example: Any, rng: np.random.Generator) -> str:
    """Distribution of targets given drawn moments of the latent functions, checked."""
    likelihood, L = redrawn(example.likelihood, rng, float(rng.choice([0.3, 1.0, 3.0]))), example.L
    size = 10.0 ** rng.uniform(-8, rng.choice([1.0, 2.5]))
    mean = size * rng.normal(size=(POINTS, L))
    root = 10.0 ** rng.uniform(-8, 1.5) * rng.normal(size=(POINTS, L, L))
    cov = root @ np.swapaxes(root, 1, 2) + 1e-300 * np.eye(L)
    predictive, of_classes = likelihood.predictive(mean, cov), isinstance(likelihood, ClassLikelihood)
    if of_classes:
        check_probabilities(predictive.probabilities)
    else:
        check_predictive(predictive, likelihood.location_scale)
    y = np.asarray(example.y, dtype=float)[rng.integers(0, len(example.y), POINTS)]
    density = predictive.log_density(y)
    check_numbers("log density", density)
    if np.any(np.isneginf(density)) and size < 1.0 and not of_classes:  # the probability of a class may be zero
        raise Wrong(f"log density of targets is {density} near the mean")
    return "fitted"
