"""Held-out metrics of predictive distributions of numbers."""

import numpy as np

from errorband import metrics
from errorband.predictive import GaussianPredictive, Predictive
from errorband.reporting.parts.comparison import Metric, Scores, standard_error
from errorband.reporting.regression.calibration import inside, pit_bounds

METRICS: tuple[Metric, ...] = (
    Metric("rmse", "RMSE", "Typical size of the error of the predicted mean, in the units of {target}.", "low"),
    Metric("mae", "Mean absolute error", "Mean size of the error of the predicted mean: a few rows far off count for "
           "little.", "low"),
    Metric("r2", "R²", "Share of the variation of {target} that is explained: 1 is perfect, 0 no better than the mean "
           "of the held-out rows.", "high", decimals=3),
    Metric("nlpd", "NLPD", "Negative log predictive density: how surprised the model is by the truth, on average. It "
           "punishes errors and bands that are too narrow or too wide.", "low", decimals=3),
    Metric("crps", "CRPS", "Distance of the whole predictive distribution from the truth, in the units of {target}; "
           "for a prediction without a band it is the mean absolute error.", "low"),
    Metric("coverage", "Coverage at 95 %", "Share of held-out targets inside their 95 % band (of a count, the share of "
           "its probability). Near 95 % is right; below is overconfident, above is cautious.", ""),
    Metric("width", "Width at 95 %", "Mean width of the 95 % band, in the units of {target}. Narrow is good, but only "
           "if the coverage is right.", ""),
    Metric("msll", "MSLL", "NLPD minus that of a normal distribution fitted to the training targets: below 0 the "
           "inputs help, at 0 they do not.", "low", decimals=3),
)  # fmt: skip


def score(name: str, note: str, y: np.ndarray, predictive: Predictive, y_train: np.ndarray) -> Scores:
    """All metrics of a predictive distribution at the held-out targets, with their standard errors.

    Errors of the root of a mean, and of R², follow from that of the mean squared error: se(mse)/(2 rmse), se(mse)/var.
    """
    lower, upper = predictive.interval(0.95)
    error, density = y - predictive.mean, predictive.log_density(y)
    held = inside(pit_bounds(y, predictive), 0.95)
    trivial = _constant(y_train, len(y))
    gain = np.full(len(y), np.nan) if trivial is None else trivial.log_density(y) - density
    losses = {"rmse": error**2, "mae": np.abs(error), "nlpd": -density, "crps": crps(y, predictive)}
    varies = float(np.var(y)) if np.ptp(y) > 0 else np.nan
    values = {
        "rmse": metrics.rmse(y, predictive.mean),
        "mae": float(np.mean(losses["mae"])),
        "r2": 1 - float(np.mean(losses["rmse"])) / varies,
        "nlpd": metrics.nlpd(density),
        "crps": float(np.mean(losses["crps"])),
        "coverage": float(np.mean(held)),
        "width": metrics.width(lower, upper),
        "msll": float(np.mean(gain)),
    }
    of_mse = standard_error(losses["rmse"])
    errors = {
        "rmse": of_mse / (2 * values["rmse"]) if values["rmse"] > 0 else np.nan,
        "mae": standard_error(losses["mae"]),
        "r2": of_mse / varies,
        "nlpd": standard_error(density),
        "crps": standard_error(losses["crps"]),
        "coverage": standard_error(held),
        "msll": standard_error(gain),
    }
    return Scores(name, note, values, errors, losses)


def _constant(y_train: np.ndarray, n: int) -> GaussianPredictive | None:
    """The normal distribution of the training targets at n rows, if they vary."""
    spread = float(np.std(y_train))
    return GaussianPredictive(np.full(n, np.mean(y_train)), np.full(n, spread)) if spread > 0 else None


def crps(y: np.ndarray, predictive: Predictive) -> np.ndarray:
    """CRPS of each row: in closed form for normal distributions, else by quadrature over the quantiles."""
    if isinstance(predictive, GaussianPredictive):
        return metrics.crps_gaussian(y, predictive.mean, predictive.std)
    return metrics.crps_quantile(y, predictive.quantile)
