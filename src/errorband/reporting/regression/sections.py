"""The header and the sections of a report on a regression, made from its content."""

from errorband.estimators.hyperparameters import LATENT
from errorband.reporting.page.document import Plot, Section, table
from errorband.reporting.page.markup import Html, el
from errorband.reporting.parts import figures as parts_figures
from errorband.reporting.parts.basis.sections import basis_section
from errorband.reporting.parts.comparison import Comparison
from errorband.reporting.parts.coverage import CoverageAt
from errorband.reporting.parts.data import LEAST_RELEVANCE, described
from errorband.reporting.parts.inducing.sections import inducing_section
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
from errorband.reporting.regression import figures
from errorband.reporting.regression.build import MAX_RESIDUAL_INPUTS
from errorband.reporting.regression.content import RegressionContent
from errorband.reporting.regression.scores import METRICS
from errorband.reporting.text import count, duration, listing, number, percent, places_for

MAX_SUSPECTS = 40


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


def regression_sections(c: RegressionContent) -> list[Section]:
    """All sections, in the order of reading."""
    parts = (
        findings_section(c, "the bands hold"), _function(c), _data(c), _metrics(c), _predictions(c), _residuals(c),
        _relevance(c), _effects(c), _suspects(c), _surprises(c), search_section(c), candidates_section(c),
        inducing_section(c.inducing, c.summary.feature_names),
        relevance_vectors_section(c.relevance_vectors, c.summary.feature_names),
        basis_section(c.basis),
        hyperparameters_section(c),
    )  # fmt: skip
    return [section for section in parts if section is not None]


def _function(c: RegressionContent) -> Section | None:
    names, target = c.summary.input_names, c.summary.target
    rings = " Rings mark suspected outliers, which are listed below." if len(c.suspects.y) else ""
    if c.curve is not None:
        lines = "; the thin lines are functions drawn from the posterior, without noise" if len(c.curve.draws) else ""
        thinned = drawn(len(c.curve.train[0]), c.curve.n_train, "training")
        thinned += drawn(len(c.held_out.shown), c.held_out.total, "held-out")
        caption = f"Bands hold a new measurement with the probability given{lines}. {thinned}"
        plot = Plot(figures.curve(c.curve, c.held_out, c.suspects, names[0], target), caption + rings)
        return Section("function", "The function", "", [plot])
    if c.map is not None:
        dots = "Dots are training rows. " + drawn(len(c.map.train), c.map.n_train, "training")
        mean = Plot(
            figures.surface(c.map, "mean", c.suspects, names, target), f"The predicted mean of {target}. {dots}{rings}"
        )
        spread = (
            "How uncertain that mean is: one standard deviation, noise left out. It grows away from the rows."
            if c.map.latent
            else "How far a new target may lie from it: one standard deviation."
        )
        std = Plot(figures.surface(c.map, "std", c.suspects, names, target), spread)
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
    of_density = {k.baseline: k for k in c.densities}

    def compared(k: Comparison) -> str:
        by = "mean absolute error" if k.metric == "mae" else "mean squared error"
        accuracy = difference(k, by, "the model is more accurate", "the model is less accurate")
        bands = "the model's bands say more", "the model's bands say less"
        return f"{accuracy} {difference(of_density[k.baseline], 'NLPD', *bands)}"

    return scores_section(c, METRICS, {"coverage"}, compared)


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
    rows = [[f"{percent(a.level)} band", *_coverage(a), number(a.width), a.verdict] for a in c.calibration.at]
    head = ["Band", "Holds", "Chance allows", "Mean width", "The band is"]
    blocks = [[scatter, curve], el("div", table(head, rows, "Coverage of the bands", "stack", (1, 2, 3)))]
    if c.groups:
        parts = [[g.where, f"{g.n:,}", *_coverage(g.coverage), g.coverage.verdict] for g in c.groups]
        head = ["In a part of the data", "Rows", "95 % band holds", "Chance allows", "The band is"]
        shown = table(head, parts, "Coverage in parts of the data", "stack", (1, 2, 3))
        blocks.append(el("details", el("summary", "Coverage in parts of the data"), shown, open="open"))
    lead = "A prediction is only as good as its error band: narrow, and right as often as it says, everywhere."
    return Section("predictions", "Predictions and their bands", lead, blocks)


def _coverage(a: CoverageAt) -> list[str]:
    return [percent(a.observed), f"{percent(a.low).removesuffix(' %')} to {percent(a.high)}"]


