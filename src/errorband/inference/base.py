"""The inference contract: a rule that chooses the sites, and with them the evidence, its derivatives and the posterior.

A rule is given numbers (the prior at the data, see :class:`~errorband.model.PriorAtData`), runs to its fixed point, and
returns the log evidence with its derivative in each of those numbers. The chain rule from there to the hyperparameters
is the same for every model (:mod:`errorband.objective`); nothing is ever differentiated through sweeps.
"""

import abc
import dataclasses
from typing import Any, ClassVar, Protocol

import numpy as np

from errorband.model import Model
from errorband.numerics import pad_rows, padded_size
from errorband.parameters import Printable
from errorband.posterior import Posterior
from errorband.predictive import Predictive


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """Training inputs and targets, as the model sees them.

    Attributes
    ----------
    X : array (n, D)
        Or what gives some rows of it at a time, for rules that ask for no more (see :attr:`Inference.reads_rows`).
    y : array (n,)
    noise_variance : array (n,) or None
        Known variances of the noise of each target, on top of the likelihood's own.
    weights : array (n,) or None
        Power of each likelihood term: 2 counts a row twice.
    """

    X: np.ndarray
    y: np.ndarray
    noise_variance: np.ndarray | None = None
    weights: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> "TrainingData":
        """Some of the rows."""
        optional = (None if a is None else a[which] for a in (self.noise_variance, self.weights))
        return TrainingData(self.X[which], self.y[which], *optional)

    def noise(self, likelihood: Any) -> np.ndarray:
        """Variance of the noise of each target: that of the Gaussian likelihood and, on top of it, what is known."""
        own = np.full(len(self.y), float(likelihood.noise_variance))
        return own if self.noise_variance is None else own + self.noise_variance


@dataclasses.dataclass(frozen=True)
class Status:
    """How a run of an inference rule ended."""

    converged: bool
    sweeps: int
    message: str


class Adjoint(Protocol):
    """Derivatives of the log evidence in the numbers of :meth:`Inference.prior`: a pytree of whatever form."""

    def expand(self) -> Any:
        """The derivatives as :meth:`Inference.inner` takes them. Traced, so that large arrays are made on the fly."""
        ...


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a rule found at one setting of the hyperparameters.

    Attributes
    ----------
    log_evidence : float
    adjoint : Adjoint
        Its derivatives.
    state : pytree or None
        Where the next run, at hyperparameters nearby, had better start: the sites.
    status : Status
    rule : Inference or None
        Rule to go on with, where the one asked reached nothing and another did; evidences of two rules do not compare.
    """

    log_evidence: float
    adjoint: Adjoint
    state: Any
    status: Status
    rule: "Inference | None" = None


class Inference(Printable):
    """A rule that replaces each likelihood term by a Gaussian site."""

    reads_rows: ClassVar[bool] = False
    """Whether the rule asks for some rows of X at a time, so that they may stay in a file; else X is an array."""

    @property
    def last_word(self) -> "Inference | None":
        """Rule that finds evidence and posterior at the hyperparameters this one led to, if it can; None: this one."""
        return None

    @classmethod
    def applies(cls, model: Model) -> bool:
        """Whether the rule is the closed form for this likelihood and approximation: ``inference="auto"`` takes it."""
        return False

    @abc.abstractmethod
    def supports(self, model: Model, data: TrainingData) -> str | None:
        """None if the rule can be used; else a sentence that says why not and what can."""

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """The training inputs as :meth:`prior` takes them: padded, so that folds of any size share compiled code."""
        return pad_rows(X, padded_size(len(X)))

    def prior(self, model: Model, X: Any) -> Any:
        """The numbers that :meth:`evaluate` takes: those at these inputs, unless a rule has use for others. Traced."""
        return model.prior(X)

    def inner(self, model: Model, X: Any, bar: Any) -> Any:
        """⟨bar, prior⟩: its derivative in the model takes derivatives in those numbers to the hyperparameters."""
        return model.inner(X, bar)

    @abc.abstractmethod
    def evaluate(self, prior: Any, data: TrainingData, basis: np.ndarray, state: Any = None) -> Evaluation:
        """Log evidence and its derivatives. ``basis`` (n, p) is integrated out of the mean under a flat prior.

        Arrays of ``prior`` may have more rows than the data: the rest is padding and is left alone.
        """

    @abc.abstractmethod
    def posterior(
        self, model: Model, prior: Any, data: TrainingData, basis: np.ndarray, state: Any = None
    ) -> Posterior:
        """The posterior, for prediction."""

    @abc.abstractmethod
    def leave_one_out(self, prior: Any, data: TrainingData, basis: np.ndarray, state: Any = None) -> Predictive:
        """Distribution of each training target given all the others."""


def no_basis(n: int) -> np.ndarray:
    """The empty basis: nothing is integrated out of the mean."""
    return np.zeros((n, 0))
