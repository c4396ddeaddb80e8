"""How many inducing inputs: ``FITC("auto")`` doubles their number until more would not help."""

import dataclasses
import sys
import time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts, parameters
from errorband.data import TrainingData
from errorband.model import Model, at_values
from errorband.predictive import Predictive
from errorband.training.certificate import (
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
from errorband.training.gap import evidence_gap
from errorband.training.held_out import Fitted
from errorband.training.sample_first import SampleFirst
from errorband.training.strategy import Found, Maximise, Problem, Settings, Strategy

# The sweep learns from at most so many rows, and judges on a tenth of the rows: at least and at most so many.
SWEEP_ROWS, HELD_OUT = 10_000, (100, 5000)

# Bytes that sites of inducing points take for each row, latent function and inducing input: about six numbers.
SITE_BYTES = 48

# A thousandth of the tolerance of the sweep, or less, is good enough for a step on the way.
SWEEP_TOLERANCE = 1e-6


class Grow(Strategy):
    """First find as many inducing inputs as help, with restarts, where searches are short; then search on all rows."""

    def run(self, problem, settings):
        approximation: Any = problem.model.approximation
        budget, deadline = min(approximation.budget, settings.seconds / 2), time.perf_counter() + settings.seconds
        model, sweep = grow(problem, settings, budget)
        if settings.verbose > 0:
            print(f"{settings.name}: {sweep.certificate}", file=sys.stderr)
        # After an interrupt, one evaluation on all rows and no more.
        left = 0.0 if sweep.interrupted else deadline - time.perf_counter()
        # Other vectors to start from are of another length now, and have been tried.
        last = settings.within(left, n_restarts=0, starts=(), lead=None)
        found = self.inner.run(dataclasses.replace(problem, model=model), last)
        return dataclasses.replace(found, inducing_sweep=sweep)


def grow(problem: Problem, settings: Settings, budget: float) -> tuple[Model, InducingSweep]:
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
    model, data, rng = problem.model, problem.data, check_random_state(settings.random_state)
    approximation: Any = model.approximation
    kept, held = _split(data, rng)
    classes = kept.y if model.likelihood.classes else None
    deadline, start, second, stopped = time.perf_counter() + budget, model, None, None
    steps: list[Step] = []
    while stopped is None:
        began = time.perf_counter()
        try:
            found = _search(Problem(model, problem.rule, kept), settings, deadline - began, second)
        except KeyboardInterrupt:
            if not steps:
                raise
            interrupts.caught()
            stopped = INTERRUPTED
            break
        step = _judged(found, held, settings.log_scale, began)
        steps.append(step)
        number = _next_number(step.n_inducing, kept.X, 4 if step.blind else 2)
        if found.result is not None and found.result.interrupted:
            stopped = INTERRUPTED
        elif number == step.n_inducing:
            stopped = DISTINCT
        elif enough(steps):
            stopped = CERTIFIED
        elif _bytes(step.model, len(data.y), number) > approximation.memory * 2**30:
            stopped = MEMORY_FULL
        elif deadline - time.perf_counter() < 2 * step.seconds:  # what twice as many take at least
            stopped = TIME
        else:
            larger = [l.features.enlarged(l.kernel, kept.X, number, rng) for l in step.model.latents]
            model = step.model.with_features(larger)
            afresh = [l.features.afresh(l.kernel, kept.X, number, classes, rng) for l in start.latents]
            second = parameters.pack(start.with_features(afresh))
    chosen = choice(steps)
    if stopped == DISTINCT and chosen is steps[-1]:  # the rows held out are rows too
        every = [l.features.at(np.unique(data.X[:], axis=0)) for l in chosen.model.latents]
        chosen = dataclasses.replace(chosen, model=chosen.model.with_features(every))
    counts = len(kept.y), len(held.y), len(data.y)
    return chosen.model, summary(steps, chosen, stopped, budget, approximation.memory, *counts)


def _search(problem: Problem, settings: Settings, seconds: float, second: np.ndarray | None) -> Found:
    """One step of the sweep; restarts are of the first."""
    brief = settings.within(seconds)
    if second is not None:
        brief = dataclasses.replace(brief, n_restarts=0, starts=(second,), lead=None)
    if hasattr(brief.trainer, "tolerance"):
        trainer: Any = brief.trainer
        tolerance = max(trainer.tolerance, SWEEP_TOLERANCE)
        brief = dataclasses.replace(brief, trainer=dataclasses.replace(trainer, tolerance=tolerance))
    return SampleFirst(Maximise()).run(problem, brief)


def _split(data: TrainingData, rng: np.random.RandomState) -> tuple[TrainingData, TrainingData]:
    """Rows to learn from, and rows to judge on."""
    n, (least, most) = len(data.y), HELD_OUT
    if n < 8:
        return data, data
    order = rng.permutation(n)
    n_held = min(max(n // 10, least), n // 4, most)
    held, kept = order[:n_held], order[n_held : n_held + SWEEP_ROWS]
    return data.rows(np.sort(kept)), data.rows(np.sort(held))


def _judged(found: Found, held: TrainingData, log_scale: float, began: float) -> Step:
    """What a search found, judged on the rows held out."""
    objective = found.objective
    kept, fitted = objective.data, Fitted.at(objective, found.theta, found.warm)
    nlpd, other = _nlpd(fitted.predictive(held), held)
    return Step(
        model=at_values(objective.model, fitted.model),
        log_evidence=fitted.log_evidence / len(kept.y) - log_scale,
        nlpd=nlpd + log_scale,
        gap=evidence_gap(fitted.model, kept) / len(kept.y) if fitted.model.likelihood.conjugate else None,
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


def _bytes(model: Model, n: int, M: int) -> int:
    """Memory of a search on n rows: some M × M matrices in the closed form, else some N × M for each latent."""
    if model.likelihood.conjugate:
        return 80 * M**2
    return SITE_BYTES * n * M * model.likelihood.n_latents
