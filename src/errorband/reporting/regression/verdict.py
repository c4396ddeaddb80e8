"""The verdict on a regressor: a few sentences about its accuracy, its rivals and its bands."""

from collections.abc import Sequence

import numpy as np

from errorband.reporting.parts.comparison import Comparison, Scores
from errorband.reporting.parts.coverage import FEW_ROWS, RIGHT, TOO_NARROW, TOO_WIDE, CoverageAt
from errorband.reporting.regression.calibration import shape_of_errors
from errorband.reporting.text import count, listing, number, percent


def verdict(
    scores: Scores,
    accuracy: Sequence[Comparison],
    density: Sequence[Comparison],
    coverages: Sequence[CoverageAt],
    target: str,
    y: np.ndarray,
) -> list[str]:
    """Return the model in a few sentences: accuracy, baselines, bands.

    ``accuracy`` compares by squared error, or by absolute error where the model's noise allows for rows far off;
    ``density`` by what the bands say of the held-out targets (NLPD).
    """
    robust = any(c.metric == "mae" for c in accuracy)
    first = _typical_error(scores, target, y) if robust else _explained(scores, target, len(y))
    sentences = (first, against_baselines(accuracy, density), bands(coverages, len(y)))
    return [s[0].upper() + s[1:] for s in sentences if s]


def _explained(scores: Scores, target: str, n: int) -> str:
    r2, error = scores.values["r2"], scores.errors["r2"]
    if not np.isfinite(r2):
        return f"The held-out values of {target} are all the same."
    if r2 <= 0:
        return f"On held-out rows it predicts {target} no better than a constant would."
    rough = f" (give or take {percent(error)})" if error > 0.05 else ""
    return f"It explains {percent(r2)}{rough} of the variation of {target} in {count(n, 'held-out row')}."


def _typical_error(scores: Scores, target: str, y: np.ndarray) -> str:
    """Half of the errors, which rows far off do not move."""
    half, constant = np.median(scores.losses["mae"]), np.median(np.abs(y - np.median(y)))
    return (
        f"Half of its predictions of {target} are within {number(half)} of the truth in {count(len(y), 'held-out row')}"
        f", where a constant would be within {number(constant)}."
    )


def against_baselines(accuracy: Sequence[Comparison], density: Sequence[Comparison]) -> str:
    """How accurate it is beside the baselines, and whether its bands say more than theirs where that differs."""
    phrases = {
        "better": "more accurate than {}",
        "even": "about as accurate as {} (the difference could be chance)",
        "worse": "less accurate than {}",
    }
    told = f"it is {listing(parts)}" if (parts := _parts(accuracy, phrases)) else ""
    by_name = {c.baseline: c.verdict for c in accuracy}
    differs = [c for c in density if c.verdict != "even" and c.verdict != by_name.get(c.baseline)]
    phrases = {"better": "better than those of {}", "worse": "worse than those of {}"}
    more = _parts(differs, phrases)
    if more:
        told += f"{' and ' if told else ''}its bands describe held-out rows {listing(more)}"
    return f"{told}." if told else ""


def _parts(comparisons: Sequence[Comparison], phrases: dict[str, str]) -> list[str]:
    rivals = [c for c in comparisons if c.baseline != "Training mean"]
    named = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in phrases}
    return [phrases[v].format(listing(names)) for v, names in named.items() if names]


def bands(coverages: Sequence[CoverageAt], n: int) -> str:
    """What the coverage says of the bands: wrong outside the sure range of chance, doubtful outside the 95 % range."""
    outer = coverages[-1]
    held = f"its {percent(outer.level)} bands hold {percent(outer.observed)} of the targets"
    if n < FEW_ROWS:
        return f"{held}, on rows too few to judge them closely."
    wrong = [c for c in coverages if c.verdict in (TOO_NARROW, TOO_WIDE)]
    if wrong:
        others = [c for c in wrong if c is not outer]
        if others:
            held += f" and its {percent(others[0].level)} bands {percent(others[0].observed)}"
        return f"{held}: {diagnosis(coverages, n)}."
    doubtful = [c for c in coverages if c.verdict != RIGHT]
    if not doubtful:
        return f"{held}, as calibrated bands would on so many rows, give or take chance."
    worst = doubtful[-1]
    if worst is not outer:
        held += f" and its {percent(worst.level)} bands {percent(worst.observed)}"
    allowed = f"{percent(worst.low)} to {percent(worst.high)}"
    return f"{held}, where chance would leave calibrated {percent(worst.level)} bands at {allowed}: {worst.verdict}."


def diagnosis(coverages: Sequence[CoverageAt], n: int) -> str:
    """What is wrong with bands of which some are: their shape, or their scale."""
    shape = shape_of_errors(coverages, n)
    if shape == "heavy":
        return (
            "errors have heavy tails, most of them smaller than the bands say and a few far larger, so a likelihood "
            "with heavier tails would describe them better"
        )
    if shape == "light":
        return "errors have light tails, none of them far larger than the usual ones"
    narrow = any(c.verdict == TOO_NARROW for c in coverages)
    return "too narrow, it is overconfident" if narrow else "too wide, it is more cautious than it need be"
