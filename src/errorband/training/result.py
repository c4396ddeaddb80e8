"""How a search for hyperparameters went, and what a trainer is."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

LATE, WORTH = 10, 0.1  # so many iterations that gained less, in nats, say that more would not matter


def gained_late(trace: Sequence[float], late: int = LATE) -> float:
    """What the last iterations gained together; infinite if there were fewer."""
    return trace[-1] - trace[-1 - late] if len(trace) > late else np.inf


class Stop(enum.StrEnum):
    """Why a search stopped."""

    CONVERGED = "converged"
    NOTHING_FREE = "nothing free"
    MAX_ITER = "max_iter"
    LINE_SEARCH = "line search"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"
    INTERRUPTED_ON_SAMPLE = "interrupted on a sample"


@dataclasses.dataclass(frozen=True)
class FitResult:
    """How a search for hyperparameters went.

    Attributes
    ----------
    value : float
        Best objective found: log evidence, plus log prior where priors were given.
    theta : array
        Unconstrained hyperparameters there.
    gradient_norm : float
        Largest absolute entry of the gradient there.
    iterations, evaluations : int
        Totals over all starts.
    stop : Stop
        Why the start that won ended; ``INTERRUPTED`` if Ctrl-C ended any part of the search.
    limit : float or None
        The limit that ended it: iterations or seconds.
    seconds : float
        Wall time.
    trace : tuple of float
        Objective after each iteration of the start that won.
    starts : tuple of float
        Best objective of each start, the first one first.
    moved : int
        Inducing inputs that had no influence and were moved to where they have some.
    tied : bool
        Whether length-scales were kept equal, as the evidence did not pay for one each.
    n_searched : int or None
        How many numbers were searched for, if length-scales were kept equal or alike: all of these are one.
    n_alike : float
        In how many further numbers length-scales differ that have a prior by which they are alike: those that the data
        determine, and not the prior.
    cost : float
        What these take off the log evidence averaged over them, in nats.
    challenged : str
        What was doubted in a first result, and what searches from other starts made of it; empty if nothing was.
    draws : array (S, P) or None
        Vectors drawn from their posterior, if the trainer is a sampler: predictions average over them.
    chains : Chains or None
        All draws of a sampler, with R̂ and effective numbers of draws.
    """

    value: float
    theta: np.ndarray
    gradient_norm: float
    iterations: int
    evaluations: int
    stop: Stop
    limit: float | None
    seconds: float
    trace: tuple[float, ...]
    starts: tuple[float, ...]
    moved: int = 0
    draws: np.ndarray | None = None
    chains: Any = None
    challenged: str = ""
    tied: bool = False
    n_searched: int | None = None
    n_alike: float = 0.0
    cost: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "stop", Stop(self.stop))  # a file has it as text

    @property
    def converged(self) -> bool:
        """Whether the start that won met the optimiser's tolerance."""
        return self.stop in (Stop.CONVERGED, Stop.NOTHING_FREE)

    @property
    def settled(self) -> bool:
        """Whether it converged, or would gain nothing that matters: the last iterations gained next to nothing.

        At the least noise, or where length-scales go to infinity, the evidence creeps on for ever; a tenth of a nat
        changes no prediction.
        """
        return self.converged or (not self.interrupted and gained_late(self.trace) < WORTH)

    @property
    def n_numbers(self) -> float:
        """How many numbers the data determine; length-scales that were kept equal are one."""
        return (len(self.theta) if self.n_searched is None else self.n_searched) + self.n_alike

    def spent(self, n: int) -> float:
        """What the freedom of these numbers takes off the log evidence of n rows, averaged over them, in nats."""
        return self.cost + 0.5 * (self.n_numbers - self.n_alike) * float(np.log(n))

    def alike_as(self, few: "FitResult", times: float) -> "FitResult":
        """The same, with length-scales as alike as a search on fewer rows found them, by so many times.

        The curvature grows with the rows: each number that the data determine costs half a logarithm of that more.
        """
        if few.cost == 0:
            return self
        more = 0.5 * few.n_alike * float(np.log(times))
        return dataclasses.replace(self, n_searched=few.n_searched, n_alike=few.n_alike, cost=few.cost + more)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.stop in (Stop.INTERRUPTED, Stop.INTERRUPTED_ON_SAMPLE)

    def after(self, *others: "FitResult") -> "FitResult":
        """The same, of a search that others came before: their iterations, evaluations and seconds count too."""
        totals = {name: getattr(self, name) for name in ("iterations", "evaluations", "seconds")}
        return dataclasses.replace(self, **{k: v + sum(getattr(o, k) for o in others) for k, v in totals.items()})

    def cut_short(self) -> "FitResult":
        """The same, of a search that Ctrl-C ended."""
        return self if self.interrupted else dataclasses.replace(self, stop=Stop.INTERRUPTED)

    @property
    def message(self) -> str:
        """Why the search stopped, in a sentence or two."""
        text = {
            Stop.CONVERGED: "Converged.",
            Stop.NOTHING_FREE: "No hyperparameter is free.",
            Stop.MAX_ITER: (
                f"Stopped after max_iter={self.limit:g} iterations; raise it with optimizer=LBFGS(max_iter=...)."
                if self.limit is not None
                else ""
            ),
            Stop.LINE_SEARCH: "The line search found no better point.",
            Stop.OUT_OF_TIME: f"Stopped after {self.limit or 0.0:.3g} s with the best point so far.",
            Stop.INTERRUPTED: "Interrupted; the best point so far was kept.",
            Stop.INTERRUPTED_ON_SAMPLE: "Interrupted after a search on some rows.",
        }[self.stop]
        if self.moved:
            text += f" {self.moved} inducing inputs that had no part in the model were moved to where they have."
        if self.tied:
            text += " Length-scales were kept equal, in standard deviations of the inputs: "
            text += "the evidence did not pay for one each."
        if self.cost > 0:
            text += " Length-scales of the inputs have a prior by which they are alike."
        return f"{text} {self.challenged}".strip()


class Trained(NamedTuple):
    """Result of a trainer, and where inference ended at the vector it returns (for a warm start)."""

    result: FitResult
    warm: Any


class Trainer(Protocol):
    """A way to hyperparameters: an optimiser, or a sampler that fills ``FitResult.draws``."""

    @property
    def seconds(self) -> float:
        """Time limit; infinity if there is none."""
        ...

    def within(self, seconds: float) -> "Trainer":
        """The same with another time limit."""
        ...

    def train(
        self, objective: Any, theta0: np.ndarray, *, restarts: Any = (), verbose: int = 0, label: str = "fit"
    ) -> Trained:
        """Train an :class:`~errorband.training.objective.Objective` from ``theta0`` and from other starts."""
        ...
