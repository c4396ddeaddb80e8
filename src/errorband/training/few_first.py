"""Where every evaluation is dear: a search on some of the rows first."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from errorband import interrupts
from errorband.model import at_values
from errorband.training.alike import worth
from errorband.training.lbfgs import LBFGS, SETTLE
from errorband.training.objective import Objective
from errorband.training.result import FitResult
from errorband.training.scout import some_rows
from errorband.training.strategy import Problem, Settings, Strategy, interrupted_after
from errorband.training.tie import Tied, price, ties, worth_asking

# Rows of the first search, and how many times as many there must be.
ROWS, TIMES = 400, 2


class FewFirst(Strategy):
    """Search on 400 rows until that settles; the search on all rows starts from there.

    An evaluation by EP or Laplace takes some thirty times as long with 1,500 rows as with 400, and few rows know most
    of what all do. They also decide whether a length-scale for each input pays (:class:`Tie`): what few rows gain by
    it grows with the rows, and must be worth its price on all of them. Where that hangs on the half nat that any number
    gains by chance, it is left to all rows. The search on all rows ends as soon as it creeps. For likelihoods with
    sites and the whole covariance; several starts race (:class:`RaceFirst`).
    """

    def run(self, problem, settings):
        model = problem.model
        whole = not model.approximation.strategies and all(latent.features is None for latent in model.latents)
        dear = whole and not model.likelihood.conjugate and len(problem.data.y) >= TIMES * ROWS
        known = settings.scouted or settings.starts or settings.lead is not None
        if not isinstance(settings.trainer, LBFGS) or not dear or known:
            return self.inner.run(problem, settings)
        few = Problem(model, problem.rule, some_rows(problem.data, settings, ROWS), problem.left_out).objective()
        brief = dataclasses.replace(settings.trainer, settle=SETTLE)
        half = brief.within(settings.seconds / 2)
        try:
            first = _searched(few, ties(problem), len(problem.data.y), half, settings)
        except np.linalg.LinAlgError:  # no answer on these rows
            return self.inner.run(problem, settings)
        left = 0.0 if first.result.interrupted else settings.seconds - first.result.seconds
        started = dataclasses.replace(problem, model=at_values(model, few.model_at(first.theta)))
        after = settings.within(left, trainer=brief, scouted=True, equal=first.equal)
        try:
            found = self.inner.run(started, after)
        except KeyboardInterrupt:
            return interrupted_after(first.result, started)
        result = found.result
        if result is not None and first.groups is not None and first.strengths is not None:
            result = Tied(found.objective, first.groups).with_cost(result, first.strengths)
        return dataclasses.replace(found, result=None if result is None else result.after(first.result))


class _First(NamedTuple):
    theta: np.ndarray
    result: FitResult
    equal: bool | None = None  # whether length-scales are, if that is known
    strengths: np.ndarray | None = None  # of length-scales that are alike, with all rows
    groups: np.ndarray | None = None


def _searched(few: Objective, groups: np.ndarray | None, n: int, trainer: LBFGS, settings: Settings) -> _First:
    """A search on few of n rows: if there are length-scales to tie, with equal ones, then with one for each input."""
    verbose, label = settings.verbose, f"{settings.name}, first on {ROWS} rows"
    if groups is None:
        result = trainer.train(few, few.theta0, verbose=verbose, label=label).result
        return _First(result.theta, result)
    together: Any = Tied(few, groups)  # stands in for an objective
    tied = trainer.train(together, together.theta0, verbose=verbose, label=f"{label}, tied").result
    theta = together.whole(tied.theta)
    if tied.interrupted:
        return _First(theta, tied)
    freer = dataclasses.replace(few, alike=together.alike)
    each, warm = trainer.within(trainer.seconds - tied.seconds).train(freer, theta, verbose=verbose, label=label)
    gain, result, times = each.value - tied.value, each.after(tied), n / len(few.data.y)
    if freer.alike is None:
        by_chance, worth_it = 0.5 * (len(groups) - len(np.unique(groups))), price(groups, n) / times
        equal = False if gain - by_chance > worth_it else None if gain > worth_it else True
        return _First(theta if equal else each.theta, result, equal)
    if not worth_asking(gain, each):
        return _First(theta, result, True)
    try:
        strengths = freer.alike.strengths(freer, each.theta, warm)
    except KeyboardInterrupt:
        interrupts.caught()
        return _First(theta, result.cut_short(), True)
    if not worth(gain, strengths, n, times):
        return _First(theta, result, True)
    return _First(each.theta, result, False, times * strengths, groups)
