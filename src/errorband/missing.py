r"""Predictions for rows with missing inputs: those of the model, averaged over what the missing inputs may be.

A prediction that fills in one value and forgets it is too sure of itself. With inputs :math:`x = (x_o, x_m)`, of which
:math:`x_m` is missing, the target has the distribution

.. math:: p(y \mid x_o) = \int p(y \mid x_o, x_m) \, p(x_m \mid x_o) \, dx_m
    \approx \frac1K \sum_k p(y \mid x_o, x_m^{(k)}),

so its band is wide where the missing input matters and no wider where it does not. A draw is what a regression on the
known inputs expects, plus what it left over at a training row, the donor, of which it expects about the same: all
missing inputs of a row from one donor, so that they go together. Words and dates are those of the donor as they are
(predictive mean matching: Rubin 1986, Little 1988).
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from errorband.effects import quiet
from errorband.parameters.checks import generator
from errorband.predictive import GaussianMixturePredictive, GaussianPredictive, MixturePredictive, Predictive

MOST_DONORS = 1000
N_DRAWS = 64
LEAST_DONORS = 50  # that count for a row at least
BANDWIDTH = 0.3  # of the kernel that weighs donors, in standard deviations of what the regression does not explain
LANDMARKS, BUMPS = 50, 6  # of the regression: bends in all known inputs together, and in each of them
ROWS_AT_ONCE = 1000


@dataclasses.dataclass(frozen=True)
class Donors:
    """Training rows that lend their values to rows in which they are missing.

    Parameters
    ----------
    rows : array (m, D)
        Features of training rows; NaN where they are missing.
    columns : sequence of sequences of int
        Positions of the features that come from one column of a table, and are missing together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> donors = Donors(np.column_stack([x, 2 * x + 0.1 * rng.normal(size=200)]), [(0,), (1,)])
    >>> drawn = donors.completed(np.array([[1.0, np.nan]]))
    >>> drawn.shape, bool(abs(drawn[0, :, 1].mean() - 2) < 0.05), bool(0.07 < drawn[0, :, 1].std() < 0.13)
    ((1, 64, 2), True, True)
    """

    rows: np.ndarray
    columns: tuple[tuple[int, ...], ...]

    def __post_init__(self):
        object.__setattr__(self, "rows", np.asarray(self.rows, dtype=np.float64))
        object.__setattr__(self, "columns", tuple(tuple(map(int, c)) for c in self.columns))

    @classmethod
    def among(cls, X: np.ndarray, columns: Sequence[Sequence[int]], random_state: Any = 0) -> "Donors":
        """Donors drawn from training rows, at most :data:`MOST_DONORS`."""
        if len(X) > MOST_DONORS:
            X = X[np.sort(generator(random_state).choice(len(X), MOST_DONORS, replace=False))]
        return cls(X, tuple(tuple(c) for c in columns))

    def completed(self, X: np.ndarray) -> np.ndarray:
        """Return rows (n, D) with missing features as (n, K, D): each row with K values that they may have had."""
        found = np.repeat(X[:, None, :], N_DRAWS, axis=1)
        missing = np.isnan(X)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for p, gone in enumerate(patterns):
            if gone.any():
                own = np.flatnonzero(which.ravel() == p)
                for part in self._drawn_together(gone):
                    found[np.ix_(own, np.arange(N_DRAWS), part)] = self._draws(X[own], part, ~gone)
        return found

    def filled(self, X: np.ndarray) -> np.ndarray:
        """Return rows (n, D) with the mean of the draws in the place of missing features."""
        return np.where(np.isnan(X), self.completed(X).mean(axis=1), X)

    def _drawn_together(self, gone: np.ndarray) -> list[np.ndarray]:
        """Positions to take from one donor: all that are missing, unless no training row has all of them."""
        whole = np.flatnonzero(gone)
        if np.any(~np.isnan(self.rows[:, whole]).any(axis=1)):
            return [whole]
        return [np.asarray(columns) for columns in self.columns if gone[list(columns)].any()]

    def _draws(self, X: np.ndarray, wanted: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Values (n, K, wanted): what the known features expect of each row, and what they leave over at donors."""
        donors = self.rows[~np.isnan(self.rows[:, wanted]).any(axis=1)]
        whole = donors[~np.isnan(donors[:, known]).any(axis=1)]
        donors = whole if len(whole) >= LEAST_DONORS else donors
        lent = donors[:, wanted]
        left_over, expected_here = _regression(donors[:, known], lent, X[:, known])
        spread = np.sqrt(np.mean(left_over**2, axis=0))
        spread = np.maximum(spread, 1e-3 * np.where(np.ptp(lent, axis=0) > 0, lent.std(axis=0), 1.0))
        apart = cdist(expected_here / spread, (lent - left_over) / spread) / np.sqrt(len(wanted))
        count = min(LEAST_DONORS, len(donors))
        least = np.partition(apart, count - 1, axis=1)[:, count - 1]
        weights = np.exp(-0.5 * (apart / np.maximum(least, BANDWIDTH)[:, None]) ** 2)
        numbers = np.array([any(columns == (place,) for columns in self.columns) for place in wanted])
        steps = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
        drawn = np.empty((len(X), N_DRAWS, len(wanted)))
        for i in range(len(X)):
            values = np.where(numbers, expected_here[i] + left_over, lent)
            # Evenly spaced along the weights of values in their order: quantiles, rather than a random sample of them.
            order = np.lexsort(values.T[::-1])
            reached = np.cumsum(weights[i, order])
            drawn[i] = values[order[np.searchsorted(reached, steps * reached[-1])]]
        for j in np.flatnonzero(numbers):
            if np.all(lent[:, j] == np.round(lent[:, j])):  # counts stay counts, and yes or no stays so
                drawn[:, :, j] = _nearest(drawn[:, :, j], np.unique(lent[:, j]))
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """Return the donors as a dictionary that ``json.dumps`` accepts."""
        rows = [[None if np.isnan(v) else v for v in row] for row in self.rows.tolist()]
        return {"rows": rows, "columns": [list(c) for c in self.columns]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Donors":
        """Return the donors that ``to_dict`` described."""
        columns = tuple(tuple(c) for c in data["columns"])
        rows = np.array([row for row in data["rows"] if len(row) == sum(map(len, columns))], dtype=np.float64)
        if len(rows) != len(data["rows"]):
            raise TypeError("Rows of donors have different lengths.")
        return cls(rows, columns)


def _regression(known: np.ndarray, wanted: np.ndarray, known_here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a regression of wanted on known features leaves over at each donor, left out of it, and expects of rows.

    Ridge regression on the known features as they are, with bumps along each, or with bumps around some donors: that
    with the smallest leave-one-out error, which has a closed form. Known features that are missing count as their mean.
    """
    centre, scale = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    A, here = (np.nan_to_num((rows - centre) / scale) for rows in (known, known_here))
    mean, unit = wanted.mean(axis=0), wanted.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    B = (wanted - mean) / unit
    best, left_over, expected_here = np.inf, B, np.zeros((len(here), B.shape[1]))
    for P, P_here in _bases(A, here):
        centre = P.mean(axis=0)
        U, s, Vt = np.linalg.svd(P - centre, full_matrices=False)
        UB = U.T @ B
        for ridge in len(A) * np.logspace(-6, 1, 8):
            kept = s**2 / (s**2 + ridge)
            leverage = 1 / len(A) + U**2 @ kept
            errors = (B - U @ (kept[:, None] * UB)) / np.maximum(1 - leverage, 1e-6)[:, None]
            if (error := np.mean(errors**2)) < best:
                weights = Vt.T @ ((s / (s**2 + ridge))[:, None] * UB)
                best, left_over, expected_here = error, errors, (P_here - centre) @ weights
    return unit * left_over, mean + unit * expected_here


def _bases(A: np.ndarray, here: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features for a regression, of donors and of rows: straight, bent along each input, bent along all together."""
    if not A.shape[1]:
        return
    yield A, here
    centres = np.quantile(A, np.linspace(0, 1, BUMPS), axis=0)
    marks = A[np.random.default_rng(0).choice(len(A), min(LANDMARKS, len(A)), replace=False)]

    def along_each(rows: np.ndarray) -> np.ndarray:
        return np.hstack([rows, *(np.exp(-0.5 * (rows - centre) ** 2) for centre in centres)])

    def along_all(rows: np.ndarray) -> np.ndarray:
        return np.hstack([rows, np.exp(-0.5 * cdist(rows, marks, "sqeuclidean") / rows.shape[1])])

    yield along_each(A), along_each(here)
    yield along_all(A), along_all(here)


def _nearest(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), values)]


