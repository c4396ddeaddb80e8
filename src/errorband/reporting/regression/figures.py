"""The figures of a report on a regression."""

from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta

from errorband.effects import PartialDependence
from errorband.inputs import Input
from errorband.reporting.page.figure import CIVIDIS, DOT, Figure, band, hover, label, layout, line
from errorband.reporting.parts.figures import axis_along, axis_of
from errorband.reporting.regression.calibration import Calibration
from errorband.reporting.regression.content import Curve, HeldOut, Map, Suspects
from errorband.reporting.text import brief, count, listing, number, percent

BANDS = ((0.95, 0.14), (0.8, 0.18), (0.5, 0.26))  # level and opacity: the inner bands lie on the outer ones


def predicted_vs_actual(held: HeldOut, target: str) -> Figure:
    """Actual against predicted, each prediction with its 95 % band."""
    low, high = float(min(held.actual.min(), held.mean.min())), float(max(held.actual.max(), held.mean.max()))
    inside = (held.lower <= held.actual) & (held.actual <= held.upper)
    data: list[dict[str, Any]] = [line([low, high], [low, high], "@muted", dash="dash", width=1.5, name="equal")]
    for mask, colour, symbol, name in (
        (inside, "@model", "circle", "inside its band"),
        (~inside, "@accent", "diamond", "outside"),
    ):
        up, down = (held.upper - held.mean)[mask], (held.mean - held.lower)[mask]
        data.append({
            "type": "scatter", "mode": "markers", "name": f"{name} ({int(mask.sum())})",
            "x": held.actual[mask], "y": held.mean[mask],
            "customdata": rows_told(held, mask),
            "error_y": {"type": "data", "symmetric": False, "array": up, "arrayminus": down,
                        "color": f"{colour}/0.3", "thickness": 1, "width": 0},
            "marker": DOT | {"color": colour, "symbol": symbol},
            "hovertemplate": hover(
                "row %{customdata[0]}", "actual %{x:.4g}", "predicted %{y:.4g}",
                "95 % band %{customdata[1]:.4g} to %{customdata[2]:.4g}",
            ),
        })  # fmt: skip
    alt = (
        f"Scatter plot of predicted against actual {target} for {count(len(held.shown), 'held-out row')}, with 95 % "
        f"bands; {int(inside.sum())} of the targets lie inside their band, {int((~inside).sum())} outside."
    )
    titles = (f"actual {label(target)}", f"predicted {label(target)}")
    return Figure(data, layout(*titles, showlegend=True), alt, height=420)


def rows_told(held: HeldOut, mask: np.ndarray) -> list[list[Any]]:
    """Name and band of rows, for hover texts."""
    bands = zip(held.names[mask], held.lower[mask], held.upper[mask], strict=True)
    return [[label(str(name), 40), lower, upper] for name, lower, upper in bands]


def calibration(c: Calibration, n: int) -> Figure:
    """Observed against nominal coverage."""
    percentages = {"tickformat": ".0%", "range": [0, 1]}
    data = [
        band(c.levels, c.low, c.high, "@muted/0.22", name="chance, if calibrated"),
        line([0, 1], [0, 1], "@muted", dash="dash", width=1.5, showlegend=False),
        line(c.levels, c.observed, "@model", mode="lines+markers", name="this model", marker=DOT | {"opacity": 1},
              hoverinfo="all", hovertemplate=hover("%{x:.0%} band holds %{y:.1%}")),
    ]  # fmt: skip
    values = listing([f"{percent(a.observed)} at {percent(a.level)}" for a in c.at])
    alt = f"Calibration curve over {count(n, 'held-out row')}: observed coverage is {values}; the diagonal is ideal."
    shape = layout("nominal coverage", "observed coverage", showlegend=True, xaxis=percentages, yaxis=percentages)
    return Figure(data, shape, alt, height=420)


def residuals(held: HeldOut, column: Input) -> Figure:
    """Standardised residuals along one input."""
    return _residuals(held, column.values(held.X), column)


def residuals_by_prediction(held: HeldOut, target: str) -> Figure:
    """Standardised residuals along the prediction."""
    return _residuals(held, held.mean, Input.number(f"predicted {target}", 0))


