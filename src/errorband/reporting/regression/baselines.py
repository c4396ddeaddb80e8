"""Simple ways to predict numbers with an error band: the same in reports, ``errorband fit`` and ``compare``."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from errorband import metrics
from errorband.predictive import GaussianPredictive, Predictive
from errorband.reporting.parts.comparison import EXACT_BOOSTING_ROWS, MAX_BOOSTING_ROWS, Scores
from errorband.reporting.regression.scores import score

Baseline = Callable[[np.ndarray, np.ndarray, np.ndarray], Predictive | None]


def baseline_scores(X_train: np.ndarray, y_train: np.ndarray, X: np.ndarray, y: np.ndarray) -> list[Scores]:
    """Scores of the training mean, linear regression and gradient boosting, without those that cannot be fitted."""
    found: list[Scores] = []
    for name, (note, fit) in BASELINES.items():
        predictive = fit(X_train, y_train, X)
        if predictive is not None:
            found.append(score(name, note, y, predictive, y_train))
    return found


def _mean(X_train: np.ndarray, y_train: np.ndarray, X: np.ndarray) -> Predictive | None:
    spread = float(np.std(y_train))
    return GaussianPredictive(np.full(len(X), np.mean(y_train)), np.full(len(X), spread)) if spread > 0 else None


def _linear(X_train: np.ndarray, y_train: np.ndarray, X: np.ndarray) -> Predictive | None:
    """Least squares; variance s²(1 + h(x)) ν/(ν − 2): that of its Student-t, h the leverage and ν the free rows."""
    centre, scale = X_train.mean(axis=0), X_train.std(axis=0)
    used = scale > 1e-12 * np.maximum(np.abs(centre), 1e-300)
    if not used.any():
        return None
    design = _with_intercept((X_train[:, used] - centre[used]) / scale[used])
    inverse = np.linalg.pinv(design, rcond=1e-10)
    beta, free = inverse @ y_train, len(y_train) - np.linalg.matrix_rank(design, tol=1e-10 * len(design))
    variance = float(np.sum((y_train - design @ beta) ** 2)) / (free - 2) if free > 2 else 0.0
    if variance <= 0:
        return None
    at = _with_intercept((X[:, used] - centre[used]) / scale[used])
    leverage = np.sum((at @ inverse) ** 2, axis=1)
    return GaussianPredictive(at @ beta, np.sqrt(variance * (1 + leverage)))


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def _boosting(X_train: np.ndarray, y_train: np.ndarray, X: np.ndarray) -> Predictive | None:
    n = len(y_train)
    if not 20 <= n <= MAX_BOOSTING_ROWS or np.ptp(y_train) == 0:
        return None
    trees: Any = (
        GradientBoostingRegressor(subsample=0.8, random_state=0)
        if n <= EXACT_BOOSTING_ROWS
        else HistGradientBoostingRegressor(random_state=0)
    )
    with config_context(skip_parameter_validation=True, assume_finite=True):  # of each of 500 small trees
        left_out = cross_val_predict(trees, X_train, y_train, cv=KFold(5, shuffle=True, random_state=0))
    spread = metrics.rmse(y_train, np.asarray(left_out))
    if spread <= 0:
        return None
    return GaussianPredictive(trees.fit(X_train, y_train).predict(X), np.full(len(X), spread))


# By name: where the error band comes from, and a function of training inputs, targets and new inputs that returns
# predictions of the new rows, or None where it cannot be fitted.
BASELINES: dict[str, tuple[str, Baseline]] = {
    "Training mean": ("the mean and spread of the training targets, whatever the inputs", _mean),
    "Linear regression": ("least squares, with the variance of its classical prediction interval", _linear),
    "Gradient boosting": ("scikit-learn's trees, with one band for all from cross-validated errors", _boosting),
}
