"""How good class probabilities are: reliability, and errors against rejections."""

from typing import Any

import numpy as np

from errorband import metrics
from errorband.metrics.scorers import inside
from errorband.plots.style import BLUE, GREY, axes_or_new


def plot_reliability(model: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> Any:
    """How often the predicted class is right, against how probable it was said to be.

    Bars show where 95 % of the points of a calibrated classifier would be, given the number of rows in each bin.

    Parameters
    ----------
    model : fitted classifier, or a pipeline that ends in one
    X, y : array or DataFrame (n, D), array (n,)
        Rows that were not used to fit, and their labels.
    n_bins : int
        Number of bins of confidence.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import ProbabilisticNearestNeighbour
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> model = ProbabilisticNearestNeighbour().fit(x[::2], x[::2, 0] > 0)
    >>> plot_reliability(model, x[1::2], x[1::2, 0] > 0).get_ylabel()
    'share of right predictions'
    """
    from errorband.reporting.parts.coverage import coverage_range

    proba, classes = judged_classes("plot_reliability", model, X)
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


def plot_error_reject(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """Error rate on the rows that are kept when the least certain ones are rejected.

    Parameters
    ----------
    model : fitted classifier, or a pipeline that ends in one
    X, y : array or DataFrame (n, D), array (n,)
        Rows that were not used to fit, and their labels.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import ProbabilisticNearestNeighbour
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> model = ProbabilisticNearestNeighbour().fit(x[::2], x[::2, 0] > 0)
    >>> plot_error_reject(model, x[1::2], x[1::2, 0] > 0).get_xlabel()
    'share of rows rejected'
    """
    proba, classes = judged_classes("plot_error_reject", model, X)
    ax = axes_or_new(ax)
    rejected, errors = metrics.error_reject_curve(y, proba, classes)
    ax.plot(rejected, errors, drawstyle="steps-post", color=BLUE, lw=1.8)
    ax.set(xlabel="share of rows rejected", ylabel="error rate of the others", xlim=(0, 1), ylim=(0, None))
    return ax


def judged_classes(plot: str, model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that a classifier gives to rows, and its classes."""
    last, seen = inside(model, X)
    if not (hasattr(last, "predict_proba") and hasattr(last, "classes_")):
        raise TypeError(f"{plot}(model, X, y) draws fitted classifiers; got {type(model).__name__} for the model.")
    return np.asarray(last.predict_proba(seen)), last.classes_
