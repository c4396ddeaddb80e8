"""Cross-validation of several methods on the same folds, with paired standard errors, that can be interrupted."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from errorband import metrics
from errorband.cli.candidates import Method
from errorband.predictive import Predictive
from errorband.reporting.classification.scores import class_score
from errorband.reporting.parts.comparison import Comparison, Scores, paired, standard_error


@dataclasses.dataclass(frozen=True)
class Result:
    """Cross-validated figures of one method.

    Attributes
    ----------
    method : Method
    scores : Scores or None
        Metrics, and the losses of all rows: negative log densities, or log losses. None if it failed.
    seconds : float
        Time for all folds.
    behind : Comparison or None
        Its losses against those of the best, row by row; None for the best.
    failure : str
        Why it failed; empty if it did not.
    unfinished : int
        In how many folds a search or an inference warned that it did not converge.
    """

    method: Method
    scores: Scores | None
    seconds: float
    behind: Comparison | None = None
    failure: str = ""
    unfinished: int = 0

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float("inf") if self.scores is None else float(np.mean(self.scores.losses[loss_of(self.scores)]))

    @property
    def standard_error(self) -> float:
        """Of the mean loss."""
        return float("nan") if self.scores is None else standard_error(self.scores.losses[loss_of(self.scores)])

    @property
    def within_chance(self) -> bool:
        """Whether it is the best, or no farther from it than two standard errors of the difference."""
        return self.scores is not None and (self.behind is None or self.behind.verdict == "even")


@dataclasses.dataclass(frozen=True)
class Results:
    """Results, the smallest loss first; how many folds they are from, and whether an interrupt ended it there."""

    rows: list[Result]
    folds: int
    interrupted: bool


def splits(y: np.ndarray, folds: int, seed: int, classes: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and to judge on, of each fold; classes in the same shares, as far as that is possible."""
    rare = classes and np.min(np.bincount(y)[np.unique(y)]) < folds
    kind = StratifiedKFold if classes and not rare else KFold
    return list(kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def cross_validate(
    methods: Sequence[Method],
    X: Any,
    y: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    report: Callable[[str, int], None] = lambda method, fold: None,
    weights: np.ndarray | None = None,
) -> Results:
    """Cross-validate methods, one fold after the other, so that after an interrupt all have the same folds.

    Parameters
    ----------
    methods : sequence of Method
        For classes (given as whole numbers from 0) those that predict probabilities.
    X, y
        A DataFrame or an array, and targets.
    folds : sequence of (array, array)
        From :func:`splits`.
    report : callable
        Told the method and the fold before each fit.
    weights : array, optional
        Of the rows, to learn by; all rows count the same where methods are judged.

    Returns
    -------
    results : Results
        Of the folds that all methods have finished; if an interrupt came in the first, of the methods that have.

    Examples
    --------
    >>> from errorband.cli.candidates import baselines
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (60, 1))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=60)
    >>> found = cross_validate(baselines()[:2], X, y, splits(y, 2, 0, classes=False))
    >>> [row.method.name for row in found.rows], found.rows[1].within_chance
    (['linear regression', 'training mean'], False)
    """
    values = X.iloc if hasattr(X, "iloc") else X
    found: dict[str, list[Any]] = {m.name: [] for m in methods}
    seconds, failures, unfinished = dict.fromkeys(found, 0.0), {}, dict.fromkeys(found, 0)
    interrupted = False
    try:
        for k, (train, test) in enumerate(folds):
            for method in (m for m in methods if m.name not in failures):
                report(method.name, k)
                began = time.perf_counter()
                try:
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        own = None if weights is None else weights[train]
                        found[method.name].append(method.predict(values[train], y[train], values[test], own))
                    if method.searches and any(issubclass(w.category, ConvergenceWarning) for w in caught):
                        unfinished[method.name] += 1
                except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
                    failures[method.name] = " ".join(str(error).split())
                seconds[method.name] += time.perf_counter() - began
    except KeyboardInterrupt:
        interrupted = True
    working = [m for m in methods if m.name not in failures]
    done = min((len(found[m.name]) for m in working), default=0)
    if done == 0:  # nothing but a part of the first fold
        done, working = 1, [m for m in working if found[m.name]]
    failed = [Result(m, None, seconds[m.name], failure=failures[m.name]) for m in methods if m.name in failures]
    if not working and interrupted:
        raise KeyboardInterrupt("Interrupted before a method had predicted a fold, so there is nothing to compare.")
    if not working:
        return Results(failed, len(folds), interrupted)
    rows: list[Any] = [
        Result(
            m,
            _scores(m.name, y, folds[:done], found[m.name][:done]),
            seconds[m.name],
            unfinished=unfinished[m.name],
        )
        for m in working
    ]
    rows.sort(key=lambda r: (not np.isfinite(r.loss), r.loss))
    rows = [rows[0], *(dataclasses.replace(r, behind=_behind(rows[0].scores, r.scores)) for r in rows[1:])]
    return Results([*rows, *failed], done, interrupted)


def loss_of(scores: Scores) -> str:
    """Return the metric by which methods are compared: log loss of classes, NLPD of numbers."""
    return "log_loss" if "log_loss" in scores.losses else "nlpd"


def _behind(best: Scores, other: Scores) -> Comparison:
    return paired(best, other, loss_of(best))


def _scores(name: str, y: np.ndarray, folds: Sequence[Any], found: list[Any]) -> Scores:
    if isinstance(found[0], Predictive):
        return _number_scores(name, y, folds, found)
    share = np.concatenate(found)
    codes = np.concatenate([y[test] for _, test in folds])
    # Each fold is measured against the class frequencies of its own training rows.
    frequency = np.concatenate([
        np.tile(np.bincount(y[train], minlength=share.shape[1]) / len(train), (len(test), 1)) for train, test in folds
    ])  # fmt: skip
    return class_score(name, "", codes, share, frequency)


def _number_scores(name: str, y: np.ndarray, folds: Sequence[Any], found: list[Predictive]) -> Scores:
    density, errors, inside = [], [], []
    for (_, test), predictive in zip(folds, found, strict=True):
        lower, upper = predictive.interval(0.95)
        density.append(predictive.log_density(y[test]))
        errors.append(y[test] - predictive.mean)
        inside.append((lower <= y[test]) & (y[test] <= upper))
    losses, error, held = -np.concatenate(density), np.concatenate(errors), np.concatenate(inside)
    values = {
        "nlpd": metrics.nlpd(-losses),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "coverage": float(np.mean(held)),
    }
    errors_of = {"nlpd": standard_error(losses), "coverage": standard_error(held)}
    return Scores(name, "", values, errors_of, {"nlpd": losses})
