"""A search for hyperparameters as strategies that compose: each wraps another and adds one thing.

    Grow( MoveDead( SampleFirst( Maximise() )))

An approximation names those it needs (:attr:`errorband.approximations.Approximation.strategies`).
"""

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from errorband import interrupts, parameters
from errorband.data import TrainingData
from errorband.inference import Inference
from errorband.model import Model
from errorband.training.alike import Alike
from errorband.training.lbfgs import draw_restarts
from errorband.training.objective import Objective, Point, Warm
from errorband.training.result import FitResult, Stop, Trainer

NOISIER = 5  # times that noise is tripled


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to search.

    Parameters
    ----------
    trainer : Trainer or None
        None keeps the starting values.
    n_restarts : int
        Additional random starts.
    random_state : int, RandomState or None
    verbose : int
    name : str
        Of the estimator, to show progress with.
    log_scale : float
        Log of what targets were divided by.
    starts : tuple of arrays
        Further vectors to start from.
    lead : array or None
        A vector to start from before all others.
    scouted : bool
        Whether the starting values are those that a search on some of these rows found.
    equal : bool or None
        Whether length-scales that were left out are the same for all inputs, if such a search has decided it.
    """

    trainer: Trainer | None
    n_restarts: int = 0
    random_state: Any = None
    verbose: int = 0
    name: str = "fit"
    log_scale: float = 0.0
    starts: tuple[np.ndarray, ...] = ()
    lead: np.ndarray | None = None
    scouted: bool = False
    equal: bool | None = None

    @property
    def seconds(self) -> float:
        """Time limit; infinity if there is none."""
        return np.inf if self.trainer is None else self.trainer.seconds

    def within(self, seconds: float, **changes: Any) -> "Settings":
        """The same with another time limit, and other fields changed."""
        changed = dataclasses.replace(self, **changes)
        trainer = None if changed.trainer is None else changed.trainer.within(seconds)
        return dataclasses.replace(changed, trainer=trainer)


@dataclasses.dataclass(frozen=True)
class Problem:
    """What to search: a model at its starting values, a rule and data.

    ``left_out`` are the paths of the hyperparameters whose starting values were chosen from the data, and ``alike`` is
    a prior of length-scales, if these have one together.
    """

    model: Model
    rule: Inference
    data: TrainingData
    left_out: frozenset[tuple[str, ...]] = frozenset()
    alike: Alike | None = None

    def objective(self) -> Objective:
        """The function to maximise."""
        return Objective(self.model, self.rule, self.data, self.alike)

    def label(self, settings: Settings) -> str:
        """What progress is shown with."""
        return f"{settings.name}, {len(self.data.y)} rows, {type(self.rule).__name__}"


@dataclasses.dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes
    ----------
    objective : Objective
        Of the rows learned from.
    theta : array
        The hyperparameters found.
    result : FitResult or None
        How the search went; None if there was none.
    warm : Warm or None
        Where inference ended at ``theta``.
    active_rows : array or None
        Positions of the rows learned from; None for all.
    inducing_sweep : InducingSweep or None
        How the number of inducing inputs was chosen, if it was.
    moved_inducing : int or None
        How many inducing inputs were dead and moved; None if there are none or there was no search.
    certificate : GreedyCertificate or None
        How far from the exact model rows that were chosen one after the other are.
    noise_bound : float or None
        The least noise that the search was allowed to claim, if it was bounded.
    """

    objective: Objective
    theta: np.ndarray
    result: FitResult | None
    warm: Warm | None = None
    active_rows: np.ndarray | None = None
    inducing_sweep: Any = None
    moved_inducing: int | None = None
    certificate: Any = None
    noise_bound: float | None = None


def interrupted_after(first: FitResult, problem: Problem) -> Found:
    """What a search on some rows led to, the problem's values, where Ctrl-C came before all rows were seen once."""
    interrupts.caught()
    objective = problem.objective()
    kept = dataclasses.replace(first, theta=objective.theta0, stop=Stop.INTERRUPTED_ON_SAMPLE)
    return Found(objective, objective.theta0, kept)


def further_starts(problem: Problem) -> tuple[np.ndarray, ...]:
    """Vectors to start from besides the first, which the likelihood asks for."""
    first = parameters.pack(problem.model)
    vectors = [
        parameters.pack(moved(problem.model, f, problem.left_out)) for f in problem.model.likelihood.further_starts
    ]
    return tuple(v for v in vectors if not np.array_equal(v, first))


