"""Held-out metrics of predictive distributions of numbers."""

from types import SimpleNamespace

import numpy as np

from errorband import metrics
from errorband.predictive import GaussianPredictive, Predictive
from errorband.reporting.parts.comparison import Metric, Scores

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
