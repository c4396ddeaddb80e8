"""One length-scale for all inputs, unless the evidence pays for one each."""

import contextlib
import dataclasses
import functools
from typing import Any

import numpy as np

from errorband import interrupts, parameters
from errorband.model import at_values
from errorband.training.alike import Alike, cost, learned, worth
from errorband.training.lbfgs import LBFGS, SETTLE
from errorband.training.objective import Objective, Point, Warm
from errorband.training.result import FitResult, Stop
from errorband.training.starts import scales_from_data
from errorband.training.strategy import Found, Problem, Strategy, value_at

# With more rows than this for each length-scale there is nothing to fear.
ROWS_EACH = 100

# Half a nat is not worth asking how much of it is chance.
LEAST_GAIN = 0.5

# Log of a factor: starts of standardised inputs, half their ranges, differ by less from each other's mean.
UNITS = 2.0


class Tie(Strategy):
    """First search with equal length-scales, then with one for each input, from there; keep the former if that will do.

    Many length-scales over-fit few rows: the evidence, maximised over them all, rises whatever the data. Labels and
    counts say little of each, so there they have a prior by which they are alike, and are kept if they are worth what
    they cost (:class:`~errorband.training.alike.Alike`). Numbers that are measured say more: those of k inputs are
    searched for without a prior and must raise the evidence by ½(k − 1) log n, which is what Laplace's approximation of
    the evidence averaged over them takes off.

    Only where the user left them out, without approximation, and with fewer than 100 rows for each. What was found for
    a model of the same form is another start of the second search, and the better of the two is taken. Where fewer rows
    have decided (``settings.equal``), only one of the two is made.
    """

    def run(self, problem, settings):
        tied = ties(problem)
        if tied is None or not isinstance(settings.trainer, LBFGS):
            return self.inner.run(problem, settings)
        together: Any = Tied(problem.objective(), tied)  # stands in for an objective
        freer = dataclasses.replace(problem, alike=together.alike)
        if settings.equal is False:
            return self.inner.run(freer, settings)
        told: Any = {"verbose": settings.verbose, "label": f"{problem.label(settings)}, tied"}
        # Before a race of several starts this is one of them, and is finished only if it is kept.
        brief = dataclasses.replace(settings.trainer, settle=SETTLE) if settings.starts else settings.trainer
        try:
            first = brief.train(together, together.theta0, **told)
        except np.linalg.LinAlgError:
            return self.inner.run(freer, settings)
        theta, result = together.whole(first.result.theta), first.result
        if result.interrupted:
            kept = dataclasses.replace(result, theta=theta)
            return Found(together.objective, theta, kept, first.warm)
        equal = together.in_full(result)
        if settings.equal:
            return Found(together.objective, theta, dataclasses.replace(result, **equal), first.warm)
        known = together.objective.theta0
        better = settings.scouted and value_at(together.objective, known, first.warm) > result.value
        started = at_values(problem.model, together.objective.model_at(known if better else theta))
        left = settings.seconds - result.seconds
        try:
            found = self.inner.run(dataclasses.replace(freer, model=started), settings.within(left))
            judged = together.judged(found, result.value)
        except KeyboardInterrupt:
            interrupts.caught()
            return Found(together.objective, theta, dataclasses.replace(result, **equal).cut_short(), first.warm)
        except np.linalg.LinAlgError:  # inference that came here step by step may have no answer from scratch
            return Found(together.objective, theta, dataclasses.replace(result, **equal), first.warm)
        assert found.result is not None
        if judged is not None:
            return dataclasses.replace(found, result=judged.after(result))
        before = [found.result]
        if settings.starts:
            left -= found.result.seconds
            with contextlib.suppress(np.linalg.LinAlgError):  # as above
                last = settings.trainer.within(left).train(together, result.theta, **told)
                before.append(result)
                first, result = last, last.result
                equal["theta"] = theta = together.whole(result.theta)
        return Found(together.objective, theta, dataclasses.replace(result.after(*before), **equal), first.warm)


def worth_asking(gain: float, result: FitResult) -> bool:
    """Whether what length-scales that differ cost is worth as many evaluations, after a search that gained so much."""
    return gain > LEAST_GAIN and not result.interrupted and result.stop is not Stop.OUT_OF_TIME


