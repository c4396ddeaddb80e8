"""The inference contract: from a model and data to the log evidence, its derivatives, and the posterior.

A rule runs to its fixed point at one setting of the hyperparameters and returns the log evidence with its derivative in
every array of the model. Nothing is ever differentiated through sweeps. Rules have no state: what the next run had
better start from is in the result.
"""

import abc
import dataclasses
from typing import Any, ClassVar

from errorband.data import TrainingData
from errorband.model import Model
from errorband.parameters import Module
from errorband.posterior import Posterior
from errorband.predictive import Predictive


@dataclasses.dataclass(frozen=True)
class Status:
    """How a run of an inference rule ended; ``fell_back`` if another rule reached what the one asked did not."""

    converged: bool
    sweeps: int
    message: str
    fell_back: bool = False


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a rule found at one setting of the hyperparameters.

    Attributes
    ----------
    log_evidence : float
    gradient : Model
        Its derivative in every array of the model, in their places.
    state : pytree or None
        What a run at hyperparameters nearby had better start from: the sites.
    status : Status
    rule : Inference
        The rule that was used: the one asked, or another where that reached nothing. Evidences of two rules do not
        compare.
    targets : array (n,) or None
        Derivative of the log evidence in each target, of a rule that has it.
    """

    log_evidence: float
    gradient: Model
    state: Any
    status: Status
    rule: "Inference"
    targets: Any = None


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """Evidence and posterior at the end of a search; fields as in :class:`Evaluation`."""

    log_evidence: float
    posterior: Posterior
    state: Any
    status: Status
    rule: "Inference"


class Inference(Module):
    """A way to the posterior. ``model`` has plain values (no :class:`~errorband.parameters.Parameter`)."""

    @abc.abstractmethod
    def supports(self, model: Model, data: TrainingData) -> str | None:
        """None if the rule can be used; else a sentence that says why not and what can."""

    @abc.abstractmethod
    def evaluate(self, model: Model, data: TrainingData, state: Any = None) -> Evaluation:
        """Log evidence and its derivatives; ``state`` is that of an earlier result nearby."""

    @abc.abstractmethod
    def conclude(self, model: Model, data: TrainingData, state: Any = None) -> Conclusion:
        """Log evidence and posterior, by slower ways if need be."""

    @abc.abstractmethod
    def leave_one_out(self, model: Model, data: TrainingData, state: Any = None) -> Predictive:
        """Distribution of each training target given all the others."""

    def reads_rows(self, model: Model) -> bool:
        """Whether X is read a chunk of rows at a time, so that it may stay in a file."""
        return False

    ep_power: ClassVar[float | None] = None
    """Power of EP that the rule amounts to, 0 for KL; None if it is of another kind."""
