"""A start for robust likelihoods with many optima: the kernel that Gaussian noise leads to, made smoother."""

import dataclasses
import functools
from typing import Any

import numpy as np

from errorband import parameters
from errorband.approximations import Exact
from errorband.data import TrainingData
from errorband.inference import Conjugate
from errorband.likelihoods import Gaussian
from errorband.likelihoods.base import robust_scale
from errorband.model import Model
from errorband.training.lbfgs import LBFGS, SETTLE
from errorband.training.scout import Scout, some_rows
from errorband.training.starts import other_starts
from errorband.training.strategy import Found, Maximise, Problem, Settings, Strategy, moved
from errorband.training.tie import Tied, price, ties
from errorband.training.trimmed import trimmed

ITERATIONS = 40  # of each search with Gaussian noise

# Rows from which on some of them can be said to agree, and the noise that such a start has at least, as a share of the
# variance of their targets: a process may well go through all of them.
ENOUGH, LEAST = 20, 1e-6

# Length-scales of each input that pay so many times their price there are not doubted later.
CLEARLY = 2.0


class GaussianFirst(Strategy):
    """Start from the length-scales of a process with Gaussian noise on at most 300 rows, times some factors.

    Which inputs matter, and how much more than others, that process finds in milliseconds for each evaluation, outliers
    or not; also where its evidence does not pay for a length-scale each, which outliers make dear. What outliers spoil
    is that it follows them. So the search starts with a smoother function
    (:attr:`errorband.likelihoods.Likelihood.from_gaussian` has the factors), from which a burst looks wrong. Another
    start is a process of those rows that agree with one another (:mod:`errorband.training.trimmed`), and the starts
    that the likelihood asks for race against these. Only where length-scales were left out, and not where the starts
    are: what a race of them led to before is gone on with.

    Where the rows that agree pay for a length-scale of each input by far, equal ones are not searched for
    (:class:`~errorband.training.tie.Tie`), which would take as long as the race.
    """

    def run(self, problem, settings):
        factors = problem.model.likelihood.from_gaussian
        wanted = isinstance(settings.trainer, LBFGS) and settings.starts and problem.data.y.ndim == 1
        if not factors or not wanted or not other_starts(problem.model, problem.left_out):
            return self.inner.run(problem, settings)
        data = some_rows(problem.data, settings)
        search = functools.partial(gaussian_search, problem, settings)
        try:
            smoother = moved(_with_kernel(problem.model, search(data)), factors, problem.left_out)
            agreeing = [trimmed(data, search)] if len(data.y) >= ENOUGH else []
            each = any(_scales_differ(found, problem, settings) for found in agreeing)
        except np.linalg.LinAlgError:
            return self.inner.run(problem, settings)
        starts = [parameters.pack(_with_kernel(problem.model, found, noise=True)) for found in agreeing]
        known = {"lead": parameters.pack(smoother), "starts": (*starts, *settings.starts)}
        equal = False if each and settings.equal is None else settings.equal
        return self.inner.run(problem, dataclasses.replace(settings, equal=equal, **known))


def gaussian_search(problem: Problem, settings: Settings, data: TrainingData) -> Found:
    """A brief search with Gaussian noise and the first latent function's kernel."""
    latent = dataclasses.replace(problem.model.latents[0], features=None)
    model = Model((latent,), Gaussian(robust_scale(data.y) ** 2), Exact())
    left_out = problem.left_out | {("likelihood", "noise_variance")}
    brief = Settings(_trainer(settings), random_state=settings.random_state)
    return Scout(Maximise()).run(Problem(model, Conjugate(), data, left_out), brief)


def _trainer(settings: Settings) -> LBFGS:
    return LBFGS(max_iter=ITERATIONS, settle=SETTLE).within(settings.seconds / 8)


def _scales_differ(found: Found, problem: Problem, settings: Settings) -> bool:
    """Whether such a search says clearly that a length-scale of each input pays, where there is one to decide on."""
    groups = ties(dataclasses.replace(problem, model=found.objective.model, data=found.objective.data))
    of_all = ties(problem)
    if groups is None or of_all is None or len(np.unique(of_all)) - len(of_all) != len(np.unique(groups)) - len(groups):
        return False
    together: Any = Tied(found.objective, groups)  # stands in for an objective
    equal = _trainer(settings).train(together, together.numbers(found.theta)).result.value
    assert found.result is not None
    return found.result.value > equal + CLEARLY * price(groups, len(found.objective.data.y))


def _with_kernel(model: Model, found: Found, noise: bool = False) -> Model:
    """The model with the kernel of such a search, and if asked for with its noise."""
    fitted, least = found.objective.model_at(found.theta), LEAST * float(np.var(found.objective.data.y))
    values = {e.path: e.value for e in parameters.entries(fitted) if e.path[0] == "latents"}
    if noise:
        likelihood: Any = fitted.likelihood
        values["likelihood", "noise_variance"] = np.maximum(likelihood.noise_variance, least)
    free = {e.path: e.constraint for e in parameters.entries(model) if not e.fixed}
    return parameters.replace_values(model, {k: free[k].inside(v) for k, v in values.items() if k in free})
