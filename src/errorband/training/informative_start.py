"""Inducing inputs at the rows of an informative vector machine."""

import dataclasses
import warnings
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from errorband.approximations import IVM
from errorband.model import Model, at_values
from errorband.training.strategy import Maximise, Problem, Settings, Strategy
from errorband.training.turns import TakeTurns


class InformativeStart(Strategy):
    """Begin with the hyperparameters that ``IVM`` finds in half of the time, and inducing inputs at its rows."""

    sets_start: ClassVar[bool] = True

    def run(self, problem, settings):
        started = dataclasses.replace(problem, model=informative_start(problem, settings))
        return self.inner.run(started, settings)


def informative_start(problem: Problem, settings: Settings) -> Model:
    """The model at these starting values."""
    model = problem.model
    machine = model.without_features(IVM(max(latent.features.size for latent in model.latents)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # another search follows
        quiet = settings.within(settings.seconds / 2, verbose=0)
        found = TakeTurns(Maximise()).run(dataclasses.replace(problem, model=machine), quiet)
    fitted = found.objective.model_at(found.theta)
    Z = np.asarray(problem.data.X[found.active_rows])
    latents = [
        dataclasses.replace(f, features=l.features.at(Z)) for f, l in zip(fitted.latents, model.latents, strict=True)
    ]
    return at_values(model, Model(tuple(latents), fitted.likelihood, model.approximation))
