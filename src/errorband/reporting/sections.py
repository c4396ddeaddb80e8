"""The words of a report on a regression: content in, header and sections out. Some sections serve other reports too."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from errorband.reporting import figures
from errorband.reporting.build import MAX_RESIDUAL_INPUTS
from errorband.reporting.common import LEAST_RELEVANCE
from errorband.reporting.content import RegressionContent
from errorband.reporting.hyperparameters import LATENT
from errorband.reporting.markup import Html, el, join
from errorband.reporting.page import Plot, Section, table
from errorband.reporting.scores import METRICS, Comparison, Metric
from errorband.reporting.sparse import inducing_section
from errorband.reporting.text import brief, count, duration, listing, number, percent, places_for

MAX_HYPERPARAMETERS = 60
HYPERPARAMETERS_SHOWN = 12


def regression_header(c: RegressionContent) -> Html:
    """The summary card."""
    s, own = c.summary, c.scores[0].values
    tiles = [
        ("R² on held-out rows", number(own["r2"], 2)),
        ("RMSE", number(own["rmse"])),
        ("inside the 95 % band", percent(own["coverage"])),
        ("log evidence", number(s.log_evidence, decimals=1)),
        ("rows to learn from + held out", f"{s.n_train:,} + {s.n_test:,}"),
        ("time to fit", duration(s.seconds)),
    ]
    return header(c, tiles)


def header(c: Any, tiles: Sequence[tuple[str, str]]) -> Html:
    """The summary card of any report: verdict, figures and the parts of the model."""
    s = c.summary
    return el(
        "header",
        el("p", f"{s.estimator}: {s.target} from {count(len(s.input_names), 'input')}", class_="kicker"),
        el("h1", c.title),
        el("p", " ".join(c.verdict), class_="verdict"),
        el("dl", *[el("div", el("dt", name), el("dd", value)) for name, value in tiles], class_="tiles"),
        el("dl", *[join([el("dt", name), el("dd", value)]) for name, value in s.parts.items()], class_="parts"),
    )


def regression_sections(c: RegressionContent) -> list[Section]:
    """All sections, in the order of reading."""
    clear = "Nothing stood out: the search converged, the bands hold, and the data show no oddities."
    parts = (
        findings_section(c, clear), _function(c), _data(c), _metrics(c), _predictions(c), _residuals(c), _relevance(c),
        _effects(c), _surprises(c), search_section(c), inducing_section(c.inducing, c.summary.input_names),
        hyperparameters_section(c),
    )  # fmt: skip
    return [section for section in parts if section is not None]


def footer(c: Any) -> str:
    """Who made this."""
    return f"Made with {c.summary.versions}. This file is complete in itself and opens without a network."


# ------------------------------------------------------------------------------------------------------- sections
def findings_section(c: Any, clear: str) -> Section:
    """Warnings and notes; ``clear`` is said where there are none."""
    if not c.findings:
        return Section("findings", "Before you trust it", "", [el("p", clear, class_="all-clear")])
    items = [
        el("li", el("strong", f.title), ". ", f.text, class_=f.level, aria_label=f"{f.level}: {f.title}")
        for f in c.findings
    ]
    return Section("findings", "Before you trust it", "", [el("ul", *items, class_="findings")])


def _function(c: RegressionContent) -> Section | None:
    names, target = c.summary.input_names, c.summary.target
    if c.curve is not None:
        lines = "; the thin lines are functions drawn from the posterior, without noise" if len(c.curve.draws) else ""
        thinned = drawn(len(c.curve.train[0]), c.curve.n_train, "training")
        thinned += drawn(len(c.held_out.shown), c.held_out.total, "held-out")
        caption = f"Bands hold a new measurement with the probability given{lines}. {thinned}"
        plot = Plot(figures.curve(c.curve, c.held_out, names[0], target), caption)
        return Section("function", "The function", "", [plot])
    if c.map is not None:
        dots = "Dots are training rows. " + drawn(len(c.map.train), c.map.n_train, "training")
        mean = Plot(figures.surface(c.map, "mean", names, target), f"The predicted mean of {target}. {dots}")
        spread = (
            "How uncertain that mean is: one standard deviation, noise left out. It grows away from the rows."
            if c.map.latent
            else "How far a new target may lie from it: one standard deviation."
        )
        std = Plot(figures.surface(c.map, "std", names, target), spread)
        return Section("function", "The function", "", [[mean, std]])
    return None


def _data(c: RegressionContent) -> Section:
    s = c.summary
    low, median, high, spread = c.target_range
    lead = (
        f"{count(s.n_train, 'row')} to learn from and {count(s.n_test, 'row')} held out, with "
        f"{count(len(s.input_names), 'input')}: {listing(s.input_names, most=30)}. In the training rows {s.target} "
        f"runs from {number(low)} to {number(high)}; its median is {number(median)}, its standard deviation "
        f"{number(spread)}."
    )
    notes = [el("ul", *[el("li", note) for note in c.data_notes], class_="notes")] if c.data_notes else []
    return Section("data", "The data", lead, notes)


def _metrics(c: RegressionContent) -> Section:
    return scores_section(c, METRICS, {"coverage"}, _difference)


def scores_section(
    c: Any, metrics: Sequence[Metric], shares: AbstractSet[str], difference: Callable[[Comparison], str]
) -> Section:
    """Metrics on held-out rows beside those of the baselines; ``shares`` are shown as percentages."""
    target = c.summary.target
    rows = []
    for metric in metrics:
        about = join([el("b", metric.name), el("small", metric.meaning.format(target=target))])
        values = [s.values[metric.key] for s in c.scores]
        best = _best(metric, values)
        shown = [percent(v) if metric.key in shares else number(v, decimals=metric.decimals) for v in values]
        cells = [el("span", text, class_="best") if i == best else text for i, text in enumerate(shown)]
        rows.append([about, *cells])
    head = ["Metric", "This model", *[s.name for s in c.scores[1:]]]
    scores = table(
        head, rows, "Metrics on held-out rows, of the model and of baselines", "metrics stack", range(1, len(head))
    )
    rivals = zip(c.scores[1:], c.comparisons, strict=True)
    others = [el("li", f"{s.name}: {s.note}. {difference(k)}") for s, k in rivals]
    lead = f"Computed on {count(c.summary.n_test, 'row')} that were not used to fit."
    if not others:
        return Section("metrics", "How good it is", lead, [scores])
    lead += " The star marks the best of the row."
    return Section("metrics", "How good it is", lead, [scores, el("ul", *others, class_="notes")])


def _best(metric: Metric, values: list[float]) -> int | None:
    """Position of the best value; none for a single one, nor for coverage and width, to be judged together only."""
    if len(values) < 2 or not metric.better or not np.any(np.isfinite(values)):
        return None
    return int(np.nanargmin(values if metric.better == "low" else np.negative(values)))


def difference(k: Comparison, figure: str, better: str, worse: str) -> str:
    """How a baseline's figure compares, and what that says of the model."""
    say = {"better": better, "worse": worse, "even": "these rows cannot tell the two apart"}[k.verdict]
    size = f"{number(abs(k.difference))} ± {number(k.standard_error, 2)}"
    return f"Its {figure} is {size} {'above' if k.difference >= 0 else 'below'} the model's: {say}."


