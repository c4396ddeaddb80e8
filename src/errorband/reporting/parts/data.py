"""Rows and inputs of a report: those of the model or as given, which of them are drawn, and on which grid."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.inputs import Input
from errorband.reporting.text import brief, listing

MAX_POINTS = 500  # in a scatter plot; more make the file large and the plot black
MAX_EFFECTS, MAX_SURPRISES, MAP_POINTS = 6, 10, 45
INDEX_NAMES = "Rows are named by the index of the table."
LEAST_RELEVANCE = 0.03  # of the largest: inputs below have no curve worth a plot


def training(model: Any, X: Any, y: Any, read: Callable[[Any], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return training inputs and targets, as given or else as the model keeps them; ``read`` makes targets numbers."""
    if (X is None) != (y is None):
        raise ValueError("Pass X_train and y_train together, or neither: the model knows what it was fitted to.")
    if X is None:
        X, y = model.training_data()
        return X, read(y)
    X, y = effects.inputs(model, X), read(y)
    check_rows(X, y, "train")
    return X, y


def check_rows(X: np.ndarray, y: np.ndarray, which: str) -> None:
    """Refuse inputs and targets of different numbers, or none."""
    if len(X) != len(y) or len(y) == 0:
        raise ValueError(f"X_{which} has {len(X)} rows and y_{which} {len(y)}; pass one target for each row.")


def ranked_inputs(
    model: Any, X: np.ndarray, columns: Sequence[Input], random_state: Any
) -> tuple[np.ndarray, tuple[int, ...], list[int]]:
    """Return the relevance of each input, their positions sorted by it, and the positions of those worth a plot."""
    importance = effects.relevance(model, X, random_state=random_state, columns=columns)
    order = tuple(int(j) for j in np.argsort(-importance, kind="stable"))
    useful = [j for j in order if importance[j] >= LEAST_RELEVANCE * max(importance.max(), 1e-300)]
    return importance, order, useful


def grid_of_two(X: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Grid over the range of two inputs: its two axes, and its points, one after the other along the first axis."""
    axes = [np.linspace(low, high, MAP_POINTS) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    return axes, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def leave_one_out(model: Any) -> Any:
    """What each training row is expected to be given the others; None where there is no closed form for it."""
    process = effects.process(model)
    if process is None or process.n_training_rows_ is None:  # a committee does not have all rows in one place
        return None
    if isinstance(getattr(process, "active_rows_", None), list):  # each class has learned from rows of its own
        return None
    try:
        return process.loo()
    except NotImplementedError:
        return None


@dataclasses.dataclass(frozen=True)
class RowNames:
    """What the rows of a table are called, and a sentence that says where these names come from."""

    names: np.ndarray
    told: str

    @classmethod
    def of(cls, X: Any, n: int, kept: Any = None) -> "RowNames":
        """Names of n rows: the index of a table, or their positions. ``kept`` are positions among the rows of X."""
        index = getattr(X, "index", None)
        labels = None if index is None or callable(index) else np.asarray(index, dtype=object)
        if labels is not None and kept is not None:
            labels = labels[kept]
        if labels is None or len(labels) != n:
            return cls(np.array([str(i) for i in range(n)], dtype=object), "Rows are counted from 0.")
        name = getattr(index, "name", None)
        told = {"line": "Rows are lines of the file.", "row": "Rows are counted from 1.", None: INDEX_NAMES}
        return cls(np.array([str(v) for v in labels], dtype=object), told.get(name, f"Rows are named by {name}."))

    def among(self, others: Sequence[object]) -> np.ndarray:
        """Which rows have one of these names."""
        return np.isin(self.names.astype(str), [str(name) for name in others])

    def marked(self, incomplete: Sequence[object]) -> "RowNames":
        """The same, with a star at rows of which cells are missing."""
        if not (gone := self.among(incomplete)).any():
            return self
        names = np.array([f"{n} *" if star else n for n, star in zip(self.names, gone, strict=True)], dtype=object)
        return RowNames(names, f"{self.told} A star marks rows with missing cells, which were filled in.")

    def listed(self, rows: Any, most: int = 5) -> str:
        """The names of some rows in a sentence."""
        return f"{'row' if len(rows) == 1 else 'rows'} {listing([str(v) for v in self.names[rows]], most)}"


def described(columns: Sequence[Input], order: Sequence[int], row: np.ndarray) -> tuple[tuple[str, str], ...]:
    """Names and values of the most relevant inputs of a row of features (D,), in words."""
    return tuple((columns[j].name, columns[j].shown(float(columns[j].values(row[None])[0]), brief)) for j in order)


def subset(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of at most so many of n rows, drawn at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
