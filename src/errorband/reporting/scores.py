"""Held-out metrics of a model and of simple baselines that had the same training rows."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from errorband import metrics
from errorband.predictive import GaussianPredictive, Predictive

MAX_BOOSTING_ROWS = 100_000  # which take a quarter of a minute; beyond, the baseline is not worth the wait
EXACT_BOOSTING_ROWS = 2_000  # up to here trees split on every value, above on histograms


@dataclasses.dataclass(frozen=True)
class Metric:
    """A row of the table of scores: ``better`` is "low" or "high", or empty where neither is."""

    key: str
    name: str
    meaning: str
    better: str
    decimals: int | None = None


METRICS: tuple[Metric, ...] = (
    Metric("rmse", "RMSE", "Typical size of the error of the predicted mean, in the units of {target}.", "low"),
    Metric("r2", "R²", "Share of the variation of {target} that is explained: 1 is perfect, 0 no better than the mean "
           "of the held-out rows.", "high", decimals=3),
    Metric("nlpd", "NLPD", "Negative log predictive density: how surprised the model is by the truth, on average. It "
           "punishes errors and bands that are too narrow or too wide.", "low", decimals=3),
    Metric("crps", "CRPS", "Distance of the whole predictive distribution from the truth, in the units of {target}; "
           "for a prediction without a band it is the mean absolute error.", "low"),
    Metric("coverage", "Coverage at 95 %", "Share of held-out targets inside their 95 % band. Near 95 % is right; "
           "below is overconfident, above is cautious.", ""),
    Metric("width", "Width at 95 %", "Mean width of the 95 % band, in the units of {target}. Narrow is good, but only "
           "if the coverage is right.", ""),
    Metric("msll", "MSLL", "NLPD minus that of a normal distribution fitted to the training targets: below 0 the "
           "inputs help, at 0 they do not.", "low", decimals=3),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Scores:
    """Metrics of one way to predict.

    Attributes
    ----------
    name, note : str
        Who predicts, and where its error band comes from.
    values : dict of str to float
        By the key of a :class:`Metric`; NaN where it is not defined.
    losses : array (n,)
        Of the held-out rows, for paired comparisons: squared errors, or log losses of class probabilities.
    """

    name: str
    note: str
    values: dict[str, float]
    losses: np.ndarray


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean loss of a baseline minus that of the model, on the same rows.

    ``verdict`` is "better" (the model is), "worse" or "even": within two standard errors of the difference.
    """

    baseline: str
    difference: float
    standard_error: float

    @property
    def verdict(self) -> str:
        """Who is more accurate, or nobody that these rows could tell."""
        if abs(self.difference) <= 2 * self.standard_error:
            return "even"
        return "better" if self.difference > 0 else "worse"


def score(name: str, note: str, y: np.ndarray, predictive: Predictive, y_train: np.ndarray) -> Scores:
    """All metrics of a predictive distribution at the held-out targets."""
    lower, upper = predictive.interval(0.95)
    nlpd = metrics.nlpd(predictive.log_density(y))
    centre, spread = float(np.mean(y_train)), float(np.std(y_train))
    trivial = metrics.gaussian_nlpd(y, np.full(len(y), centre), np.full(len(y), spread)) if spread > 0 else np.nan
    values = {
        "rmse": metrics.rmse(y, predictive.mean),
        "r2": 1 - metrics.nmse(y, predictive.mean) if np.ptp(y) > 0 else np.nan,
        "nlpd": nlpd,
        "crps": mean_crps(y, predictive),
        "coverage": metrics.coverage(y, lower, upper),
        "width": metrics.width(lower, upper),
        "msll": nlpd - trivial,
    }
    return Scores(name, note, values, (y - predictive.mean) ** 2)


def mean_crps(y: np.ndarray, predictive: Predictive) -> float:
    """Mean CRPS: in closed form for normal distributions, else by quadrature over the quantiles."""
    if isinstance(predictive, GaussianPredictive):
        return float(np.mean(metrics.crps_gaussian(y, predictive.mean, predictive.std)))
    return -metrics.neg_crps_scorer(SimpleNamespace(predictive=lambda X: predictive), None, y)


def baseline_scores(X_train: np.ndarray, y_train: np.ndarray, X: np.ndarray, y: np.ndarray) -> list[Scores]:
    """Scores of the training mean, linear regression and gradient boosting, without those that cannot be fitted."""
    found: list[Scores] = []
    for name, (note, fit) in BASELINES.items():
        predictive = fit(X_train, y_train, X)
        if predictive is not None:
            found.append(score(name, note, y, predictive, y_train))
    return found


def paired(model: Scores, baseline: Scores) -> Comparison:
    """Comparison of the losses, row by row."""
    difference = baseline.losses - model.losses
    error = float(np.std(difference, ddof=1) / np.sqrt(len(difference))) if len(difference) > 1 else np.inf
    return Comparison(baseline.name, float(np.mean(difference)), error)


# ------------------------------------------------------------------------------------------------------ baselines
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
    left_out = cross_val_predict(trees, X_train, y_train, cv=KFold(5, shuffle=True, random_state=0))
    spread = metrics.rmse(y_train, np.asarray(left_out))
    if spread <= 0:
        return None
    return GaussianPredictive(trees.fit(X_train, y_train).predict(X), np.full(len(X), spread))


# By name: where the error band comes from, and a function of training inputs, targets and new inputs; it returns None
# where it cannot be fitted.
BASELINES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Predictive | None]]] = {
    "Training mean": ("the mean and spread of the training targets, whatever the inputs", _mean),
    "Linear regression": ("least squares, with the variance of its classical prediction interval", _linear),
    "Gradient boosting": ("scikit-learn's trees, with one band for all from cross-validated errors", _boosting),
}