def _residuals(held: HeldOut, values: np.ndarray, column: Input) -> Figure:
    z = held.z_score
    known = ~np.isnan(values)
    wild = np.abs(z) > 2
    ends = column.on_axis([values[known].min(), values[known].max()] if known.any() else [0.0, 1.0])
    data = [line(ends, [v, v], "@muted", dash="dash" if v else "solid", width=1) for v in (-2, 0, 2)]
    for mask, colour, symbol in ((known & ~wild, "@model", "circle"), (known & wild, "@accent", "diamond")):
        told = [
            [label(str(n), 40), column.shown(v, brief)] for n, v in zip(held.names[mask], values[mask], strict=True)
        ]
        data.append({
            "type": "scatter", "mode": "markers", "x": column.on_axis(values[mask]), "y": z[mask], "customdata": told,
            "marker": DOT | {"size": 5, "color": colour, "symbol": symbol},
            "hovertemplate": hover(
                "row %{customdata[0]}", f"{label(column.name)} %{{customdata[1]}}", "residual %{y:.2f} sd"
            ),
        })  # fmt: skip
    alt = (
        f"Scatter plot of standardised residuals against {column.name}: {int(wild.sum())} of {len(z)} lie more than "
        f"two standard deviations from zero, where about {0.0455 * len(z):.0f} are expected."
    )
    shape = layout(label(column.name), "residual / sd")
    shape["xaxis"] |= axis_of(column)
    return Figure(data, shape, alt, height=260)


def quantiles(z: np.ndarray) -> Figure:
    """Sorted normal scores against those expected, with the range that chance gives each of them."""
    n = len(z)
    rank = np.arange(1, n + 1)
    low, middle, high = (ndtri(beta.ppf(q, rank, n + 1 - rank)) for q in (0.025, 0.5, 0.975))
    ordered = np.sort(z)
    far = np.unique(
        np.concatenate([np.arange(min(n, 60)), np.linspace(0, n - 1, 200).astype(int), np.arange(max(n - 60, 0), n)])
    )
    data = [
        band(middle[far], low[far], high[far], "@muted/0.22", name="chance, if calibrated"),
        line([middle[0], middle[-1]], [middle[0], middle[-1]], "@muted", dash="dash", width=1.5, showlegend=False),
        line(middle[far], ordered[far], "@model", mode="markers", marker=DOT | {"size": 5}, name="held-out rows",
             hoverinfo="all", hovertemplate=hover("expected %{x:.2f}", "found %{y:.2f} sd")),
    ]  # fmt: skip
    outside = int(np.sum((ordered < low) | (ordered > high)))
    alt = (
        f"Quantile plot of {count(n, 'standardised residual')}: from {number(ordered[0])} to {number(ordered[-1])}, "
        f"{outside} of them outside the range of chance."
    )
    return Figure(data, layout("expected of a normal distribution", "residual / sd", showlegend=True), alt, height=300)


def effect(e: PartialDependence, target: str, rows: np.ndarray) -> Figure:
    """Average prediction along an input, with its band; ``rows`` are the input's values in the held-out rows."""
    c, grid = e.input, e.input.on_axis(e.grid)
    lower, upper = e.curve.interval(0.95)
    custom = [[c.shown(v, brief), lo, hi] for v, lo, hi in zip(e.grid, lower, upper, strict=True)]
    shown = ["95 % band %{customdata[1]:.4g} to %{customdata[2]:.4g}"] if e.banded else []
    text = hover(f"{label(c.name)} %{{customdata[0]}}", "average %{y:.4g}", *shown)
    point: dict[str, Any] = {"customdata": custom, "hoverinfo": "all", "hovertemplate": text}
    if e.discrete:
        bars = {"type": "data", "array": upper - e.curve.mean, "color": "@model", "thickness": 2, "width": 6}
        point |= {"mode": "markers", "error_y": bars, "marker": DOT | {"size": 9, "opacity": 1}}
        data = [line(grid, e.curve.mean, "@model", **point)]
    else:
        data = [band(grid, *e.curve.interval(level), f"@model/{alpha}") for level, alpha in BANDS if e.banded]
        data.append(line(grid, e.curve.mean, "@model", width=2.5, **point))
    known = rows[~np.isnan(rows)]
    rug = {
        "type": "scatter", "mode": "markers", "x": c.on_axis(known), "y": np.full(len(known), 0.03), "yaxis": "y2",
        "hoverinfo": "skip", "marker": {"symbol": "line-ns-open", "size": 9, "color": "@muted", "opacity": 0.55},
    }  # fmt: skip
    i, k = int(np.argmin(e.curve.mean)), int(np.argmax(e.curve.mean))
    ends = [c.shown(e.grid[at], number) for at in (0, -1, i, k)]
    alt = (
        f"Curve of the average predicted {target} along {c.name}, from {ends[0]} to {ends[1]}: lowest "
        f"{number(e.curve.mean[i])} at {ends[2]}, highest {number(e.curve.mean[k])} at {ends[3]}"
        + (f"; the 95 % band is {number(np.mean(upper - lower))} wide on average." if e.banded else ".")
    )
    shape = layout(label(c.name), label(target, 20))
    shape["xaxis"] |= axis_along(c, e.grid, e.discrete)
    shape["yaxis2"] = {"overlaying": "y", "visible": False, "range": [0, 1], "fixedrange": True}
    return Figure([*data, rug], shape, alt, height=270)


