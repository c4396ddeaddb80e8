"""Features without influence on the data are moved to where they have some."""

import dataclasses

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts, parameters
from errorband.features.placement import SAMPLE
from errorband.model import at_values
from errorband.training.strategy import Strategy


class MoveDead(Strategy):
    """After a search, move dead inducing inputs and search once more; the better of the two results is kept."""

    def run(self, problem, settings):
        found = self.inner.run(problem, settings)
        result, trainer = found.result, settings.trainer
        if result is None or trainer is None:
            return found
        objective, left = found.objective, settings.seconds - result.seconds
        movable = all(latent.features.movable for latent in objective.model.latents)
        if not movable or result.interrupted or left <= 0:
            return dataclasses.replace(found, moved_inducing=0)
        fitted = objective.model_at(found.theta)
        rows = np.sort(check_random_state(settings.random_state).permutation(len(objective.data.y))[:SAMPLE])
        X = objective.data.X[rows]
        revived = [latent.features.revived(latent.kernel, X) for latent in fitted.latents]
        moved = sum(number for _, number in revived)
        if moved == 0:
            return dataclasses.replace(found, moved_inducing=0)
        start = at_values(objective.model, fitted.with_features([features for features, _ in revived]))
        try:
            again, warm = trainer.within(left).train(
                objective,
                parameters.pack(start),
                verbose=settings.verbose,
                label=f"{problem.label(settings)}, {moved} inducing inputs moved",
            )
        except KeyboardInterrupt:
            interrupts.caught()
            return dataclasses.replace(found, moved_inducing=0)
        except np.linalg.LinAlgError:  # there is no posterior with them there
            return dataclasses.replace(found, moved_inducing=0)
        better = again.value > result.value
        if not better:
            return dataclasses.replace(found, result=result.after(again), moved_inducing=0)
        kept = dataclasses.replace(again.after(result), moved=moved)
        return dataclasses.replace(found, theta=again.theta, result=kept, warm=warm, moved_inducing=moved)
