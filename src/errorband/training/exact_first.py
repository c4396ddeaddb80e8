"""Length-scales to begin with, where there are many inputs: from an exact search on some rows."""

import dataclasses

import numpy as np
from sklearn.utils import check_random_state

from errorband.approximations import Exact
from errorband.model import at_values
from errorband.training.starts import lifted
from errorband.training.strategy import Maximise, Problem, Strategy

# With at least so many inputs, and twice so many rows as the exact search has, it comes first.
INPUTS, ROWS = 16, 1024


class ExactFirst(Strategy):
    """Begin with kernel, mean and noise of a model without approximation on about 1000 rows, in a quarter of the time.

    Among many inputs of which few matter a model of few features rarely finds these by itself (Lázaro-Gredilla 2010,
    on Pumadyn-32nm).
    """

    sets_start = True

    def run(self, problem, settings):
        n, D = problem.data.X.shape
        if settings.trainer is None or D < INPUTS or n < 2 * ROWS:
            return self.inner.run(problem, settings)
        rng = np.random.default_rng(check_random_state(settings.random_state).randint(2**31 - 1))
        some = problem.data.rows(np.sort(rng.choice(n, ROWS, replace=False)))
        exact = Problem(problem.model.without_features(Exact()), problem.rule, some)
        first = Maximise().run(exact, settings.within(settings.seconds / 4, n_restarts=0))
        model = lifted(at_values(problem.model, first.objective.model_at(first.theta)))
        spent = 0.0 if first.result is None else first.result.seconds
        left = 0.0 if first.result is not None and first.result.interrupted else settings.seconds - spent
        return self.inner.run(dataclasses.replace(problem, model=model), settings.within(left))
