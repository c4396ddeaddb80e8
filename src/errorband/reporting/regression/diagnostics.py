"""Where a regressor errs: coverage in parts of the data, and the pattern of its errors from row to row."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import kruskal

from errorband.inputs import Input
from errorband.reporting.parts.coverage import FEW_ROWS, RIGHT, TOO_NARROW, TOO_WIDE, CoverageAt, judged
from errorband.reporting.parts.data import RowNames
from errorband.reporting.parts.findings import Finding
from errorband.reporting.regression.calibration import shape_of_errors
from errorband.reporting.regression.verdict import diagnosis
from errorband.reporting.text import brief, count, listing, number, percent

OUTLIERS, TOGETHER = "Outliers", "Neighbouring rows err together"
WILD = 4.0  # a normal score beyond is worth a look: one in 16,000 by chance
LEAST_GROUP = 15  # rows that a part of the data needs to be judged
SURE = 0.001  # probability of a false alarm, for all looks at the errors of one report together
UNEQUAL = 1.4  # ratio of typical errors that is worth mentioning


@dataclasses.dataclass(frozen=True)
class Group:
    """Coverage of the 95 % bands in a part of the held-out rows."""

    where: str
    n: int
    coverage: CoverageAt


def parts_of(column: Input, values: np.ndarray, n_parts: int) -> Iterator[tuple[str, np.ndarray]]:
    """Parts of the data along an input: its levels, or ranges with about as many rows each; those with enough rows."""
    distinct = np.unique(values[~np.isnan(values)])
    if column.levels or len(distinct) <= n_parts:
        ranges = [(v, v) for v in distinct]
    else:
        edges = np.quantile(values[~np.isnan(values)], np.linspace(0, 1, n_parts + 1), method="inverted_cdf")
        ranges = list(itertools.pairwise(edges))
    for k, (low, high) in enumerate(ranges):
        own = (values >= low) & ((values <= high) if k == len(ranges) - 1 or low == high else (values < high))
        if own.sum() >= LEAST_GROUP:
            ends = column.shown(low, brief) + ("" if low == high else f" to {column.shown(high, brief)}")
            yield f"{column.name} {ends}", own


def conditional_coverage(
    held: np.ndarray, predicted: np.ndarray, X: np.ndarray, columns: Sequence[Input], target: str
) -> tuple[Group, ...]:
    """Coverage by the predicted size, by the inputs given, and for rows with missing cells and without.

    ``held`` (n,) says whether each target lies in its band, 0 to 1.
    """
    found = list(parts_of(Input.number(f"predicted {target}", 0), predicted, 3))
    for column in columns:
        found += parts_of(column, column.values(X), 3)
    gone = np.isnan(X).any(axis=1)
    if gone.any():
        found += [(w, m) for w, m in (("complete rows", ~gone), ("rows with missing cells", gone)) if m.sum() >= 5]
    return tuple(
        Group(where, int(own.sum()), judged(0.95, float(held[own].mean()), np.nan, int(own.sum()), len(found)))
        for where, own in found
    )


def band_findings(coverages: Sequence[CoverageAt], groups: Sequence[Group], n: int) -> list[Finding]:
    """Return findings about bands that do not hold, anywhere or in a part of the data."""
    found: list[Finding] = []
    if n < FEW_ROWS:
        text = f"With {count(n, 'held-out row')} the metrics and the coverage are rough."
        found.append(Finding("note", "Few held-out rows", text))
    wrong = [c for c in coverages if c.verdict in (TOO_NARROW, TOO_WIDE)]
    doubtful = [c for c in coverages if c.verdict != RIGHT and c not in wrong]
    if wrong and n >= FEW_ROWS:
        shape = shape_of_errors(coverages, n)
        title = {"heavy": "Heavy tails", "light": "Light tails"}.get(shape, f"Bands {wrong[-1].verdict}")
        parts = [f"the {percent(c.level)} band holds {percent(c.observed)} of the targets" for c in wrong]
        text = f"{_capital(listing(parts))}: {diagnosis(coverages, n)}."
        found.append(Finding("warning", title, text))
    elif doubtful:
        parts = [
            f"the {percent(c.level)} band holds {percent(c.observed)} of the targets, where chance allows a calibrated "
            f"one {percent(c.low)} to {percent(c.high)}"
            for c in doubtful
        ]
        found.append(Finding("note", f"Bands {doubtful[-1].verdict}", f"{_capital(listing(parts))}."))
    narrow = [g for g in groups if g.coverage.verdict == TOO_NARROW]
    if narrow and not any(c.verdict == TOO_NARROW for c in coverages):
        parts = [f"where {g.where} it holds {percent(g.coverage.observed)} ({count(g.n, 'row')})" for g in narrow]
        text = f"The 95 % band holds too few targets in a part of the data: {listing(parts)}."
        found.append(Finding("warning", "Bands too narrow in places", text))
    return found


def spread_findings(std: np.ndarray) -> list[Finding]:
    """Return a word on predictions without a standard deviation, which have bands all the same."""
    if np.all(np.isfinite(std)):
        return []
    text = (
        "The tails of the noise are so heavy that predictions have no standard deviation (it is infinite). Their bands "
        "are as good as ever: use these."
    )
    return [Finding("note", "No standard deviation", text)]


def error_findings(
    z: np.ndarray,
    predicted: np.ndarray,
    X: np.ndarray,
    columns: Sequence[Input],
    target: str,
    names: RowNames,
    gaussian: bool = True,
    own: np.ndarray | None = None,
) -> list[Finding]:
    """Return what leave-one-out scores z of the training rows say: outliers, heavy tails, unequal errors, bursts.

    Another noise is advised only where it is ``gaussian``. Outliers go by the scores ``own`` to the model's noise, if
    bands have another shape. Where errors are larger in one part of the data an outlier is far from what is typical of
    its part, and rows of a burst are named there: neither is an outlier for being where it is.
    """
    found: list[Finding] = []
    unequal, along = _unequal(z, predicted, X, columns, target, gaussian)
    burst = _burst(z, names)
    size = np.abs(z if own is None else own)
    if along is not None:
        size = size / np.maximum(_local_deviation(size, *along), 1.0)
    wild = np.flatnonzero((size > WILD) & ~names.among([name for finding in burst for name in finding.about]))
    if len(wild):
        wild = wild[np.argsort(-size[wild], kind="stable")]
        lie, them = ("lies", "it") if len(wild) == 1 else ("lie", "them")
        text = (
            f"{count(len(wild), 'training row')} {lie} more than four standard deviations from what the other rows "
            f"predict: {names.listed(wild)}. Look for errors in {them}"
            f"{', or use a likelihood with heavier tails' if gaussian else ''}."
        )
        found.append(Finding("warning", OUTLIERS, text, tuple(names.names[wild])))
    return found + _tails(z) + unequal + burst


def _tails(z: np.ndarray) -> list[Finding]:
    levels = (0.5, 0.99)
    at = [judged(p, float(np.mean(np.abs(z) <= ndtri(0.5 + p / 2))), np.nan, len(z), 10) for p in levels]
    if at[0].verdict != TOO_WIDE or shape_of_errors(at, len(z)) != "heavy":
        return []
    text = (
        f"Of the training rows, {percent(at[0].observed)} lie within the band that should hold half of them, and yet "
        f"{percent(1 - at[1].observed)} lie outside the one that should hold 99 %: {diagnosis(at, len(z))}."
    )
    return [Finding("note", "Heavy tails of the noise", text)]


def _unequal(
    z: np.ndarray, predicted: np.ndarray, X: np.ndarray, columns: Sequence[Input], target: str, gaussian: bool
) -> tuple[list[Finding], tuple[Input, np.ndarray] | None]:
    """Errors larger in one part of the data than in another, by the test of Kruskal and Wallis on their sizes.

    With the input along which they are, and its values, if so.
    """
    size = np.abs(z)
    looks = [(Input.number(f"the prediction of {target}", 0), predicted), *[(c, c.values(X)) for c in columns]]
    best: tuple[float, str, Any] = (SURE / len(looks), "", None)
    for column, values in looks:
        parts = list(parts_of(column, values, 4))
        if len(parts) < 2:
            continue
        typical = [float(np.median(size[own])) for _, own in parts]
        low, high = int(np.argmin(typical)), int(np.argmax(typical))
        p = float(kruskal(*[size[own] for _, own in parts]).pvalue)
        if p < best[0] and typical[high] > UNEQUAL * typical[low]:
            ratio = f"{number(typical[high] / max(typical[low], 1e-12), 2)} times"
            best = p, f"Where {parts[high][0]}, errors are {ratio} as large as where {parts[low][0]}", (column, values)
    if not best[1]:
        return [], None
    text = f"{best[1]}, compared with what the bands say: they are too narrow in one place and too wide in the other."
    if gaussian:
        text += " Let the noise vary with the inputs (HeteroscedasticGaussian), or predict the logarithm."
    return [Finding("warning", "Errors are not equally large everywhere", text)], best[2]


def _local_deviation(size: np.ndarray, column: Input, values: np.ndarray) -> np.ndarray:
    """Standard deviation of errors at each row's place along an input, from their sizes: of its level, or by a curve.

    The curve is a parabola through the logarithms, which a few large errors hardly move. Of a normal variable with
    standard deviation σ, log |z| has the mean log σ − ½(log 2 + γ).

    Examples
    --------
    >>> x = np.linspace(0, 1, 2000)
    >>> size = np.exp(2 * x) * np.abs(np.random.default_rng(0).normal(size=2000))
    >>> _local_deviation(size, Input.number("x", 0), x)[[0, 1000, 1999]].round(1)
    array([1.1, 2.7, 8.5])
    """
    known, logs = np.isfinite(values), np.log(np.maximum(size, 1e-3)) + 0.5 * (np.log(2) + np.euler_gamma)
    found = np.full(len(size), np.mean(logs))
    if column.levels or len(np.unique(values[known])) < LEAST_GROUP:
        for value in np.unique(values[known]):
            found[values == value] = np.mean(logs[values == value])
    else:
        found[known] = np.polynomial.Polynomial.fit(values[known], logs[known], 2)(values[known])
    return np.exp(found)


def _burst(z: np.ndarray, names: RowNames) -> list[Finding]:
    """Rows that stand together in the table and err to the same side: the largest sum over windows of several sizes."""
    bounded = np.clip(z, -3, 3)
    sums = np.concatenate([[0.0], np.cumsum(bounded)])
    sizes = [w for w in (4, 6, 9, 14, 20, 30, 45) if 3 * w <= len(z)]
    if not sizes:
        return []
    limit = -ndtri(SURE / (2 * len(sizes) * len(z)))
    best, where = limit, None
    for w in sizes:
        score = (sums[w:] - sums[:-w]) / np.sqrt(w)
        i = int(np.argmax(np.abs(score)))
        if abs(score[i]) > best:
            best, where = abs(float(score[i])), (i, w)
    if where is None:
        return []
    i, w = where
    own = z[i : i + w]
    side = "above" if own.mean() > 0 else "below"
    text = (
        f"The {w} training rows from {names.names[i]} to {names.names[i + w - 1]} lie {number(abs(own.mean()), 2)} "
        f"standard deviations {side} what the others predict, on average. Look for what they have in common (a day, a "
        "batch, an instrument) that no input says."
    )
    return [Finding("warning", TOGETHER, text, tuple(names.names[i : i + w]))]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
