"""Relevance vectors in a report: how many there are, where, and how much each may weigh."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.reporting.page.document import Section, table
from errorband.reporting.page.markup import Html
from errorband.reporting.text import count, number

MOST, INPUTS = 12, 6  # vectors and inputs that are listed


@dataclasses.dataclass(frozen=True)
class RelevanceContent:
    """Relevance vectors of a fitted machine.

    Attributes
    ----------
    vectors : array (m, D)
        Their inputs, in the units of the data, those that may weigh most first.
    weight : array (m,)
        Prior standard deviation of the weight of each, 1/√α.
    n_rows : int
        Number of rows the machine learned from.
    label : str
        The class whose machine it is; empty if there is one machine.
    """

    vectors: np.ndarray
    weight: np.ndarray
    n_rows: int
    label: str = ""


def relevance_vectors(model: Any, n_rows: int, classes: Sequence[str] = ()) -> tuple[RelevanceContent, ...]:
    """One entry for each machine of a model fitted to so many rows; none if it is of another kind."""
    if not hasattr(model, "relevance_vectors_"):
        return ()
    vectors, precision = model.relevance_vectors_, model.precision_
    if len(model.members_) == 1:
        vectors, precision, classes = [vectors], [precision], [""]
    found = []
    for places, alpha, name in zip(vectors, precision, classes, strict=True):
        order = np.argsort(alpha)
        found.append(RelevanceContent(places[order], 1 / np.sqrt(alpha[order]), n_rows, name))
    return tuple(found)


def relevance_vectors_section(contents: Sequence[RelevanceContent], names: Sequence[str]) -> Section | None:
    """The section on relevance vectors, if the model has any."""
    if not contents:
        return None
    lead = (
        "The function is a sum of kernel functions, one around each relevance vector, a training row that the "
        "evidence kept. The other rows have no part in predictions."
    )
    return Section("relevance-vectors", "The relevance vectors", lead, [_listed(c, names) for c in contents])


def _listed(c: RelevanceContent, names: Sequence[str]) -> Html:
    of = f"Class {c.label}: " if c.label else ""
    caption = f"{of}{count(len(c.vectors), 'relevance vector')} of {c.n_rows:,} rows"
    if len(c.vectors) > MOST:
        caption += f", the {MOST} of the largest weights"
    if len(names) > INPUTS:
        caption += f"; the first {INPUTS} of {len(names)} inputs"
    head = [*names[:INPUTS], "Prior standard deviation of the weight"]
    rows = [
        [*(number(x) for x in place[:INPUTS]), number(weight)]
        for place, weight in zip(c.vectors[:MOST], c.weight[:MOST], strict=True)
    ]
    return table(head, rows, caption, "stack", tuple(range(len(head))))
