"""Standardisation of inputs and targets: what ``normalize=True`` does."""

import dataclasses
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from errorband.data import TrainingData
from errorband.parameters import Change
from errorband.rows import slices
from errorband.transforms import Transform

CHUNK = 2**20  # rows of a large table that are read at once
SPREAD = 10_000  # about as many rows of a file are looked at for starting values

# Numbers that training inputs may come in: scaling makes doubles of them, for rows of a file where they are read.
READ_AS = (np.float64, np.float32)


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Affine maps to zero mean and unit standard deviation. Constant columns are only shifted, targets divided by size.

    Attributes
    ----------
    x_shift, x_scale, y_shift, y_scale
        Of inputs (D,) and targets.
    transform : Transform or None
        What targets go through before they are standardised.
    exposure : int or None
        The column of inputs that counts are proportional to.
    log_rate : float
        Logarithm of the rate that a latent function of zero stands for, with an exposure.
    """

    x_shift: np.ndarray
    x_scale: np.ndarray
    y_shift: float
    y_scale: float
    transform: Transform | None = None
    exposure: int | None = None
    log_rate: float = 0.0

    @classmethod
    def identity(cls, n_features: int) -> "Scaling":
        """Leave everything as it is."""
        return cls(np.zeros(n_features), np.ones(n_features), 0.0, 1.0)

    @classmethod
    def standardise(
        cls,
        X: np.ndarray,
        y: np.ndarray | None,
        raw: np.ndarray,
        weights: np.ndarray | None = None,
        alike: Sequence[np.ndarray] = (),
    ) -> "Scaling":
        """From the training data.

        Columns that are ``raw`` (D,) stay as they are, and targets if not given. Columns of a group in ``alike`` are
        divided by one number, the root of their mean variance.
        """
        shift, scale = _moments(X, weights)
        shift, scale = np.where(raw, 0.0, shift), np.where(raw, 1.0, scale)
        for group in _merged(alike):
            scale[group] = 1.0 if np.any(raw[group]) else np.sqrt(np.mean(scale[group] ** 2))
        if y is None:
            return cls(shift, scale, 0.0, 1.0)
        if is_constant(y):  # their size, since they have no spread
            return cls(shift, scale, float(y[0]), abs(float(y[0])) or 1.0)
        y_shift, y_scale = _moments(y[:, None], weights)
        return cls(shift, scale, float(y_shift[0]), float(y_scale[0]))

    def change(self) -> Change:
        """From the units of the data to those the model sees."""
        return Change(self.x_scale, self.x_shift, self.y_scale, self.y_shift).inverse()

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs as the model sees them."""
        scaled = X - self.x_shift
        scaled /= self.x_scale  # in place: X may be large
        return scaled

    def with_exposure(self, column: int | None, X: np.ndarray, y: np.ndarray, normalize: bool) -> "Scaling":
        """For counts y over the exposure in a column of X; zero comes to stand for the average rate if normalised."""
        if column is None:
            return self
        total = float(np.sum(y)) / float(np.sum(_positive(X[:, column])))
        return dataclasses.replace(self, exposure=column, log_rate=np.log(total) if normalize and total > 0 else 0.0)

    def with_transform(self, transform: Transform, y: np.ndarray, weights: np.ndarray | None) -> "Scaling":
        """For targets y that go through another transform; standardised again."""
        shift, scale = _moments(transform.forward(y)[:, None], weights)
        return dataclasses.replace(self, transform=transform, y_shift=float(shift[0]), y_scale=float(scale[0]))

    def offset(self, scaled: Any) -> np.ndarray | None:
        """Known part of the log rate at inputs as the model sees them; None without an exposure."""
        if self.exposure is None:
            return None
        given = np.asarray(scaled[:, self.exposure]) * self.x_scale[self.exposure] + self.x_shift[self.exposure]
        return np.log(_positive(given)) + self.log_rate

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets as the model sees them."""
        z = y if self.transform is None else self.transform.forward(y)
        return (z - self.y_shift) / self.y_scale

    def original(self, scaled: np.ndarray) -> np.ndarray:
        """Targets in the units of the data from what the model sees."""
        z = scaled * self.y_scale + self.y_shift
        return z if self.transform is None else self.transform.inverse(z)

    def log_slope(self, scaled: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Sum of the log derivatives of the transform at targets as the model sees them."""
        if self.transform is None:
            return 0.0
        slopes = self.transform.log_slope(self.original(scaled))
        return float(np.sum(slopes if weights is None else weights * slopes))

    def log_density(self, value: float, data: TrainingData, integrated: int = 0) -> float:
        """A log density of targets as the model sees them, as one of targets as given.

        ``integrated`` is the number of coefficients with a flat prior, each of which takes one target for itself.
        """
        scale = float(np.log(self.y_scale))
        return value - (data.size - integrated) * scale + self.log_slope(data.y, data.weights)


def _positive(exposure: np.ndarray) -> np.ndarray:
    if not np.all(exposure > 0):
        raise ValueError(f"Exposures must be above zero; the smallest is {np.min(exposure):g}. Leave such rows out.")
    return exposure


@dataclasses.dataclass(frozen=True)
class ScaledRows:
    """A table that stays in its file: the rows asked for are read and scaled, the others left alone."""

    table: np.ndarray
    scaling: Scaling

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return self.table.shape

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.scaling.inputs(self.table[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it, for those who cannot do with less."""
        if copy is False:
            raise ValueError("Scaled rows of a file are always a copy.")
        return np.asarray(self[:], dtype=dtype)


def training_inputs(X: np.ndarray, scaling: Scaling) -> Any:
    """Inputs as the model sees them; those of a memory-mapped file stay there."""
    base = X
    while isinstance(base, np.ndarray):
        base = base.base
    return ScaledRows(X, scaling) if isinstance(base, mmap.mmap) else scaling.inputs(X)


def chunks(X: Any) -> Iterator[np.ndarray]:
    """All rows, as arrays: a large table in pieces."""
    return (X[part] for part in slices(len(X), CHUNK))


def spread_rows(X: Any) -> slice:
    """Rows to choose starting values from: all, or some thousands at equal distances if X is in a file."""
    return slice(None, None, max(1, len(X) // SPREAD) if isinstance(X, ScaledRows) else 1)


def _merged(groups: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Groups of columns, those that have a column in common put together."""
    found: list[set[int]] = []
    for group in groups:
        new = set(group.tolist())
        new = new.union(*(f for f in found if f & new))
        found = [f for f in found if not f & new] + [new]
    return [np.array(sorted(f)) for f in found]


def is_constant(y: np.ndarray) -> bool:
    """Whether targets are all the same, to rounding."""
    return bool(np.ptp(y) <= _rounding(y))


def _rounding(X: np.ndarray) -> Any:
    """Differences that rounding makes in each column."""
    return 10 * np.finfo(float).eps * np.maximum(np.abs(X.max(axis=0)), np.abs(X.min(axis=0)))


def _moments(X: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; the latter is 1 where it is zero to rounding."""
    weights = np.ones(len(X)) if weights is None else weights
    total = np.sum(weights)
    mean = sum(w @ rows for w, rows in zip(chunks(weights), chunks(X), strict=True)) / total
    std = np.sqrt(sum(w @ (rows - mean) ** 2 for w, rows in zip(chunks(weights), chunks(X), strict=True)) / total)
    return mean, np.where(std > _rounding(X), std, 1.0)
