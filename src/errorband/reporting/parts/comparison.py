"""Held-out metrics of a model and of baselines, and comparisons of the two row by row."""

import dataclasses

import numpy as np

MAX_BOOSTING_ROWS = 100_000  # which take a quarter of a minute; beyond, the baseline is not worth the wait
EXACT_BOOSTING_ROWS = 2_000  # up to here trees split on every value, above on histograms


@dataclasses.dataclass(frozen=True)
class Metric:
    """A row of the table of scores: ``better`` is "low" or "high", or empty where neither is."""

    key: str
    name: str
    meaning: str
    better: str
    decimals: int | None = None


@dataclasses.dataclass(frozen=True)
class Scores:
    """Metrics of one way to predict.

    Attributes
    ----------
    name, note : str
        Who predicts, and where its error band comes from.
    values : dict of str to float
        By the key of a :class:`Metric`; NaN where it is not defined.
    losses : array (n,)
        Of the held-out rows, for paired comparisons: squared errors, or log losses of class probabilities.
    """

    name: str
    note: str
    values: dict[str, float]
    losses: np.ndarray


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean loss of a baseline minus that of the model, on the same rows.

    ``verdict`` is "better" (the model is), "worse" or "even": within two standard errors of the difference.
    """

    baseline: str
    difference: float
    standard_error: float

    @property
    def verdict(self) -> str:
        """Who is more accurate, or nobody that these rows could tell."""
        if abs(self.difference) <= 2 * self.standard_error:
            return "even"
        return "better" if self.difference > 0 else "worse"


def paired(model: Scores, baseline: Scores) -> Comparison:
    """Comparison of the losses, row by row."""
    difference = baseline.losses - model.losses
    error = float(np.std(difference, ddof=1) / np.sqrt(len(difference))) if len(difference) > 1 else np.inf
    return Comparison(baseline.name, float(np.mean(difference)), error)
