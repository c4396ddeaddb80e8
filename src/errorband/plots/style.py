"""What the plots share: colours, axes, and the import of matplotlib when it is first needed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.metrics.scorers import inside
from errorband.predictive import Predictive

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#6b7480"
LEVELS = (0.5, 0.8, 0.95)


def pyplot() -> Any:
    """matplotlib.pyplot, imported when first needed: it is slow to load."""
    import matplotlib.pyplot as plt

    return plt


def axes_or_new(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is None:
        ax = pyplot().subplots(layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def check_numbers(plot: str, model: Any) -> None:
    """Refuse a classifier where a plot is of numbers."""
    if hasattr(model, "classes_"):
        raise TypeError(
            f"{plot} draws regressors, and {type(model).__name__} predicts classes: plot_map, plot_partial_dependence, "
            "plot_reliability and plot_error_reject draw those."
        )


def judged_numbers(plot: str, model: Any, X: Any, y: Any) -> tuple[Predictive, np.ndarray]:
    """What a regressor predicts for rows, and their targets."""
    last, seen = inside(model, X)
    check_numbers(plot, last)
    if not hasattr(last, "predictive"):
        raise TypeError(
            f"{plot}(model, X, y) draws fitted errorband regressors; got {type(model).__name__} for the model."
        )
    return last.predictive(seen), np.asarray(y, dtype=np.float64)


def draw_bands(ax: Any, x: np.ndarray, predictive: Predictive, levels: Sequence[float]) -> None:
    """Nested bands, the widest first, so that the overlap is darkest in the middle."""
    for level in sorted(levels, reverse=True):
        lower, upper = predictive.interval(level)
        ax.fill_between(x, lower, upper, color=BLUE, alpha=0.18, lw=0, label=f"{100 * level:g} % band")
