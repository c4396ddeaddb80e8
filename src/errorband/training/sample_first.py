"""Many rows: a search on a sample of them first."""

import dataclasses

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts
from errorband.model import at_values
from errorband.training.result import Stop
from errorband.training.strategy import Found, Problem, Strategy

# A sample has this many rows, and this many for each feature; it is used if it is less than a quarter of the rows.
ROWS, ROWS_EACH = 5000, 10


class SampleFirst(Strategy):
    """Spend up to half of the time on a random sample of the rows; the search on all starts from there."""

    def run(self, problem, settings):
        n, M = len(problem.data.y), max(latent.features.size for latent in problem.model.latents)
        size = max(ROWS, ROWS_EACH * M)
        if settings.trainer is None or n < 4 * size:
            return self.inner.run(problem, settings)
        rng = np.random.default_rng(check_random_state(settings.random_state).randint(2**31 - 1))
        sample = problem.data.rows(np.sort(rng.choice(n, size, replace=False)))
        objective = Problem(problem.model, problem.rule, sample).objective()
        first, _ = settings.trainer.within(settings.seconds / 2).train(
            objective,
            objective.theta0,
            verbose=settings.verbose,
            label=f"{settings.name}, first on {size} of {n} rows",
        )
        model = at_values(problem.model, objective.model_at(first.theta))
        # After an interrupt, one evaluation on all rows and no more.
        left = 0.0 if first.interrupted else settings.seconds - first.seconds
        try:
            return self.inner.run(dataclasses.replace(problem, model=model), settings.within(left))
        except KeyboardInterrupt:  # before all rows were seen once
            interrupts.caught()
            kept = dataclasses.replace(first, stop=Stop.INTERRUPTED_ON_SAMPLE)
            return Found(dataclasses.replace(problem, model=model).objective(), first.theta, kept)