def _difference(k: Comparison) -> str:
    return difference(k, "mean squared error", "the model is more accurate", "the model is less accurate")


def _predictions(c: RegressionContent) -> Section:
    target, held = c.summary.target, c.held_out
    scatter = Plot(
        figures.predicted_vs_actual(held, target),
        "Held-out rows with their 95 % bands; on the dashed line the prediction is right. "
        + drawn(len(held.shown), held.total, "held-out"),
    )
    curve = Plot(
        figures.calibration(c.calibration, held.total),
        "How many targets the bands really hold. On the dashed line the bands are honest, below it too narrow, above "
        f"it too wide; {held.total:,} rows of a calibrated model would stay in the grey area 95 % of the time.",
    )
    rows = [
        [
            f"{percent(a.level)} band",
            percent(a.observed),
            f"{percent(a.low)} to {percent(a.high)}",
            number(a.width),
            a.verdict,
        ]
        for a in c.calibration.at
    ]
    head = ["Band", "Holds", "Chance allows", "Mean width", "The band is"]
    coverage = table(head, rows, "Coverage of the bands", "stack", (1, 2, 3))
    lead = "A prediction is only as good as its error band: narrow, and right as often as it says."
    return Section("predictions", "Predictions and their bands", lead, [[scatter, curve], el("div", coverage)])


def _residuals(c: RegressionContent) -> Section:
    names = c.summary.input_names
    chosen = c.order[:MAX_RESIDUAL_INPUTS]
    plots = [Plot(figures.residuals(c.held_out, j, names[j]), f"Residuals along {names[j]}.") for j in chosen]
    lead = (
        "Actual minus predicted, in standard deviations of the prediction. A good model leaves a cloud without shape, "
        "with one row in twenty beyond the dashed lines. " + drawn(len(c.held_out.shown), c.held_out.total, "held-out")
    )
    return Section("residuals", "What is left over", lead, [plots])


