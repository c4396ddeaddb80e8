"""How good class probabilities are: reliability, and errors against rejections."""

from typing import Any

from errorband import metrics
from errorband.plots.style import BLUE, GREY, axes_or_new


def plot_reliability(y: Any, proba: Any, classes: Any, *, n_bins: int = 10, ax: Any = None) -> Any:
    """How often the predicted class is right, against how probable it was said to be.

    Bars show where 95 % of the points of a calibrated classifier would be, given the number of rows in each bin.

    Parameters
    ----------
    y : array (n,)
        Labels that were not used to fit.
    proba : array (n, C)
        From ``model.predict_proba(X)``.
    classes : array (C,)
        ``model.classes_``.
    n_bins : int
        Number of bins of confidence.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.4, 0.6], [0.06, 0.94], [0.35, 0.65]]
    >>> ax = plot_reliability([0, 0, 1, 1], proba, [0, 1])
    >>> ax.lines[-1].get_ydata()
    array([0.5, 1. ])
    """
    from errorband.reporting.parts.coverage import coverage_range

    ax = axes_or_new(ax)
    confidence, frequency, count = metrics.reliability_curve(y, proba, classes, n_bins)
    low, high = coverage_range(count, confidence, 0.95)
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
    ax.vlines(confidence, low, high, color=GREY, lw=5, alpha=0.35, label="chance, if calibrated")
    ax.plot(confidence, frequency, "o-", ms=4, color=BLUE, label="observed")
    ax.set(xlabel="probability of the predicted class", ylabel="share of right predictions", xlim=(0, 1.02),
           ylim=(0, 1.02))  # fmt: skip
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_error_reject(y: Any, proba: Any, classes: Any, *, ax: Any = None) -> Any:
    """Error rate on the rows that are kept when the least certain ones are rejected.

    Parameters
    ----------
    y : array (n,)
        Labels that were not used to fit.
    proba : array (n, C)
        From ``model.predict_proba(X)``.
    classes : array (C,)
        ``model.classes_``.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]]
    >>> ax = plot_error_reject(["a", "a", "b", "b"], proba, ["a", "b"])
    >>> ax.lines[-1].get_ydata().round(3)
    array([0.5  , 0.333, 0.   , 0.   ])
    """
    ax = axes_or_new(ax)
    rejected, errors = metrics.error_reject_curve(y, proba, classes)
    ax.plot(rejected, errors, drawstyle="steps-post", color=BLUE, lw=1.8)
    ax.set(xlabel="share of rows rejected", ylabel="error rate of the others", xlim=(0, 1), ylim=(0, None))
    return ax
