"""How good a fitted regressor is on held-out rows: metrics beside those of baselines, coverage, and a verdict."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.predictive import Predictive
from errorband.reporting.parts.comparison import Comparison, Scores, paired
from errorband.reporting.parts.coverage import FEW_ROWS, RIGHT, TOO_NARROW, TOO_WIDE, CoverageAt, coverage_range
from errorband.reporting.parts.data import check_rows, training
from errorband.reporting.regression.baselines import baseline_scores
from errorband.reporting.regression.scores import score
from errorband.reporting.text import count, listing, percent

LEVELS = (0.5, 0.8, 0.95)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Observed against nominal coverage; ``low`` and ``high`` as in :class:`CoverageAt`."""

    levels: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    at: tuple[CoverageAt, ...]


@dataclasses.dataclass(frozen=True)
class RegressionAssessment:
    """What held-out rows say about a regressor.

    Attributes
    ----------
    y : array (n,)
        The held-out targets.
    predictive : Predictive
        Their predictive distributions.
    scores : tuple of Scores
        Metrics of the model, then of the baselines.
    comparisons : tuple of Comparison
        The model against each baseline.
    calibration : Calibration
        Coverage of the bands.
    verdict : tuple of str
        The model in two or three sentences.
    """

    y: np.ndarray
    predictive: Predictive
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    calibration: Calibration
    verdict: tuple[str, ...]


def assess_regression(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    baselines: bool = True,
    target: str = "target",
) -> RegressionAssessment:
    """Predict held-out rows, train the baselines and compare; arguments as in :func:`errorband.reporting.report`."""
    train_X, train_y = training(model, X_train, y_train, as_numbers)
    test_X, y = effects.inputs(model, X_test), as_numbers(y_test)
    check_rows(test_X, y, "test")
    predictive: Predictive = model.predictive(X_test)
    own = score(type(model).__name__, "this model", y, predictive, train_y)
    others = baseline_scores(train_X, train_y, test_X, y) if baselines else []
    comparisons = tuple(paired(own, other) for other in others)
    calibration = calibrate(y, predictive)
    sentences = verdict(own, comparisons, calibration.at, target, len(y))
    return RegressionAssessment(y, predictive, (own, *others), comparisons, calibration, tuple(sentences))


def as_numbers(y: Any) -> np.ndarray:
    """Targets as an array of floats (n,)."""
    return np.asarray(y, dtype=np.float64).ravel()


def calibrate(y: np.ndarray, predictive: Predictive) -> Calibration:
    """Return the coverage of the central bands at all levels, and the range chance allows a calibrated model."""
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    low, high = coverage_range(len(y), levels, 0.95)
    at = []
    for level in LEVELS:
        lower, upper = predictive.interval(level)
        limits = (*coverage_range(len(y), level, 0.95), *coverage_range(len(y), level, 0.99))
        covered, wide = metrics.coverage(y, lower, upper), metrics.width(lower, upper)
        at.append(CoverageAt(level, covered, wide, *map(float, limits)))
    return Calibration(levels, observed, low, high, tuple(at))


def verdict(
    scores: Scores, comparisons: Sequence[Comparison], coverages: Sequence[CoverageAt], target: str, n_test: int
) -> list[str]:
    """Return the model in two or three sentences: accuracy, baselines, bands."""
    sentences = (_accuracy(scores, target, n_test), _against_baselines(comparisons), _bands(coverages, n_test))
    return [s[0].upper() + s[1:] for s in sentences if s]


def _accuracy(scores: Scores, target: str, n_test: int) -> str:
    r2 = scores.values["r2"]
    if not np.isfinite(r2):
        return f"The held-out values of {target} are all the same."
    if r2 <= 0:
        return f"On held-out rows it predicts {target} no better than a constant would."
    return f"It explains {percent(r2)} of the variation of {target} in {count(n_test, 'held-out row')}."


def _against_baselines(comparisons: Sequence[Comparison]) -> str:
    rivals = [c for c in comparisons if c.baseline != "Training mean"]
    by_verdict = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in ("better", "even", "worse")}
    phrases = {
        "better": "more accurate than {}",
        "even": "about as accurate as {} (the difference could be chance)",
        "worse": "less accurate than {}",
    }
    parts = [phrases[v].format(listing(names)) for v, names in by_verdict.items() if names]
    return f"it is {listing(parts)}." if parts else ""


def _bands(coverages: Sequence[CoverageAt], n_test: int) -> str:
    """What the coverage says of the bands: wrong outside the 99 % range of chance, doubtful outside the 95 % range."""
    outer = coverages[-1]
    held = f"its {percent(outer.level)} bands hold {percent(outer.observed)} of the targets"
    if n_test < FEW_ROWS:
        return f"{held}, on rows too few to judge them closely."
    wrong = {c.verdict for c in coverages} & {TOO_NARROW, TOO_WIDE}
    if len(wrong) > 1:
        return f"{held}, but its bands are too wide at one level and too narrow at another."
    if wrong:
        so = "overconfident" if TOO_NARROW in wrong else "more cautious than it need be"
        return f"{held}, but its bands are {wrong.pop()}: it is {so}."
    doubtful = [c for c in coverages if c.verdict != RIGHT]
    if not doubtful:
        return f"{held}, as calibrated bands would on so many rows, give or take chance."
    worst = doubtful[-1]
    if worst is not outer:
        held += f" and its {percent(worst.level)} bands {percent(worst.observed)}"
    allowed = f"{percent(worst.low)} to {percent(worst.high)}"
    return f"{held}, where chance would leave calibrated ones at {allowed}: they are {worst.verdict}."
