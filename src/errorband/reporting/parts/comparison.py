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
    errors : dict of str to float
        Standard errors of these values, by the same keys: what chance does with so many held-out rows. NaN where it is
        not known.
    losses : dict of str to array (n,)
        Of the held-out rows, by the key of the metric that averages them, for paired comparisons.
    """

    name: str
    note: str
    values: dict[str, float]
    errors: dict[str, float]
    losses: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean loss of a baseline minus that of the model, on the same rows; ``metric`` is the key of the loss.

    ``verdict`` is "better" (the model is), "worse" or "even": within two standard errors of the difference.
    """

    baseline: str
    metric: str
    difference: float
    standard_error: float

    @property
    def verdict(self) -> str:
        """Who is more accurate, or nobody that these rows could tell."""
        if abs(self.difference) <= 2 * self.standard_error:
            return "even"
        return "better" if self.difference > 0 else "worse"


def paired(model: Scores, baseline: Scores, metric: str) -> Comparison:
    """Comparison of the losses, row by row."""
    difference = baseline.losses[metric] - model.losses[metric]
    error = standard_error(difference) if len(difference) > 1 else np.inf
    return Comparison(baseline.name, metric, float(np.mean(difference)), error)


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean of independent values; NaN for fewer than two.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
