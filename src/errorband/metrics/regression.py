"""Metrics of regression: accuracy, density, bands, calibration, CRPS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr

from errorband.metrics.checks import (
    Array,
    PredictiveLike,
    as_level,
    check_ordered,
    floats,
    positive,
    same_shape,
    scalar,
    unit_interval,
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
    y, mean = same_shape(y=y, mean=mean)
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
    y, mean = same_shape(y=y, mean=mean)
    baseline = np.mean((y - (y.mean() if y_train_mean is None else scalar("y_train_mean", y_train_mean))) ** 2)
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
    return float(-np.mean(floats("log_density", log_density)))


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
    y, mean, std = same_shape(y=y, mean=mean, std=std)
    z = (y - mean) / positive("std", std)
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
    centre = np.full(np.shape(y), scalar("y_train_mean", y_train_mean))
    spread = np.full(np.shape(y), np.sqrt(positive("y_train_var", scalar("y_train_var", y_train_var))))
    return loss - gaussian_nlpd(y, centre, spread)


# --------------------------------------------------------------------------------------------------------------------
# Bands


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    r"""Fraction of targets inside their band, :math:`\frac1n \sum_i 1\{l_i \le y_i \le u_i\}`.

    Parameters
    ----------
    y, lower, upper : array-like of one shape
        Observed targets and the ends of their bands (the ends count as inside).

    Examples
    --------
    >>> coverage([0.0, 1.0, 5.0, 2.0], [-1.0, 0.0, 0.0, 2.0], [1.0, 2.0, 2.0, 3.0])
    0.75
    """
    y, lower, upper = same_shape(y=y, lower=lower, upper=upper)
    check_ordered(lower, upper)
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
    lower, upper = same_shape(lower=lower, upper=upper)
    check_ordered(lower, upper)
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
    y, lower, upper = same_shape(y=y, lower=lower, upper=upper)
    check_ordered(lower, upper)
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - as_level(level)) * missed))


# --------------------------------------------------------------------------------------------------------------------
# Calibration


def pit(y: ArrayLike, predictive: PredictiveLike) -> Array:
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
    y = floats("y", y)
    _, values = same_shape(y=y, cdf=predictive.cdf(y))
    return unit_interval("cdf", values)


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
    y, mean, std = same_shape(y=y, mean=mean, std=std)
    return ndtr((y - mean) / positive("std", std))


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
    nominal = np.arange(1, 20) / 20 if levels is None else unit_interval("levels", floats("levels", levels))
    reach = np.sort(2 * np.abs(unit_interval("pit", floats("pit", pit)).ravel() - 0.5))
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
    y, mean, std = same_shape(y=y, mean=mean, std=std)
    z = (y - mean) / positive("std", std)
    return (y - mean) * erf(z / np.sqrt(2)) + std * (np.sqrt(2) * np.exp(-0.5 * z**2) - 1) / np.sqrt(np.pi)


def crps_quantile(y: ArrayLike, quantile: Callable[[float], ArrayLike]) -> Array:
    r"""Continuous ranked probability score of any predictions, per point, by quadrature over their quantiles.

    .. math:: \int_0^1 2 \max\{\tau (y - q(\tau)), (\tau - 1) (y - q(\tau))\} \, d\tau

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed targets.
    quantile : function
        Of a probability; returns the n quantiles.

    Examples
    --------
    >>> crps_quantile([0.0, 0.5], lambda q: np.full(2, q)).round(3)  # uniform on [0, 1]
    array([0.333, 0.083])
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    total = 0.0
    for level, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        targets, there = same_shape(y=y, quantile=quantile(float(level)))
        error = targets - there
        total = total + 2 * weight * np.maximum(level * error, (level - 1) * error)
    return np.asarray(total)


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
    y, samples = floats("y", y), floats("samples", samples)
    if samples.shape[1:] != y.shape or samples.ndim != y.ndim + 1 or len(samples) < 2:
        raise ValueError(
            f"samples must have shape (n_draws, *{y.shape}) with n_draws >= 2 to match y; got {samples.shape}. "
            "Put the draws along the first axis, and draw more than one."
        )
    error = np.sort(samples - y, axis=0)  # relative to y, so that a large common offset causes no cancellation
    draws = len(error)
    rank = 2 * np.arange(draws) + 1 - draws  # sum over pairs of |x_s - x_t|, each pair once, is rank @ sorted
    return np.mean(np.abs(error), axis=0) - np.tensordot(rank, error, axes=1) / (draws * (draws - 1))