def _relevance(c: RegressionContent) -> Section | None:
    names, target = c.summary.input_names, c.summary.target
    if len(names) < 2:
        return None
    ordered = [names[j] for j in c.order]
    figure = figures.relevance(ordered, c.relevance[list(c.order)], target)
    more = f" The first 20 of {len(names)} inputs are shown." if len(names) > 20 else ""
    caption = (
        f"By how much the predicted {target} typically changes when this input alone is replaced by that of another "
        "row (the square root of its total-effect variance). Interactions count; any kernel will do." + more
    )
    return Section("relevance", "Which inputs matter", "", [Plot(figure, caption)])


def _effects(c: RegressionContent) -> Section | None:
    if not c.effects:
        return None
    target = c.summary.target
    plots = [
        Plot(
            figures.effect(e, target if e.in_target_units else LATENT, c.held_out.X[:, e.feature]),
            f"Average over {count(e.n_rows, 'training row')}; ticks below are held-out rows.",
        )
        for e in c.effects
    ]
    lead = (
        f"The average prediction along one input, the others as they are in the data. Bands of 50, 80 and 95 % are the "
        f"uncertainty of this average, noise left out. Inputs with less than {percent(LEAST_RELEVANCE)} of the largest "
        "relevance are not shown."
    )
    return Section("effects", "What the inputs do", lead, [plots])


def _surprises(c: RegressionContent) -> Section | None:
    if c.surprises is None:
        return None
    rows = []
    for s in c.surprises:
        places = places_for(s.upper - s.lower)
        observed, expected, lower, upper = (
            number(v, decimals=places) for v in (s.observed, s.expected, s.lower, s.upper)
        )
        inputs = "; ".join(f"{name} {brief(value)}" for name, value in s.inputs)
        rows.append([s.row, observed, f"{expected} ({lower} to {upper})", number(s.z_score, decimals=2), inputs])
    lead = (
        "Each training row predicted from all the others. A score beyond ±3 is rare (about one row in 370): worth a "
        "look, for a slip in the data or for something the model does not know. Rows are counted from 0, or named by "
        "the index of the table."
    )
    head = ["Row", "Observed", "Expected (95 % band)", "Score", "Inputs, most relevant first"]
    return Section(
        "surprises", "Most surprising training rows", lead,
        [table(head, rows, "Training rows by leave-one-out score", "stack rows", (1, 2, 3))],
    )  # fmt: skip


def search_section(c: Any) -> Section | None:
    """How the search for hyperparameters went."""
    s = c.summary
    if s.converged is None or len(s.trace) < 2:
        return None
    steps = count(s.iterations, "iteration")
    caption = f"Log evidence of the training targets, in their own units. {s.message} {steps}, {duration(s.seconds)}."
    if len(s.starts) > 1:
        near = sum(abs(v - max(s.starts)) < 0.1 for v in s.starts)
        caption += f" {near} of {len(s.starts)} starts reached the best evidence to within 0.1."
    lead = "The hyperparameters are those of the largest evidence: the density the model gave to the training targets."
    return Section("search", "The search for hyperparameters", lead, [Plot(figures.trace(s.trace), caption)])


def hyperparameters_section(c: Any) -> Section:
    """The values found."""
    rows = [[join([h.name, el("small", f" {h.part}")]), number(h.value, 4), h.unit] for h in c.hyperparameters]
    head = ["Hyperparameter", "Value", "Unit"]
    blocks = [table(head, rows[:HYPERPARAMETERS_SHOWN], "Fitted hyperparameters", "stack plain", (1,))]
    rest = rows[HYPERPARAMETERS_SHOWN:MAX_HYPERPARAMETERS]
    if rest:
        more = table(head, rest, "More hyperparameters", "stack plain", (1,))
        blocks.append(el("details", el("summary", f"{len(rest)} more"), more))
    lead = (
        "In the units of the data. A length-scale is the distance along an input over which the function changes "
        "noticeably: long means smooth, or irrelevant."
    )
    if len(rows) > MAX_HYPERPARAMETERS:
        lead += f" {len(rows) - MAX_HYPERPARAMETERS} more are left out; see kernel_ of the model."
    return Section("hyperparameters", "Fitted hyperparameters", lead, blocks)


def drawn(shown: int, total: int, which: str) -> str:
    """Say so when not all rows are drawn."""
    return f"Drawn: {shown:,} of {total:,} {which} rows, chosen at random. " if shown < total else ""
