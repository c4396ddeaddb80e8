"""Calibration of predictive distributions of numbers: coverage, normal scores, and what their shape says."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from errorband import metrics
from errorband.predictive import GaussianPredictive, Predictive
from errorband.reporting.parts.coverage import CoverageAt, coverage_range, judged

LEVELS = (0.5, 0.8, 0.95)
CURVE_LEVELS = np.arange(1, 20) / 20


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Observed against nominal coverage; ``low`` and ``high`` as in :class:`CoverageAt`, ``scores`` normal scores."""

    levels: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    at: tuple[CoverageAt, ...]
    scores: np.ndarray


def calibrate(y: np.ndarray, predictive: Predictive) -> Calibration:
    """Return the coverage of the central bands at all levels, and the range chance allows a calibrated model."""
    bounds = pit_bounds(y, predictive)
    low, high = coverage_range(len(y), CURVE_LEVELS, 0.95)
    observed = np.array([float(np.mean(inside(bounds, level))) for level in CURVE_LEVELS])
    at = []
    for level in LEVELS:
        width = metrics.width(*predictive.interval(level))
        at.append(judged(level, float(np.mean(inside(bounds, level))), width, len(y), len(LEVELS)))
    return Calibration(CURVE_LEVELS, observed, low, high, tuple(at), normal_scores(y, predictive))


def pit_bounds(y: np.ndarray, predictive: Predictive) -> tuple[np.ndarray, np.ndarray]:
    """P(target < y) and P(target ≤ y) of each row: they differ for counts, and are equal for densities."""
    upper = metrics.pit(y, predictive)
    if not _discrete(predictive):
        return upper, upper
    with np.errstate(over="ignore"):
        return np.clip(upper - np.exp(predictive.log_density(y)), 0.0, 1.0), upper


def inside(bounds: tuple[np.ndarray, np.ndarray], level: float) -> np.ndarray:
    """Return how much of each target lies in its central band: 0 or 1 for a density.

    The band of a count cannot hold exactly 95 %: it ends at whole numbers, and holds more. So each count stands for the
    whole step from P(target < y) to P(target ≤ y), and is inside with the share of it between the two quantiles. For
    calibrated predictions these shares average to the level.
    """
    (below, upto), (first, last) = bounds, (0.5 - level / 2, 0.5 + level / 2)
    step = upto - below
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(np.minimum(upto, last) - np.maximum(below, first), 0.0, None) / step
    return np.where(step > 1e-12, share, ((upto >= first) & (upto <= last)).astype(float))


def normal_scores(y: np.ndarray, predictive: Predictive) -> np.ndarray:
    """Return z = Φ⁻¹(P(target ≤ y)): standard normal for calibrated predictions of any shape.

    (y − mean)/std for normal predictions. Heavy tails need no finite variance for it; a count is placed at random
    within its step, by a fixed seed.
    """
    if isinstance(predictive, GaussianPredictive):
        return (y - predictive.mean) / predictive.std
    below, upto = pit_bounds(y, predictive)
    placed = below + np.random.default_rng(0).random(len(y)) * (upto - below)
    return ndtri(np.clip(placed, 1e-15, 1 - 1e-15))


def own_scores(z: np.ndarray, model: Any) -> np.ndarray:
    """Return the scores in the shape that the noise of the model has by itself.

    Outliers give bands the heavy tails of Student's distribution (``bands_``), in which they would not be seen.
    """
    bands = getattr(model, "bands_", None)
    if bands is None:
        return z
    size = np.abs(z) if np.isinf(bands.df) else -stdtrit(bands.df, ndtr(-np.abs(z)))
    return bands.stretch * np.sign(z) * size


def shape_of_errors(coverages: Any, n: int) -> str:
    """Return "heavy" or "light" tails, or "scale" where one factor for all bands would mend their coverage.

    The factor that mends the innermost band says what the outermost should hold; chance allows a range around it.
    """
    inner, outer = coverages[0], coverages[-1]
    held = np.clip(inner.observed, 0.5 / n, 1 - 0.5 / n)
    factor = ndtri(0.5 + inner.level / 2) / ndtri(0.5 + held / 2)
    expected = 2 * ndtr(ndtri(0.5 + outer.level / 2) / factor) - 1
    low, high = coverage_range(n, float(expected), 0.95)
    return "heavy" if outer.observed < low else "light" if outer.observed > high else "scale"


def _discrete(predictive: Any) -> bool:
    return getattr(predictive, "support", "real") in ("count", "categorical") or hasattr(predictive, "values")
