"""The summary card a notebook shows for a fitted model."""

from typing import Any

from errorband.estimators.hyperparameters import hyperparameters
from errorband.reporting.page.markup import Html, el
from errorband.reporting.parts.describe import describe
from errorband.reporting.text import count, duration, number

MAX_ROWS = 40
OPEN_ROWS = 12  # so many are shown at once, more on demand

# currentColor and transparency only: the card takes the theme of the notebook, light or dark.
_STYLE = """
.eb-card { display: inline-block; min-width: 22em; max-width: 46em; font: 14px/1.5 system-ui, sans-serif;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-left: 4px solid #0072b2;
  border-radius: 8px; padding: 10px 16px 8px; }
.eb-card .eb-name { font-weight: 650; font-size: 1.05em; margin: 0 0 4px; }
.eb-card table { border-collapse: collapse; border: 0; margin: 0; }
.eb-card tr, .eb-card tr:nth-child(odd) { background: transparent; }
.eb-card th, .eb-card td { text-align: left; vertical-align: top; padding: 2px 14px 2px 0; border: 0; font-weight: 400;
  background: transparent; max-width: none; white-space: normal; }
.eb-card th { opacity: .68; white-space: nowrap; }
.eb-card td.eb-n { text-align: right; font-variant-numeric: tabular-nums; }
.eb-card summary { cursor: pointer; opacity: .8; margin-top: 4px; }
.eb-card .eb-warn { color: #b04a00; font-weight: 650; }
@media (prefers-color-scheme: dark) { .eb-card .eb-warn { color: #e69f00; } }
"""


def card_html(model: Any) -> str:
    """A fitted model at a glance: what it is, what it saw, how the search went, and the values it found.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> model = GPRegressor(optimizer=None).fit(np.arange(5.0)[:, None], np.arange(5.0))
    >>> "5 rows, 1 input" in card_html(model)
    True
    """
    rows: list[tuple[str, Any]] = list(describe(model).items())
    rows.append(("Data", _data(model)))
    rows.append(("Log evidence", number(model.log_evidence_, decimals=2)))
    rows.append(("Search", _search(model)))
    if model.jitter_ > 0:
        rows.append(("Jitter", el("span", f"{number(model.jitter_, 2)} added to the diagonal", class_="eb-warn")))
    return el(
        "div",
        Html(f"<style>{_STYLE}</style>"),
        el("p", type(model).__name__, class_="eb-name"),
        el("table", el("tbody", *[el("tr", el("th", name, scope="row"), el("td", value)) for name, value in rows])),
        _values(model),
        el("details", el("summary", "As constructed"), el("code", repr(model))),
        class_="eb-card",
    )


def _data(model: Any) -> str:
    rows, inputs = model.n_training_rows_, count(model.n_features_in_, "input")
    return inputs if rows is None else f"{count(rows, 'row')}, {inputs}"


def _search(model: Any) -> Any:
    result = model.fit_result_
    if result is None:
        return "none: hyperparameters kept as given"
    if isinstance(result, list):  # one for each class
        late = sum(not r.converged for r in result)
        effort = f"{count(len(result), 'search', 'searches')}, {duration(sum(r.seconds for r in result))}"
        return el("span", f"{late} not converged ({effort})", class_="eb-warn") if late else f"converged ({effort})"
    effort = f"{count(result.iterations, 'iteration')}, {duration(result.seconds)}"
    if result.converged:
        return f"converged ({effort})"
    return el("span", f"not converged ({effort}): {result.message}", class_="eb-warn")


def _values(model: Any) -> Html:
    found = hyperparameters(model)
    lines = [
        el("tr", el("td", h.name), el("td", number(h.value, 4), class_="eb-n"), el("td", h.unit), el("td", h.part))
        for h in found[:MAX_ROWS]
    ]
    more = f", the first {MAX_ROWS}" if len(found) > MAX_ROWS else ""
    head = el("summary", f"{count(len(found), 'hyperparameter')} in data units{more}")
    return el("details", head, el("table", *lines), open="" if len(found) <= OPEN_ROWS else None)
