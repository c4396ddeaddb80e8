"""The figures of a report on a classifier."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.reporting.classification.assessment import Reliability
from errorband.reporting.classification.content import ClassCurve, ClassMap
from errorband.reporting.classification.decisions import Curves
from errorband.reporting.page.figure import CIVIDIS, DOT, Figure, band, hover, label, layout, line
from errorband.reporting.parts.figures import axis_along
from errorband.reporting.text import brief, count, listing, number, percent

# Okabe and Ito's colours, which do on light and dark; dashes and symbols tell the classes apart without them.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "x")
MAX_CLASSES = len(COLOURS)
SHARES = {"tickformat": ".0%", "range": [0, 1.02]}


def confusion(counts: np.ndarray, classes: Sequence[str]) -> Figure:
    """Rows by true class, columns by predicted class; coloured by the share of the row."""
    n = len(classes)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    named = [label(c, 16) for c in classes]
    told = [[[true, predicted, int(counts[i, j])] for j, predicted in enumerate(named)] for i, true in enumerate(named)]
    at = list(range(n))
    heat = {
        "type": "heatmap", "x": at, "y": at, "z": share, "zmin": 0, "zmax": 1, "showscale": False, "xgap": 2, "ygap": 2,
        "colorscale": [[0.0, "@grid"], [1.0, "@model/0.55"]], "customdata": told,
        "text": counts.astype(str) if n <= 12 else None, "texttemplate": "%{text}" if n <= 12 else None,
        "textfont": {"color": "@ink"},
        "hovertemplate": hover(
            "true %{customdata[0]}", "predicted %{customdata[1]}", "%{customdata[2]} rows, %{z:.0%} of this class"
        ),
    }  # fmt: skip
    ticks = {"tickvals": at, "ticktext": named, "showgrid": False}
    shape = layout("predicted", "true", xaxis=ticks, yaxis=ticks | {"autorange": "reversed", "ticksuffix": " "})
    wrong = int(counts.sum() - np.trace(counts))
    off = counts - np.diag(np.diag(counts))
    i, j = divmod(int(np.argmax(off)), n)
    most = f" Most often {classes[i]} is taken for {classes[j]} ({off[i, j]} times)." if wrong else ""
    alt = f"Table of true against predicted classes: {int(np.trace(counts))} rows are right, {wrong} wrong.{most}"
    return Figure([heat], shape, alt, height=max(260, min(90 + 46 * n, 560)))


def reliability(r: Reliability, n: int) -> Figure:
    """How often the predicted class is right, against how probable it was said to be."""
    bars = {"type": "data", "symmetric": False, "array": r.high - r.confidence, "arrayminus": r.confidence - r.low,
            "color": "@muted/0.45", "thickness": 5, "width": 0}  # fmt: skip
    data = [
        line([0, 1], [0, 1], "@muted", dash="dash", width=1.5, showlegend=False),
        {"type": "scatter", "mode": "markers", "x": r.confidence, "y": r.confidence, "error_y": bars,
         "name": "chance, if calibrated", "hoverinfo": "skip",
         "marker": {"symbol": "line-ns", "size": 8, "line": {"width": 5, "color": "@muted/0.45"}}},
        line(r.confidence, r.frequency, "@model", mode="lines+markers", name="this model", marker=DOT | {"opacity": 1},
             customdata=r.count, hoverinfo="all",
             hovertemplate=hover("said %{x:.0%}", "right %{y:.0%}", "%{customdata} rows")),
    ]  # fmt: skip
    parts = [f"{percent(f)} at {percent(c)}" for c, f in zip(r.confidence, r.frequency, strict=True)]
    alt = f"Reliability of the predicted class over {count(n, 'held-out row')}: right {listing(parts, most=10)}."
    titles = "probability of the predicted class", "share that is right"
    return Figure(data, layout(*titles, showlegend=True, xaxis=SHARES, yaxis=SHARES), alt, height=380)


def error_reject(curve: tuple[np.ndarray, np.ndarray]) -> Figure:
    """Error rate on the rows kept, against the share rejected."""
    rejected, errors = curve
    data = [line(rejected, errors, "@model", width=2.5, hoverinfo="all",
                 hovertemplate=hover("%{x:.0%} rejected", "%{y:.1%} errors among the others"))]  # fmt: skip
    data[0]["line"]["shape"] = "hv"
    half = float(errors[np.searchsorted(rejected, 0.2, side="right") - 1])
    alt = (
        f"Error rate against the share of rows that is rejected, the least certain first: {percent(errors[0])} if none "
        f"is, {percent(half)} if a fifth is."
    )
    y = {"tickformat": ".1%" if errors.max() < 0.05 else ".0%", "rangemode": "tozero"}
    titles = "share of rows rejected", "errors among the others"
    return Figure(data, layout(*titles, xaxis={"tickformat": ".0%", "range": [0, 1]}, yaxis=y), alt, height=380)


def class_reliability(each: Sequence[Reliability], classes: Sequence[str], shown: Sequence[int]) -> Figure:
    """How often each class occurs, against how probable it was said to be."""
    data = [line([0, 1], [0, 1], "@muted", dash="dash", width=1.5, showlegend=False)]
    for k, i in enumerate(shown):
        r, name = each[i], label(classes[i])
        off = (r.frequency < r.low) | (r.frequency > r.high)
        marker = DOT | {"color": COLOURS[k], "symbol": SYMBOLS[k], "size": np.where(off, 11, 6), "opacity": 1}
        told = np.stack([r.count, r.low, r.high], axis=1)
        text = hover(name, "said %{x:.1%}", "found %{y:.1%} of %{customdata[0]} rows",
                     "chance allows %{customdata[1]:.1%} to %{customdata[2]:.1%}")  # fmt: skip
        data.append(line(r.confidence, r.frequency, COLOURS[k], dash=DASHES[k], width=1.5, mode="lines+markers",
                         name=name, marker=marker, customdata=told, hoverinfo="all", hovertemplate=text))  # fmt: skip
    parts = [
        f"{classes[i]} {percent(f)} where {percent(s)} was said"
        for i in shown
        for s, f in zip(each[i].confidence[-1:], each[i].frequency[-1:], strict=True)
    ]
    alt = f"Reliability of the probability of each class; at its highest: {listing(parts, most=6)}."
    titles = "probability of the class", "share of it among these rows"
    axis = _shares([np.max([each[i].confidence, each[i].frequency]) for i in shown])
    return Figure(data, layout(*titles, showlegend=True, xaxis=axis, yaxis=axis), alt, height=380)


def precision_recall(c: Curves, name: str) -> Figure:
    """Precision against recall of one class, with the precision of guessing."""
    text = hover("threshold %{customdata:.3g}", "finds %{x:.0%}", "%{y:.0%} of the alarms are right")
    data = [
        line([0, 1], [c.share, c.share], "@muted", dash="dash", width=1.5, name="guessing"),
        line(c.recall, c.precision, "@model", width=2.5, customdata=c.threshold, name="this model", hoverinfo="all",
             hovertemplate=text),
    ]  # fmt: skip
    half = float(c.precision[np.searchsorted(c.recall, 0.5)])
    alt = f"Precision against recall of {name}: finding half of the rows, {percent(half)} of the alarms are right."
    titles = f"share of {label(name, 20)} found (recall)", "right alarms (precision)"
    return Figure(data, layout(*titles, showlegend=True, xaxis=SHARES, yaxis=SHARES), alt, height=380)


def class_curve(c: ClassCurve, classes: Sequence[str], shown: Sequence[int]) -> Figure:
    """Average probability of each class along an input, with its band, and training rows below by class."""
    data: list[dict[str, Any]] = []
    e = c.effect
    column, grid = e.input, e.input.on_axis(e.grid)
    for k, i in enumerate(shown):
        name, colour = label(classes[i]), COLOURS[k]
        told = [
            [column.shown(v, brief), lo, hi] for v, lo, hi in zip(e.grid, e.lower[:, i], e.upper[:, i], strict=True)
        ]
        ends = ["95 % band %{customdata[1]:.1%} to %{customdata[2]:.1%}"] if e.banded else []
        text = hover(f"{label(column.name)} %{{customdata[0]}}", f"{name} %{{y:.1%}}", *ends)
        mode = "markers" if e.discrete else "lines"
        marker = DOT | {"color": colour, "symbol": SYMBOLS[k], "size": 9, "opacity": 1}
        more: dict[str, Any] = {}
        if e.discrete:
            more["error_y"] = {"type": "data", "symmetric": False, "array": e.upper[:, i] - e.share[:, i],
                               "arrayminus": e.share[:, i] - e.lower[:, i], "color": colour}  # fmt: skip
        elif e.banded:
            data.append(band(grid, e.lower[:, i], e.upper[:, i], _faint(colour), showlegend=False))
        data.append(line(grid, e.share[:, i], colour, dash=DASHES[k], width=2.5, mode=mode, name=name, marker=marker,
                         customdata=told, hoverinfo="all", hovertemplate=text, **more))  # fmt: skip
        rows = c.rows[(c.codes == i) & ~np.isnan(c.rows)]
        data.append({
            "type": "scatter", "mode": "markers", "x": column.on_axis(rows), "y": np.full(len(rows), 0.015 + 0.035 * k),
            "yaxis": "y2", "hoverinfo": "skip", "showlegend": False,
            "marker": {"symbol": "line-ns-open", "size": 8, "color": colour, "opacity": 0.6},
        })  # fmt: skip
    ends = [
        f"{classes[i]} from {percent(first)} to {percent(last)}"
        for i, first, last in zip(shown, e.share[0, shown], e.share[-1, shown], strict=True)
    ]
    alt = (
        f"Average probability of the classes along {column.name} from {column.shown(e.grid[0], number)} to "
        f"{column.shown(e.grid[-1], number)}: {listing(ends, most=6)}."
    )
    top = np.fmax(e.share, e.upper)[:, shown]
    shape = layout(label(column.name), "probability", showlegend=True, yaxis=_shares(top))
    shape["xaxis"] |= axis_along(column, e.grid, e.discrete)
    shape["yaxis2"] = {"overlaying": "y", "visible": False, "range": [0, 1], "fixedrange": True}
    return Figure(data, shape, alt, height=300)


def _shares(values: Any) -> dict[str, Any]:
    """An axis of shares, from zero to all, or to the largest value where all are small."""
    top = float(np.max(values))
    return SHARES if top > 0.6 else {"tickformat": ".0%" if top > 0.08 else ".1%", "range": [0, 1.15 * max(top, 1e-3)]}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def class_map(m: ClassMap, i: int, classes: Sequence[str], names: Sequence[str]) -> Figure:
    """Probability of one class over two inputs, with the training rows: those of the class stand out."""
    z = m.share[:, :, i]
    steps = np.linspace(0, 1, len(CIVIDIS))
    heat = {
        "type": "heatmap", "x": m.x, "y": m.y, "z": z, "zmin": 0, "zmax": 1, "zsmooth": "best",
        "colorscale": [[float(s), c] for s, c in zip(steps, CIVIDIS, strict=True)],
        "colorbar": {"thickness": 12, "outlinewidth": 0, "tickfont": {"color": "@ink"}, "tickformat": ".0%", "len": 1},
        "hovertemplate": hover(
            f"{label(names[0])} %{{x:.3g}}", f"{label(names[1])} %{{y:.3g}}", f"{label(classes[i])} %{{z:.1%}}"
        ),
    }  # fmt: skip
    data: list[dict[str, Any]] = [heat]
    for own, look in ((False, {"size": 4, "symbol": "circle", "color": "#ffffff", "opacity": 0.6}),
                      (True, {"size": 7, "symbol": "diamond", "color": "#d55e00"})):  # fmt: skip
        at = m.train[(m.codes == i) == own]
        data.append({
            "type": "scatter", "mode": "markers", "x": at[:, 0], "y": at[:, 1], "hoverinfo": "skip",
            "marker": look | {"line": {"width": 0.7, "color": "#000000" if not own else "#ffffff"}},
        })  # fmt: skip
    at = np.unravel_index(int(np.argmax(z)), z.shape)
    alt = (
        f"Map of the probability of {classes[i]} over {names[0]} and {names[1]}: from {percent(z.min())} to "
        f"{percent(z.max())}, largest near ({number(m.x[at[1]])}, {number(m.y[at[0]])})."
    )
    fit = {"range": [float(m.x[0]), float(m.x[-1])]}, {"range": [float(m.y[0]), float(m.y[-1])]}
    return Figure(data, layout(label(names[0]), label(names[1]), xaxis=fit[0], yaxis=fit[1]), alt, height=360)
