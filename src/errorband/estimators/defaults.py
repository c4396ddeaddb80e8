"""What is taken where the user says nothing, and what ``"auto"`` chooses from; by the league (benchmarks/league.py)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.estimators.spec import APPROXIMATION_NAMES, as_kernel
from errorband.features import Features
from errorband.kernels import Kernel

# Candidates of ``kernel="auto"``, the default first. Everyday functions are not infinitely smooth, and often have a
# trend. Labels say less than numbers: there simple kernels that differ much are mixed, smooth, straight and rough.
REGRESSION_KERNELS = ("matern52+linear", "se", "matern32+linear", "matern12+linear", "rq")
CLASS_KERNELS = ("se", "linear", "matern12")

# For labels with so many inputs no row has near neighbours in all of them at once. A sum of functions of single inputs
# and a polynomial, of pairs of them, are candidates too.
MANY_INPUTS, OF_MANY_INPUTS = 20, ("additive", "polynomial")

# Inputs that each take three to ten values, such as the bases of a gene, may well be labels and no numbers. Of two
# values the difference and whether there is one are the same.
FEWEST_LABELS, MOST_LABELS, OF_LABELS = 3, 10, ("hamming",)
LOOKED_AT = 2000  # rows

# Where an input has a long tail, of which this is a third moment in units of its standard deviation, a kernel of inputs
# that are drawn in is a candidate.
SKEW, OF_TAILS = 1.0, ("unskewed",)

# Whole numbers above this are as good as real ones.
LARGEST_COUNT = 1000

# A density has no limit at a value that this share of the targets has: noise that may vanish for some rows would.
MOST_ALIKE = 0.3


def class_kernels(X: Any) -> tuple[str, ...]:
    """Candidates of ``kernel="auto"`` for labels with these inputs, the default first.

    Examples
    --------
    >>> class_kernels(np.arange(40.0).reshape(20, 2))
    ('se', 'linear', 'matern12')
    >>> class_kernels(np.arange(40.0).reshape(20, 2) % 5)
    ('se', 'linear', 'matern12', 'hamming')
    """
    columns = np.asarray(X[:LOOKED_AT], dtype=np.float64).T
    values = [len(np.unique(column)) for column in columns]
    labels = FEWEST_LABELS <= max(values) <= MOST_LABELS
    tails = any(count > 2 and abs(_skewness(column)) > SKEW for count, column in zip(values, columns, strict=True))
    many = len(values) >= MANY_INPUTS
    return CLASS_KERNELS + OF_TAILS * tails + OF_MANY_INPUTS * many + OF_LABELS * labels


def _skewness(column: np.ndarray) -> float:
    """Third moment in units of the standard deviation, of numbers that are not all the same."""
    apart = column / np.max(np.abs(column)) - np.mean(column / np.max(np.abs(column)))
    return float(np.mean(apart**3) / max(np.mean(apart**2), np.finfo(float).tiny) ** 1.5)


def noises(y: np.ndarray) -> tuple[str, ...]:
    """Candidates of ``likelihood="auto"`` for these targets, Gaussian noise first.

    Examples
    --------
    >>> noises(np.array([0.5, -1.0]))
    ('gaussian', 'student-t', 'outlier-mixture', 'heteroscedastic')
    >>> noises(np.array([0.0, 3.0, 1.0]))[:3]
    ('gaussian', 'poisson', 'negative-binomial')
    >>> noises(np.array([0.0, 30.0, 10.0]))[:2]  # counts come one by one
    ('gaussian', 'student-t')
    >>> noises(np.array([0.5, 0.5, 0.5, -1.0]))  # noise of its own would be none where many targets are the same
    ('gaussian',)
    """
    found: tuple[str, ...] = ("gaussian",)
    whole = np.all((y == np.round(y)) & (y >= 0)) and np.max(y) <= LARGEST_COUNT and np.ptp(y) > 1
    if whole and np.gcd.reduce(y.astype(int)) == 1:
        found += ("poisson", "negative-binomial")
    if np.all((y > 0) & (y < 1)):
        found += ("beta",)
    many = np.max(np.unique(y, return_counts=True)[1]) > max(1.0, MOST_ALIKE * len(y))
    return found if many else (*found, "student-t", "outlier-mixture", "heteroscedastic")


def default_kernel(names: Sequence[str], approximation: Any) -> Kernel:
    """The first of the kernels that the features of an approximation can be computed for."""
    if isinstance(approximation, str) and approximation != "auto":
        approximation = APPROXIMATION_NAMES(approximation)
    features = approximation if isinstance(approximation, Features) else getattr(approximation, "features", None)
    kernels = [as_kernel(name) for name in names]
    return next((k for k in kernels if features is None or _accepts(features, k)), kernels[0])


def _accepts(features: Features, kernel: Kernel) -> bool:
    try:
        features.check(kernel)
    except ValueError:
        return False
    return True
