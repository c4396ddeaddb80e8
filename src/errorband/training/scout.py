"""Several starts that cost little: short searches on some of the rows, without approximation."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from errorband.approximations import Exact
from errorband.data import TrainingData
from errorband.model import Model, at_values
from errorband.training.lbfgs import LBFGS
from errorband.training.result import FitResult
from errorband.training.starts import lifted, other_starts, plain_prior
from errorband.training.strategy import Problem, Settings, Strategy, interrupted_after

# Rows of a scout, iterations of each of its searches, and those after which one that is behind is given up.
ROWS, ITERATIONS, RACE = 300, 25, 10


class Scout(Strategy):
    """Short searches on at most 300 rows, without approximation and from several starts; the best one is gone on with.

    A search that after ten of its 25 iterations is behind where another was then is given up. Iterations are counted,
    whatever time they take.

    The evidence has several optima: short length-scales and little noise, long ones and much, and for inducing points
    one in which all is noise. Few rows tell them apart, at a price that is small beside that of the search itself.
    Only for Gaussian noise, where an evaluation takes a millisecond, and unless such a search has been made before.
    """

    def run(self, problem, settings):
        trained = None
        model = problem.model
        wanted = isinstance(settings.trainer, LBFGS) and not settings.scouted
        if wanted and self.of_kernel and model.likelihood.conjugate and plain_prior(model):
            model, trained = scouted(problem, settings)
        if trained is None:
            return self.inner.run(problem, settings)
        left = settings.within(settings.seconds - trained.seconds)
        started = dataclasses.replace(problem, model=model)
        try:
            found = self.inner.run(started, left)
        except KeyboardInterrupt:
            if model.approximation.strategies:  # which may have yet to choose rows
                raise
            return interrupted_after(trained, started)
        if found.result is None:
            return found
        result = found.result.after(trained)
        if len(problem.data.y) <= ROWS and all(latent.features is None for latent in model.latents):
            result = dataclasses.replace(result, trace=trained.trace + result.trace)  # of the same function
        return dataclasses.replace(found, result=result)


def some_rows(data: TrainingData, settings: Settings, number: int = ROWS) -> TrainingData:
    """All rows, or this number of them."""
    if len(data.y) <= number:
        return data
    return data.rows(np.sort(check_random_state(settings.random_state).permutation(len(data.y))[:number]))


def scouted(problem: Problem, settings: Any) -> tuple[Model, FitResult | None]:
    """The model at the best starting values that were found, and the search for them if there was one."""
    model, data = problem.model, some_rows(problem.data, settings)
    small = Problem(model.without_features(Exact()), problem.rule, data, problem.left_out)
    objective = small.objective()
    trainer = dataclasses.replace(settings.trainer, max_iter=ITERATIONS, race=RACE).within(settings.seconds / 4)
    others = other_starts(small.model, problem.left_out)
    if not others:
        return model, None
    try:
        told = {"verbose": settings.verbose, "label": f"{settings.name}, starts"}
        found = trainer.train(objective, objective.theta0, restarts=others, **told).result
    except np.linalg.LinAlgError:  # the search proper says so in its own words
        return model, None
    fitted = objective.model_at(found.theta)
    return lifted(at_values(model, fitted)), found
