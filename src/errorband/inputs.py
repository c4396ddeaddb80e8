"""Inputs as people know them: columns of a table, each of which a model may see as one feature or several."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Input:
    """One column of a table, and the features it became.

    Attributes
    ----------
    name : str
        Name of the column.
    columns : tuple of int
        Positions of its features among those of the model.
    encode, decode : callable
        From values (n,) to features (n, k), and back.
    levels : tuple of str
        What the values 0, 1, 2, … stand for, if they are levels; else empty.
    date : bool
        Whether values are days since 1970.

    Examples
    --------
    >>> tree = Input.words("tree", (1, 2, 3), ("ash", "elm", "oak"), np.eye(3))
    >>> X = np.array([[5.0, 0.0, 1.0, 0.0]])
    >>> tree.values(X), tree.shown(1.0), tree.put(X, np.array([2.0]))
    (array([1.]), 'elm', array([[5., 0., 0., 1.]]))
    """

    name: str
    columns: tuple[int, ...]
    encode: Callable[[np.ndarray], np.ndarray]
    decode: Callable[[np.ndarray], np.ndarray]
    levels: tuple[str, ...] = ()
    date: bool = False

    @classmethod
    def number(cls, name: str, column: int) -> "Input":
        """A number that is a feature as it stands."""
        return cls(name, (column,), lambda values: values[:, None], lambda features: features[:, 0])

    @classmethod
    def words(cls, name: str, columns: Sequence[int], levels: Sequence[str], codes: np.ndarray) -> "Input":
        """A column of words, of which level l has the features ``codes[l]``; a row belongs to the nearest level."""

        def decode(features: np.ndarray) -> np.ndarray:
            nearest = ((features[:, None, :] - codes) ** 2).sum(axis=2).argmin(axis=1).astype(float)
            return np.where(np.isnan(features).any(axis=1), np.nan, nearest)

        return cls(name, tuple(columns), lambda values: codes[values.astype(int)], decode, tuple(levels))

    @classmethod
    def dates(cls, name: str, columns: Sequence[int], origin: float, encode: Callable) -> "Input":
        """A column of dates, of which the first feature counts days from ``origin``, in days since 1970."""
        return cls(name, tuple(columns), encode, lambda features: features[:, 0] + origin, date=True)

    @property
    def plain(self) -> bool:
        """Whether the values are the one feature there is."""
        return len(self.columns) == 1 and not self.levels and not self.date

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the values (n,) in rows of features (n, D)."""
        return self.decode(X[:, list(self.columns)])

    def put(self, X: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return a copy of rows of features (n, D) with these values (n,) of the input."""
        changed = X.copy()
        changed[:, list(self.columns)] = self.encode(np.asarray(values, dtype=np.float64))
        return changed

    def on_axis(self, values: Any) -> Any:
        """Return values as a plot takes them: numbers, or dates as text."""
        return as_dates(values) if self.date else np.asarray(values, dtype=np.float64)

    def shown(self, value: float, number: Callable[[float], str] = "{:.4g}".format) -> str:
        """Return a value in words: the level or the date, or what ``number`` makes of it."""
        if np.isnan(value):
            return "missing"
        if self.levels:
            return self.levels[int(value)]
        return as_dates([value])[0] if self.date else number(value)


def as_dates(days: Any) -> list[str]:
    """Days since 1970 as text, with the time of day only where there is one.

    Examples
    --------
    >>> as_dates([0.0, 19723.0]), as_dates([0.25])
    (['1970-01-01', '2024-01-01'], ['1970-01-01 06:00'])
    """
    days = np.asarray(days, dtype=np.float64)
    known = np.where(np.isnan(days), 0.0, days)
    unit = "D" if np.all(known == np.floor(known)) else "m"
    stamps = np.round(known * (1 if unit == "D" else 1440)).astype(np.int64).astype(f"datetime64[{unit}]")
    return ["" if np.isnan(day) else str(stamp).replace("T", " ") for day, stamp in zip(days, stamps, strict=True)]