def _marks(suspects: Suspects, y: np.ndarray) -> dict[str, Any]:
    """Rings around suspected outliers, at their first input and y."""
    return {
        "type": "scatter", "mode": "markers", "x": suspects.X[:, 0], "y": y,
        "customdata": [label(str(name), 40) for name in suspects.names],
        "marker": {"symbol": "circle-open", "size": 11, "color": "#d55e00", "line": {"width": 2}},
        "hovertemplate": hover("row %{customdata}", "suspected outlier"),
    }  # fmt: skip


def curve(c: Curve, held: HeldOut, suspects: Suspects, name: str, target: str) -> Figure:
    """The function of one input with its bands, draws and rows."""
    data = [band(c.grid, *c.bands[level], f"@model/{alpha}", name=f"{percent(level)} band") for level, alpha in BANDS]
    for i, draw in enumerate(c.draws):
        named = {"name": "draws of the function", "legendgroup": "draws", "showlegend": i == 0}
        data.append(line(c.grid, draw, "@accent/0.7", width=1, **named))
    at = f"{label(name)} %{{x:.4g}}"
    told = {"hoverinfo": "all", "hovertemplate": hover(at, "mean %{y:.4g}")}
    data.append(line(c.grid, c.mean, "@model", width=2.5, name="mean", **told))
    for (x, y), text, marker in (
        (c.train, "training rows", {"size": 5, "color": "@ink", "opacity": 0.65}),
        ((held.X[:, 0], held.actual), "held-out rows", {"size": 7, "color": "@good", "symbol": "diamond"}),
    ):
        data.append({
            "type": "scatter", "mode": "markers", "x": x, "y": y, "name": text, "marker": marker,
            "hovertemplate": hover(text[:-1], at, f"{label(target)} %{{y:.4g}}"),
        })  # fmt: skip
    if len(suspects.y):
        data.append(_marks(suspects, suspects.y) | {"name": "suspected outliers"})
    lower, upper = c.bands[0.95]
    alt = (
        f"Curve of {target} along {name} from {number(c.grid[0])} to {number(c.grid[-1])} with 50, 80 and 95 % bands, "
        f"draws from the posterior and the data. The 95 % band is between {number(np.min(upper - lower))} and "
        f"{number(np.max(upper - lower))} wide."
    )
    return Figure(data, layout(label(name), label(target), showlegend=True), alt, height=440)


def surface(m: Map, which: str, suspects: Suspects, names: tuple[str, ...], target: str) -> Figure:
    """Map of the mean ("mean") or of the standard deviation ("std") over two inputs, with the training rows."""
    z = m.mean if which == "mean" else m.std
    text = "mean" if which == "mean" else "standard deviation"
    steps = np.linspace(0, 1, len(CIVIDIS))
    scale = [[float(s), c] for s, c in zip(steps, CIVIDIS, strict=True)]
    if which == "std":
        scale = [[0.0, "@surface"], [1.0, "@accent"]]
    heat = {
        "type": "heatmap", "x": m.x, "y": m.y, "z": z, "colorscale": scale, "zsmooth": "best",
        "colorbar": {"thickness": 12, "outlinewidth": 0, "tickfont": {"color": "@ink"}, "nticks": 6, "len": 1},
        "hovertemplate": hover(
            f"{label(names[0])} %{{x:.3g}}", f"{label(names[1])} %{{y:.3g}}", f"{text} %{{z:.4g}}"
        ),
    }  # fmt: skip
    dots = {
        "type": "scatter", "mode": "markers", "x": m.train[:, 0], "y": m.train[:, 1], "hoverinfo": "skip",
        "marker": {"size": 4, "color": "#ffffff" if which == "mean" else "@ink", "opacity": 0.7,
                   "line": {"width": 0.5, "color": "#000000"}},
    }  # fmt: skip
    at = np.unravel_index(int(np.argmax(z)), z.shape)
    alt = (
        f"Map of the {text} of {target} over {names[0]} and {names[1]}: from {number(z.min())} to {number(z.max())}, "
        f"largest near ({number(m.x[at[1]])}, {number(m.y[at[0]])})."
    )
    fit = {"range": [float(m.x[0]), float(m.x[-1])]}, {"range": [float(m.y[0]), float(m.y[-1])]}
    data = [heat, dots, *([_marks(suspects, suspects.X[:, 1])] if len(suspects.y) else [])]
    return Figure(data, layout(label(names[0]), label(names[1]), xaxis=fit[0], yaxis=fit[1]), alt, height=360)
