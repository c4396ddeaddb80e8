"""The figures of a report on a regression."""

from typing import Any

import numpy as np

from errorband.effects import PartialDependence
from errorband.reporting.page.figure import CIVIDIS, DOT, Figure, band, hover, label, layout, line
from errorband.reporting.regression.assessment import Calibration
from errorband.reporting.regression.content import Curve, HeldOut, Map
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
            "customdata": np.stack([held.shown[mask], held.lower[mask], held.upper[mask]], axis=1),
            "error_y": {"type": "data", "symmetric": False, "array": up, "arrayminus": down,
                        "color": f"{colour}/0.3", "thickness": 1, "width": 0},
            "marker": DOT | {"color": colour, "symbol": symbol},
            "hovertemplate": hover(
                "held-out row %{customdata[0]}", "actual %{x:.4g}", "predicted %{y:.4g}",
                "95 % band %{customdata[1]:.4g} to %{customdata[2]:.4g}",
            ),
        })  # fmt: skip
    alt = (
        f"Scatter plot of predicted against actual {target} for {count(len(held.shown), 'held-out row')}, with 95 % "
        f"bands; {int(inside.sum())} of the targets lie inside their band, {int((~inside).sum())} outside."
    )
    titles = (f"actual {label(target)}", f"predicted {label(target)}")
    return Figure(data, layout(*titles, showlegend=True), alt, height=420)


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


def residuals(held: HeldOut, j: int, name: str) -> Figure:
    """Standardised residuals along one input."""
    x, z = held.X[:, j], held.z_score
    ends = [float(x.min()), float(x.max())]
    wild = np.abs(z) > 2
    data = [line(ends, [v, v], "@muted", dash="dash" if v else "solid", width=1) for v in (-2, 0, 2)]
    for mask, colour, symbol in ((~wild, "@model", "circle"), (wild, "@accent", "diamond")):
        data.append({
            "type": "scatter", "mode": "markers", "x": x[mask], "y": z[mask], "customdata": held.shown[mask],
            "marker": DOT | {"size": 5, "color": colour, "symbol": symbol},
            "hovertemplate": hover("held-out row %{customdata}", f"{label(name)} %{{x:.4g}}", "residual %{y:.2f} sd"),
        })  # fmt: skip
    alt = (
        f"Scatter plot of standardised residuals against {name}: {int(wild.sum())} of {len(z)} lie more than two "
        f"standard deviations from zero, where about {0.0455 * len(z):.0f} are expected."
    )
    return Figure(data, layout(label(name), "residual / sd"), alt, height=260)


def effect(e: PartialDependence, target: str, rows: np.ndarray) -> Figure:
    """Average prediction along an input, with its band; ``rows`` are the input's values in the held-out rows."""
    ends = "95 % band %{customdata[0]:.4g} to %{customdata[1]:.4g}"
    text = hover(f"{label(e.name)} %{{x:.4g}}", "average %{y:.4g}", ends)
    lower, upper = e.curve.interval(0.95)
    custom = np.stack([lower, upper], axis=1)
    point: dict[str, Any] = {"customdata": custom, "hoverinfo": "all", "hovertemplate": text}
    if e.discrete:
        bars = {"type": "data", "array": upper - e.curve.mean, "color": "@model", "thickness": 2, "width": 6}
        point |= {"mode": "markers", "error_y": bars, "marker": DOT | {"size": 9, "opacity": 1}}
        data = [line(e.grid, e.curve.mean, "@model", **point)]
    else:
        data = [band(e.grid, *e.curve.interval(level), f"@model/{alpha}") for level, alpha in BANDS]
        data.append(line(e.grid, e.curve.mean, "@model", width=2.5, **point))
    rug = {
        "type": "scatter", "mode": "markers", "x": rows, "y": np.full(len(rows), 0.03), "yaxis": "y2",
        "hoverinfo": "skip", "marker": {"symbol": "line-ns-open", "size": 9, "color": "@muted", "opacity": 0.55},
    }  # fmt: skip
    i, k = int(np.argmin(e.curve.mean)), int(np.argmax(e.curve.mean))
    alt = (
        f"Curve of the average predicted {target} along {e.name}, from {number(e.grid[0])} to {number(e.grid[-1])}: "
        f"lowest {number(e.curve.mean[i])} at {number(e.grid[i])}, highest {number(e.curve.mean[k])} at "
        f"{number(e.grid[k])}; the 95 % band is {number(np.mean(upper - lower))} wide on average."
    )
    shape = layout(label(e.name), label(target, 20))
    if e.discrete:
        shape["xaxis"] |= {"tickvals": e.grid, "ticktext": [brief(v) for v in e.grid]}
    else:  # a value far out would squeeze the curve into a corner
        reach = float(e.grid[-1] - e.grid[0]) or 1.0
        shape["xaxis"]["range"] = [float(e.grid[0]) - 0.04 * reach, float(e.grid[-1]) + 0.04 * reach]
    shape["yaxis2"] = {"overlaying": "y", "visible": False, "range": [0, 1], "fixedrange": True}
    return Figure([*data, rug], shape, alt, height=270)


def curve(c: Curve, held: HeldOut, name: str, target: str) -> Figure:
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
    lower, upper = c.bands[0.95]
    alt = (
        f"Curve of {target} along {name} from {number(c.grid[0])} to {number(c.grid[-1])} with 50, 80 and 95 % bands, "
        f"draws from the posterior and the data. The 95 % band is between {number(np.min(upper - lower))} and "
        f"{number(np.max(upper - lower))} wide."
    )
    return Figure(data, layout(label(name), label(target), showlegend=True), alt, height=440)


def surface(m: Map, which: str, names: tuple[str, ...], target: str) -> Figure:
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
    return Figure([heat, dots], layout(label(names[0]), label(names[1]), xaxis=fit[0], yaxis=fit[1]), alt, height=360)
