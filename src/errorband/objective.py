"""From a vector of hyperparameters to the log evidence and its gradient, for every model.

theta ──unpack──▶ model ──prior──▶ numbers at the data ──inference──▶ log evidence
(JAX, differentiated)                    (hand-arranged, any way it likes)
"""

import contextlib
import dataclasses
import functools
import warnings
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from errorband import parameters
from errorband.inference.base import Adjoint, Evaluation, Inference, TrainingData, no_basis
from errorband.model import Model
from errorband.numerics import in_double_precision


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
        if not self.inference.reads_rows:
            self.data = dataclasses.replace(self.data, X=np.asarray(self.data.X))
        self._X = self.inference.inputs(self.data.X)
        self._at_rows = dataclasses.replace(self.model, approximation=self.model.approximation.at_rows(self._X, n))
        self.basis = self._basis() if self.model.mean.marginalize else no_basis(n)
        self._evaluate = self.inference.evaluate  # looked up once: a method of an equinox module is made anew each time
        self.state = None  # where the inference rule last ended: the next run starts there
        self._spent = None  # memory of the last prior, used again for the next: new memory costs time
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
        if self._spent is None:
            self._spent = _empty_prior(self.inference, self._at_rows, theta, self._X)
        prior = _prior_at(self.inference, self._at_rows, theta, self._X, self._spent)
        self._spent = prior
        found = self._evaluate(prior, self.data, self.basis, self.state)
        self._follow(found)
        value = found.log_evidence
        gradient = np.asarray(_pull_back(self.inference, self._at_rows, theta, self._X, found.adjoint))
        if self._has_priors:
            log_prior, log_prior_gradient = _log_prior(self.model, theta)
            value, gradient = value + float(log_prior), gradient + np.asarray(log_prior_gradient)
        return value, gradient

    @in_double_precision
    def conclude(self, prior: Any) -> Evaluation:
        """What is found at the end of a search, by :attr:`inference` or the rule that has its last word."""
        found, closer = self._settled(prior), self.inference.last_word
        if closer is None:
            return found
        with contextlib.suppress(np.linalg.LinAlgError):
            last = closer.evaluate(prior, self.data, self.basis, found.state)
            if last.status.converged:
                self.inference, self._evaluate = closer, closer.evaluate
                return last
        return found

    def _settled(self, prior: Any) -> Evaluation:
        """What the rule finds from where it last ended and, if that leads nowhere, from scratch.

        A rule may have slower ways to its fixed point that it keeps for runs from scratch.
        """
        if self.state is not None:
            with contextlib.suppress(np.linalg.LinAlgError):
                found = self._evaluate(prior, self.data, self.basis, self.state)
                if found.status.converged:
                    return found
        found = self._evaluate(prior, self.data, self.basis)
        self._follow(found)
        return found

    def _follow(self, found: Evaluation) -> None:
        """Go on from there, with the rule that got there: all of a search is with one rule."""
        self.state = found.state
        if found.rule is not None:
            warnings.warn(found.status.message, ConvergenceWarning, stacklevel=4)
            self.inference, self._evaluate = found.rule, found.rule.evaluate

    @in_double_precision
    def at(self, theta: np.ndarray) -> tuple[Model, Any]:
        """Model with plain values at a vector, and its prior at the data."""
        empty = self._spent is None
        spent = _empty_prior(self.inference, self._at_rows, theta, self._X) if empty else self._spent
        self._spent = None  # the caller keeps what we return
        model = jax.tree.map(np.asarray, _unpack(self.model, theta))
        return model, _prior_at(self.inference, self._at_rows, theta, self._X, spent)


@jax.jit
def _unpack(template: Model, theta: Any) -> Model:
    return parameters.unpack(template, theta)


@jax.jit
def _prior(rule: Inference, template: Model, theta: Any, X: Any) -> Any:
    return rule.prior(parameters.unpack(template, theta), X)


@functools.partial(jax.jit, donate_argnums=4, keep_unused=True)
def _prior_at(rule: Inference, template: Model, theta: Any, X: Any, spent: Any) -> Any:
    return _prior(rule, template, theta, X)


def _empty_prior(rule: Inference, template: Model, theta: Any, X: Any) -> Any:
    shapes = jax.eval_shape(_prior, rule, template, theta, X)
    return jax.tree.map(lambda array: jax.device_put(np.empty(array.shape, array.dtype)), shapes)


@jax.jit
def _pull_back(rule: Inference, template: Model, theta: Any, X: Any, adjoint: Adjoint) -> Any:
    """From derivatives in the prior at the data to derivatives in theta: the prior is computed again, in blocks."""
    return jax.grad(lambda t: rule.inner(parameters.unpack(template, t), X, adjoint.expand()))(theta)


@jax.jit
def _log_prior(template: Model, theta: Any) -> Any:
    return jax.value_and_grad(lambda t: parameters.log_prior(template, t))(theta)
