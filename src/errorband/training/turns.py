"""Rows and hyperparameters in turn: the informative vector machine."""

import dataclasses
import time
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts
from errorband.data import TrainingData
from errorband.model import Model, at_values
from errorband.precision import in_double_precision
from errorband.training.held_out import Fitted
from errorband.training.informative import informative_rows
from errorband.training.strategy import Found, Problem, Settings, Strategy


class TakeTurns(Strategy):
    """Choose rows at the hyperparameters found, search on the rows chosen, and so on; the best turn is kept.

    Rows that lower the entropy most are no fair sample: they are those that the model so far predicts worst, or that
    lie far from others. Where hyperparameters are poor their labels look like noise, or like one class; a search on
    them says so, the next choice follows it, and there is no way back. Therefore the first search is on rows drawn at
    random, as many, which suffer from nothing but their small number; and a turn is scored by what it says of all rows,

        log p(y_I) + Σ_{n ∉ I} log p(yₙ | y_I),        I the active rows,

    which for a model that calls everything noise is N times that of a coin. Each choice is scored before the search
    on it and after; the first round that does not help is the last. Restarts are of the first search. Without a trainer
    rows are chosen once, at the values given.
    """

    chooses_rows: ClassVar[bool] = True
    sets_start: ClassVar[bool] = True

    @in_double_precision
    def run(self, problem, settings):
        model, data = problem.model, problem.data
        approximation: Any = model.approximation
        if settings.trainer is None:
            rows = _chosen(model, data)
            found = self.inner.run(dataclasses.replace(problem, data=data.rows(rows)), settings)
            return dataclasses.replace(found, active_rows=rows)
        deadline = time.perf_counter() + settings.seconds
        rng = check_random_state(settings.random_state)
        rows = np.sort(rng.permutation(len(data.y))[: approximation.n_rows])
        found, best = self._search(problem, rows, settings), None
        for _ in range(approximation.rounds):
            before, fitted = rows, found.objective.model_at(found.theta)
            rows = _chosen(fitted, data)
            same = np.array_equal(rows, before)
            if best is not None and same:
                break
            turn = Problem(at_values(model, fitted), problem.rule, data)
            chosen = self._unsearched(turn, rows, found)
            best = max(filter(None, (best, chosen)), key=lambda t: t.score)
            if same or _interrupted(found) or not np.isfinite(chosen.score):
                break
            try:
                found = self._search(turn, rows, settings.within(deadline - time.perf_counter(), n_restarts=0))
            except KeyboardInterrupt:  # before the first evaluation of this turn
                interrupts.caught()
                break
            searched = _Turn(found, _score(found, rows, data))
            best = max(best, searched, key=lambda t: t.score)
            if _interrupted(found) or best not in (chosen, searched):
                break
        assert best is not None  # there is one round or more
        return dataclasses.replace(best.found, warm=None)  # a search may have ended far from the turn that is kept

    def _search(self, problem: Problem, rows: np.ndarray, settings: Settings) -> Found:
        found = self.inner.run(dataclasses.replace(problem, data=problem.data.rows(rows)), settings)
        return dataclasses.replace(found, active_rows=rows)

    def _unsearched(self, problem: Problem, rows: np.ndarray, found: Found) -> "_Turn":
        """The rows with the hyperparameters of the search before."""
        objective = dataclasses.replace(problem, data=problem.data.rows(rows)).objective()
        here = Found(objective, objective.theta0, found.result, active_rows=rows)
        return _Turn(here, _score(here, rows, problem.data))


@dataclasses.dataclass(frozen=True, eq=False)
class _Turn:
    """Rows with hyperparameters for them, and how well they account for all data: the larger the better."""

    found: Found
    score: float


def _interrupted(found: Found) -> bool:
    return found.result is not None and found.result.interrupted


def _chosen(model: Model, data: TrainingData) -> np.ndarray:
    approximation: Any = model.approximation
    return np.sort(informative_rows(model, data, approximation.n_rows)[0])


def _score(found: Found, rows: np.ndarray, data: TrainingData) -> float:
    """The sum log p(y_I) + Σ_{n ∉ I} log p(yₙ | y_I); −∞ where inference finds no proper posterior."""
    try:
        fitted = Fitted.at(found.objective, found.theta, found.warm)
    except np.linalg.LinAlgError:
        return -np.inf
    others = data.rows(np.setdiff1d(np.arange(len(data.y)), rows))
    if len(others.y) == 0:
        return fitted.log_evidence
    log_p = fitted.predictive(others).log_density(others.y)
    return fitted.log_evidence + float(np.sum(log_p if others.weights is None else others.weights * log_p))
