"""How many inducing inputs: ``FITC("auto")`` doubles their number until more would not help."""

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from errorband import parameters
from errorband.approximations.placement import add_places, move_dead, place
from errorband.estimators.certificate import (
    CERTIFIED,
    DISTINCT,
    INTERRUPTED,
    MEMORY_FULL,
    TIME,
    TOLERANCE,
    InducingSweep,
    Step,
    choice,
    enough,
    summary,
)
from errorband.estimators.held_out import Fitted
from errorband.inference import Inference, Sparse, TrainingData
from errorband.inference.gap import evidence_gap
from errorband.likelihoods import ClassLikelihood
from errorband.model import Model, at_values, inducing_inputs
from errorband.objective import EvidenceObjective
from errorband.optimise import FitResult
from errorband.predictive import Predictive

# The sweep learns from at most so many rows, and judges on a tenth of the rows: at least and at most so many.
SWEEP_ROWS, HELD_OUT = 10_000, (100, 5000)

# What sites of inducing points take: about six numbers for each row, latent function and inducing input.
SITE_BYTES = 48

# Given an objective, the seconds left and a second place to start from, None in the first step of the sweep: how the
# search went, None if there is none.
Search = Callable[[EvidenceObjective, float, np.ndarray | None], FitResult | None]


def grow(
    model: Model,
    inference: Inference,
    data: TrainingData,
    search: Search,
    budget: float,
    log_scale: float,
    rng: np.random.RandomState,
) -> tuple[Model, InducingSweep]:
    """The model with as many inducing inputs as help, at the hyperparameters found on the way.

    Some rows are held out. The number is doubled until one of these is true, where L is log evidence per row and H is
    held-out NLPD:

    - from M/2 to M neither L nor H gained 0.01; M is 100 at least;
    - the exact L at these hyperparameters is at most 0.01 above the variational bound; M is 100 at least;
    - every distinct row is an inducing input;
    - time is too short for another step, or memory too small.

    While the predictions of other rows would do as well the number is multiplied by four, and M is 400 at least. The
    smallest number is chosen that is within 0.01 of the best H in H, and in L of the step that has it.

    Each step starts twice: where the step before ended, with the new inducing inputs where most variance is left out;
    and afresh, as too few inducing inputs may have led astray.
    """
    kept, held = _split(data, rng)
    classes = kept.y if isinstance(model.likelihood, ClassLikelihood) else None
    deadline, start, second, stopped = time.perf_counter() + budget, model, None, None
    steps: list[Step] = []
    while stopped is None:
        began = time.perf_counter()
        objective = EvidenceObjective(model, inference, kept)
        result = search(objective, deadline - began, second)
        step = _judged(objective, result, held, log_scale, began)
        steps.append(step)
        number = _next_number(step.n_inducing, kept.X, 4 if step.blind else 2)
        if result is not None and result.interrupted:
            stopped = INTERRUPTED
        elif number == step.n_inducing:
            stopped = DISTINCT
        elif enough(steps):
            stopped = CERTIFIED
        elif _bytes(step.model, len(data.y), number) > start.inducing.memory * 2**30:
            stopped = MEMORY_FULL
        elif deadline - time.perf_counter() < 2 * step.seconds:  # what twice as many take at least
            stopped = TIME
        else:
            model = _enlarged(step.model, kept.X, number, rng)
            afresh = place(start.inducing.init, number, start.kernel, kept.X, classes, rng)
            second = parameters.pack(at_values(start, start, afresh))
    chosen = choice(steps)
    if stopped == DISTINCT and chosen is steps[-1]:  # the rows held out are rows too
        chosen = dataclasses.replace(chosen, model=at_values(chosen.model, chosen.model, np.unique(data.X[:], axis=0)))
    return _numbered(chosen.model), summary(steps, chosen, stopped, budget, len(kept.y), len(held.y), len(data.y))


def _numbered(model: Model) -> Model:
    """With the number of inducing inputs in place of "auto"."""
    approximation = dataclasses.replace(model.inducing, n_inducing=len(inducing_inputs(model)))
    return Model(model.kernel, model.likelihood, model.mean, approximation)


def _split(data: TrainingData, rng: np.random.RandomState) -> tuple[TrainingData, TrainingData]:
    """Rows to learn from, and rows to judge on."""
    n, (least, most) = len(data.y), HELD_OUT
    if n < 8:
        return data, data
    order = rng.permutation(n)
    n_held = min(max(n // 10, least), n // 4, most)
    held, kept = order[:n_held], order[n_held : n_held + SWEEP_ROWS]
    return data.rows(np.sort(kept)), data.rows(np.sort(held))


def _judged(
    objective: EvidenceObjective, result: FitResult | None, held: TrainingData, log_scale: float, began: float
) -> Step:
    """What a search found, judged on the rows held out."""
    kept, found = objective.data, Fitted.at(objective, objective.theta0 if result is None else result.theta)
    nlpd, other = _nlpd(found.predictive(held), held)
    return Step(
        model=at_values(objective.model, found.model),
        log_evidence=found.log_evidence / len(kept.y) - log_scale,
        nlpd=nlpd + log_scale,
        gap=evidence_gap(found.model, kept) / len(kept.y) if Sparse.applies(found.model) else None,
        blind=other - nlpd < TOLERANCE,
        seconds=time.perf_counter() - began,
    )


def _nlpd(predictive: Predictive, held: TrainingData) -> tuple[float, float]:
    """Negative log predictive density per held-out row, weighted if rows are, and what other rows' predictions get."""
    half = len(held.y) // 2
    own, other = (predictive.log_density(y) for y in (held.y, np.roll(held.y, half)))
    return -float(np.average(own, weights=held.weights)), -float(np.average(other, weights=held.weights))


def _next_number(M: int, X: np.ndarray, factor: int) -> int:
    """So many times more, but no more than there are distinct rows."""
    more = factor * M
    some = len(np.unique(X[: 2 * more], axis=0))
    return more if some >= more else min(more, max(M, len(np.unique(X, axis=0))))


def _enlarged(model: Model, X: np.ndarray, n: int, rng: np.random.RandomState) -> Model:
    """With n inducing inputs: those there are, the dead ones moved, and new ones; all distinct rows if there are n."""
    distinct = np.unique(X[: 2 * n], axis=0)
    if len(distinct) <= n and len(distinct := np.unique(X, axis=0)) <= n:
        return at_values(model, model, distinct)
    Z = inducing_inputs(model)
    Z, _ = move_dead(model.kernel, Z, X[rng.permutation(len(X))[: max(5000, len(Z))]])
    return at_values(model, model, add_places(model.kernel, Z, X, n - len(Z), rng))


def _bytes(model: Model, n: int, M: int) -> int:
    """Memory of a search on n rows: some M × M matrices in the closed form, else some N × M for each latent."""
    if Sparse.applies(model):
        return 80 * M**2
    return SITE_BYTES * n * M * model.likelihood.n_latents
