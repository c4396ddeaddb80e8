"""Sections that reports of every kind have: header, findings, metrics, search, candidates, hyperparameters."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from errorband.estimators.candidates import Candidates
from errorband.reporting.page.document import Plot, Section, table
from errorband.reporting.page.markup import Html, el, join
from errorband.reporting.parts import figures
from errorband.reporting.parts.comparison import Comparison, Metric
from errorband.reporting.text import MISSING, count, duration, number, places_for

MAX_HYPERPARAMETERS = 60
HYPERPARAMETERS_SHOWN = 12


def header(c: Any, tiles: Sequence[tuple[str, str]]) -> Html:
    """The summary card of any report: verdict, figures and the parts of the model."""
    s = c.summary
    return el(
        "header",
        el("p", f"{s.estimator}: {s.target} from {count(len(s.input_names), 'input')}", class_="kicker"),
        el("h1", c.title),
        el("p", " ".join(c.verdict), class_="verdict"),
        el("dl", *[el("div", el("dt", k), el("dd", v)) for k, v in tiles if v != MISSING], class_="tiles"),
        el("dl", *[join([el("dt", name), el("dd", value)]) for name, value in s.parts.items()], class_="parts"),
    )


def footer(c: Any) -> str:
    """Who made this."""
    return f"Made with {c.summary.versions}. This file is complete in itself and opens without a network."


def findings_section(c: Any, hold: str) -> Section:
    """Warnings and notes; where there are none, that what should ``hold`` does."""
    if not c.findings:
        search = "" if c.summary.converged is None else "the search converged, "
        clear = f"Nothing stood out: {search}{hold}, and the data show no oddities."
        return Section("findings", "Before you trust it", "", [el("p", clear, class_="all-clear")])
    items = [
        el("li", el("strong", f.title), ". ", f.text, class_=f.level, aria_label=f"{f.level}: {f.title}")
        for f in c.findings
    ]
    return Section("findings", "Before you trust it", "", [el("ul", *items, class_="findings")])


def scores_section(
    c: Any, metrics: Sequence[Metric], shares: AbstractSet[str], difference: Callable[[Comparison], str]
) -> Section:
    """Metrics on held-out rows beside those of the baselines; ``shares`` are shown as percentages."""
    target = c.summary.target
    rows = []
    for metric in metrics:
        about = join([el("b", metric.name), el("small", metric.meaning.format(target=target))])
        values = [s.values[metric.key] for s in c.scores]
        shown = [
            _with_error(metric, value, s.errors.get(metric.key, np.nan), metric.key in shares)
            for s, value in zip(c.scores, values, strict=True)
        ]
        best = [shown[i][0] for i in _best(metric, values)]  # others that look the same are as good
        cells = [join([el("span", text, class_="best") if text in best else text, error]) for text, error in shown]
        rows.append([about, *cells])
    head = ["Metric", "This model", *[s.name for s in c.scores[1:]]]
    scores = table(
        head, rows, "Metrics on held-out rows, of the model and of baselines", "metrics stack", range(1, len(head))
    )
    rivals = zip(c.scores[1:], c.comparisons, strict=True)
    others = [el("li", f"{s.name}: {s.note}. {difference(k)}") for s, k in rivals]
    lead = (
        f"Computed on {count(c.summary.n_test, 'row')} that were not used to fit; ± is one standard error, what chance "
        "does with so many rows."
    )
    if not others:
        return Section("metrics", "How good it is", lead, [scores])
    lead += " The star marks the best of the row, which chance may have chosen: the sentences below say where."
    return Section("metrics", "How good it is", lead, [scores, el("ul", *others, class_="notes")])


def _best(metric: Metric, values: list[float]) -> list[int]:
    """Positions of the best value; none for a single one, nor for coverage and width, to be judged together only."""
    if len(values) < 2 or not metric.better or not np.any(np.isfinite(values)):
        return []
    signed = np.asarray(values if metric.better == "low" else np.negative(values))
    return np.flatnonzero(signed == np.nanmin(signed)).tolist()


def _with_error(metric: Metric, value: float, error: float, share: bool) -> tuple[str, Html]:
    """A value, and its standard error to as many digits."""
    if share:
        text = f"{100 * value:.1f} %" if np.isfinite(value) else MISSING
        tail = f"{100 * error:.1f}" if np.isfinite(error) else ""
    else:
        places = metric.decimals if metric.decimals is not None else places_for(value)
        text = number(value, decimals=metric.decimals)
        tail = number(error, 2, decimals=places) if np.isfinite(error) and np.isfinite(value) else ""
    return text, el("small", f" ± {tail}") if tail else Html()


def difference(k: Comparison, figure: str, better: str, worse: str) -> str:
    """Return a sentence that compares the metric called ``figure`` of a baseline with that of the model."""
    say = {"better": better, "worse": worse, "even": "these rows cannot tell the two apart"}[k.verdict]
    size = f"{number(abs(k.difference))} ± {number(k.standard_error, 2)}"
    return f"Its {figure} is {size} {'above' if k.difference >= 0 else 'below'} the model's: {say}."


def search_section(c: Any) -> Section | None:
    """Return the section about the search for hyperparameters; None if there was none to show."""
    s = c.summary
    if s.converged is None or len(s.trace) < 2:
        return None
    steps = count(s.iterations, "iteration")
    if s.iterations > len(s.trace):
        steps += " of all searches together, of which the best is drawn"
    caption = f"Log evidence of the training targets, in their own units. {s.message} {steps}; {duration(s.seconds)}."
    if len(s.starts) > 1:
        near = sum(abs(v - max(s.starts)) < 0.1 for v in s.starts)
        caption += f" {near} of {len(s.starts)} starts reached the best evidence to within 0.1."
    lead = "The hyperparameters are those of the largest evidence: the density the model gave to the training targets."
    return Section("search", "The search for hyperparameters", lead, [Plot(figures.trace(s.trace), caption)])


def candidates_section(c: Any) -> Section | None:
    """Return the section about what "auto" chose from; None if nothing was left to it."""
    found: Candidates | None = c.summary.candidates
    if found is None:
        return None
    head = ["Candidate", "Log evidence", "Score", "Leave-one-out log density", *["Share"] * bool(found.share)]
    rows = [[el("strong", name) if kept else name, *figures] for name, kept, *figures in candidate_rows(found)]
    on_all = f", those of all rows to {found.n_rows[-1]}" if found.n_rows[-1] > found.n_rows[0] else ""
    lead = (
        f"Fitted to {count(found.n_rows[0], 'row')}{on_all}. The score is the log evidence less ½ log n for each "
        "number that is learned; the highest wins, unless another predicts each row from the others better, by more "
        "than two standard errors. The choice of each kind is bold."
    )
    if found.share:
        lead += (
            " Predictions are a mixture of the candidates, with the shares that predict each row from the others best; "
            "the search and the hyperparameters shown here are those of the bold one."
        )
    numeric = tuple(range(1, len(head)))
    return Section("candidates", "What was tried", lead, [table(head, rows, "Candidates", "stack", numeric)])


def candidate_rows(found: Candidates) -> list[tuple[Any, ...]]:
    """Name, whether it was chosen, and as text log evidence, score, mean leave-one-out log density, share if mixed."""
    columns = found.argument, found.name, found.chosen, found.log_evidence, found.score, found.loo
    rows = [
        (f"{argument} {name}", kept, number(evidence, decimals=1), number(score, decimals=1), number(loo, decimals=3))
        for argument, name, kept, evidence, score, loo in zip(*columns, strict=True)
    ]
    shares = [(f"{100 * share:.0f} %",) for share in found.share] or [()] * len(rows)
    return [(*row, *share) for row, share in zip(rows, shares, strict=True)]


def hyperparameters_section(c: Any) -> Section | None:
    """The values found; None if there are none."""
    if not c.hyperparameters:
        return None
    rows = [[join([h.name, el("small", f" {h.part}")]), number(h.value, 4), h.unit] for h in c.hyperparameters]
    head = ["Hyperparameter", "Value", "Unit"]
    blocks = [table(head, rows[:HYPERPARAMETERS_SHOWN], "Fitted hyperparameters", "stack plain", (1,))]
    rest = rows[HYPERPARAMETERS_SHOWN:MAX_HYPERPARAMETERS]
    if rest:
        more = table(head, rest, "More hyperparameters", "stack plain", (1,))
        blocks.append(el("details", el("summary", f"{len(rest)} more"), more))
    lead = (
        "In the units of the data. A length-scale is the distance along an input over which the function bends: far "
        "longer than the data means a straight line, steep or level. How much an input matters is said above."
    )
    if len(rows) > MAX_HYPERPARAMETERS:
        lead += f" {len(rows) - MAX_HYPERPARAMETERS} more are left out; see kernel_ of the model."
    return Section("hyperparameters", "Fitted hyperparameters", lead, blocks)


def drawn(shown: int, total: int, which: str) -> str:
    """Return a sentence that says how many rows are drawn; empty if all are."""
    return f"Drawn: {shown:,} of {total:,} {which} rows, chosen at random. " if shown < total else ""
