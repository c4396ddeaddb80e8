"""The trainer that maximises: SciPy's L-BFGS-B with restarts, progress, and a result that says how it went."""

import contextlib
import dataclasses
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from errorband import interrupts
from errorband.parameters.checks import check_number, check_whole
from errorband.training.objective import Objective, Warm
from errorband.training.result import LATE, WORTH, FitResult, Stop, Trained, gained_late

# Value and gradient at an unconstrained vector; LinAlgError marks a bad point.
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]

# The search stays within this distance, per unconstrained number, of where it starts: a factor e^±25 for a scale.
REACH = 25.0

# Iterations after which a search that only creeps has settled, if its result is to be gone on with.
SETTLE = 5

# So many starts all have the whole of a heat, and the best of them is the answer wherever it ends.
FEW = 3

# An entry of the gradient at which a search that found no better point is stuck.
STEEP = 1.0

# In so many iterations a search knows little of the curvature. Of steps then in which an unconstrained number changed
# by more than this nearly all were too long, and half ended where EP has no answer, which takes it longest to see.
EARLY, LONG = 3, 2.0

# A value is none if it is this much below the best so far, relatively.
FAR_BELOW = 1e10

# A bad point is told to be worse than where the line search began by as much as the slope there promised, or by this,
# relatively. The search then comes back nine tenths of the way; of a value far below it would make a step too short.
BELOW = 1e-6


