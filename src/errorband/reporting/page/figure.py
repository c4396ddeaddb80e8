"""Plotly figures as plain dictionaries, drawn by the page's script, and the pieces they are made of.

Colours are names of CSS variables, ``@model`` or with an opacity ``@model/0.2``; the script puts in the values of the
light, dark or print theme. Names of columns are escaped, because Plotly reads a little HTML in its labels.
"""

import dataclasses
import html
from typing import Any

import numpy as np

from errorband.reporting.text import shorten

# Cividis (Nuñez, Anderton & Renslow 2018): even steps of lightness, the same to colour-blind eyes.
CIVIDIS = ["#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958", "#fee838"]
DOT = {"size": 6, "color": "@model", "opacity": 0.75}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A Plotly figure, what it shows in words for those who do not see it, and its height in pixels."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    alt: str
    height: int = 340


def label(name: str, most: int = 28) -> str:
    """A column name fit for a Plotly label: neither markup nor a place for a value in a hover text."""
    return html.escape(shorten(name, most), quote=False).replace("%", "&#37;")


def layout(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Return the layout all plots share, with these axis titles (already escaped); ``more`` is merged in."""
    base: dict[str, Any] = {
        "margin": {"l": 60, "r": 14, "t": 14, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@ink", "size": 13, "family": "system-ui, sans-serif"},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "@surface", "bordercolor": "@line", "font": {"color": "@ink"}, "align": "left"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        "showlegend": False,
        "xaxis": _axis(x),
        "yaxis": _axis(y),
    }
    for key, value in more.items():
        base[key] = base[key] | value if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return base


def _axis(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 10},
        "gridcolor": "@grid",
        "linecolor": "@line",
        "showline": True,
        "zeroline": False,
        "automargin": True,
        "nticks": 7,
    }


def hover(*lines: str) -> str:
    """Return the hover text of a trace: these lines, without the name of the trace."""
    return "<br>".join(lines) + "<extra></extra>"


def line(x: Any, y: Any, colour: str, **more: Any) -> dict[str, Any]:
    """A line; ``width``, ``dash`` and everything else Plotly knows may be given."""
    width, dash = more.pop("width", 2), more.pop("dash", "solid")
    look = {"color": colour, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": look, "hoverinfo": "skip", **more}


def band(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, colour: str, **more: Any) -> dict[str, Any]:
    """A filled area as one closed line."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.concatenate([x, x[::-1]]),
        "y": np.concatenate([lower, upper[::-1]]),
        "fill": "toself",
        "fillcolor": colour,
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
        **more,
    }
