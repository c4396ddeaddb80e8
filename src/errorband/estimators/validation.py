"""Checks of the data beyond scikit-learn's, with messages that say what to do."""

from typing import Any

import numpy as np

# Beyond this the squares that covariances are made of leave the range of double precision.
LARGEST = 1e100


def check_magnitude(values: np.ndarray, name: str) -> None:
    """Refuse numbers whose squares overflow."""
    # Not the maximum of |values|, which would be a copy of them all.
    largest = max(-float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0)))
    if largest > LARGEST:
        raise ValueError(f"{name} has values as large as {largest:.2g}; rescale it to below {LARGEST:g}.")


def check_noise_variance(values: Any, n: int) -> np.ndarray:
    """The noise variances of n rows as an array, if they are that."""
    variances = np.asarray(values, dtype=np.float64)
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


def check_columns_are_numeric(X: Any) -> None:
    """Name the columns of a DataFrame that do not hold numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "dtypes"):
        return
    text = [str(name) for name, dtype in zip(columns, X.dtypes, strict=True) if _is_text(dtype)]
    if text:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(map(repr, text))}. Drop them or encode them, e.g. with "
            "scikit-learn's OneHotEncoder in a ColumnTransformer."
        )


def _is_text(dtype: Any) -> bool:
    """Whether a pandas or polars column holds text, dates or categories (objects may still be numbers)."""
    name = str(dtype).lower()
    return any(kind in name for kind in ("str", "categor", "enum", "date", "time"))
