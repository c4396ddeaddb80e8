"""Figures that reports of every kind show: relevance of the inputs, and the search."""

from typing import Any

import numpy as np

from errorband.inputs import Input
from errorband.reporting.page.figure import DOT, Figure, hover, label, layout, line
from errorband.reporting.text import brief, count, listing, number

MAX_LABEL = 40


def relevance(names: list[str], values: np.ndarray, most: int = 20) -> Figure:
    """Bars, the most relevant input on top; ``names`` and ``values`` sorted that way."""
    shown_names, shown = names[:most], np.asarray(values[:most])
    bars = {
        "type": "bar", "orientation": "h", "y": list(range(len(shown)))[::-1], "x": shown,
        "marker": {"color": "@model"}, "customdata": [label(n, 60) for n in shown_names],
        "hovertemplate": hover("%{customdata}: %{x:.4g}"),
    }  # fmt: skip
    ticks = {
        "tickvals": bars["y"], "ticktext": [label(n, MAX_LABEL) for n in shown_names], "showgrid": False,
        "ticksuffix": " ",
    }  # fmt: skip
    top = listing([f"{n} ({number(v)})" for n, v in zip(shown_names[:5], shown[:5], strict=True)])
    alt = f"Bar chart of the relevance of each input, largest first: {top}."
    shape = layout("typical change", "", yaxis=ticks, xaxis={"rangemode": "tozero"})
    return Figure([bars], shape, alt, height=max(180, 70 + 26 * len(shown)))


def axis_of(column: Input) -> dict[str, Any]:
    """Return what Plotly must know of an axis along an input: names of levels, or that values are dates."""
    if column.levels:
        names = [label(level, MAX_LABEL) for level in column.levels]
        return {"tickvals": list(range(len(names))), "ticktext": names, "range": [-0.5, len(names) - 0.5]}
    return {"type": "date"} if column.date else {}


def axis_along(column: Input, grid: np.ndarray, discrete: bool) -> dict[str, Any]:
    """The axis of a curve along an input: its values if they are few, else the range of the grid and a little more."""
    if column.levels:
        return axis_of(column)
    if discrete:
        return {"tickvals": column.on_axis(grid), "ticktext": [column.shown(v, brief) for v in grid]}
    # A value far out would squeeze the curve into a corner.
    reach = float(grid[-1] - grid[0]) or 1.0
    return axis_of(column) | {"range": column.on_axis([grid[0] - 0.04 * reach, grid[-1] + 0.04 * reach])}


def trace(values: np.ndarray) -> Figure:
    """The objective after each iteration."""
    steps = np.arange(1, len(values) + 1)
    data = [line(steps, values, "@model", mode="lines+markers", marker=DOT | {"size": 5}, hoverinfo="all",
                  hovertemplate=hover("iteration %{x}", "log evidence %{y:.2f}"))]  # fmt: skip
    ends = f"from {number(values[0], 5)} to {number(values[-1], 5)}"
    alt = f"Log evidence rising {ends} in {count(len(values), 'iteration')}."
    return Figure(data, layout("iteration", "log evidence"), alt, height=280)
