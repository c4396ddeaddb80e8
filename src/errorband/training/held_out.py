"""What a model says of rows that it has not learned from."""

import dataclasses

import numpy as np

from errorband.data import TrainingData
from errorband.model import Model
from errorband.posterior import Posterior
from errorband.predictive import Predictive
from errorband.training.objective import Objective, Warm


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A model at some hyperparameters, conditioned on the rows of its objective."""

    model: Model
    log_evidence: float
    posterior: Posterior

    @classmethod
    def at(cls, objective: Objective, theta: np.ndarray, warm: Warm | None = None) -> "Fitted":
        """The model of an objective at a vector."""
        model, found = objective.conclude(theta, warm)
        return cls(model, found.log_evidence, found.posterior)

    def predictive(self, held: TrainingData) -> Predictive:
        """Distribution of the targets of rows that the posterior has not seen."""
        return self.posterior.predictive(self.model.likelihood, held.X, held.noise_variance, held.offset)
