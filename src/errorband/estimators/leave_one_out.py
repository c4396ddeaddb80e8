"""Predictions of each training row from all the others."""

import numpy as np

from errorband.predictive import Predictive


class LeaveOneOut:
    """Leave-one-out predictions of the training targets.

    Attributes
    ----------
    predictive : Predictive
        Distribution of each target given the others.
    y : array (n,)
        The targets.
    log_density : array (n,)
        Log density of each target; the sum is the leave-one-out log predictive probability.
    z_score : array (n,)
        (y − mean)/std: rows far from zero surprise the model.
    """

    def __init__(self, predictive: Predictive, y: np.ndarray):
        self.predictive = predictive
        self.y = y
        self.log_density = predictive.log_density(y)
        self.z_score = (y - predictive.mean) / predictive.std

    def __repr__(self) -> str:
        return _shown(self)


class ClassLeaveOneOut:
    """Leave-one-out predictions of the training labels.

    Attributes
    ----------
    probabilities : array (n, C)
        Probability of each class for each row, given the other rows.
    y : array (n,)
        The labels.
    log_density : array (n,)
        Log probability of each label; the sum is the leave-one-out log predictive probability.
    """

    def __init__(self, probabilities: np.ndarray, codes: np.ndarray, classes: np.ndarray):
        self.probabilities = probabilities
        self.y = classes[codes]
        with np.errstate(divide="ignore"):
            self.log_density = np.log(probabilities[np.arange(len(codes)), codes])

    def __repr__(self) -> str:
        return _shown(self)


def _shown(found: LeaveOneOut | ClassLeaveOneOut) -> str:
    """The number of rows and how well the others predict them."""
    mean = float(np.mean(found.log_density))
    return f"{type(found).__name__}({len(found.y)} rows, mean log density {mean:.4g})"