def price(groups: np.ndarray, n: int) -> float:
    """What length-scales of each input must bring in evidence of n rows: ½ log n for each further number."""
    return 0.5 * (len(groups) - len(np.unique(groups))) * float(np.log(n))


def ties(problem: Problem) -> np.ndarray | None:
    """For each entry of the vector the number of the group it moves with; None if there is nothing to tie."""
    model, n = problem.model, len(problem.data.y)
    groups: list[np.ndarray] = []
    next_group, some = 0, False
    for e in parameters.entries(model):
        size = 0 if e.fixed else int(np.sum(e.free))
        equal = e.path in problem.left_out and e.path[-1] == "lengthscale" and size > 1 and n < ROWS_EACH * size
        groups.append(np.full(size, next_group) if equal else next_group + np.arange(size))
        next_group += 1 if equal else size
        some = some or equal
    simple = not model.approximation.strategies  # the whole prior, and all rows
    return np.concatenate(groups) if some and simple else None


@dataclasses.dataclass(frozen=True)
class Tied:
    """An objective as a function of fewer numbers: entries of a group move together.

    Those of standardised inputs are equal. Inputs as they come have units; there the ratios are those that the data
    suggest.
    """

    objective: Objective
    groups: np.ndarray

    @property
    def inference(self) -> Any:
        """The rule of the objective."""
        return self.objective.inference

    @property
    def likelihood(self) -> Any:
        """That of the objective."""
        return self.objective.likelihood

    @property
    def theta0(self) -> np.ndarray:
        """Mean of each group at the starting values."""
        return np.bincount(self.groups, self.objective.theta0) / np.bincount(self.groups)

    @functools.cached_property
    def offset(self) -> np.ndarray:
        """What is added to each entry."""
        fresh = parameters.pack(scales_from_data(self.objective.model, self.objective.data))
        ratios = fresh - (np.bincount(self.groups, fresh) / np.bincount(self.groups))[self.groups]
        return ratios if np.max(np.abs(ratios)) > UNITS else np.zeros(len(ratios))

    @property
    def data(self) -> Any:
        """Those of the objective."""
        return self.objective.data

    @property
    def alike(self) -> Alike | None:
        """The prior of length-scales that may differ, where they have one: with likelihoods of one optimum."""
        soft = self.likelihood.log_concave and not self.likelihood.conjugate
        return Alike(self.groups, self.offset) if soft else None

    def judged(self, found: Found, tied: float) -> FitResult | None:
        """The result of a search with length-scales that may differ, if that is worth more than ``tied``."""
        result = found.result
        assert result is not None
        gain = result.value - tied
        if self.alike is None:
            return result if gain > price(self.groups, len(self.data.y)) else None
        if not worth_asking(gain, result):
            return None
        strengths = self.alike.strengths(found.objective, found.theta, found.warm)
        return self.with_cost(result, strengths) if worth(gain, strengths, len(self.data.y)) else None

    def with_cost(self, result: FitResult, strengths: np.ndarray) -> FitResult:
        """The result of a search with length-scales that are alike, with what these cost."""
        assert self.alike is not None
        spent = cost(strengths) - self.alike.log_prior(result.theta)[0]
        number = len(np.unique(self.groups))
        return dataclasses.replace(result, n_searched=number, n_alike=learned(strengths), cost=spent)

    def with_targets(self, y: np.ndarray) -> "Tied":
        """The same of other targets."""
        return dataclasses.replace(self, objective=self.objective.with_targets(y))

    def whole(self, numbers: np.ndarray) -> np.ndarray:
        """The vector of the objective."""
        return numbers[self.groups] + self.offset

    def in_full(self, result: FitResult) -> dict[str, Any]:
        """What a result of these numbers says of the whole vector."""
        return {"theta": self.whole(result.theta), "tied": True, "n_searched": len(result.theta)}

    def numbers(self, theta: np.ndarray) -> np.ndarray:
        """The numbers of which ``theta`` is the whole vector."""
        return np.bincount(self.groups, theta - self.offset) / np.bincount(self.groups)

    def evaluate(self, numbers: np.ndarray, warm: Warm | None = None) -> Point:
        """Value and gradient, as the objective has them."""
        point = self.objective.evaluate(self.whole(numbers), warm)
        return dataclasses.replace(point, gradient=np.bincount(self.groups, point.gradient))
