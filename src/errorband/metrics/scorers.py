"""Scorers for cross_val_score, GridSearchCV and similar functions."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from errorband.metrics.checks import PredictiveLike, as_level, floats, same_shape
from errorband.metrics.classification import expected_calibration_error, information_bits
from errorband.metrics.regression import coverage, crps_quantile, nlpd, rmse

Scorer = Callable[[Any, Any, ArrayLike], float]


def inside(estimator: Any, *rows: Any) -> tuple[Any, ...]:
    """The final estimator of searches and pipelines, which do not forward its methods, and rows as it sees them."""
    if hasattr(estimator, "best_estimator_"):
        return inside(estimator.best_estimator_, *rows)
    if not hasattr(estimator, "steps"):
        return estimator, *rows
    seen = (X if X is None or len(estimator) == 1 else estimator[:-1].transform(X) for X in rows)
    return inside(estimator[-1], *seen)


def _predictive(estimator: Any, X: Any) -> PredictiveLike:
    """Predictive distribution at X of the estimator inside searches and pipelines."""
    if hasattr(estimator, "predictive"):
        return estimator.predictive(X)
    last, X = inside(estimator, X)
    if hasattr(last, "predictive"):
        return last.predictive(X)
    raise TypeError(
        f"estimator must have a predictive(X) method; got {type(last).__name__}. Use an errorband estimator, or "
        "one of scikit-learn's own scorers."
    )


def neg_nlpd_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    r"""Mean log predictive density, :math:`\frac1n \sum_i \log p(y_i \mid x_i)`; larger is better.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> predictive = Stub(log_density=lambda y: -np.abs(y))
    >>> neg_nlpd_scorer(Stub(predictive=lambda X: predictive), [[0], [1]], [1.0, 2.0])
    -1.5
    """
    y = floats("y", y)
    _, log_density = same_shape(y=y, log_density=_predictive(estimator, X).log_density(y))
    return -nlpd(log_density)


def neg_rmse_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    r"""Negative root mean squared error of the predictive mean; larger is better.

    The score is :math:`-\sqrt{\frac1n \sum_i (y_i - m_i)^2}`.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> predictive = Stub(mean=np.zeros(2))
    >>> neg_rmse_scorer(Stub(predictive=lambda X: predictive), [[0], [1]], [3.0, -3.0])
    -3.0
    """
    return -rmse(y, _predictive(estimator, X).mean)


def neg_crps_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    r"""Negative mean continuous ranked probability score; larger is better.

    It holds for any predictive distribution, by quadrature over its quantiles :math:`q_i(\tau)`:

    .. math:: -\frac1n \sum_i \int_0^1 2 \max\{\tau (y_i - q_i(\tau)), (\tau - 1) (y_i - q_i(\tau))\} \, d\tau

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> predictive = Stub(quantile=lambda q: np.full(2, q))  # uniform on [0, 1]
    >>> round(neg_crps_scorer(Stub(predictive=lambda X: predictive), [[0], [1]], [0.0, 1.0]), 6)
    -0.333333
    """
    return -float(np.mean(crps_quantile(y, _predictive(estimator, X).quantile)))


def coverage_scorer(estimator: Any, X: Any, y: ArrayLike, *, level: float = 0.95) -> float:
    r"""Observed coverage of the central bands of nominal coverage ``level``.

    .. math:: \frac1n \sum_i 1\{q_i(\tfrac{1 - \text{level}}{2}) \le y_i \le q_i(\tfrac{1 + \text{level}}{2})\}

    Compare it with ``level``; for another one pass ``functools.partial(coverage_scorer, level=0.8)``. It is for
    reporting, not for choosing a model: the widest bands always cover the most.

    Parameters
    ----------
    estimator, X, y
        As scikit-learn passes them.
    level : float
        Nominal coverage, strictly between 0 and 1.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> predictive = Stub(quantile=lambda q: np.full(2, q))  # uniform on [0, 1]
    >>> coverage_scorer(Stub(predictive=lambda X: predictive), [[0], [1]], [0.5, 0.95], level=0.8)
    0.5
    """
    level, predictive = as_level(level), _predictive(estimator, X)
    return coverage(y, predictive.quantile((1 - level) / 2), predictive.quantile((1 + level) / 2))


def information_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    r"""Information of a classifier's probabilities over the training class frequencies, in bits; larger is better.

    .. math:: \frac1n \sum_i \log_2 p(y_i \mid x_i) - \log_2 f(y_i)

    The frequencies are the estimator's ``class_prior_``, as :class:`~errorband.GPClassifier` has them.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> share = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> model = Stub(classes_=np.array(["a", "b"]), class_prior_=np.array([0.5, 0.5]), predict_proba=lambda X: share)
    >>> round(information_scorer(model, [[0], [1]], ["a", "b"]), 3)
    0.763
    """
    (last,) = inside(estimator)
    if not hasattr(last, "class_prior_"):
        raise TypeError(
            f"estimator must remember its class frequencies as class_prior_; got {type(last).__name__}. Use "
            "errorband's GPClassifier, or the scorer 'neg_log_loss' of scikit-learn."
        )
    classes, y = np.asarray(estimator.classes_), np.asarray(y)
    if not (known := np.isin(y, classes)).all():
        raise ValueError(
            f"y must hold only labels of the training rows, {classes.tolist()}; got also "
            f"{np.unique(y[~known]).tolist()}. Stratify the folds, so that each has every class."
        )
    at = np.argmax(y[:, None] == classes, axis=1)
    share = np.asarray(estimator.predict_proba(X))[np.arange(len(y)), at]
    return information_bits(np.maximum(share, np.finfo(float).tiny), np.asarray(last.class_prior_)[at])


def neg_calibration_error_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Negative expected calibration error of a classifier's probabilities, in ten bins; larger is better.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> share = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> neg_calibration_error_scorer(Stub(classes_=[0, 1], predict_proba=lambda X: share), [[0], [1]], [0, 0])
    -0.25
    """
    return -expected_calibration_error(y, estimator.predict_proba(X), estimator.classes_)


SCORERS: dict[str, Scorer] = {
    "neg_nlpd": neg_nlpd_scorer,
    "neg_rmse": neg_rmse_scorer,
    "neg_crps": neg_crps_scorer,
    "coverage_50": partial(coverage_scorer, level=0.50),
    "coverage_90": partial(coverage_scorer, level=0.90),
    "coverage_95": partial(coverage_scorer, level=0.95),
}
CLASS_SCORERS: dict[str, Scorer] = {
    "information": information_scorer,
    "neg_calibration_error": neg_calibration_error_scorer,
}


def get_scorer(name: str) -> Scorer:
    """The scorer of that name in ``SCORERS`` or ``CLASS_SCORERS``.

    Examples
    --------
    >>> get_scorer("neg_nlpd") is neg_nlpd_scorer
    True
    >>> get_scorer("nlpd")
    Traceback (most recent call last):
    ValueError: name must be one of neg_nlpd, neg_rmse, ...; got 'nlpd'. Did you mean 'neg_nlpd'?
    """
    known = SCORERS | CLASS_SCORERS
    if name in known:
        return known[name]
    near = get_close_matches(str(name), known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "Pick one of them, or pass a scorer function where one is taken."
    raise ValueError(f"name must be one of {', '.join(known)}; got {name!r}. {hint}")
