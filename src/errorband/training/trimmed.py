"""A process with Gaussian noise of the rows that agree with one another, however the others lie."""

import dataclasses
from collections.abc import Callable

import numpy as np

from errorband.data import TrainingData
from errorband.training.strategy import Found

AT_FIRST = 0.8  # share of the rows that is kept beside a linear function
FAR = 3.0  # standard deviations from its prediction at which a row is left out
AT_LEAST = 0.5  # share of the rows that is always kept
MUCH = 1e4  # variance of the noise of a row that is left out, in units of that of the targets


def trimmed(data: TrainingData, fit: Callable[[TrainingData], Found]) -> Found:
    """What ``fit`` finds for the rows that agree.

    A process follows outliers that are neighbours: each is predicted well from the others. A linear function cannot, so
    the rows that are farthest from one are left out first. Then a process of the rest says which rows it would not
    have expected, each predicted without itself, and a process of the others is the answer. Rows that a linear function
    only did not bend to come back so. A row is left out by much noise of its own: what is compiled for all rows will
    do.
    """
    basis = np.column_stack([np.ones(len(data.y)), np.asarray(data.X)])
    off = np.abs(data.y - basis @ np.linalg.lstsq(basis, data.y, rcond=1e-8)[0])
    found = fit(without(data, off > np.quantile(off, AT_FIRST)))
    off = surprise(found)
    return fit(without(data, off > max(FAR, float(np.quantile(off, AT_LEAST)))))


def without(data: TrainingData, left_out: np.ndarray) -> TrainingData:
    """The data with much noise in some rows."""
    return dataclasses.replace(data, noise_variance=np.where(left_out, MUCH * float(np.var(data.y)), 0.0))


def surprise(found: Found) -> np.ndarray:
    """Distance of each target from its prediction by the other rows that are kept, in standard deviations."""
    predicted, more = found.objective.leave_one_out(found.theta), found.objective.data.noise_variance
    variance = np.maximum(predicted.variance - more, 1e-12 * predicted.variance)  # of a difference: not below rounding
    return np.abs(found.objective.data.y - predicted.mean) / np.sqrt(variance)
