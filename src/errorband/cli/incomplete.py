"""Learning from rows of which cells are missing.

Complete rows alone say how the target depends on the inputs, and where most rows are complete the model learns from
these. Otherwise it learns from complete rows first, and then from all: cells are filled in with what is expected of
them, and the target of such a row has more noise, by the variance that the first model's prediction has over what the
cells may be. So a value that was filled in does not pass for a known one, nor its error for noise of all rows.
"""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from errorband import missing
from errorband.missing import Donors
from errorband.tables.errors import count_of

FEWEST = 30  # complete rows are enough to begin with if there are so many, or half of all
MOST_COMPLETE, MANY = 0.75, 1000  # with such a share of complete rows, or so many, the others are not learned from


@dataclasses.dataclass(frozen=True)
class Learnable:
    """Rows to learn from.

    Attributes
    ----------
    X : DataFrame
        The inputs of all rows of the table.
    usable : array of bool
        Which rows can be learned from: their inputs are complete, or were filled in.
    noise : array or None
        Variance to add to the noise of each row, for what was filled in.
    notes : list of str
        What to say about it.
    """

    X: pd.DataFrame
    usable: np.ndarray
    noise: np.ndarray | None
    notes: list[str]


def at_first(
    X: pd.DataFrame, y: np.ndarray, train: np.ndarray, donors: Donors | None, classes: bool, seed: int
) -> Learnable:
    """Rows to begin with: the complete ones, or all if these are too few, with cells drawn given the target too."""
    complete = ~np.any(X.isna().to_numpy(), axis=1)
    if complete.all():
        return Learnable(X, complete, None, [])
    n, n_complete = int(np.sum(~complete)), int(complete[train].sum())
    if donors is None or n_complete >= min(FEWEST, 0.5 * len(train)):
        told = (
            f"{count_of(n, 'row')} with missing cells: predictions of such rows are averaged over what the cells may "
            "be, and the model learns from the others."
        )
        return Learnable(X, complete, None, [told])
    filled = X.mask(X.isna(), missing.drawn_with_targets(X.to_numpy(), y, train, donors.columns, classes, seed))
    told = (
        f"Only {count_of(n_complete, 'row')} of {len(train):,} to learn from are complete, so the model learns from "
        "values drawn for missing cells as if they were known."
    )
    return Learnable(filled, np.ones(len(X), bool), None, [told])


def then(X: pd.DataFrame, train: np.ndarray, donors: Donors | None, found: Any) -> Learnable | None:
    """All rows, with noise for what was filled in by the model found at first; None if there is nothing to gain."""
    complete = ~np.any(X.isna().to_numpy(), axis=1)
    n_complete = complete[train].sum()
    if donors is None or complete.all() or n_complete >= min(MANY, MOST_COMPLETE * len(train)):
        return None
    likelihood = getattr(found, "likelihood_", None)
    if not (has_fit_parameter(found, "noise_variance") and getattr(likelihood, "conjugate", False)):
        return None
    if getattr(found, "target_transform", None) is not None:
        return None
    mean, variance = missing.expected(found, X.to_numpy()[~complete], donors)
    filled, noise = X.copy(), np.zeros(len(X))
    filled.iloc[~complete], noise[~complete] = mean, variance
    told = (
        f"{count_of(len(mean), 'row')} with missing cells: predictions of such rows are averaged over what the cells "
        "may be. The model learns from them too, with more noise in their targets for what the cells may be."
    )
    return Learnable(filled, np.ones(len(X), bool), noise, [told])
