"""A small tool in the page: two costs in, the threshold and what it does to the held-out rows out."""

import json

import numpy as np

from errorband.reporting.classification.content import Choices
from errorband.reporting.page.markup import Html, el

MOST_ROWS = 5000  # that the page carries for it


def decision_chooser(k: Choices, name: str, other: str) -> Html:
    """Fields for the two costs, and a line for the answer, which the script of the page keeps up to date."""
    rows = np.arange(len(k.of_class))
    if len(rows) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False)
    data = {
        "name": name,
        "other": other,
        "p": [round(float(v), 5) for v in k.probability[rows]],
        "y": [int(v) for v in k.of_class[rows]],
    }
    return el(
        "form",
        _field("chooser-miss", f"Cost of a missed {name}", "1"),
        _field("chooser-alarm", "Cost of a false alarm", "1"),
        el("output", id="chooser-answer", for_="chooser-miss chooser-alarm", aria_live="polite"),
        id="chooser",
        class_="chooser",
        data_rows=json.dumps(data, separators=(",", ":")),
    )


def _field(name: str, text: str, value: str) -> Html:
    box = Html(f'<input id="{name}" type="number" min="0" step="any" value="{value}" inputmode="decimal">')
    return el("label", text, box, for_=name)
