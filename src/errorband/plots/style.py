"""What the plots share: colours, axes, and the import of matplotlib when it is first needed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

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
            f"{plot} draws regressors, and {type(model).__name__} predicts classes: draw its predict_proba(X), or the "
            "curves of errorband.effects.class_dependence(model, X, feature)."
        )


def draw_bands(ax: Any, x: np.ndarray, predictive: Predictive, levels: Sequence[float]) -> None:
    """Nested bands, the widest first, so that the overlap is darkest in the middle."""
    for level in sorted(levels, reverse=True):
        lower, upper = predictive.interval(level)
        ax.fill_between(x, lower, upper, color=BLUE, alpha=0.18, lw=0, label=f"{100 * level:g} % band")
