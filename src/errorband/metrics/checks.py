"""Checks of the arguments of metrics."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class PredictiveLike(Protocol):
    """The methods of a predictive distribution that metrics call."""

    @property
    def mean(self) -> Any: ...
    def quantile(self, q: float, /) -> Any: ...
    def log_density(self, y: Any, /) -> Any: ...
    def cdf(self, y: Any, /) -> Any: ...


def floats(name: str, values: ArrayLike) -> Array:
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


def same_shape(**named: ArrayLike) -> list[Array]:
    """The named inputs as finite float arrays of one common shape (nothing is broadcast)."""
    arrays = [floats(name, values) for name, values in named.items()]
    if len({array.shape for array in arrays}) > 1:
        came = ", ".join(f"{name} {array.shape}" for name, array in zip(named, arrays, strict=True))
        raise ValueError(
            f"{', '.join(named)} must have the same shape; got {came}. Pass one value per test point in each "
            "(ravel() turns a column into a vector)."
        )
    return arrays


def scalar(name: str, value: ArrayLike) -> Array:
    array = floats(name, value)
    if array.size != 1:
        raise ValueError(f"{name} must be a single number; got shape {array.shape}. Pass its value over all targets.")
    return array.reshape(())


def positive(name: str, array: Array) -> Array:
    if array.min() <= 0:
        raise ValueError(
            f"{name} must be positive; got a smallest value of {array.min():g}. Give it a small floor, or find out "
            "where the zero or negative value comes from."
        )
    return array


def unit_interval(name: str, array: Array) -> Array:
    """Probabilities as an array, clipped if rounding put them just outside [0, 1]."""
    if array.min() < -1e-6 or array.max() > 1 + 1e-6:
        raise ValueError(
            f"{name} must lie in [0, 1]; got values from {array.min():g} to {array.max():g}. Pass probabilities, "
            "not percentages, logits or log probabilities."
        )
    return np.clip(array, 0.0, 1.0)


def as_level(level: float) -> float:
    if not 0 < (value := float(scalar("level", level))) < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {value:g}. For a 95% band pass 0.95.")
    return value


def check_ordered(lower: Array, upper: Array) -> None:
    if crossed := np.count_nonzero(lower > upper):
        raise ValueError(
            f"lower must not exceed upper; got {crossed} of {lower.size} bands crossed. Check the order of the "
            "arguments: lower comes before upper."
        )
