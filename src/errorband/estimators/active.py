"""The rows that a model learns from, where these are not all."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from errorband import parameters
from errorband.approximations import IVM, SubsetOfData
from errorband.estimators.held_out import Fitted
from errorband.estimators.informative import informative_rows
from errorband.inference import Inference, TrainingData
from errorband.likelihoods import Gaussian
from errorband.model import Model, at_values
from errorband.numerics import in_double_precision
from errorband.objective import EvidenceObjective
from errorband.optimise import FitResult


def rows_to_learn_from(model: Model, data: TrainingData, random_state: Any) -> np.ndarray | None:
    """Positions of the rows that the approximation keeps at these hyperparameters, in order; None for all."""
    if isinstance(model.approximation, IVM):
        return _informative(model, data)
    return model.approximation.rows(model.kernel, data.X, random_state, *_with_gaussian_noise(model, data))


def _informative(model: Model, data: TrainingData) -> np.ndarray:
    approximation: Any = model.approximation
    return np.sort(informative_rows(model, data, approximation.n_rows)[0])


@in_double_precision
def _with_gaussian_noise(model: Model, data: TrainingData) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Targets less the prior mean, and the variance of the noise of each, where scores of rows need them."""
    likelihood = parameters.plain(model.likelihood)
    approximation = model.approximation
    if not (isinstance(likelihood, Gaussian) and isinstance(approximation, SubsetOfData) and approximation.scores):
        return None, None
    return data.y - np.asarray(parameters.plain(model.mean).evaluate(data.X[:])), data.noise(likelihood)


@dataclasses.dataclass(frozen=True)
class Turn:
    """Rows, and hyperparameters for them.

    Attributes
    ----------
    rows : array
        Positions, in order.
    objective : EvidenceObjective
        Of these rows.
    result : FitResult
        The search that found the hyperparameters, on these rows or on those before.
    theta : array
        The hyperparameters.
    score : float
        How well rows and hyperparameters together account for all data: the larger the better.
    """

    rows: np.ndarray
    objective: EvidenceObjective
    result: FitResult
    theta: np.ndarray
    score: float


@in_double_precision
def take_turns(
    model: Model,
    inference: Inference,
    data: TrainingData,
    search: Callable[[EvidenceObjective, bool], FitResult],
    rng: np.random.RandomState,
) -> Turn:
    """Rows chosen at the hyperparameters found, hyperparameters for the rows chosen, and so on: the best turn.

    Rows that lower the entropy most are no fair sample: they are those that the model so far predicts worst, or that
    lie far from others. Where hyperparameters are poor their labels look like noise, or like one class; a search on
    them says so, the next choice follows it, and there is no way back. Therefore the first search is on rows drawn at
    random, as many, which suffer from nothing but their small number; and a turn counts for what it says of all rows,

        log p(y_I) + Σ_{n ∉ I} log p(yₙ | y_I),        I the active rows,

    which for the model that calls everything noise is N times that of a coin. Each choice is judged before the search
    on it and after; the first round that does not help is the last. ``search`` is told whether it is the first.
    """
    approximation: Any = model.approximation
    rows = np.sort(rng.permutation(len(data.y))[: approximation.n_rows])
    objective = EvidenceObjective(model, inference, data.rows(rows))
    result = search(objective, True)
    theta, best = result.theta, None
    for _ in range(approximation.rounds):
        before, (fitted, _) = rows, objective.at(theta)
        rows = _informative(fitted, data)
        same = np.array_equal(rows, before)
        if best is not None and same:
            break
        objective = EvidenceObjective(at_values(model, fitted), inference, data.rows(rows))
        chosen = Turn(rows, objective, result, objective.theta0, _score(objective, objective.theta0, rows, data))
        best = chosen if best is None or chosen.score > best.score else best
        if same or result.interrupted or not np.isfinite(chosen.score):
            break
        result = search(objective, False)
        theta = result.theta
        searched = Turn(rows, objective, result, theta, _score(objective, theta, rows, data))
        best = searched if searched.score > best.score else best
        if result.interrupted or not (best is chosen or best is searched):
            break
    assert best is not None  # there is one round or more
    best.objective.state = None  # the search may have ended far from the turn that is kept
    return best


def _score(objective: EvidenceObjective, theta: np.ndarray, rows: np.ndarray, data: TrainingData) -> float:
    """The sum log p(y_I) + Σ_{n ∉ I} log p(yₙ | y_I); −∞ where inference finds no proper posterior."""
    try:
        found = Fitted.at(objective, theta)
    except np.linalg.LinAlgError:
        return -np.inf
    others = data.rows(np.setdiff1d(np.arange(len(data.y)), rows))
    if len(others.y) == 0:
        return found.log_evidence
    log_p = found.predictive(others).log_density(others.y)
    return found.log_evidence + float(np.sum(log_p if others.weights is None else others.weights * log_p))
