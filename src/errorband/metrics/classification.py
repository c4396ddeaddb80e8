"""Metrics of class probabilities: information, rejection, reliability."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errorband.metrics.checks import Array, floats, positive, same_shape, unit_interval


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
    arrays = same_shape(
        proba_of_true_class=proba_of_true_class,
        train_class_frequencies_of_true_class=train_class_frequencies_of_true_class,
    )
    names = ("proba_of_true_class", "train_class_frequencies_of_true_class")
    proba, frequency = (positive(name, unit_interval(name, array)) for name, array in zip(names, arrays, strict=True))
    return float(np.mean(np.log2(proba) - np.log2(frequency)))


def _confidence(y: ArrayLike, proba: ArrayLike, classes: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Probability of the predicted class, and whether it is the true one."""
    y, classes = np.asarray(y), np.asarray(classes)
    proba = unit_interval("proba", floats("proba", proba))
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
    rejected = np.unique(confidence[order], return_index=True)[1]  # points of equal confidence are rejected together
    errors_kept = np.cumsum(~correct[order][::-1])[::-1][rejected]
    return rejected / order.size, errors_kept / (order.size - rejected)


def reliability_curve(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike, n_bins: int = 10
) -> tuple[Array, Array, NDArray[np.int64]]:
    r"""Reliability curve: accuracy of the predicted class as a function of its predicted probability.

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
