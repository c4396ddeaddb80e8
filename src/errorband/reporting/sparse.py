"""Inducing inputs in a report: where they are, how many, and why so many. The same for every kind of model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.approximations import Inducing
from errorband.estimators.certificate import InducingSweep
from errorband.parameters import Parameter
from errorband.reporting.content import InducingContent
from errorband.reporting.figures import Figure, hover, label, layout, line
from errorband.reporting.markup import Html, el
from errorband.reporting.page import Plot, Section, table
from errorband.reporting.text import count, duration, listing, number

MAX_ROWS = 500  # of the training rows that are drawn beside the inducing inputs
MAX_INPUTS = 20  # of which the ranges are shown
MAX_PICTURES = 4  # of classes with a model each
TITLE = "The inducing inputs"
LEARNED, LEFT = "learned with the hyperparameters", "left where they were put"
PLACES = "Where the inducing inputs are (diamonds), among training rows (dots)."


def inducing(model: Any) -> InducingContent | None:
    """What there is to say; None for a model without inducing inputs, or one made of several."""
    approximation = getattr(model, "approximation_", None)
    return _content(model, approximation, model) if isinstance(approximation, Inducing) else None


def inducing_of_each(model: Any) -> tuple[InducingContent, ...]:
    """The same of each of the models that a model is made of, one for each class; none if they have none."""
    parts = getattr(model, "estimators_", ())
    return tuple(_content(m, m.approximation_, model) for m in parts if isinstance(m.approximation_, Inducing))


def _content(model: Any, approximation: Any, whole: Any) -> InducingContent:
    scaling, X = model.scaling_, effects.training_data(whole)[0]
    return InducingContent(
        method=type(approximation).__name__,
        places=np.asarray(approximation.inducing_inputs) * scaling.x_scale + scaling.x_shift,
        rows=X[np.linspace(0, len(X) - 1, min(len(X), MAX_ROWS)).astype(int)],
        moved=int(getattr(model, "moved_inducing_", 0)),
        reason=model.approximation_reason_,
        fate=_fate(model.approximation) if model.fit_result_ is not None else LEFT,
        sweep=getattr(model, "inducing_sweep_", None),
    )


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
        blocks.append(Plot(_places(c, names), PLACES))
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
        blocks.append([Plot(_places(c, names), f"Class {name}. {PLACES}") for name, c in drawn])
    return Section("inducing", TITLE, lead, blocks)


def _fate(asked: Any) -> str:
    """What a search does with the inducing inputs of the approximation that was asked for."""
    if not isinstance(asked, Inducing):  # "auto"
        return LEARNED
    held = asked.inducing_inputs.fixed if isinstance(asked.inducing_inputs, Parameter) else False
    learned = np.asarray(asked.optimize_inputs) & ~np.asarray(held)
    return LEARNED if learned.all() else f"in part {LEARNED}" if learned.any() else LEFT


def _outside(c: InducingContent) -> int:
    """How many lie beyond the training rows along some input."""
    return int(np.sum(np.any((c.places < c.rows.min(axis=0)) | (c.places > c.rows.max(axis=0)), axis=1)))


def _sweep(s: InducingSweep) -> list[Html | Plot | Sequence[Plot]]:
    numbers, nlpd, spent = np.array(s.n_inducing), np.array(s.nlpd), np.cumsum(s.seconds)
    against_number = Plot(
        _curve(numbers, nlpd, "inducing inputs", [f"{M:,} inducing inputs" for M in numbers]),
        f"Negative log predictive density per row of {s.n_held_out:,} rows held out for the sweep, learned from "
        f"{s.n_rows:,} others; lower is better.",
    )
    texts = [f"{M:,} inducing inputs, {duration(t)}" for M, t in zip(numbers, spent, strict=True)]
    against_time = Plot(
        _curve(spent, nlpd, "seconds", texts),
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


def _curve(x: np.ndarray, nlpd: np.ndarray, title: str, texts: Sequence[str]) -> Figure:
    data = [
        line(x, nlpd, "@model", mode="lines+markers", marker={"size": 8, "color": "@model"}, text=list(texts),
             hoverinfo="all", hovertemplate=hover("%{text}", "held-out NLPD %{y:.4f}"))
    ]  # fmt: skip
    steps = listing([f"{number(v, 4)} at {number(a, 3)}" for a, v in zip(x, nlpd, strict=True)], most=12)
    alt = f"Held-out NLPD against {title}: {steps}."
    return Figure(data, layout(title, "held-out NLPD", xaxis={"type": "log"}), alt, height=280)


def _places(c: InducingContent, names: Sequence[str]) -> Figure:
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