def moved(model: Model, factors: dict[str, float], left_out: frozenset[tuple[str, ...]]) -> Model:
    """The model with hyperparameters that were left out multiplied by factors, by name; values given are kept."""
    values = {
        e.path: e.constraint.inside(factor * np.asarray(e.value))
        for e in parameters.entries(model)
        for name, factor in factors.items()
        if _called(e.path, name) and not e.fixed and e.path in left_out
    }
    return parameters.replace_values(model, values)


def _called(path: tuple[str, ...], name: str) -> bool:
    """Whether a name is that of a hyperparameter, or of several in the parts of a sum."""
    *where, last = name.split(".")
    return path[: len(where)] == tuple(where) and path[-1] == last


def value_at(objective: Objective, theta: np.ndarray, warm: Warm | None = None) -> float:
    """The value at a vector; −∞ where inference has no answer."""
    try:
        value = objective.evaluate(theta, warm).value
    except np.linalg.LinAlgError:
        return -np.inf
    return value if np.isfinite(value) else -np.inf


def with_enough_noise(objective: Objective, theta: np.ndarray) -> np.ndarray:
    """The vector, with as much more noise as inference needs to have an answer there: a search must begin somewhere."""
    noises = [e.path for e in parameters.entries(objective.model) if e.path[-1] == "noise_variance" and not e.fixed]
    for _ in range(NOISIER if noises else 0):
        if value_at(objective, theta) > -np.inf:
            return theta
        found = {e.path: e.value for e in parameters.entries(objective.model_at(theta))}
        found |= {path: 3 * found[path] for path in noises}
        theta = parameters.pack(parameters.replace_values(objective.model, found))
    return theta


class Strategy(abc.ABC):
    """A way to search. ``inner`` is the strategy that it builds on."""

    chooses_rows: ClassVar[bool] = False
    """Whether it decides which rows to learn from."""

    sets_start: ClassVar[bool] = False
    """Whether it changes where the search starts: rows, or starting values."""

    def __init__(self, inner: "Strategy | None" = None):
        self._inner = inner

    @property
    def inner(self) -> "Strategy":
        """The strategy this one wraps."""
        assert self._inner is not None
        return self._inner

    @property
    def of_kernel(self) -> bool:
        """Whether what is found is a process with the model's kernel, or stands for one."""
        return self._inner is None or self._inner.of_kernel

    @abc.abstractmethod
    def run(self, problem: Problem, settings: Settings) -> Found:
        """Search."""


class Start(Strategy):
    """No search: the objective at its starting values."""

    def run(self, problem, settings):
        objective = problem.objective()
        return Found(objective, objective.theta0, None)


@dataclasses.dataclass(frozen=True)
class Begun(Objective):
    """An objective that remembers what it said where searches begin, from scratch, until these ask again."""

    answers: dict[bytes, Point] = dataclasses.field(default_factory=dict)

    def evaluate(self, theta, warm=None):
        key = np.asarray(theta, float).tobytes()
        if key in self.answers:
            return self.answers.pop(key)
        point = super().evaluate(theta, warm)
        if warm is None:
            self.answers[key] = point
        return point


class Maximise(Strategy):
    """One search, from ``settings.lead``, the starting values, some scattered around these, and ``settings.starts``."""

    def run(self, problem, settings):
        if settings.trainer is None:  # the values given are kept, to the last bit
            return Start().run(dataclasses.replace(problem, model=parameters.all_fixed(problem.model)), settings)
        objective = problem.objective()
        theta0 = objective.theta0
        rng = np.random.default_rng(check_random_state(settings.random_state).randint(2**31 - 1))
        scattered = draw_restarts(theta0, settings.n_restarts, rng, parameters.units(problem.model))
        restarts = [*scattered, *settings.starts]
        if settings.lead is not None:
            theta0, restarts = settings.lead, [theta0, *restarts]
        if settings.starts:  # of likelihoods with many optima, for which inference may fail where a search begins
            objective = Begun(problem.model, problem.rule, problem.data, problem.alike)
            theta0, *restarts = (with_enough_noise(objective, theta) for theta in (theta0, *restarts))
        result, warm = settings.trainer.train(
            objective,
            theta0,
            restarts=restarts,
            verbose=settings.verbose,
            label=problem.label(settings),
        )
        return Found(objective, result.theta, result, warm)
