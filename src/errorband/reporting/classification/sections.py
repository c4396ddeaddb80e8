"""The header and the sections of a report on a classifier, made from its content."""

import numpy as np

from errorband.reporting.classification import figures
from errorband.reporting.classification.assessment import RARE
from errorband.reporting.classification.chooser import decision_chooser
from errorband.reporting.classification.content import ClassificationContent
from errorband.reporting.classification.scores import CLASS_METRICS, SHARES
from errorband.reporting.page.document import Plot, Section, table
from errorband.reporting.page.markup import Html, el, join
from errorband.reporting.parts import figures as parts_figures
from errorband.reporting.parts.basis.sections import basis_section
from errorband.reporting.parts.comparison import Comparison
from errorband.reporting.parts.data import LEAST_RELEVANCE
from errorband.reporting.parts.inducing.sections import inducing_of_classes_section, inducing_section
from errorband.reporting.parts.relevance_vectors import relevance_vectors_section
from errorband.reporting.parts.sections import (
    candidates_section,
    difference,
    drawn,
    findings_section,
    header,
    hyperparameters_section,
    scores_section,
    search_section,
)
from errorband.reporting.text import count, duration, listing, number, percent


def class_header(c: ClassificationContent) -> Html:
    """The summary card."""
    s, own = c.summary, c.scores[0].values
    first = ("right on held-out rows", percent(1 - own["error_rate"]))
    if c.choices is not None and np.mean(c.choices.of_class) <= RARE:  # always saying the other is right nearly always
        even = next(d for d in c.choices.decisions if d.ratio == 1)
        found = f"{even.found} of {int(np.sum(c.choices.of_class))}"
        first = (f"{c.classes[c.choices.positive]} found, with {count(even.false_alarms, 'false alarm')}", found)
    tiles = [
        first,
        ("log loss", number(own["log_loss"], decimals=3)),
        ("AUC", number(own["auc"], decimals=3)),
        ("log evidence", number(s.log_evidence, decimals=1)),
        ("rows to learn from + held out", f"{s.n_train:,} + {s.n_test:,}"),
        ("time to fit", duration(s.seconds)),
    ]
    return header(c, tiles)


def class_sections(c: ClassificationContent) -> list[Section]:
    """All sections, in the order of reading."""
    parts = (
        findings_section(c, "the probabilities hold"), _map(c), _data(c), _metrics(c), _predictions(c), _decisions(c),
        _relevance(c), _effects(c), _surprises(c), search_section(c), candidates_section(c),
        inducing_section(c.inducing, c.summary.feature_names),
        relevance_vectors_section(c.relevance_vectors, c.summary.feature_names),
        basis_section(c.basis),
        inducing_of_classes_section(c.inducing_of_each, c.classes, c.summary.feature_names), hyperparameters_section(c),
    )  # fmt: skip
    return [section for section in parts if section is not None]


# ------------------------------------------------------------------------------------------------------- sections
def _map(c: ClassificationContent) -> Section | None:
    if c.map is None:
        return None
    names = c.summary.input_names
    chosen = [1] if len(c.classes) == 2 else _most_frequent(c)
    plots = [
        Plot(
            figures.class_map(c.map, i, c.classes, names),
            f"Probability of {c.classes[i]}. Diamonds are its training rows, dots the others. "
            + drawn(len(c.map.train), c.map.n_train, "training"),
        )
        for i in chosen
    ]
    lead = "Probabilities averaged over what the model does not know: they fade away from the rows."
    return Section("function", "The probabilities", lead if c.summary.process else "", [plots])


def _data(c: ClassificationContent) -> Section:
    s = c.summary
    order = np.argsort(-c.train_counts, kind="stable")
    shares = [f"{c.classes[i]} ({c.train_counts[i]:,})" for i in order]
    lead = (
        f"{count(s.n_train, 'row')} to learn from and {count(s.n_test, 'row')} held out, with "
        f"{count(len(s.input_names), 'input')}: {listing(s.input_names, most=30)}. In the training rows {s.target} is "
        f"{listing(shares, most=12)}."
    )
    notes = [el("ul", *[el("li", note) for note in c.data_notes], class_="notes")] if c.data_notes else []
    return Section("data", "The data", lead, notes)


def _metrics(c: ClassificationContent) -> Section:
    return scores_section(c, CLASS_METRICS, SHARES, _difference)


def _difference(k: Comparison) -> str:
    said = "the model's probabilities are sharper", "the model's probabilities are less sharp"
    return difference(k, "log loss", *said)


def _predictions(c: ClassificationContent) -> Section:
    table_of_classes = Plot(
        figures.confusion(c.confusion, c.classes),
        "Held-out rows by true and predicted class; the colour is the share of the true class.",
    )
    reliability = Plot(
        figures.reliability(c.reliability, c.summary.n_test),
        "How often the predicted class is right where its probability is about so large. On the dashed line the "
        "probabilities are honest, below it too bold, above it too shy; the bars are where 95 % of the points of a "
        "calibrated model would lie.",
    )
    rejection = Plot(
        figures.error_reject(c.error_reject),
        "What is gained by leaving the least certain rows to somebody else (decide(X, reject=...)). A good model's "
        "curve falls.",
    )
    each = Plot(
        figures.class_reliability(c.class_reliability, c.classes, _to_draw(c)),
        "The same for each class: how often it occurs where its probability is about so large. Large markers lie "
        "outside of what chance would do with a calibrated model.",
    )
    lead = "A class is only as good as its probability: right as often as it says."
    blocks = [[table_of_classes, reliability], [each, rejection]]
    return Section("predictions", "Predictions and their probabilities", lead, blocks)


