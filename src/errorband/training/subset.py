"""Learn from some of the rows."""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from errorband import parameters
from errorband.data import TrainingData
from errorband.features.placement import PLACEMENTS, SCORES, choose_rows
from errorband.model import Model
from errorband.precision import in_double_precision
from errorband.training.strategy import Strategy


class Subset(Strategy):
    """Choose the rows once, at the starting values, as ``SubsetOfData(n_rows, select=...)`` says."""

    chooses_rows: ClassVar[bool] = True
    sets_start: ClassVar[bool] = True

    def run(self, problem, settings):
        rows = chosen_rows(problem.model, problem.data, settings.random_state)
        found = self.inner.run(dataclasses.replace(problem, data=problem.data.rows(rows)), settings)
        return dataclasses.replace(found, active_rows=rows)


@in_double_precision
def chosen_rows(model: Model, data: TrainingData, random_state: Any) -> np.ndarray:
    """Positions of the rows to learn from, in order."""
    approximation: Any = model.approximation
    how, latent = approximation.select, model.latent
    if how not in SCORES:
        return choose_rows(how, approximation.n_rows, latent.kernel, data.X, random_state)
    if not model.likelihood.conjugate:
        raise ValueError(
            f"SubsetOfData(select={how!r}) is for a Gaussian likelihood; choose one of "
            f"{', '.join(map(repr, PLACEMENTS))}."
        )
    residual = data.y - np.asarray(parameters.plain(latent.mean).evaluate(data.X[:]))
    noise = data.site_noise(parameters.plain(model.likelihood))
    return choose_rows(how, approximation.n_rows, latent.kernel, data.X, random_state, residual, noise)