def _residuals(c: RegressionContent) -> Section:
    held, target = c.held_out, c.summary.target
    plots = [
        Plot(figures.residuals_by_prediction(held, target), "Along the prediction: a funnel means unequal noise."),
        Plot(
            figures.quantiles(c.calibration.scores),
            "Sorted, against what a calibrated model would leave. An S that is steep at the ends means heavy tails.",
        ),
    ]
    chosen = [c.columns[j] for j in c.order[:MAX_RESIDUAL_INPUTS]]
    plots += [Plot(figures.residuals(held, column), f"Along {column.name}.") for column in chosen]
    lead = (
        "Actual minus predicted, in standard deviations of the prediction (normal scores where it is not normal). A "
        "good model leaves a cloud without shape, with one row in twenty beyond the dashed lines. "
        + drawn(len(held.shown), held.total, "held-out")
    )
    return Section("residuals", "What is left over", lead, [plots])


def _relevance(c: RegressionContent) -> Section | None:
    names, target = c.summary.input_names, c.summary.target
    if len(names) < 2:
        return None
    ordered = [names[j] for j in c.order]
    figure = parts_figures.relevance(ordered, c.relevance[list(c.order)])
    more = f" The first 20 of {len(names)} inputs are shown." if len(names) > 20 else ""
    caption = (
        f"By how much the predicted {target} typically changes when this input alone is replaced by that of another "
        "row (the square root of its total-effect variance). Interactions count." + more
    )
    return Section("relevance", "Which inputs matter", "", [Plot(figure, caption)])


def _effects(c: RegressionContent) -> Section | None:
    if not c.effects:
        return None
    target = c.summary.target
    plots = [
        Plot(
            figures.effect(e, target if e.in_target_units else LATENT, e.input.values(c.held_out.X)),
            f"Along {e.input.name}.",
        )
        for e in c.effects
    ]
    background = count(c.effects[0].n_rows, "training row")
    bands = "Bands of 50, 80 and 95 % are the uncertainty of this average, noise left out. "
    lead = (
        f"The average prediction along one input, the others as they are in {background}; ticks below are held-out "
        f"rows. {bands if c.effects[0].banded else ''}Inputs with less than {percent(LEAST_RELEVANCE)} of the largest "
        "relevance are not shown."
    )
    return Section("effects", "What the inputs do", lead, [plots])


def _suspects(c: RegressionContent) -> Section | None:
    """Rows that findings call outliers, alone or in bursts."""
    s = c.suspects
    if not len(s.y):
        return None
    shown = list(zip(s.names, s.y, s.why, s.X, strict=True))[:MAX_SUSPECTS]
    rows = []
    for name, y, why, row in shown:
        inputs = "; ".join(f"{n} {value}" for n, value in described(c.columns, c.order[:4], row))
        rows.append([str(name), number(y), why, inputs])
    more = f" {len(s.y) - len(shown)} more are not listed." if len(s.y) > len(shown) else ""
    lead = f"Training rows that findings above call outliers, alone or in bursts, in the order of the table.{more}"
    head = ["Row", c.summary.target, "It is", "Inputs, most relevant first"]
    return Section(
        "suspects", "Suspected outliers", f"{lead} {c.rows_told}",
        [table(head, rows, "Suspected outliers among the training rows", "stack rows", (1,))],
    )  # fmt: skip


def _surprises(c: RegressionContent) -> Section | None:
    if c.surprises is None:
        return None
    rows = []
    whole = all(v == round(v) for s in c.surprises for v in (s.observed, s.lower, s.upper))  # counts
    for s in c.surprises:
        places = places_for(s.upper - s.lower)
        observed, lower, upper = (number(v, decimals=0 if whole else places) for v in (s.observed, s.lower, s.upper))
        expected = number(s.expected, decimals=places)
        inputs = "; ".join(f"{name} {value}" for name, value in s.inputs)
        rows.append([s.row, observed, f"{expected} ({lower} to {upper})", number(s.z_score, decimals=2), inputs])
    lead = (
        "Each training row predicted from all the others. A score beyond ±3 is rare (about one row in 370 under "
        "Gaussian predictions, more under heavy-tailed ones): worth a look, for a slip in the data or something the "
        f"model does not know. {c.rows_told}"
    )
    head = ["Row", "Observed", "Expected (95 % band)", "Score", "Inputs, most relevant first"]
    return Section(
        "surprises", "Most surprising training rows", lead,
        [table(head, rows, "Training rows by leave-one-out score", "stack rows", (1, 2, 3))],
    )  # fmt: skip
