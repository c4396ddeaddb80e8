"""Metrics of predictions with error bands: accuracy, density, calibration, and scikit-learn scorers.

Every metric takes plain arrays of one shape, checks them, and returns a ``float`` averaged over the test points;
the CRPS and PIT functions return one value per point. NLPD is the quantity that some papers call MNLP.

The scorers (``neg_nlpd_scorer`` and its relatives, also by name in ``SCORERS`` and ``CLASS_SCORERS``) are called by
scikit-learn as ``scorer(estimator, X, y)``. scikit-learn knows no names but its own, so pass the functions,
``scoring=neg_nlpd_scorer``, or all of them, ``cross_validate(..., scoring=SCORERS)``. They ask the estimator for
``estimator.predictive(X)``, those of classifiers for ``estimator.predict_proba(X)``.
"""

from errorband.metrics.classification import (
    error_reject_curve,
    expected_calibration_error,
    information_bits,
    reliability_curve,
)
from errorband.metrics.regression import (
    calibration_curve,
    coverage,
    crps_gaussian,
    crps_quantile,
    crps_sample,
    gaussian_nlpd,
    gaussian_pit,
    interval_score,
    msll,
    nlpd,
    nmse,
    pit,
    rmse,
    width,
)
from errorband.metrics.scorers import (
    CLASS_SCORERS,
    SCORERS,
    coverage_scorer,
    get_scorer,
    information_scorer,
    neg_calibration_error_scorer,
    neg_crps_scorer,
    neg_nlpd_scorer,
    neg_rmse_scorer,
)

__all__ = [
    "CLASS_SCORERS",
    "SCORERS",
    "calibration_curve",
    "coverage",
    "coverage_scorer",
    "crps_gaussian",
    "crps_quantile",
    "crps_sample",
    "error_reject_curve",
    "expected_calibration_error",
    "gaussian_nlpd",
    "gaussian_pit",
    "get_scorer",
    "information_bits",
    "information_scorer",
    "interval_score",
    "msll",
    "neg_calibration_error_scorer",
    "neg_crps_scorer",
    "neg_nlpd_scorer",
    "neg_rmse_scorer",
    "nlpd",
    "nmse",
    "pit",
    "reliability_curve",
    "rmse",
    "width",
]
