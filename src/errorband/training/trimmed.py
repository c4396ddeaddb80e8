"""A process with Gaussian noise of the rows that agree with one another, however the others lie."""

from collections.abc import Callable

import numpy as np

from errorband.data import TrainingData
from errorband.training.strategy import Found

AT_FIRST = 0.8  # share of the rows that is kept beside a linear function
FAR = 3.0  # standard deviations from its prediction at which a row is left out
AT_LEAST = 0.5  # share of the rows that is always kept


def trimmed(data: TrainingData, fit: Callable[[TrainingData], Found]) -> Found:
    """What ``fit`` finds for the rows that agree.

    A process follows outliers that are neighbours: each is predicted well from the others. A linear function cannot, so
    the rows that are farthest from one are left out first. Then a process of the rest says which rows it would not
    have expected, each kept row being predicted without itself, and a process of the others is the answer. Rows that a
    linear function only did not bend to come back so.
    """
    basis = np.column_stack([np.ones(len(data.y)), np.asarray(data.X)])
    off = np.abs(data.y - basis @ np.linalg.lstsq(basis, data.y, rcond=1e-8)[0])
    kept = off <= np.quantile(off, AT_FIRST)
    found = fit(data.rows(np.flatnonzero(kept)))
    off = surprise(found, data, kept)
    return fit(data.rows(np.flatnonzero(off <= max(FAR, float(np.quantile(off, AT_LEAST))))))


def surprise(found: Found, data: TrainingData, kept: np.ndarray) -> np.ndarray:
    """Distance of each target from its prediction, in standard deviations, by a fit to the rows ``kept``."""
    model, conclusion = found.objective.conclude(found.theta)
    left_out = found.objective.leave_one_out(found.theta)
    mean, variance = np.zeros(len(kept)), np.ones(len(kept))
    mean[kept], variance[kept] = left_out.mean, left_out.variance
    others = model.likelihood.predictive(*conclusion.posterior.marginals(np.asarray(data.X)[~kept]))
    mean[~kept], variance[~kept] = others.mean, others.variance
    return np.abs(data.y - mean) / np.sqrt(variance)
