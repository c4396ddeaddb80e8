"""From a vector of hyperparameters to the log evidence and its gradient, for every model.

theta ──unpack──▶ model ──rule──▶ log evidence and its derivative in the model ──▶ gradient in theta
    (NumPy)                (arranged by hand, as the rule likes)              (NumPy)
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from errorband import interrupts, parameters
from errorband.data import TrainingData
from errorband.inference import Conclusion, Inference, Status
from errorband.model import Model
from errorband.precision import in_double_precision
from errorband.predictive import Predictive
from errorband.programs import program
from errorband.training.alike import Alike


class Warm(NamedTuple):
    """Where an evaluation ended: the next one nearby had better start there, by the same rule."""

    rule: Inference
    state: Any


@dataclasses.dataclass(frozen=True)
class Point:
    """The objective at one vector.

    Attributes
    ----------
    value : float
        Log evidence, plus log prior where hyperparameters have one.
    gradient : array
    warm : Warm
        For the next evaluation nearby; its rule is the one that was used.
    status : Status
        How the inference rule ended.
    targets : array (n,) or None
        Derivative in each target, of a rule that has it.
    """

    value: float
    gradient: np.ndarray
    warm: Warm
    status: Status
    targets: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Objective:
    """Log evidence, plus log prior where hyperparameters have one, as a function of the unconstrained vector.

    Parameters
    ----------
    model : Model
        Starting point; says which hyperparameters are free and how they are constrained.
    inference : Inference
    data : TrainingData
    alike : Alike or None
        A prior of all length-scales together, beside those of single hyperparameters.
    """

    model: Model
    inference: Inference
    data: TrainingData
    alike: Alike | None = None

    @property
    def theta0(self) -> np.ndarray:
        """Vector of the starting values."""
        return parameters.pack(self.model)

    @property
    def likelihood(self) -> Any:
        """Of the model."""
        return self.model.likelihood

    @in_double_precision
    def evaluate(self, theta: np.ndarray, warm: Warm | None = None) -> Point:
        """Value and gradient at a vector. Pure: the same arguments give the same result."""
        rule, state = (self.inference, None) if warm is None else warm
        theta = np.asarray(theta, float)
        interrupts.safe_point()
        found = rule.evaluate(_unpack(self._packing, theta), self._prepared, state)
        interrupts.safe_point()
        value, gradient = found.log_evidence, self._packing.pull_back(theta, found.gradient)
        if self._has_priors:
            log_prior, log_prior_gradient = _log_prior(self.model, theta)
            value, gradient = value + float(log_prior), gradient + np.asarray(log_prior_gradient)
        if self.alike is not None:
            log_prior, log_prior_gradient = self.alike.log_prior(theta)
            value, gradient = value + log_prior, gradient + log_prior_gradient
        return Point(value, gradient, Warm(found.rule, found.state), found.status, found.targets)

    def with_targets(self, y: np.ndarray) -> "Objective":
        """The same of other targets at these inputs."""
        new = dataclasses.replace(self, data=dataclasses.replace(self.data, y=y))
        old = self._prepared
        prepared = dataclasses.replace(old, y=y)
        # What does not depend on targets is not made again: rows that were padded, and memory.
        held = [name for name in ("padded", "on_device", "spare") if name in vars(old)]
        vars(prepared).update({name: getattr(old, name) for name in held})
        vars(new).update(_packing=self._packing, _prepared=prepared)
        return new

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at a vector, each time from scratch: for optimisers and samplers of your own."""
        point = self.evaluate(theta)
        return point.value, point.gradient

    def model_at(self, theta: np.ndarray) -> Model:
        """Model with plain values at a vector."""
        return _unpack(self._packing, np.asarray(theta, float))

    @in_double_precision
    def conclude(self, theta: np.ndarray, warm: Warm | None = None) -> tuple[Model, Conclusion]:
        """Model with plain values at a vector, its evidence and posterior."""
        rule, state = (self.inference, None) if warm is None else warm
        model = self.model_at(theta)
        return model, rule.conclude(model, self._prepared, state)

    @in_double_precision
    def leave_one_out(self, theta: np.ndarray) -> Predictive:
        """Predictions of each row from the others at a vector, of a rule that has them in closed form."""
        return self.inference.leave_one_out(self.model_at(theta), self._prepared, None)

    @functools.cached_property
    def _packing(self) -> parameters.Packing:
        return parameters.Packing(self.model)

    @functools.cached_property
    def _prepared(self) -> TrainingData:
        return prepared(self.model, self.inference, self.data)

    @functools.cached_property
    def _has_priors(self) -> bool:
        return any(e.prior and not e.fixed for e in parameters.entries(self.model))


@in_double_precision
def prepared(model: Model, rule: Inference, data: TrainingData) -> TrainingData:
    """Data with what the rule reads: the basis of a marginalised mean, and how the approximation arranges the rows."""
    if rule.reads_rows(model):
        return dataclasses.replace(data)
    data = dataclasses.replace(data, X=np.asarray(data.X))
    mean = parameters.plain(model.latent.mean)
    return dataclasses.replace(
        data,
        basis=np.asarray(mean.basis(data.X)) if mean.marginalize else None,
        layout=model.approximation.layout(data.padded, len(data.y)),
    )


def _unpack(packing: parameters.Packing, theta: np.ndarray) -> Model:
    """The model as searches and what comes after them have it: of NumPy's arrays."""
    return jax.tree.map(np.asarray, packing.unpack(theta))


@program
def _log_prior(template: Model, theta: Any) -> Any:
    return jax.value_and_grad(lambda t: parameters.log_prior(template, t))(theta)