def predictive(model: Any, X: np.ndarray, donors: Donors | None) -> Predictive:
    """Predictive distribution of a regressor at rows (n, D) in which features may be missing."""
    X = np.asarray(X, dtype=np.float64)
    gone = np.isnan(X).any(axis=1)
    if not gone.any():
        return quiet(model.predictive, X)
    parts = [(rows, _averaged(model, _donors(donors).completed(X[rows]))) for rows in _pieces(np.flatnonzero(gone))]
    if not gone.all():
        parts.insert(0, (np.flatnonzero(~gone), quiet(model.predictive, X[~gone])))
    return RowsPredictive(parts)


def probabilities(model: Any, X: np.ndarray, donors: Donors | None) -> np.ndarray:
    """Class probabilities (n, C) of a classifier at rows (n, D) in which features may be missing."""
    X = np.asarray(X, dtype=np.float64)
    gone = np.isnan(X).any(axis=1)
    share = np.zeros((len(X), len(model.classes_)))
    if not gone.all():
        share[~gone] = quiet(model.predict_proba, X[~gone])
    for rows in _pieces(np.flatnonzero(gone)):
        drawn = _donors(donors).completed(X[rows])
        found = quiet(model.predict_proba, drawn.reshape(-1, X.shape[1]))
        share[rows] = found.reshape(len(rows), N_DRAWS, -1).mean(axis=1)
    return share


