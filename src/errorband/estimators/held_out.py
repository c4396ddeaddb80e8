"""What a model says of rows that it has not learned from."""

import dataclasses

import numpy as np

from errorband.inference import TrainingData
from errorband.model import Model
from errorband.objective import EvidenceObjective
from errorband.posterior import Posterior
from errorband.predictive import Predictive


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A model at some hyperparameters, conditioned on the rows of its objective."""

    model: Model
    log_evidence: float
    posterior: Posterior

    @classmethod
    def at(cls, objective: EvidenceObjective, theta: np.ndarray) -> "Fitted":
        """The model of an objective at a vector."""
        model, prior = objective.at(theta)
        inference, data, basis = objective.inference, objective.data, objective.basis
        found = inference.evaluate(prior, data, basis, objective.state)
        return cls(model, found.log_evidence, inference.posterior(model, prior, data, basis, found.state))

    def predictive(self, held: TrainingData) -> Predictive:
        """Distribution of the targets of rows that the posterior has not seen."""
        mean, cov = self.posterior.marginals(held.X)
        assert cov is not None  # asked for by default
        if held.noise_variance is not None:  # known noise is as good as variance of the function
            cov = cov + held.noise_variance[:, None, None]
        return self.model.likelihood.predictive(mean, cov)
