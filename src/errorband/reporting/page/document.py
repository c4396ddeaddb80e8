"""HTML assembly: sections of text, tables and plots become one file that needs nothing else.

This module knows nothing of models; a new kind of report brings its own sections.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from errorband.reporting.page.figure import Figure
from errorband.reporting.page.markup import Html, el, escape, join


@dataclasses.dataclass(frozen=True)
class Plot:
    """A figure and the sentence below it."""

    figure: Figure
    caption: str


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page. ``blocks`` are markup, plots, or lists of plots that stand side by side if there is room."""

    anchor: str
    title: str
    lead: str
    blocks: Sequence[Html | Plot | Sequence[Plot]]


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str, kind: str = "", numbers: Sequence[int] = ()
) -> Html:
    """A table; columns whose positions are in ``numbers`` are aligned to the right. ``kind`` is a CSS class.

    Roles are spelled out because the phone layout turns rows into grids, which hides the table from screen readers.
    """

    def align(i: int) -> str | None:
        return "n" if i in numbers else None

    header = [el("th", h, scope="col", class_=align(i), role="columnheader") for i, h in enumerate(head)]
    body = []
    for row in rows:
        cells = [el("th", row[0], scope="row", class_=align(0), role="rowheader")]
        cells += [
            el("td", cell, class_=align(i), data_label=head[i], role="cell") for i, cell in enumerate(row) if i > 0
        ]
        body.append(el("tr", *cells, role="row"))
    return el(
        "table",
        el("caption", caption, class_="hidden"),
        el("thead", el("tr", *header, role="row"), role="rowgroup"),
        el("tbody", *body, role="rowgroup"),
        role="table",
        class_=kind or None,
        style=f"--columns: {len(head) - 1}",
    )


def page(title: str, header: Html, sections: Sequence[Section], footer: str) -> str:
    """The whole document."""
    plots: dict[str, dict[str, Any]] = {}
    body = [_section(section, plots) for section in sections]
    links = [el("a", s.title, href=f"#{s.anchor}") for s in sections]
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("page.css"),
        header=header,
        contents=el("nav", *links, aria_label="Sections"),
        body=join(body),
        footer=el("footer", footer),
        figures=_json(plots),
        plotly=plotly_js(),
        script=_asset("page.js"),
    )


def _section(section: Section, plots: dict[str, dict[str, Any]]) -> Html:
    blocks: list[Html] = []
    for block in section.blocks:
        if isinstance(block, str):
            blocks.append(block)
        elif isinstance(block, Plot):
            blocks.append(_plot(block, section.anchor, plots))
        else:
            blocks.append(el("div", *[_plot(p, section.anchor, plots) for p in block], class_="grid"))
    lead = el("p", section.lead, class_="lead") if section.lead else ""
    return el("section", el("h2", section.title), lead, *blocks, id=section.anchor)


def _plot(plot: Plot, anchor: str, plots: dict[str, dict[str, Any]]) -> Html:
    name = f"plot-{anchor}-{len(plots)}"
    plots[name] = {"data": plot.figure.data, "layout": plot.figure.layout}
    drawn = el("div", id=name, class_="plot", role="img", aria_label=plot.figure.alt,
               style=f"height: {plot.figure.height}px")  # fmt: skip
    return el("figure", drawn, el("figcaption", plot.caption))


def _json(value: Any) -> str:
    """JSON that can stand inside a script element: it cannot close it."""
    text = json.dumps(_compact(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _compact(value: Any) -> Any:
    """Plain values, floats with six digits: no plot shows more."""
    if isinstance(value, dict):
        return {key: _compact(held) for key, held in value.items()}
    if isinstance(value, np.ndarray):
        return _compact(value.tolist())
    if isinstance(value, list | tuple):
        return [_compact(held) for held in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def plotly_js() -> str:
    """The plotting library, to be put into the page once."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def _asset(name: str) -> str:
    return resources.files("errorband.reporting.page").joinpath(name).read_text(encoding="utf-8")
