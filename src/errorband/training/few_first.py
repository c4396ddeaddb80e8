"""Where every evaluation is dear: a search on some of the rows first."""

import dataclasses

import numpy as np

from errorband.model import at_values
from errorband.training.lbfgs import LBFGS, SETTLE
from errorband.training.scout import some_rows
from errorband.training.strategy import Problem, Strategy

# Rows of the first search, and how many times as many there must be.
ROWS, TIMES = 400, 2


class FewFirst(Strategy):
    """Search on 400 rows until that settles; the search on all rows starts from there, with equal length-scales too.

    An evaluation by EP or Laplace takes some thirty times as long with 1,500 rows as with 400, and few rows know most
    of what all do. For likelihoods with sites and the whole covariance; several starts race (:class:`RaceFirst`).
    """

    def run(self, problem, settings):
        model = problem.model
        whole = not model.approximation.strategies and all(latent.features is None for latent in model.latents)
        dear = whole and not model.likelihood.conjugate and len(problem.data.y) >= TIMES * ROWS
        known = settings.scouted or settings.starts or settings.lead is not None
        if not isinstance(settings.trainer, LBFGS) or not dear or known:
            return self.inner.run(problem, settings)
        few = Problem(model, problem.rule, some_rows(problem.data, settings, ROWS), problem.left_out).objective()
        brief = dataclasses.replace(settings.trainer, settle=SETTLE).within(settings.seconds / 2)
        try:
            first = brief.train(few, few.theta0, label=f"{settings.name}, first on {ROWS} rows").result
        except np.linalg.LinAlgError:  # no answer on these rows
            return self.inner.run(problem, settings)
        left = 0.0 if first.interrupted else settings.seconds - first.seconds
        started = dataclasses.replace(problem, model=at_values(model, few.model_at(first.theta)))
        found = self.inner.run(started, settings.within(left, scouted=True))
        result = None if found.result is None else found.result.after(first)
        return dataclasses.replace(found, result=result)
