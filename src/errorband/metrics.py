"""How good a prediction with an error band is: accuracy, density, calibration, and scikit-learn scorers.

Every metric takes plain arrays of one shape, checks them, and returns a ``float`` averaged over the test points;
the CRPS and PIT functions return one value per point. NLPD is the quantity that some papers call MNLP.

The scorers (``neg_nlpd_scorer`` and its relatives, also by name in ``SCORERS``) are called by scikit-learn as
``scorer(estimator, X, y)`` and ask the estimator for ``estimator.predictive(X)``.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, ndtr

__all__ = [
    "SCORERS",
    "calibration_curve",
    "coverage",
    "coverage_scorer",
    "crps_gaussian",
    "crps_sample",
    "error_reject_curve",
    "expected_calibration_error",
    "gaussian_nlpd",
    "gaussian_pit",
    "get_scorer",
    "information_bits",
    "interval_score",
    "msll",
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

Array = NDArray[np.float64]
Scorer = Callable[[Any, Any, ArrayLike], float]


class _Predictive(Protocol):
    """The part of a predictive distribution that metrics read."""

    @property
    def mean(self) -> Any: ...
    def quantile(self, q: float, /) -> Any: ...
    def log_density(self, y: Any, /) -> Any: ...
    def cdf(self, y: Any, /) -> Any: ...


# --------------------------------------------------------------------------------------------------------------------
# Checks


def _floats(name: str, values: ArrayLike) -> Array:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of numbers; got {type(values).__name__} ({error}). Convert it to floats first."
        ) from error
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one value; got shape {array.shape}. Pass a non-empty test set.")
    if bad := np.count_nonzero(~np.isfinite(array)):
        raise ValueError(
            f"{name} must be finite; got {bad} NaN or infinite of {array.size} values. Drop those points, or find out "
            "why the model returned them, before scoring."
        )
    return array


def _arrays(**named: ArrayLike) -> list[Array]:
    """The named inputs as finite float arrays of one common shape (nothing is broadcast)."""
    arrays = [_floats(name, values) for name, values in named.items()]
    if len({array.shape for array in arrays}) > 1:
        came = ", ".join(f"{name} {array.shape}" for name, array in zip(named, arrays, strict=True))
        raise ValueError(
            f"{', '.join(named)} must have the same shape; got {came}. Pass one value per test point in each "
            "(ravel() turns a column into a vector)."
        )
    return arrays


def _scalar(name: str, value: ArrayLike) -> Array:
    array = _floats(name, value)
    if array.size != 1:
        raise ValueError(f"{name} must be a single number; got shape {array.shape}. Pass its value over all targets.")
    return array.reshape(())


def _positive(name: str, array: Array) -> Array:
    if array.min() <= 0:
        raise ValueError(
            f"{name} must be positive; got a smallest value of {array.min():g}. Give it a small floor, or find out "
            "where the zero or negative value comes from."
        )
    return array


def _unit(name: str, array: Array) -> Array:
    """Probabilities, forgiven for rounding just outside [0, 1]."""
    if array.min() < -1e-6 or array.max() > 1 + 1e-6:
        raise ValueError(
            f"{name} must lie in [0, 1]; got values from {array.min():g} to {array.max():g}. Pass probabilities, "
            "not percentages, logits or log probabilities."
        )
    return np.clip(array, 0.0, 1.0)


def _level(level: float) -> float:
    if not 0 < (value := float(_scalar("level", level))) < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {value:g}. For a 95% band pass 0.95.")
    return value


def _ordered(lower: Array, upper: Array) -> None:
    if crossed := np.count_nonzero(lower > upper):
        raise ValueError(
            f"lower must not exceed upper; got {crossed} of {lower.size} bands crossed. Check the order of the "
            "arguments: lower comes before upper."
        )


# --------------------------------------------------------------------------------------------------------------------
# Accuracy of the mean


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Root mean squared error, :math:`\sqrt{\frac1n \sum_i (y_i - m_i)^2}`.

    Parameters
    ----------
    y, mean : array-like of one shape
        Observed targets and predicted means.

    Examples
    --------
    >>> rmse([0.0, 0.0], [3.0, -3.0])
    3.0
    """
    y, mean = _arrays(y=y, mean=mean)
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def nmse(y: ArrayLike, mean: ArrayLike, y_train_mean: float | None = None) -> float:
    r"""Normalised mean squared error, :math:`\sum_i (y_i - m_i)^2 / \sum_i (y_i - \bar y_{\text{train}})^2`.

    One is as good as always predicting the training mean, zero is perfect.

    Parameters
    ----------
    y, mean : array-like of one shape
        Observed targets and predicted means.
    y_train_mean : float, optional
        Mean of the training targets; the mean of ``y`` if not given.

    Examples
    --------
    >>> nmse([1.0, 3.0], [1.0, 2.0], y_train_mean=1.0)
    0.25
    """
    y, mean = _arrays(y=y, mean=mean)
    baseline = np.mean((y - (y.mean() if y_train_mean is None else _scalar("y_train_mean", y_train_mean))) ** 2)
    if baseline == 0:
        raise ValueError(
            f"y must vary about the training mean for nmse; got {y.size} values all equal to it. Use rmse instead."
        )
    return float(np.mean((y - mean) ** 2) / baseline)


