"""Figures that reports of every kind show: relevance of the inputs, and the search."""

import numpy as np

from errorband.reporting.page.figure import DOT, Figure, hover, label, layout, line
from errorband.reporting.text import count, listing, number


def relevance(names: list[str], values: np.ndarray, target: str, most: int = 20) -> Figure:
    """Bars, the most relevant input on top; ``names`` and ``values`` sorted that way."""
    shown_names, shown = names[:most], np.asarray(values[:most])
    bars = {
        "type": "bar", "orientation": "h", "y": list(range(len(shown)))[::-1], "x": shown,
        "marker": {"color": "@model"}, "customdata": [label(n, 60) for n in shown_names],
        "hovertemplate": hover("%{customdata}: %{x:.4g}"),
    }  # fmt: skip
    ticks = {
        "tickvals": bars["y"], "ticktext": [label(n, 18) for n in shown_names], "showgrid": False, "ticksuffix": " ",
    }  # fmt: skip
    top = listing([f"{n} ({number(v)})" for n, v in zip(shown_names[:5], shown[:5], strict=True)])
    alt = f"Bar chart of the relevance of each input, largest first: {top}."
    shape = layout(f"typical change of {label(target)}", "", yaxis=ticks, xaxis={"rangemode": "tozero"})
    return Figure([bars], shape, alt, height=max(180, 70 + 26 * len(shown)))


def trace(values: np.ndarray) -> Figure:
    """The objective after each iteration."""
    steps = np.arange(1, len(values) + 1)
    data = [line(steps, values, "@model", mode="lines+markers", marker=DOT | {"size": 5}, hoverinfo="all",
                  hovertemplate=hover("iteration %{x}", "log evidence %{y:.2f}"))]  # fmt: skip
    ends = f"from {number(values[0], 5)} to {number(values[-1], 5)}"
    alt = f"Log evidence rising {ends} in {count(len(values), 'iteration')}."
    return Figure(data, layout("iteration", "log evidence"), alt, height=280)
