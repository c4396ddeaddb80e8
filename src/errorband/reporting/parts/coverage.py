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
    ``surely_low`` and ``surely_high`` with 99 %.
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
        """Return "right" inside the 95 % range of chance, "too …" outside the 99 % range, else "perhaps too …"."""
        if self.observed < self.low:
            return TOO_NARROW if self.observed < self.surely_low else PERHAPS_TOO_NARROW
        if self.observed > self.high:
            return TOO_WIDE if self.observed > self.surely_high else PERHAPS_TOO_WIDE
        return RIGHT


def coverage_range(n: int | np.ndarray, level: float | np.ndarray, confidence: float) -> tuple[Any, Any]:
    """Between which shares of n rows a calibrated band of this level covers, with this probability."""
    tail = (1 - confidence) / 2
    return binom.ppf(tail, n, level) / n, binom.ppf(1 - tail, n, level) / n
