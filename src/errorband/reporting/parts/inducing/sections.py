"""The section about inducing inputs."""

from collections.abc import Sequence

import numpy as np

from errorband.reporting.page.document import Plot, Section, table
from errorband.reporting.page.markup import Html, el
from errorband.reporting.parts.inducing import figures
from errorband.reporting.parts.inducing.content import InducingContent
from errorband.reporting.text import count, duration, number
from errorband.training.certificate import InducingSweep

MAX_INPUTS = 20  # of which the ranges are shown
MAX_PICTURES = 4  # of classes with a model each
TITLE = "The inducing inputs"
PLACES = "Where the inducing inputs are (diamonds), among training rows (dots)."


def inducing_section(content: InducingContent | None, names: Sequence[str]) -> Section | None:
    """The section on inducing inputs, if the model has any."""
    if content is None:
        return None
    c = content
    lead = f"{c.method} sees the function through {count(len(c.places), 'inducing input')}, {c.fate}. {c.reason}"
    if c.moved:
        lead += f" {count(c.moved, 'inducing input')} had no part in the model and were moved on the way."
    blocks: list[Html | Plot | Sequence[Plot]] = []
    if c.sweep is not None:
        blocks += _sweep(c.sweep)
    if len(names) <= 2:
        blocks.append(Plot(figures.places(c, names), PLACES))
    else:
        blocks.append(_ranges(c, names))
    return Section("inducing", TITLE, lead, blocks)


def inducing_of_classes_section(
    contents: Sequence[InducingContent], classes: Sequence[str], names: Sequence[str]
) -> Section | None:
    """The section where each class has a model of its own: a row of a table for each, and pictures of some."""
    if not contents:
        return None
    lead = (
        f"Each class has a model of its own, which sees its function through inducing inputs of its own by "
        f"{contents[0].method}, {contents[0].fate}."
    )
    rows = [
        [name, f"{len(c.places):,}", f"{_outside(c):,}", f"{c.moved:,}", c.reason]
        for name, c in zip(classes, contents, strict=True)
    ]
    head = ["Class", "Inducing inputs", "Outside the rows", "Moved on the way", "Why so many"]
    blocks: list[Html | Plot | Sequence[Plot]] = [
        table(head, rows, "Inducing inputs of each class", "stack", (1, 2, 3))
    ]
    drawn = list(zip(classes, contents, strict=True))[:MAX_PICTURES]
    for name, c in drawn:
        if c.sweep is not None:
            blocks += [el("h3", f"Class {name}"), *_sweep(c.sweep)]
    if len(names) <= 2:
        blocks.append([Plot(figures.places(c, names), f"Class {name}. {PLACES}") for name, c in drawn])
    return Section("inducing", TITLE, lead, blocks)


def _outside(c: InducingContent) -> int:
    """How many lie beyond the training rows along some input."""
    return int(np.sum(np.any((c.places < c.rows.min(axis=0)) | (c.places > c.rows.max(axis=0)), axis=1)))


def _sweep(s: InducingSweep) -> list[Html | Plot | Sequence[Plot]]:
    numbers, nlpd, spent = np.array(s.n_inducing), np.array(s.nlpd), np.cumsum(s.seconds)
    against_number = Plot(
        figures.sweep_curve(numbers, nlpd, "inducing inputs", [f"{M:,} inducing inputs" for M in numbers]),
        f"Negative log predictive density per row of {s.n_held_out:,} rows held out for the sweep, learned from "
        f"{s.n_rows:,} others; lower is better.",
    )
    texts = [f"{M:,} inducing inputs, {duration(t)}" for M, t in zip(numbers, spent, strict=True)]
    against_time = Plot(
        figures.sweep_curve(spent, nlpd, "seconds", texts),
        "The same against the time the sweep had taken. It depends on the machine.",
    )
    chosen = max(M for M in s.n_inducing if s.chosen >= M)  # it may have grown by the rows held out
    rows = [
        [
            f"{M:,}" + (" (chosen)" if chosen == M else ""),
            number(evidence, decimals=4),
            number(held, decimals=4),
            "" if gap is None else number(gap, 2),
            duration(seconds),
        ]
        for M, evidence, held, gap, seconds in zip(s.n_inducing, s.log_evidence, s.nlpd, s.gap, s.seconds, strict=True)
    ]
    head = ["Inducing inputs", "Log evidence per row", "Held-out NLPD", "Gap to the exact evidence at most", "Time"]
    return [[against_number, against_time], table(head, rows, "Numbers of inducing inputs tried", "stack", (1, 2, 3))]


def _ranges(c: InducingContent, names: Sequence[str]) -> Html:
    rows = []
    for j, name in enumerate(names[:MAX_INPUTS]):
        x, z = c.rows[:, j], c.places[:, j]
        outside = int(np.sum((z < x.min()) | (z > x.max())))
        spread = [f"{number(a.min())} to {number(a.max())}" for a in (x, z)]
        rows.append([name, *spread, number(float(np.median(x))), number(float(np.median(z))), f"{outside:,}"])
    head = ["Input", "Rows", "Inducing inputs", "Median of rows", "Median of inducing", "Outside the rows"]
    caption = "Where the inducing inputs are, along each input"
    if len(names) > MAX_INPUTS:
        caption += f" (the first {MAX_INPUTS} of {len(names)})"
    return table(head, rows, caption, "stack", (1, 2, 3, 4, 5))
