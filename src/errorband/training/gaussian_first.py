"""A start for robust likelihoods with many optima: the kernel that Gaussian noise leads to, made smoother."""

import dataclasses
from typing import Any

import numpy as np

from errorband import parameters
from errorband.approximations import Exact
from errorband.inference import Conjugate
from errorband.likelihoods import Gaussian
from errorband.likelihoods.base import robust_scale
from errorband.model import Model
from errorband.training.lbfgs import LBFGS
from errorband.training.scout import Scout, some_rows
from errorband.training.starts import other_starts
from errorband.training.strategy import Maximise, Problem, Settings, Strategy, moved

ITERATIONS = 40  # of each search with Gaussian noise


class GaussianFirst(Strategy):
    """Start from the length-scales of a process with Gaussian noise on at most 300 rows, times some factors.

    Which inputs matter, and how much more than others, that process finds in milliseconds for each evaluation, outliers
    or not; also where its evidence does not pay for a length-scale each, which outliers make dear. What outliers spoil
    is that it follows them. So the search starts with a smoother function
    (:attr:`errorband.likelihoods.Likelihood.from_gaussian` has the factors), from which a burst looks wrong, and the
    other starts race against that one. Only where length-scales were left out.
    """

    def run(self, problem, settings):
        factors = problem.model.likelihood.from_gaussian
        wanted = isinstance(settings.trainer, LBFGS) and problem.data.y.ndim == 1
        if not factors or not wanted or not other_starts(problem.model, problem.left_out):
            return self.inner.run(problem, settings)
        try:
            kernel = gaussian_kernel(problem, settings)
        except np.linalg.LinAlgError:
            return self.inner.run(problem, settings)
        smoother = moved(parameters.replace_values(problem.model, kernel), factors, problem.left_out)
        lead = parameters.pack(smoother)
        return self.inner.run(problem, dataclasses.replace(settings, lead=lead))


def gaussian_kernel(problem: Problem, settings: Settings) -> dict[tuple[str, ...], Any]:
    """Values of the first latent function's kernel that a search with Gaussian noise ends with, by path."""
    data = some_rows(problem.data, settings)
    latent = dataclasses.replace(problem.model.latents[0], features=None)
    model = Model((latent,), Gaussian(robust_scale(data.y) ** 2), Exact())
    left_out = problem.left_out | {("likelihood", "noise_variance")}
    trainer = LBFGS(max_iter=ITERATIONS, settle=True).within(settings.seconds / 4)
    brief = Settings(trainer, random_state=settings.random_state)
    found = Scout(Maximise()).run(Problem(model, Conjugate(), data, left_out), brief)
    fitted = found.objective.model_at(found.theta)
    return {e.path: e.value for e in parameters.entries(fitted) if e.path[0] == "latents"}
