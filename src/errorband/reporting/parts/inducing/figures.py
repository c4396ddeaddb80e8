"""Figures about inducing inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.reporting.page.figure import Figure, hover, label, layout, line
from errorband.reporting.parts.inducing.content import InducingContent
from errorband.reporting.text import count, listing, number


def sweep_curve(x: np.ndarray, nlpd: np.ndarray, title: str, texts: Sequence[str]) -> Figure:
    """Held-out NLPD of the numbers of inducing inputs tried, against x (a number or a time) on a log scale."""
    data = [
        line(x, nlpd, "@model", mode="lines+markers", marker={"size": 8, "color": "@model"}, text=list(texts),
             hoverinfo="all", hovertemplate=hover("%{text}", "held-out NLPD %{y:.4f}"))
    ]  # fmt: skip
    steps = listing([f"{number(v, 4)} at {number(a, 3)}" for a, v in zip(x, nlpd, strict=True)], most=12)
    alt = f"Held-out NLPD against {title}: {steps}."
    return Figure(data, layout(title, "held-out NLPD", xaxis={"type": "log"}), alt, height=280)


def places(c: InducingContent, names: Sequence[str]) -> Figure:
    """Inducing inputs among training rows, for models of one or two inputs."""
    flat = len(names) == 1
    dots, marks = (
        (a[:, 0], np.full(len(a), level) if flat else a[:, 1]) for a, level in ((c.rows, 0.0), (c.places, 1.0))
    )
    data = [
        {"type": "scatter", "mode": "markers", "x": dots[0], "y": dots[1], "name": "training rows",
         "marker": {"size": 5, "color": "@ink", "opacity": 0.35}, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "markers", "x": marks[0], "y": marks[1], "name": "inducing inputs",
         "marker": {"size": 9, "color": "@accent", "symbol": "diamond"},
         "hovertemplate": hover(*[f"{label(n)} %{{{axis}:.4g}}" for n, axis in zip(names, "xy", strict=False)])},
    ]  # fmt: skip
    more: dict[str, Any] = {"showlegend": True}
    if flat:
        more["yaxis"] = {"tickvals": [0, 1], "ticktext": ["rows", "inducing"], "range": [-0.6, 1.6], "showgrid": False}
    ends = zip(names, c.places.min(axis=0), c.places.max(axis=0), strict=True)
    where = listing([f"{name} from {number(low)} to {number(high)}" for name, low, high in ends])
    alt = f"{count(len(c.places), 'inducing input')} among the training rows: {where}."
    y = "" if flat else label(names[1])
    return Figure(data, layout(label(names[0]), y, **more), alt, height=200 if flat else 400)