@dataclasses.dataclass(frozen=True)
class LBFGS:
    """Settings of the search, as ``GPRegressor(optimizer=LBFGS(max_iter=50))``.

    Parameters
    ----------
    max_iter : int
        Iterations per start.
    tolerance : float
        Stop when an iteration improves the objective by less than this, relatively. With another value than the
        default, here or below, estimators leave ``settle`` and ``heat`` as they are given.
    gradient_tolerance : float
        Stop when no entry of the gradient is larger.
    max_seconds : float or None
        Stop after this time with the best point so far.
    settle : int or None
        Stop when so many iterations gained less than a hundredth of a nat each. Five are enough to compare models, or
        to go on from. With Gaussian noise a search may creep and then find its way: ten iterations say nothing there.
    race : int or None
        After so many iterations give up a start that is behind where the best one before it was then.
    heat : int or None
        Of several starts, each first runs for so many iterations; only the best of them goes on. Cheaper than a race,
        in which each new leader runs to its end. Of more than three starts the better half alone runs for more than a
        third of these; where the best ends on a slope, at points that have no value, the next best goes on too; and in
        the first three iterations no step is looked at that changes a scale more than sevenfold.

    Examples
    --------
    >>> import numpy as np
    >>> found = LBFGS(max_iter=50).maximise(lambda x: (-float(x @ x), -2.0 * x), np.array([3.0]))
    >>> found.theta.round(3) + 0.0, found.converged
    (array([0.]), True)
    """

    max_iter: int = 200
    tolerance: float = 1e-9
    gradient_tolerance: float = 1e-3
    max_seconds: float | None = None
    settle: int | None = None
    race: int | None = None
    heat: int | None = None

    def __post_init__(self):
        check_whole("LBFGS", "max_iter", self.max_iter)
        for name in ("settle", "race", "heat"):
            if getattr(self, name) is not None:
                check_whole("LBFGS", name, getattr(self, name))
        for name in ("tolerance", "gradient_tolerance"):
            check_number("LBFGS", name, getattr(self, name), "a number, zero or more", zero=True)
        if self.max_seconds is not None:
            check_number("LBFGS", "max_seconds", self.max_seconds, "seconds, zero or more, or None", zero=True)

    @property
    def usual_precision(self) -> bool:
        """Whether nothing was said of it: then a search may end as soon as more of it would not matter."""
        return (self.tolerance, self.gradient_tolerance) == (LBFGS.tolerance, LBFGS.gradient_tolerance)

    @property
    def seconds(self) -> float:
        """The time limit; infinity if there is none."""
        return np.inf if self.max_seconds is None else self.max_seconds

    def within(self, seconds: float) -> "LBFGS":
        """The same with another time limit."""
        return dataclasses.replace(self, max_seconds=max(seconds, 0.0) if np.isfinite(seconds) else None)

    def train(
        self, objective: Objective, theta0: np.ndarray, *, restarts: Any = (), verbose: int = 0, label: str = "fit"
    ) -> Trained:
        """Maximise the objective; each evaluation starts where the one before ended."""
        follow = _Follow(objective, [theta0, *restarts])
        result = self.maximise(follow, theta0, restarts=restarts, verbose=verbose, label=label)
        return Trained(result, follow.best)

    def maximise(
        self,
        objective: Function,
        theta0: np.ndarray,
        *,
        restarts: Any = (),
        verbose: int = 0,
        label: str = "fit",
    ) -> FitResult:
        """Maximise from ``theta0`` and from each row of ``restarts``; the best start wins."""
        starts = [theta0, *restarts]
        began, runs = time.perf_counter(), []
        deadline = began + self.seconds
        with interrupts.deferred(), _progress(verbose, label, len(starts)) as report:
            heats = self._heats(len(starts))
            brief = dataclasses.replace(self, max_iter=heats[0]) if heats else self
            for start in starts:
                run = _Run(objective, report, deadline, _ahead(runs, self.race), wary=len(heats) > 1)
                runs.append(run)
                try:
                    run.search(start, brief)
                except KeyboardInterrupt:  # before this start was looked at
                    if not any(np.isfinite(r.best_value) for r in runs):
                        raise
                    interrupts.caught()
                if run.stop_all:
                    break
            if heats:
                self._go_on(runs, starts, heats[1:])
            best = max(runs, key=lambda r: r.best_value)
        if not np.isfinite(best.best_value):
            why = (best.last_failure or "it is not finite").rstrip(".")
            raise np.linalg.LinAlgError(
                f"No starting point has a usable objective: {why}. Check the scale of the data and the kernel's values."
            )
        return FitResult(
            value=best.best_value,
            theta=best.best_theta,
            gradient_norm=float(np.max(np.abs(best.best_gradient), initial=0.0)),
            iterations=sum(len(r.trace) for r in runs),
            evaluations=sum(r.evaluations for r in runs),
            stop=Stop.INTERRUPTED if any(r.stop is Stop.INTERRUPTED for r in runs) else best.stop,
            limit=best.limit,
            seconds=time.perf_counter() - began,
            trace=tuple(best.trace),
            starts=tuple(r.best_value for r in runs),
        )

    def _heats(self, n_starts: int) -> list[int]:
        """Iterations at which some of the starts are left behind."""
        if self.heat is None or n_starts == 1 or self.heat >= self.max_iter:
            return []
        return [max(self.heat // 3, 1), self.heat] if n_starts > FEW else [self.heat]

    def _go_on(self, runs: "list[_Run]", starts: list[np.ndarray], heats: list[int]) -> None:
        """The better half of the starts in further heats, then the best of all, or the next where that gets stuck."""

        def further(run: _Run, iterations: int) -> None:
            if run.stop is Stop.MAX_ITER and not any(r.stop_all for r in runs):
                run.search(starts[runs.index(run)], dataclasses.replace(self, max_iter=iterations))

        for iterations in heats:
            for run in _ranked(runs)[: len(runs) // 2]:
                further(run, iterations)
        for run in _ranked(runs):
            further(run, self.max_iter)
            if len(runs) <= FEW or not run.stuck:
                break


class _Known(NamedTuple):
    """Where inference ended at a point."""

    theta: np.ndarray
    warm: Warm
    value: float


class _Follow:
    """An objective as a function, with the inference of each evaluation started where one nearby ended.

    That is the last evaluation, the best, which a search goes back to after a step too far, or the last before another
    start was looked at, which may be gone on with. If the rule fell back on another, that one is used for the rest of
    the search: evidences of two do not compare. Where inference is annealed, each start of the search is one of
    inference too.
    """

    def __init__(self, objective: Objective, starts: list[np.ndarray]):
        self.objective, self.starts = objective, starts
        self._last: _Known | None = None
        self._best: _Known | None = None
        self._left: list[_Known] = []

    @property
    def best(self) -> Warm | None:
        """Where inference ended at the best vector."""
        return None if self._best is None else self._best.warm

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        near = self._near(theta)
        point = self.objective.evaluate(theta, near)
        before = self.objective.inference if near is None else near.rule
        if point.warm.rule is not before:
            warnings.warn(point.status.message, ConvergenceWarning, stacklevel=4)
        self._last = _Known(theta.copy(), point.warm, point.value)
        if np.isfinite(point.value) and (self._best is None or point.value > self._best.value):
            self._best = self._last
        return point.value, point.gradient

    def _near(self, theta: np.ndarray) -> Warm | None:
        if self._last is None:
            return None
        rule = self._last.warm.rule
        if any(np.array_equal(theta, start) for start in self.starts):
            self._left.append(self._last)
            if self.objective.likelihood.annealed:
                return Warm(rule, None)
        known = [k for k in (self._last, self._best, *self._left) if k is not None and k.warm.rule is rule]
        return min(known, key=lambda k: float(np.sum((theta - k.theta) ** 2))).warm


class _OutOfTime(Exception):
    pass


class _Told(NamedTuple):
    """A point and its value and gradient."""

    theta: np.ndarray
    value: float
    gradient: np.ndarray


class _Run:
    """One start: keeps the best point whatever happens to the search.

    A search that ended at its number of iterations can go on with more of them: it is run again, and told what it was
    told before until it has come as far.
    """

    def __init__(
        self,
        objective: Function,
        report: Callable[[float, int], None],
        deadline: float,
        ahead: float = -np.inf,
        wary: bool = False,
    ):
        self.objective, self.report, self.deadline, self.ahead = objective, report, deadline, ahead
        self.wary = wary  # of long steps
        self.best_value, self.best_theta, self.best_gradient = -np.inf, np.zeros(0), np.zeros(0)
        self.evaluations, self.trace = 0, []
        self.last: _Told | None = None
        self.began: _Told | None = None  # where the present line search did
        self.told: list[tuple[float, np.ndarray]] = []  # answers to SciPy, in order
        self.asked, self.iteration = 0, 0
        self.stop, self.limit = Stop.LINE_SEARCH, None
        self.last_failure, self.stop_all = "", False
        self.first_value, self.settings, self.settled = -np.inf, LBFGS(), False

    def search(self, start: np.ndarray, settings: LBFGS) -> None:
        self.asked, self.iteration, self.stop, self.limit = 0, 0, Stop.LINE_SEARCH, None
        if len(start) == 0:  # nothing is free: evaluate
            self.negative(start)
            self.stop = Stop.NOTHING_FREE
            return
        try:
            first = self.negative(start)
            # SciPy's first step is the whole gradient (cut off at the bounds, if all numbers have them), which can be
            # orders of magnitude too long and end in a poor optimum. In units of its length it is one.
            unit = max(1.0, float(np.linalg.norm(first[1])))
            self.first_value, self.settings = self.best_value, settings

            def scaled(theta: np.ndarray) -> tuple[float, np.ndarray]:
                value, gradient = first if np.array_equal(theta, start) else self.negative(theta)
                return value / unit, gradient / unit

            outcome = scipy.optimize.minimize(
                scaled,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(s - REACH, s + REACH) for s in start],
                callback=self.after_iteration,
                # Improvements are judged in `after_iteration`: SciPy would compare them with the unit.
                options={
                    "maxiter": settings.max_iter,
                    "ftol": 0.0,
                    "gtol": settings.gradient_tolerance / unit,
                    "maxcor": 20,
                },
            )
            if outcome.success or self.settled:
                self.stop = Stop.CONVERGED
            elif outcome.status == 1:
                self.stop, self.limit = Stop.MAX_ITER, settings.max_iter
        except KeyboardInterrupt:
            self.stop, self.stop_all = Stop.INTERRUPTED, True
            if not np.isfinite(self.best_value):
                raise
            interrupts.caught()
        except _OutOfTime:
            self.stop, self.limit, self.stop_all = Stop.OUT_OF_TIME, settings.max_seconds, True

    @property
    def stuck(self) -> bool:
        """Whether the search ended on a slope, as it does where a wall of points without a value is in the way."""
        ended = self.stop in (Stop.LINE_SEARCH, Stop.CONVERGED)
        return ended and float(np.max(np.abs(self.best_gradient), initial=0.0)) > STEEP

    def negative(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """What SciPy minimises; what it was told before, if it runs again."""
        self.asked += 1
        if self.asked > len(self.told):
            self.told.append(self._evaluated(theta))
        return self.told[self.asked - 1]

    def _evaluated(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the objective. A failed factorisation or a value that is not finite is a bad point, not a crash."""
        if self.evaluations > 0 and time.perf_counter() > self.deadline:
            raise _OutOfTime
        if self.evaluations > 0 and interrupts.happened():  # in a search before this one
            raise KeyboardInterrupt
        if self._too_long(theta):
            return self._refused(theta), np.zeros_like(theta)
        self.evaluations += 1
        try:
            value, gradient = self.objective(theta)
        except np.linalg.LinAlgError as failure:
            self.last_failure, value, gradient = str(failure), -np.inf, np.zeros_like(theta)
        best = self.best_value if np.isfinite(self.best_value) else 0.0
        # Where a search starts any value will do: noise of variance 1e-12 makes it -1e12, and the search leads away.
        far_below = self.evaluations > 1 and value <= best - FAR_BELOW * (1.0 + abs(best))
        if far_below or not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return self._refused(theta), np.zeros_like(theta)
        self.last = _Told(theta.copy(), value, gradient)
        self.began = self.began or self.last
        if value > self.best_value:
            self.best_value, self.best_theta, self.best_gradient = value, theta.copy(), gradient
        return -value, -gradient

    def _too_long(self, theta: np.ndarray) -> bool:
        """Whether a step of one of many starts is longer than what is worth a look."""
        if not self.wary or self.began is None or len(self.trace) >= EARLY:
            return False
        return float(np.max(np.abs(theta - self.began.theta))) > LONG

    def _refused(self, theta: np.ndarray) -> float:
        """What a bad point is told to be, as something to be minimised."""
        if self.began is None:
            return 0.0
        promised = abs(float(self.began.gradient @ (theta - self.began.theta)))
        return max(promised, BELOW * (1.0 + abs(self.began.value))) - self.began.value

    def after_iteration(self, theta: np.ndarray) -> None:
        """Stop when an iteration gained less than the tolerance, relative to the value, or to 1 if that is more."""
        self.iteration += 1
        if self.iteration <= len(self.trace):  # it runs again
            return
        before = self.trace[-1] if self.trace else self.first_value
        self.trace.append(self.best_value)
        self.began = self.last  # SciPy goes on from the last point it asked for
        self.report(self.best_value, len(self.trace))
        size = max(1.0, abs(before), abs(self.best_value))
        k = self.settings.settle
        creeps = k is not None and gained_late(self.trace, k) < k * WORTH / LATE
        if creeps or self.best_value - before <= self.settings.tolerance * size:
            self.settled = True
            raise StopIteration
        if len(self.trace) == self.settings.race and self.best_value < self.ahead:
            raise StopIteration


def _ranked(runs: list[_Run]) -> list[_Run]:
    """The best first."""
    return sorted(runs, key=lambda r: -r.best_value)


def _ahead(runs: list[_Run], race: int | None) -> float:
    """The best value that earlier starts had after so many iterations, or at the end if they had fewer."""
    return max((r.trace[min(race, len(r.trace)) - 1] for r in runs if race and r.trace), default=-np.inf)


def warn_if_not_converged(result: FitResult) -> None:
    """Say so when a search stopped early, and more of it would matter."""
    if not result.settled:
        warnings.warn(
            f"The search for hyperparameters did not converge: {result.message} Largest gradient entry "
            f"{result.gradient_norm:.2g}. See fit_result_.",
            ConvergenceWarning,
            stacklevel=6,
        )


def draw_restarts(theta0: np.ndarray, n: int, rng: np.random.Generator, units: Any = 1.0) -> np.ndarray:
    """Starting points scattered around the first one: a factor of about e in each scale, about 1 in other numbers.

    ``units`` says how far those move with an entry of the vector.
    """
    return theta0 + rng.normal(0.0, 1.0, (n, len(theta0))) / units


@contextlib.contextmanager
def _progress(verbose: int, label: str, n_starts: int) -> Iterator[Callable[[float, int], None]]:
    """A line on the terminal with the objective so far; nothing when quiet or when nobody is looking."""
    if verbose <= 0 or not sys.stderr.isatty():
        yield lambda value, iteration: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda value, iteration: bar.update(
            task, description=f"{label}: log evidence {value:.2f}, iteration {iteration} ({n_starts} start(s))"
        )