def _decisions(c: ClassificationContent) -> Section | None:
    """Two classes: what a threshold does, and which one the costs ask for."""
    if c.choices is None:
        return None
    k, name, other = c.choices, c.classes[c.choices.positive], c.classes[1 - c.choices.positive]
    rows = [
        [
            join([_ratio(d.ratio), el("small", " missed to false alarm")]),
            f"above {percent(d.threshold)}",
            f"{d.found:,} of {d.found + d.missed:,}",
            f"{d.false_alarms:,}",
            number(d.cost, decimals=3),
            number(d.cost_of_one_answer, decimals=3),
        ]
        for d in k.decisions
    ]
    head = ["If costs are", f"Say {name}", "Found", "False alarms", "Cost per row",
            "Same answer for all"]  # fmt: skip
    costs = table(head, rows, "Decisions by the ratio of costs", "stack", (2, 3, 4, 5))
    chooser = decision_chooser(k, name, other)
    curve = Plot(
        figures.precision_recall(k.curves, name),
        f"How many {name} are found against how many of the alarms are right, as the threshold falls.",
    )
    lead = (
        f"What to do with a probability depends on what mistakes cost. If a missed {name} costs r times a false alarm, "
        f"say {name} above 1/(1 + r): decide(X, loss=...) does so. Counts are of held-out rows, costs in units of a "
        "false alarm."
    )
    return Section("decisions", "Which threshold", lead, [chooser, [curve], el("div", costs)])


def _ratio(r: float) -> str:
    return f"{number(r)} to 1" if r >= 1 else f"1 to {number(1 / r)}"


def _to_draw(c: ClassificationContent) -> list[int]:
    """Classes whose curves are drawn: the one to be found of two, which mirrors the other; else the frequent ones."""
    return [c.choices.positive] if c.choices is not None else _most_frequent(c)


def _relevance(c: ClassificationContent) -> Section | None:
    names = c.summary.input_names
    if len(names) < 2:
        return None
    figure = parts_figures.relevance([names[j] for j in c.order], c.relevance[list(c.order)])
    more = f" The first 20 of {len(names)} inputs are shown." if len(names) > 20 else ""
    caption = (
        "By how much the probabilities typically change when this input alone is replaced by that of another row "
        "(the square root of their total-effect variance). Interactions count." + more
    )
    return Section("relevance", "Which inputs matter", "", [Plot(figure, caption)])


def _effects(c: ClassificationContent) -> Section | None:
    if not c.effects:
        return None
    shown = _to_draw(c)
    alone = len(c.summary.input_names) == 1
    plots = [
        Plot(
            figures.class_curve(e, c.classes, shown),
            f"Along {e.effect.input.name}.",
        )
        for e in c.effects
    ]
    which = c.classes[shown[0]] if c.choices is not None else "each class"
    background = count(c.effects[0].effect.n_rows, "training row")
    lead = f"The average probability of {which} along one input, the others as they are in {background}. "
    if alone:
        lead = f"The probability of {which} along the input. "
    if c.effects[0].effect.banded:
        lead += "The band is the uncertainty of this average. "
    lead += "Ticks below are training rows of the class. "
    if not alone:
        lead += f"Inputs with less than {percent(LEAST_RELEVANCE)} of the largest relevance are not shown. "
    if c.choices is None and len(shown) < len(c.classes):
        lead += f"Shown are the {len(shown)} most frequent of {len(c.classes)} classes."
    return Section("effects", "What the inputs do", lead.strip(), [plots])


def _surprises(c: ClassificationContent) -> Section | None:
    if c.surprises is None:
        return None
    rows = [
        [
            s.row,
            s.observed,
            percent(s.probability),
            f"{s.expected} ({percent(s.expected_probability)})",
            "; ".join(f"{name} {value}" for name, value in s.inputs),
        ]
        for s in c.surprises
    ]
    lead = (
        "Each training row predicted from all the others: those whose class was the least probable. Worth a look, for "
        f"a wrong label or for something the model does not know. {c.rows_told}"
    )
    head = ["Row", "Class", "Its probability", "Expected", "Inputs, most relevant first"]
    return Section(
        "surprises", "Most surprising training rows", lead,
        [table(head, rows, "Training rows by leave-one-out probability", "stack rows", (2,))],
    )  # fmt: skip


def _most_frequent(c: ClassificationContent) -> list[int]:
    """Classes to draw, in their own order: as many as there are colours."""
    frequent = np.argsort(-c.train_counts, kind="stable")[: figures.MAX_CLASSES]
    return sorted(int(i) for i in frequent)