def expected(model: Any, X: np.ndarray, donors: Donors) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, D) at the mean of what missing features may be, and the variance (n,) of the mean predictions for it."""
    filled, variance = X.copy(), np.zeros(len(X))
    for rows in _pieces(np.arange(len(X))):
        drawn = donors.completed(X[rows])
        filled[rows] = drawn.mean(axis=1)
        variance[rows] = quiet(model.predict, drawn.reshape(-1, X.shape[1])).reshape(len(rows), -1).var(axis=1)
    return filled, variance


def drawn_with_targets(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, columns: Sequence[Sequence[int]], classes: bool, random_state: Any
) -> np.ndarray:
    """Rows (n, D) with one draw for missing features, given the target as well: a pair to learn from as if known.

    A draw that does not look at the target breaks its relation to the input, which then passes for noise.
    """
    targets = (y[:, None] == np.unique(y[train])).astype(float) if classes else y[:, None]
    whole, D = np.column_stack([X, targets]), X.shape[1]
    donors = Donors.among(whole[train], [*columns, tuple(range(D, whole.shape[1]))], random_state)
    rng, filled = np.random.default_rng(random_state), X.copy()
    for rows in _pieces(np.flatnonzero(np.isnan(X).any(axis=1))):
        filled[rows] = donors.completed(whole[rows])[np.arange(len(rows)), rng.integers(N_DRAWS, size=len(rows)), :D]
    return filled


def _averaged(model: Any, drawn: np.ndarray) -> Predictive:
    """The mixture of the predictions for each of K draws, (n, K, D)."""
    n, K, D = drawn.shape
    if isinstance(quiet(model.predictive, drawn[:1, 0]), GaussianPredictive):
        found = quiet(model.predictive, drawn.reshape(-1, D))
        return GaussianMixturePredictive(1 / K, found.mean.reshape(n, K), found.std.reshape(n, K))
    return MixturePredictive(np.ones(K), [quiet(model.predictive, drawn[:, k]) for k in range(K)])


def _donors(donors: Donors | None) -> Donors:
    if donors is None:
        raise ValueError("X has missing cells, and there are no training rows to draw them from: fill them in first.")
    return donors


def _pieces(rows: np.ndarray) -> Iterator[np.ndarray]:
    return (rows[i : i + ROWS_AT_ONCE] for i in range(0, len(rows), ROWS_AT_ONCE))


class RowsPredictive(Predictive):
    """Distributions of different kinds at different rows.

    Parameters
    ----------
    parts : sequence of (positions, Predictive)
        The positions of all parts are 0, 1, …, n − 1, each once.

    Examples
    --------
    >>> p = RowsPredictive([([1], GaussianPredictive([1.0], [1.0])), ([0], GaussianPredictive([0.0], [2.0]))])
    >>> p.mean, p.quantile([0.5, 0.975]).round(2)
    (array([0., 1.]), array([[0.  , 3.92],
           [1.  , 2.96]]))
    """

    def __init__(self, parts: Sequence[tuple[Any, Predictive]]):
        self.parts = [(np.asarray(rows), part) for rows, part in parts]
        self.mean = np.zeros(sum(len(rows) for rows, _ in self.parts))
        self.mean, self.std = self._gather(lambda p, _: p.mean), self._gather(lambda p, _: p.std)
        self.support = getattr(self.parts[0][1], "support", "real")

    def _cdf(self, y, rows):
        return self._of_parts(lambda part, there, at: part._cdf(y[at], there), rows)

    def log_density(self, y):
        targets = self._targets(y)
        return self._gather(lambda part, rows: part.log_density(targets[rows]))

    def _quantiles(self, q, rows):
        return self._of_parts(lambda part, there, at: part._quantiles(q[at], there), rows)

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        return self._gather(lambda part, _: part.sample(n_samples, rng).T).T

    def _of_parts(self, of_part: Any, rows: np.ndarray) -> np.ndarray:
        """A value for each of some rows, asked of its part by the numbers it has there."""
        found = np.empty(len(rows))
        for positions, part in self.parts:
            there = np.full(len(self), -1)
            there[positions] = np.arange(len(positions))
            at = np.flatnonzero(there[rows] >= 0)
            found[at] = of_part(part, there[rows[at]], at)
        return found

    def _gather(self, of_part: Any) -> np.ndarray:
        found = [np.asarray(of_part(part, rows)) for rows, part in self.parts]
        whole = np.empty((len(self.mean), *found[0].shape[1:]))
        for (rows, _), values in zip(self.parts, found, strict=True):
            whole[rows] = values
        return whole
