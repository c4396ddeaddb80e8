"""Several starts where an evaluation is dear: they race on some of the rows."""

import contextlib
import dataclasses

import numpy as np

from errorband import parameters
from errorband.approximations import Exact
from errorband.model import at_values
from errorband.training.lbfgs import LBFGS, SETTLE
from errorband.training.result import Stop
from errorband.training.scout import some_rows
from errorband.training.strategy import (
    Found,
    Maximise,
    Problem,
    Settings,
    Strategy,
    interrupted_after,
    with_enough_noise,
)

ROWS = 200  # of the race, if there are twice as many
STEEP = 1.0  # an entry of the gradient at which a search that found no better point begins again


class RaceFirst(Strategy):
    """The starts that a likelihood asks for race on 200 rows; the search on all rows goes on from the best.

    Few rows tell optima apart, and cost a tenth of what 500 do. For likelihoods with ``further_starts``. With features
    the race is without them, whatever the number of rows: inducing inputs that move before the gate of a twinned model
    has settled crowd where targets are wrong, and the function follows these. Points at which EP has no answer can end
    the line search of what follows early; it begins once more.
    """

    def run(self, problem, settings):
        seen_through = all(latent.features is not None for latent in problem.model.latents)
        dear = len(problem.data.y) >= 2 * ROWS and not problem.model.approximation.strategies
        if not isinstance(settings.trainer, LBFGS) or not settings.starts or not (dear or seen_through):
            return self.inner.run(problem, settings)
        brief = settings.within(settings.seconds / 2, trainer=dataclasses.replace(settings.trainer, settle=SETTLE))
        try:
            race = Maximise().run(*_without_features(problem, brief))
        except np.linalg.LinAlgError:  # no start has an answer on these rows
            return self.inner.run(problem, settings)
        first = race.result
        assert first is not None
        started = _at(problem, race)
        # After an interrupt, one evaluation on all rows and no more.
        left = 0.0 if first.interrupted else settings.seconds - first.seconds
        alone = settings.within(left, n_restarts=0, starts=(), lead=None)
        try:
            found = self.inner.run(started, alone)
        except KeyboardInterrupt:
            return interrupted_after(first, started)
        except np.linalg.LinAlgError:  # what few rows led to has no answer on all
            return self.inner.run(problem, settings.within(left))
        assert found.result is not None
        before = [first]
        if found.result.stop is Stop.LINE_SEARCH and found.result.gradient_norm > STEEP:
            left -= found.result.seconds
            with contextlib.suppress(np.linalg.LinAlgError):  # from scratch there may be no answer
                again = self.inner.run(_at(problem, found), alone.within(left))
                before.append(found.result)
                found = again
            assert found.result is not None
        return dataclasses.replace(found, result=found.result.after(*before))


def _without_features(problem: Problem, settings: Settings) -> tuple[Problem, Settings]:
    """The problem on few rows, and settings with the same starts."""
    data, model = some_rows(problem.data, settings, ROWS), problem.model
    if model.latents[0].features is None:
        return dataclasses.replace(problem, data=data), settings
    bare = model.without_features(Exact())
    free = {e.path for e in parameters.entries(bare)}

    def vector(theta: np.ndarray) -> np.ndarray:
        found = {e.path: e.value for e in parameters.entries(parameters.unpack(model, theta)) if e.path in free}
        return parameters.pack(parameters.replace_values(bare, found))

    lead = None if settings.lead is None else vector(settings.lead)
    starts = tuple(vector(theta) for theta in settings.starts)
    return Problem(bare, problem.rule, data, problem.left_out), dataclasses.replace(settings, starts=starts, lead=lead)


def _at(problem: Problem, found: Found) -> Problem:
    """The problem at the values found, with as much noise as inference needs on its rows."""
    objective = dataclasses.replace(
        problem, model=at_values(problem.model, found.objective.model_at(found.theta))
    ).objective()
    theta = with_enough_noise(objective, objective.theta0)
    return dataclasses.replace(problem, model=at_values(problem.model, objective.model_at(theta)))
