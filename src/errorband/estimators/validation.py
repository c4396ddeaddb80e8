"""Checks of the data beyond scikit-learn's, with messages that say what to do."""

import collections
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

# Beyond these the squares that covariances are made of leave the range of double precision.
LARGEST, SMALLEST = 1e100, 1e-100


def check_magnitude(values: np.ndarray, name: str) -> None:
    """Refuse numbers whose squares overflow."""
    # Not the maximum of |values|, which would be a copy of them all.
    largest = max(-float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0)))
    if largest > LARGEST:
        raise ValueError(f"{name} has values as large as {largest:.2g}; rescale it to below {LARGEST:g}.")


def finite_numbers(given: Any, name: str) -> np.ndarray:
    """The values as numbers, if all are finite: None among objects becomes NaN after scikit-learn looked for it."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers ({error}). For labels of classes use GPClassifier.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad) > 0:
        raise ValueError(
            f"{name} has {len(bad)} values that are missing or not finite, the first in row {bad[0]}. Leave such rows "
            "out."
        )
    return values


def check_seed(owner: str, random_state: Any) -> None:
    """Refuse what is no seed."""
    try:
        check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"{owner}(random_state={random_state!r}): give a whole number from 0 to 2³² − 1, a RandomState, or None."
        ) from None


def check_spread(values: np.ndarray, name: str) -> None:
    """Refuse columns that are not constant and whose squared differences underflow."""
    spread = np.max(values, axis=0) - np.min(values, axis=0)
    if np.any((spread > 0) & (spread < SMALLEST)):
        least = np.min(spread[spread > 0])
        raise ValueError(f"{name} varies by as little as {least:.2g}; rescale it to above {SMALLEST:g}, or drop it.")


def check_noise_variance(values: Any, n: int) -> np.ndarray:
    """The noise variances of n rows as an array, if they are that."""
    try:
        variances = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"noise_variance must have one number per row; got {values!r:.80}.") from None
    if variances.shape != (n,):
        raise ValueError(
            f"noise_variance must have one number per row, shape ({n},); got shape {variances.shape}. Leave it out if "
            "the noise is not known."
        )
    bad = np.flatnonzero(~(np.isfinite(variances) & (variances >= 0)))
    if len(bad) > 0:
        raise ValueError(
            f"noise_variance must be finite and not negative; {len(bad)} of {n} are not, the first "
            f"{variances[bad[0]]:g} in row {bad[0]}. Give 0 where no noise is known."
        )
    return variances


def check_one_target(name: str, y: Any) -> None:
    """Refuse several columns of targets, and say what takes them."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, and {name} predicts one target: use MultiOutputRegressor({name}()) of "
            "sklearn.multioutput, which fits a model for each; bands are those of its estimators_."
        )


def check_weights(values: Any, n: int) -> np.ndarray:
    """The weights of n rows as an array, if they are that."""
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must have one number per row; got {values!r:.80}.") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have one number per row, shape ({n},); got shape {weights.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad) > 0:
        raise ValueError(
            f"sample_weight must be finite and not negative; {len(bad)} of {n} are not, the first "
            f"{weights[bad[0]]:g} in row {bad[0]}. Give 0 to leave a row out."
        )
    if not np.any(weights > 0):
        raise ValueError("sample_weight is zero for every row, so no row is left; give some rows positive weight.")
    return weights


def check_kind(values: Any, name: str) -> None:
    """Refuse arrays whose numbers are not what they seem: masked entries and dates."""
    if isinstance(values, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(values)):
        raise ValueError(
            f"{name} has {np.sum(np.ma.getmaskarray(values))} masked entries, whose values are not to be used; fill "
            "them in or leave the rows out."
        )
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind in ("M", "m"):
        raise ValueError(f"{name} holds dates or times; give numbers, such as days since a fixed date.")


def check_columns_are_numeric(X: Any) -> None:
    """Name the columns of a DataFrame that do not hold numbers."""
    check_kind(X, "X")
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "dtypes"):
        return
    counts = collections.Counter(map(str, columns))
    if repeated := [name for name, number in counts.items() if number > 1]:
        raise ValueError(f"X has columns of the same name: {', '.join(map(repr, repeated))}. Rename them.")
    dtypes = enumerate(zip(columns, X.dtypes, strict=True))
    text = [str(name) for d, (name, dtype) in dtypes if _is_text(dtype) or _has_words(X, d, dtype)]
    if text:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(map(repr, text))}. Drop them or encode them, e.g. with "
            "scikit-learn's OneHotEncoder in a ColumnTransformer."
        )


def _is_text(dtype: Any) -> bool:
    """Whether a pandas or polars column holds text, dates or categories (objects may still be numbers)."""
    name = str(dtype).lower()
    return any(kind in name for kind in ("str", "categor", "enum", "date", "time"))


def _has_words(frame: Any, d: int, dtype: Any) -> bool:
    """Whether column ``d`` is of objects, which is what pandas 2 makes of text, and some are text."""
    objects = isinstance(dtype, np.dtype) and dtype.kind == "O"
    return objects and any(isinstance(value, str) for value in frame.iloc[:, d])


def first_of_copies(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positions of the rows without those that repeat another one, target and all.

    All rows where it is no wonder: many targets are the same without their inputs being so.
    """
    first = np.sort(np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1])
    return first if len(np.unique(y[first])) > 0.9 * len(first) else np.arange(len(y))