# --------------------------------------------------------------------------------------------------------------------
# Predictive density


def nlpd(log_density: ArrayLike) -> float:
    r"""Negative log predictive density (MNLP), :math:`-\frac1n \sum_i \log p(y_i \mid x_i)`, in nats.

    Parameters
    ----------
    log_density : array-like
        Log predictive density of each observed target.

    Examples
    --------
    >>> nlpd([-1.0, -2.0])
    1.5
    """
    return float(-np.mean(_floats("log_density", log_density)))


def gaussian_nlpd(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Negative log predictive density of Gaussian predictions.

    .. math:: \frac1n \sum_i \tfrac12 \log(2\pi s_i^2) + \frac{(y_i - m_i)^2}{2 s_i^2}

    Parameters
    ----------
    y, mean, std : array-like of one shape
        Observed targets, predicted means, and predicted standard deviations of the targets (noise included).

    Examples
    --------
    >>> round(gaussian_nlpd([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.1689
    """
    y, mean, std = _arrays(y=y, mean=mean, std=std)
    z = (y - mean) / _positive("std", std)
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(std) + 0.5 * z**2))


def msll(y: ArrayLike, mean: ArrayLike, std: ArrayLike, y_train_mean: float, y_train_var: float) -> float:
    r"""Mean standardised log loss: the Gaussian NLPD minus that of a Gaussian fitted to the training targets.

    .. math:: -\frac1n \sum_i \log N(y_i; m_i, s_i^2) - \log N(y_i; \bar y_{\text{train}}, v_{\text{train}})

    Zero is as good as ignoring the inputs; below zero is better.

    Parameters
    ----------
    y, mean, std : array-like of one shape
        Observed targets, predicted means, and predicted standard deviations of the targets (noise included).
    y_train_mean, y_train_var : float
        Mean and variance of the training targets.

    Examples
    --------
    >>> msll([0.0, 1.0], [0.5, 0.5], [2.0, 2.0], y_train_mean=0.5, y_train_var=4.0)
    0.0
    """
    loss = gaussian_nlpd(y, mean, std)
    centre = np.full(np.shape(y), _scalar("y_train_mean", y_train_mean))
    spread = np.full(np.shape(y), np.sqrt(_positive("y_train_var", _scalar("y_train_var", y_train_var))))
    return loss - gaussian_nlpd(y, centre, spread)


# --------------------------------------------------------------------------------------------------------------------
# Bands


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    r"""Share of targets inside their band, :math:`\frac1n \sum_i 1\{l_i \le y_i \le u_i\}`.

    Parameters
    ----------
    y, lower, upper : array-like of one shape
        Observed targets and the ends of their bands (the ends count as inside).

    Examples
    --------
    >>> coverage([0.0, 1.0, 5.0, 2.0], [-1.0, 0.0, 0.0, 2.0], [1.0, 2.0, 2.0, 3.0])
    0.75
    """
    y, lower, upper = _arrays(y=y, lower=lower, upper=upper)
    _ordered(lower, upper)
    return float(np.mean((lower <= y) & (y <= upper)))


def width(lower: ArrayLike, upper: ArrayLike) -> float:
    r"""Mean width of the bands, :math:`\frac1n \sum_i u_i - l_i`.

    Parameters
    ----------
    lower, upper : array-like of one shape
        The ends of the bands.

    Examples
    --------
    >>> width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    lower, upper = _arrays(lower=lower, upper=upper)
    _ordered(lower, upper)
    return float(np.mean(upper - lower))


def interval_score(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, level: float) -> float:
    r"""Mean interval score of Gneiting and Raftery (2007); smaller is better.

    .. math:: \frac1n \sum_i (u_i - l_i) + \frac{2}{1 - \text{level}} \left[(l_i - y_i)_+ + (y_i - u_i)_+\right]

    Its expectation is least when the ends are the central quantiles of the truth, so it rewards narrow bands and
    charges for the targets they miss.

    Parameters
    ----------
    y, lower, upper : array-like of one shape
        Observed targets and the ends of their bands.
    level : float
        Nominal coverage of the bands, strictly between 0 and 1.

    Examples
    --------
    >>> interval_score([0.5, 3.0], [0.0, 0.0], [1.0, 1.0], level=0.5)
    5.0
    """
    y, lower, upper = _arrays(y=y, lower=lower, upper=upper)
    _ordered(lower, upper)
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - _level(level)) * missed))


# --------------------------------------------------------------------------------------------------------------------
# Calibration


def pit(y: ArrayLike, predictive: _Predictive) -> Array:
    r"""Probability integral transform :math:`F_i(y_i)` of each target; uniform if the predictions are calibrated.

    Parameters
    ----------
    y : array-like
        Observed targets.
    predictive : object with ``cdf(y)``
        Predictive distribution of the targets.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> pit([0.5, 1.0], uniform(loc=0.0, scale=2.0))
    array([0.25, 0.5 ])
    """
    y = _floats("y", y)
    _, values = _arrays(y=y, cdf=predictive.cdf(y))
    return _unit("cdf", values)


def gaussian_pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    r"""Probability integral transform of Gaussian predictions, :math:`\Phi((y_i - m_i) / s_i)`.

    Parameters
    ----------
    y, mean, std : array-like of one shape
        Observed targets, predicted means, and predicted standard deviations of the targets (noise included).

    Examples
    --------
    >>> gaussian_pit([0.0, 1.96], [0.0, 0.0], [1.0, 1.0]).round(3)
    array([0.5  , 0.975])
    """
    y, mean, std = _arrays(y=y, mean=mean, std=std)
    return ndtr((y - mean) / _positive("std", std))


def calibration_curve(pit: ArrayLike, levels: ArrayLike | None = None) -> tuple[Array, Array]:
    r"""Observed coverage of the central intervals of each nominal level.

    A target lies in its central interval of level :math:`p` just when :math:`|F_i(y_i) - \tfrac12| \le p/2`.

    Parameters
    ----------
    pit : array-like
        Probability integral transform of each target, from :func:`pit` or :func:`gaussian_pit`.
    levels : array-like, optional
        Nominal coverages in [0, 1]; 0.05, 0.10, ..., 0.95 if not given.

    Returns
    -------
    levels, observed : ndarray of one shape
        Equal, up to sampling noise, for calibrated predictions; ``observed`` falls below for overconfident ones.

    Examples
    --------
    >>> levels, observed = calibration_curve([0.1, 0.35, 0.5, 0.95], levels=[0.25, 0.5, 0.85])
    >>> observed
    array([0.25, 0.5 , 0.75])
    """
    nominal = np.arange(1, 20) / 20 if levels is None else _unit("levels", _floats("levels", levels))
    reach = np.sort(2 * np.abs(_unit("pit", _floats("pit", pit)).ravel() - 0.5))
    return nominal, np.searchsorted(reach, nominal, side="right") / reach.size


# --------------------------------------------------------------------------------------------------------------------
# Continuous ranked probability score


def crps_gaussian(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    r"""Continuous ranked probability score of Gaussian predictions, per point; smaller is better.

    .. math:: \int (F(x) - 1\{x \ge y\})^2 \, dx
        = s \left[ z \, (2\Phi(z) - 1) + 2\varphi(z) - \pi^{-1/2} \right], \quad z = (y - m) / s

    Parameters
    ----------
    y, mean, std : array-like of one shape
        Observed targets, predicted means, and predicted standard deviations of the targets (noise included).

    Examples
    --------
    >>> crps_gaussian([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]).round(4)
    array([0.2337, 0.6024])
    """
    y, mean, std = _arrays(y=y, mean=mean, std=std)
    z = (y - mean) / _positive("std", std)
    return (y - mean) * erf(z / np.sqrt(2)) + std * (np.sqrt(2) * np.exp(-0.5 * z**2) - 1) / np.sqrt(np.pi)


def crps_sample(y: ArrayLike, samples: ArrayLike) -> Array:
    r"""Continuous ranked probability score from draws, per point: the unbiased ("fair") estimate.

    .. math:: \frac1S \sum_s |x_s - y| - \frac{1}{2 S (S - 1)} \sum_{s,t} |x_s - x_t|

    Sorting the draws brings the double sum down to :math:`O(S \log S)`. Its expectation over draws is the CRPS of the
    distribution they come from, whatever their number; so with few draws a single value may fall below zero.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed targets.
    samples : array-like of shape (n_draws, n)
        At least two draws from each predictive distribution.

    Examples
    --------
    >>> crps_sample([0.0, 4.0], [[-1.0, 1.0], [1.0, 1.0], [3.0, 1.0]])
    array([0.33333333, 3.        ])
    """
    y, samples = _floats("y", y), _floats("samples", samples)
    if samples.shape[1:] != y.shape or samples.ndim != y.ndim + 1 or len(samples) < 2:
        raise ValueError(
            f"samples must have shape (n_draws, *{y.shape}) with n_draws >= 2 to match y; got {samples.shape}. "
            "Put the draws along the first axis, and draw more than one."
        )
    error = np.sort(samples - y, axis=0)  # about y, so that a large common offset costs no digits
    draws = len(error)
    rank = 2 * np.arange(draws) + 1 - draws  # sum over pairs of |x_s - x_t|, each pair once, is rank @ sorted
    return np.mean(np.abs(error), axis=0) - np.tensordot(rank, error, axes=1) / (draws * (draws - 1))


# --------------------------------------------------------------------------------------------------------------------
# Classification


def information_bits(proba_of_true_class: ArrayLike, train_class_frequencies_of_true_class: ArrayLike) -> float:
    r"""Information gained about the test labels over the training class frequencies, in bits; larger is better.

    .. math:: \frac1n \sum_i \log_2 p(y_i \mid x_i) - \log_2 f(y_i)

    Parameters
    ----------
    proba_of_true_class : array-like of shape (n,)
        Predicted probability of the class each test point turned out to have.
    train_class_frequencies_of_true_class : array-like of shape (n,)
        Share of that class among the training labels.

    Examples
    --------
    >>> information_bits([1.0, 0.5], [0.5, 0.5])
    0.5
    """
    arrays = _arrays(
        proba_of_true_class=proba_of_true_class,
        train_class_frequencies_of_true_class=train_class_frequencies_of_true_class,
    )
    names = ("proba_of_true_class", "train_class_frequencies_of_true_class")
    proba, frequency = (_positive(name, _unit(name, array)) for name, array in zip(names, arrays, strict=True))
    return float(np.mean(np.log2(proba) - np.log2(frequency)))


def _confidence(y: ArrayLike, proba: ArrayLike, classes: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Probability of the predicted class, and whether it is the true one."""
    y, classes = np.asarray(y), np.asarray(classes)
    proba = _unit("proba", _floats("proba", proba))
    if classes.ndim != 1 or len(np.unique(classes)) != classes.size:
        raise ValueError(f"classes must list each class once; got {classes.tolist()}. Pass estimator.classes_.")
    if y.ndim != 1 or proba.shape != (y.size, classes.size):
        raise ValueError(
            f"y must have shape (n,) and proba (n, {classes.size}), a column for each class; got y {y.shape} and proba "
            f"{proba.shape}. Pass the labels as a vector and predict_proba(X) for the same points."
        )
    if np.abs(proba.sum(axis=1) - 1).max() > 1e-5:
        raise ValueError(
            f"each row of proba must sum to 1; got sums from {proba.sum(axis=1).min():g} to "
            f"{proba.sum(axis=1).max():g}. Normalise the rows."
        )
    if not (known := np.isin(y, classes)).all():
        raise ValueError(
            f"y must hold only labels in classes {classes.tolist()}; got also {np.unique(y[~known]).tolist()}. Drop "
            "those points, or train on every class."
        )
    return proba.max(axis=1), classes[proba.argmax(axis=1)] == y


def error_reject_curve(y: ArrayLike, proba: ArrayLike, classes: ArrayLike) -> tuple[Array, Array]:
    r"""Error rate on the points kept when those predicted with a probability below a threshold are rejected.

    With :math:`c_i = \max_k p_{ik}`, each threshold :math:`t` among the :math:`c_i` gives one point of the curve,

    .. math:: \left( \frac1n \sum_i 1\{c_i < t\}, \;
        \frac{\sum_i 1\{c_i \ge t, \hat y_i \ne y_i\}}{\sum_i 1\{c_i \ge t\}} \right)

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    proba : array-like of shape (n, n_classes)
        Predicted class probabilities.
    classes : array-like of shape (n_classes,)
        The class of each column of ``proba``.

    Returns
    -------
    rejection_rate, error_rate : ndarray of one shape
        In order of rising rejection rate, from zero.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]]
    >>> rejection_rate, error_rate = error_reject_curve(["a", "a", "b", "b"], proba, ["a", "b"])
    >>> rejection_rate
    array([0.  , 0.25, 0.5 , 0.75])
    >>> error_rate.round(3)
    array([0.5  , 0.333, 0.   , 0.   ])
    """
    confidence, correct = _confidence(y, proba, classes)
    order = np.argsort(confidence)
    rejected = np.unique(confidence[order], return_index=True)[1]  # equal confidences go together
    errors_kept = np.cumsum(~correct[order][::-1])[::-1][rejected]
    return rejected / order.size, errors_kept / (order.size - rejected)


def reliability_curve(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike, n_bins: int = 10
) -> tuple[Array, Array, NDArray[np.int64]]:
    r"""How often the predicted class is right, against how probable it was said to be.

    The points are grouped by :math:`c_i = \max_k p_{ik}` into ``n_bins`` bins of equal width over [0, 1]. In bin
    :math:`B` the curve compares :math:`\frac{1}{|B|} \sum_{i \in B} c_i` with
    :math:`\frac{1}{|B|} \sum_{i \in B} 1\{\hat y_i = y_i\}`.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    proba : array-like of shape (n, n_classes)
        Predicted class probabilities.
    classes : array-like of shape (n_classes,)
        The class of each column of ``proba``.
    n_bins : int
        Number of bins.

    Returns
    -------
    confidence, frequency, count : ndarray of one shape
        Mean confidence, observed frequency of being right, and number of points, for each bin that has any.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.4, 0.6], [0.06, 0.94], [0.35, 0.65]]
    >>> confidence, frequency, count = reliability_curve([0, 0, 1, 1], proba, [0, 1])
    >>> confidence
    array([0.625, 0.92 ])
    >>> frequency
    array([0.5, 1. ])
    >>> count
    array([2, 2])
    """
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be a positive integer; got {n_bins!r}. Ten is usual.")
    confidence, correct = _confidence(y, proba, classes)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    _, member, count = np.unique(bins, return_inverse=True, return_counts=True)
    return np.bincount(member, confidence) / count, np.bincount(member, correct) / count, count


def expected_calibration_error(y: ArrayLike, proba: ArrayLike, classes: ArrayLike, n_bins: int = 10) -> float:
    r"""Mean distance of the reliability curve from the diagonal, each bin weighted by its points.

    .. math:: \sum_B \frac{|B|}{n} \left| \text{frequency}_B - \text{confidence}_B \right|

    Parameters
    ----------
    y, proba, classes, n_bins
        As for :func:`reliability_curve`.

    Examples
    --------
    >>> round(expected_calibration_error([0, 0], [[0.75, 0.25], [0.25, 0.75]], [0, 1]), 6)
    0.25
    """
    confidence, frequency, count = reliability_curve(y, proba, classes, n_bins)
    return float(np.average(np.abs(frequency - confidence), weights=count))


# --------------------------------------------------------------------------------------------------------------------
# Scorers for cross_val_score, GridSearchCV and their like


def _predictive(estimator: Any, X: Any) -> _Predictive:
    """The predictive distribution at X, looked for through searches and pipelines, which do not pass it on."""
    if hasattr(estimator, "predictive"):
        return estimator.predictive(X)
    if hasattr(estimator, "best_estimator_"):
        return _predictive(estimator.best_estimator_, X)
    if hasattr(estimator, "steps"):
        return _predictive(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    raise TypeError(
        f"estimator must have a predictive(X) method; got {type(estimator).__name__}. Use an errorband estimator, or "
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
    y = _floats("y", y)
    _, log_density = _arrays(y=y, log_density=_predictive(estimator, X).log_density(y))
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
    predictive = _predictive(estimator, X)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    total = 0.0
    for level, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        targets, quantile = _arrays(y=y, quantile=predictive.quantile(float(level)))
        error = targets - quantile
        total += 2 * weight * np.mean(np.maximum(level * error, (level - 1) * error))
    return -float(total)


def _coverage_score(estimator: Any, X: Any, y: ArrayLike, *, level: float) -> float:
    predictive = _predictive(estimator, X)
    return coverage(y, predictive.quantile((1 - level) / 2), predictive.quantile((1 + level) / 2))


def coverage_scorer(level: float) -> Scorer:
    r"""A scorer that returns the observed coverage of the central bands of nominal coverage ``level``.

    .. math:: \frac1n \sum_i 1\{q_i(\tfrac{1 - \text{level}}{2}) \le y_i \le q_i(\tfrac{1 + \text{level}}{2})\}

    Compare it with ``level``. It is for reporting, not for choosing a model: the widest bands always cover the most.

    Parameters
    ----------
    level : float
        Nominal coverage, strictly between 0 and 1.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> predictive = Stub(quantile=lambda q: np.full(2, q))  # uniform on [0, 1]
    >>> coverage_scorer(0.8)(Stub(predictive=lambda X: predictive), [[0], [1]], [0.5, 0.95])
    0.5
    """
    return partial(_coverage_score, level=_level(level))


SCORERS: dict[str, Scorer] = {
    "neg_nlpd": neg_nlpd_scorer,
    "neg_rmse": neg_rmse_scorer,
    "neg_crps": neg_crps_scorer,
    "coverage_50": coverage_scorer(0.50),
    "coverage_90": coverage_scorer(0.90),
    "coverage_95": coverage_scorer(0.95),
}


def get_scorer(name: str) -> Scorer:
    """The scorer of that name in ``SCORERS``.

    Examples
    --------
    >>> get_scorer("neg_nlpd") is neg_nlpd_scorer
    True
    >>> get_scorer("nlpd")
    Traceback (most recent call last):
    ValueError: name must be one of neg_nlpd, neg_rmse, ...; got 'nlpd'. Did you mean 'neg_nlpd'?
    """
    if name in SCORERS:
        return SCORERS[name]
    near = get_close_matches(str(name), SCORERS, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "Pick one of them, or pass a scorer function where one is taken."
    raise ValueError(f"name must be one of {', '.join(SCORERS)}; got {name!r}. {hint}")
