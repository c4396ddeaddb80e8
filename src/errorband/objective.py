"""From a vector of hyperparameters to the log evidence and its gradient, for every model.

theta ──unpack──▶ model ──prior──▶ numbers at the data ──inference──▶ log evidence
(JAX, differentiated)                    (hand-arranged, any way it likes)
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from errorband import parameters
from errorband.inference.base import Adjoint, Inference, TrainingData, no_basis
from errorband.model import Model, PriorAtData
from errorband.numerics import in_double_precision, pad_rows, padded_size


@dataclasses.dataclass
class EvidenceObjective:
    """Log evidence, plus log prior where hyperparameters have one, as a function of the unconstrained vector.

    Parameters
    ----------
    model : Model
        Starting point; says which hyperparameters are free and how they are constrained.
    inference : Inference
    data : TrainingData
    """

    model: Model
    inference: Inference
    data: TrainingData

    def __post_init__(self):
        n = len(self.data.y)
        self._X = pad_rows(self.data.X, padded_size(n))
        self.basis = self._basis() if self.model.mean.marginalize else no_basis(n)
        self.state = None  # where the inference rule last ended: the next run starts there
        self._has_priors = any(e.prior and not e.fixed for e in parameters.entries(self.model))

    @in_double_precision
    def _basis(self) -> np.ndarray:
        return np.asarray(self.model.mean.basis(self.data.X))

    @property
    def theta0(self) -> np.ndarray:
        """Vector of the starting values."""
        return parameters.pack(self.model)

    @in_double_precision
    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and gradient at a vector."""
        prior, pull = _prior_and_pullback(self.model, theta, self._X)
        found = self.inference.evaluate(prior, self.data, self.basis, self.state)
        self.state = found.state
        value, gradient = found.log_evidence, np.asarray(_pull_back(pull, found.adjoint))
        if self._has_priors:
            log_prior, log_prior_gradient = _log_prior(self.model, theta)
            value, gradient = value + float(log_prior), gradient + np.asarray(log_prior_gradient)
        return value, gradient

    @in_double_precision
    def at(self, theta: np.ndarray) -> tuple[Model, PriorAtData]:
        """Model with plain values at a vector, and its prior at the data."""
        model = jax.tree.map(np.asarray, _unpack(self.model, theta))
        return model, _prior(model, self._X)


@jax.jit
def _prior_and_pullback(template: Model, theta: Any, X: Any) -> tuple[PriorAtData, Any]:
    return jax.vjp(lambda t: parameters.unpack(template, t).prior(X), theta)


@jax.jit
def _pull_back(pull: Any, adjoint: Adjoint) -> Any:
    return pull(adjoint.expand())[0]


@jax.jit
def _log_prior(template: Model, theta: Any) -> Any:
    return jax.value_and_grad(lambda t: parameters.log_prior(template, t))(theta)


@jax.jit
def _unpack(template: Model, theta: Any) -> Model:
    return parameters.unpack(template, theta)


@jax.jit
def _prior(model: Model, X: Any) -> PriorAtData:
    return model.prior(X)
