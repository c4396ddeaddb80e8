"""How good a fitted regressor is on held-out rows: metrics beside those of baselines, coverage, and a verdict."""

import dataclasses
from typing import Any

import numpy as np

from errorband import effects, missing
from errorband.missing import Donors
from errorband.predictive import Predictive
from errorband.reporting.parts.comparison import Comparison, Scores, paired
from errorband.reporting.parts.data import check_rows, training
from errorband.reporting.regression.baselines import baseline_scores
from errorband.reporting.regression.calibration import Calibration, calibrate
from errorband.reporting.regression.scores import score
from errorband.reporting.regression.verdict import verdict


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
    comparisons, densities : tuples of Comparison
        The model against each baseline, by its errors and by its predictive density.
    calibration : Calibration
        Coverage of the bands.
    verdict : tuple of str
        The model in two or three sentences.
    """

    y: np.ndarray
    predictive: Predictive
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    densities: tuple[Comparison, ...]
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
    donors: Donors | None = None,
) -> RegressionAssessment:
    """Predict held-out rows, train the baselines and compare; arguments as in :func:`errorband.reporting.report`."""
    train_X, train_y = training(model, X_train, y_train, as_numbers)
    test_X, y = effects.inputs(model, X_test), as_numbers(y_test)
    check_rows(test_X, y, "test")
    predictive = missing.predictive(model, test_X, donors)
    own = score(type(model).__name__, "this model", y, predictive, train_y)
    filled = test_X if donors is None else donors.filled(test_X)
    others = baseline_scores(train_X, train_y, filled, y) if baselines else []
    comparisons = tuple(paired(own, other, "mae" if expects_outliers(model) else "rmse") for other in others)
    densities = tuple(paired(own, other, "nlpd") for other in others)
    calibration = calibrate(y, predictive)
    sentences = verdict(own, comparisons, densities, calibration.at, target, y)
    return RegressionAssessment(y, predictive, (own, *others), comparisons, densities, calibration, tuple(sentences))


def expects_outliers(model: Any) -> bool:
    """Whether the noise is additive but not plainly normal: then a few rows far off must not decide what is said."""
    likelihood = getattr(model, "likelihood_", None)  # an estimator of another kind has none
    return likelihood is not None and likelihood.location_scale and not likelihood.conjugate


def as_numbers(y: Any) -> np.ndarray:
    """Targets as an array of floats (n,)."""
    return np.asarray(y, dtype=np.float64).ravel()
