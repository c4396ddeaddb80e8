"""How good predictions are: calibration, errors, residuals, and how the search went."""

from typing import Any

import numpy as np

from errorband import metrics
from errorband.effects import feature_position, input_names, inputs, search_log_evidence
from errorband.metrics.scorers import inside
from errorband.plots.style import BLUE, GREY, VERMILION, axes_or_new, judged_numbers


def plot_calibration(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """How many targets the central bands hold, against how many they should.

    The grey area is where a calibrated model stays with probability 95 %, given the number of rows.

    Parameters
    ----------
    model : fitted errorband regressor, or a pipeline that ends in one
    X, y : array or DataFrame (n, D), array (n,)
        Rows that were not used to fit, and their targets.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> plot_calibration(GPRegressor().fit(x[::2], y[::2]), x[1::2], y[1::2]).get_xlabel()
    'nominal coverage'
    """
    from errorband.reporting.parts.coverage import coverage_range

    predictive, y = judged_numbers("plot_calibration", model, X, y)
    ax = axes_or_new(ax)
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    ax.fill_between(levels, *coverage_range(len(y), levels, 0.95), color=GREY, alpha=0.2, lw=0, label="chance")
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
    ax.plot(levels, observed, "o-", ms=3, color=BLUE, label="observed")
    ax.set(xlabel="nominal coverage", ylabel="observed coverage", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_predicted_vs_actual(model: Any, X: Any, y: Any, *, level: float = 0.95, ax: Any = None) -> Any:
    """Predicted against actual targets, each with its band; those outside it in another colour and shape.

    Parameters
    ----------
    model : fitted errorband regressor, or a pipeline that ends in one
    X, y : array or DataFrame (n, D), array (n,)
        Rows that were not used to fit, and their targets.
    level : float
        Probability of the bands.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> ax = plot_predicted_vs_actual(GPRegressor().fit(x[::2], y[::2]), [[1.0], [2.0]], [0.8, 5.0])
    >>> ax.get_legend_handles_labels()[1]
    ['inside its 95 % band (1)', 'outside (1)']
    """
    predictive, y = judged_numbers("plot_predicted_vs_actual", model, X, y)
    ax = axes_or_new(ax)
    lower, upper = predictive.interval(level)
    held = (lower <= y) & (y <= upper)
    ends = [min(y.min(), predictive.mean.min()), max(y.max(), predictive.mean.max())]
    ax.plot(ends, ends, "--", color=GREY, lw=1)
    for mask, colour, marker, text in (
        (held, BLUE, "o", f"inside its {100 * level:g} % band"),
        (~held, VERMILION, "D", "outside"),
    ):
        mean, spread = predictive.mean[mask], [(predictive.mean - lower)[mask], (upper - predictive.mean)[mask]]
        ax.errorbar(y[mask], mean, yerr=spread, fmt=marker, ms=3.5, color=colour, elinewidth=0.6, alpha=0.7,
                    label=f"{text} ({int(mask.sum())})")  # fmt: skip
    ax.set(xlabel="actual", ylabel="predicted")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_residuals(model: Any, X: Any, y: Any, *, feature: int | str | None = None, ax: Any = None) -> Any:
    """Residuals in standard deviations of the prediction, against an input or, by default, the predicted mean.

    Parameters
    ----------
    model : fitted errorband regressor, or a pipeline that ends in one
    X, y : array or DataFrame (n, D), array (n,)
        Rows that were not used to fit, and their targets.
    feature : int or str, optional
        The input, by position or column name.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> plot_residuals(GPRegressor().fit(x[::2], y[::2]), x[1::2], y[1::2], feature="x0").get_xlabel()
    'x0'
    """
    predictive, y = judged_numbers("plot_residuals", model, X, y)
    along, name = predictive.mean, "predicted"
    if feature is not None:
        last, X = inside(model, X)
        names = input_names(last)
        j = feature_position(feature, names)
        along, name = inputs(last, X)[:, j], names[j]
    ax = axes_or_new(ax)
    for height in (-2, 0, 2):
        ax.axhline(height, color=GREY, lw=1, ls="--" if height else "-")
    ax.plot(along, (y - predictive.mean) / predictive.std, "o", ms=3.5, color=BLUE, alpha=0.7)
    ax.set(xlabel=name, ylabel="residual / sd")
    return ax


def plot_trace(model: Any, *, ax: Any = None) -> Any:
    """Log evidence after each iteration of the search for hyperparameters; a line for each model of one per class.

    Parameters
    ----------
    model : fitted errorband estimator, or a pipeline that ends in one
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 30)
    >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> plot_trace(GPRegressor().fit(x[:, None], y)).get_ylabel()
    'log evidence'
    """
    model = inside(model)[0]
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
