"""How many targets error bands hold, and how many they may hold by chance."""

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import binom

FEW_ROWS = 30  # with fewer held-out rows neither coverage nor metrics can be judged closely
TOO_NARROW, PERHAPS_TOO_NARROW, RIGHT = "too narrow", "perhaps too narrow", "right"
PERHAPS_TOO_WIDE, TOO_WIDE = "perhaps too wide", "too wide"


@dataclasses.dataclass(frozen=True)
class CoverageAt:
    """Observed coverage of the central band of a nominal level.

    ``low`` and ``high`` enclose, with probability 95 %, what a calibrated model would show on so many rows;
    ``surely_low`` and ``surely_high`` with 99 % for all levels of a report together.
    """

    level: float
    observed: float
    width: float
    low: float
    high: float
    surely_low: float
    surely_high: float

    @property
    def verdict(self) -> str:
        """Return "right" inside the 95 % range of chance, "too …" outside the surer range, else "perhaps too …"."""
        if self.observed < self.low:
            return TOO_NARROW if self.observed < self.surely_low else PERHAPS_TOO_NARROW
        if self.observed > self.high:
            return TOO_WIDE if self.observed > self.surely_high else PERHAPS_TOO_WIDE
        return RIGHT


def judged(level: float, observed: float, width: float, n: int, looks: int = 1) -> CoverageAt:
    """Return an observed coverage with what chance allows on n rows; ``looks`` are as many as are judged together.

    With several looks the sure range is as wide as to hold all of them with 99 % (Bonferroni), so that a calibrated
    model is called wrong once in a hundred reports and not once in a hundred looks.
    """
    limits = (*coverage_range(n, level, 0.95), *coverage_range(n, level, 1 - 0.01 / looks))
    return CoverageAt(level, observed, width, *map(float, limits))


def coverage_range(n: int | np.ndarray, level: float | np.ndarray, confidence: float) -> tuple[Any, Any]:
    """Between which shares of n rows a calibrated band of this level covers, with this probability."""
    tail = (1 - confidence) / 2
    return binom.ppf(tail, n, level) / n, binom.ppf(1 - tail, n, level) / n
