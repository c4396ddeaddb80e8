"""How good predictions are: calibration, errors, residuals, and how the search went."""

from typing import Any

import numpy as np

from errorband import metrics
from errorband.effects import search_log_evidence
from errorband.plots.style import BLUE, GREY, VERMILION, axes_or_new
from errorband.predictive import Predictive


def plot_calibration(y: Any, predictive: Predictive, *, ax: Any = None) -> Any:
    """How many targets the central bands hold, against how many they should.

    The grey area is where a calibrated model stays with probability 95 %, given the number of rows.

    Parameters
    ----------
    y : array (n,)
        Targets that were not used to fit.
    predictive : Predictive
        Their predictive distributions, from ``model.predictive(X)``.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband.predictive import GaussianPredictive
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> plot_calibration(y, GaussianPredictive(np.zeros(50), np.ones(50))).get_xlabel()
    'nominal coverage'
    """
    from errorband.reporting.parts.coverage import coverage_range

    ax = axes_or_new(ax)
    y = np.asarray(y, dtype=np.float64)
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    ax.fill_between(levels, *coverage_range(len(y), levels, 0.95), color=GREY, alpha=0.2, lw=0, label="chance")
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
    ax.plot(levels, observed, "o-", ms=3, color=BLUE, label="observed")
    ax.set(xlabel="nominal coverage", ylabel="observed coverage", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_predicted_vs_actual(y: Any, predictive: Predictive, *, level: float = 0.95, ax: Any = None) -> Any:
    """Predicted against actual targets, each with its band; those outside it in another colour and shape.

    Parameters
    ----------
    y : array (n,)
    predictive : Predictive
        From ``model.predictive(X)``.
    level : float
        Probability of the bands.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband.predictive import GaussianPredictive
    >>> ax = plot_predicted_vs_actual([0.0, 5.0], GaussianPredictive([0.1, 0.2], [1.0, 1.0]))
    >>> ax.get_legend_handles_labels()[1]
    ['inside its 95 % band (1)', 'outside (1)']
    """
    ax = axes_or_new(ax)
    y = np.asarray(y, dtype=np.float64)
    lower, upper = predictive.interval(level)
    inside = (lower <= y) & (y <= upper)
    ends = [min(y.min(), predictive.mean.min()), max(y.max(), predictive.mean.max())]
    ax.plot(ends, ends, "--", color=GREY, lw=1)
    for mask, colour, marker, text in (
        (inside, BLUE, "o", f"inside its {100 * level:g} % band"),
        (~inside, VERMILION, "D", "outside"),
    ):
        mean, spread = predictive.mean[mask], [(predictive.mean - lower)[mask], (upper - predictive.mean)[mask]]
        ax.errorbar(y[mask], mean, yerr=spread, fmt=marker, ms=3.5, color=colour, elinewidth=0.6, alpha=0.7,
                    label=f"{text} ({int(mask.sum())})")  # fmt: skip
    ax.set(xlabel="actual", ylabel="predicted")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_residuals(y: Any, predictive: Predictive, x: Any = None, *, ax: Any = None) -> Any:
    """Residuals in standard deviations of the prediction, against an input or, by default, the predicted mean.

    Parameters
    ----------
    y : array (n,)
    predictive : Predictive
        From ``model.predictive(X)``.
    x : array (n,), optional
        Values of an input.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband.predictive import GaussianPredictive
    >>> ax = plot_residuals([1.0, 3.0], GaussianPredictive([0.0, 0.0], [1.0, 2.0]))
    >>> ax.lines[-1].get_ydata()
    array([1. , 1.5])
    """
    ax = axes_or_new(ax)
    z = (np.asarray(y, dtype=np.float64) - predictive.mean) / predictive.std
    for height in (-2, 0, 2):
        ax.axhline(height, color=GREY, lw=1, ls="--" if height else "-")
    ax.plot(predictive.mean if x is None else np.asarray(x), z, "o", ms=3.5, color=BLUE, alpha=0.7)
    ax.set(xlabel="predicted" if x is None else getattr(x, "name", None) or "input", ylabel="residual / sd")
    return ax


def plot_trace(model: Any, *, ax: Any = None) -> Any:
    """Log evidence after each iteration of the search for hyperparameters; a line for each model of one per class.

    Parameters
    ----------
    model : fitted errorband estimator
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 30)
    >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> plot_trace(GPRegressor().fit(x[:, None], y)).get_ylabel()
    'log evidence'
    """
    if model.fit_result_ is None:
        raise ValueError("There was no search to plot: the model was fitted with optimizer=None.")
    ax = axes_or_new(ax)
    for member in model.members_:  # one for each class, or the model itself
        result = member.fit_result_
        # The search saw standardised targets: shift to the evidence of the targets as given.
        values = np.asarray(result.trace) + (search_log_evidence(member) - result.value)
        ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=3, color=BLUE)
    ax.set(xlabel="iteration", ylabel="log evidence")
    return ax
