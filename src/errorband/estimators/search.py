"""The search for hyperparameters, with what approximations ask for: a first look at some rows, turns, growth."""

import dataclasses
import sys
import time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from errorband import parameters
from errorband.approximations import Inducing
from errorband.approximations.placement import SAMPLE, move_dead
from errorband.estimators.active import rows_to_learn_from, take_turns
from errorband.estimators.certificate import InducingSweep
from errorband.estimators.growth import grow
from errorband.inference import Inference, TrainingData
from errorband.model import Model, at_values, inducing_inputs
from errorband.objective import EvidenceObjective
from errorband.optimise import INTERRUPTED, LBFGS, FitResult, draw_restarts

# With inducing points, the search goes over a random sample of rows first if that is less than a quarter of them: this
# many, and this many for each inducing point.
WARM_START_ROWS, WARM_START_EACH = 5000, 10

# Where the number of inducing inputs is to be found, searches on the way need not be as exact as the last.
SWEEP_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes
    ----------
    objective : EvidenceObjective
        Of the rows learned from.
    theta : array
        Its hyperparameters.
    result : FitResult or None
        How the search went; None if there was none.
    active_rows : array or None
        Positions of the rows learned from; None for all.
    inducing_sweep : InducingSweep or None
        How the number of inducing inputs was chosen, if it was.
    moved_inducing : int or None
        How many inducing inputs were dead and moved; None if the model has none or there was no search.
    """

    objective: EvidenceObjective
    theta: np.ndarray
    result: FitResult | None
    active_rows: np.ndarray | None = None
    inducing_sweep: InducingSweep | None = None
    moved_inducing: int | None = None


@dataclasses.dataclass(frozen=True)
class Search:
    """How hyperparameters are looked for.

    Parameters
    ----------
    optimizer : LBFGS or None
        None keeps the starting values.
    n_restarts : int
        Additional random starts.
    random_state : int, RandomState or None
    verbose : int
    name : str
        Of the estimator, to show progress with.
    """

    optimizer: LBFGS | None
    n_restarts: int
    random_state: Any
    verbose: int
    name: str

    def run(self, model: Model, inference: Inference, data: TrainingData, log_scale: float) -> Found:
        """From the starting values in ``model`` to the largest evidence; targets were divided by e^``log_scale``."""
        if self.optimizer is not None and model.approximation.rows_follow_values:
            return self._in_turns(model, inference, data, self.optimizer)
        rows = rows_to_learn_from(model, data, self.random_state)
        objective = EvidenceObjective(model, inference, data if rows is None else data.rows(rows))
        if isinstance(model.approximation, Inducing) and model.approximation.n_inducing == "auto":
            return self._growing(objective, model.approximation.budget, log_scale)
        return dataclasses.replace(self._on(objective), active_rows=rows)

    def _on(self, objective: EvidenceObjective) -> Found:
        """On these rows."""
        result = self._maximise(objective)
        if result is None:
            return Found(objective, objective.theta0, None)
        if not isinstance(objective.model.approximation, Inducing):
            return Found(objective, result.theta, result)
        result, moved = self._without_dead(objective, result)
        return Found(objective, result.theta, result, moved_inducing=moved)

    def _maximise(self, objective: EvidenceObjective, *others: np.ndarray) -> FitResult | None:
        """One search, from the starting values and from others; None if there is no optimiser."""
        if self.optimizer is None:
            return None
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        theta0, optimizer = objective.theta0, self.optimizer
        first = self._first_look(objective, optimizer, rng)
        if first is not None:  # after an interrupt, one evaluation on all rows and no more
            theta0, left = first.theta, 0.0 if first.interrupted else optimizer.seconds - first.seconds
            optimizer = optimizer.within(left)
        scattered = draw_restarts(theta0, self.n_restarts, rng, parameters.units(objective.model))
        restarts = np.concatenate([scattered, np.reshape(others, (len(others), len(theta0)))])
        try:
            return optimizer.maximise(
                objective.value_and_gradient,
                theta0,
                restarts=restarts,
                verbose=self.verbose,
                label=self._label(objective),
            )
        except KeyboardInterrupt:  # before all rows were seen once
            if first is None:
                raise
            return dataclasses.replace(first, converged=False, message=f"{INTERRUPTED} after a search on some rows.")

    def _label(self, objective: EvidenceObjective) -> str:
        return f"{self.name}, {len(objective.data.y)} rows, {type(objective.inference).__name__}"

    def _within(self, seconds: float, **changes: Any) -> "Search":
        """The same in at most this time."""
        assert self.optimizer is not None  # else there is no search to hurry
        return dataclasses.replace(self, optimizer=self.optimizer.within(seconds), **changes)

    # ------------------------------------------------------------------ many rows
    def _first_look(self, objective: EvidenceObjective, optimizer: LBFGS, rng: np.random.Generator) -> FitResult | None:
        """With inducing points and many rows, a search on a sample of the rows; else None."""
        data = objective.data
        if not isinstance(objective.model.approximation, Inducing):
            return None
        size = max(WARM_START_ROWS, WARM_START_EACH * len(inducing_inputs(objective.model)))
        if len(data.y) < 4 * size:
            return None
        sample = data.rows(np.sort(rng.choice(len(data.y), size, replace=False)))
        smaller = EvidenceObjective(objective.model, objective.inference, sample)
        label = f"{self.name}, first on {size} of {len(data.y)} rows"
        half = optimizer.within(optimizer.seconds / 2)
        return half.maximise(smaller.value_and_gradient, objective.theta0, verbose=self.verbose, label=label)

    # ------------------------------------------------------------------ rows and hyperparameters in turn
    def _in_turns(self, model: Model, inference: Inference, data: TrainingData, optimizer: LBFGS) -> Found:
        """Restarts are of the first search."""
        deadline = time.perf_counter() + optimizer.seconds

        def search(objective: EvidenceObjective, first: bool) -> FitResult:
            left = deadline - time.perf_counter()
            result = self._within(left, n_restarts=self.n_restarts if first else 0)._maximise(objective)
            assert result is not None  # there is an optimiser
            return result

        best = take_turns(model, inference, data, search, check_random_state(self.random_state))
        return Found(best.objective, best.theta, best.result, active_rows=best.rows)

    # ------------------------------------------------------------------ inducing inputs
    def _growing(self, objective: EvidenceObjective, budget: float, log_scale: float) -> Found:
        """First find as many inducing inputs as help, with restarts, where searches are short."""
        limit = np.inf if self.optimizer is None else self.optimizer.seconds
        budget, deadline = min(budget, limit / 2), time.perf_counter() + limit

        def search(step: EvidenceObjective, seconds: float, second: np.ndarray | None) -> FitResult | None:
            if self.optimizer is None:
                return None
            # A thousandth of the tolerance of the sweep, or less, is good enough for a step.
            tolerance = max(self.optimizer.tolerance, SWEEP_TOLERANCE)
            brief = dataclasses.replace(self, optimizer=dataclasses.replace(self.optimizer, tolerance=tolerance))
            if second is None:
                return brief._within(seconds)._maximise(step)
            return brief._within(seconds, n_restarts=0)._maximise(step, second)

        rng = check_random_state(self.random_state)
        model, sweep = grow(objective.model, objective.inference, objective.data, search, budget, log_scale, rng)
        if self.verbose > 0:
            print(f"{self.name}: {sweep.certificate}", file=sys.stderr)
        final = dataclasses.replace(self, n_restarts=0)
        if self.optimizer is not None:  # after an interrupt, one evaluation on all rows and no more
            final = final._within(0.0 if sweep.interrupted else deadline - time.perf_counter())
        found = final._on(EvidenceObjective(model, objective.inference, objective.data))
        return dataclasses.replace(found, inducing_sweep=sweep)

    def _without_dead(self, objective: EvidenceObjective, result: FitResult) -> tuple[FitResult, int]:
        """The search continued once with dead inducing inputs moved to where they are of use, if that is better."""
        assert self.optimizer is not None  # there is a result
        held = [e.fixed or e.some_fixed for e in parameters.entries(objective.model) if e.path[-1] == "inducing_inputs"]
        left = self.optimizer.seconds - result.seconds
        if any(held) or result.interrupted or left <= 0:
            return result, 0
        fitted, _ = objective.at(result.theta)
        rows = np.sort(check_random_state(self.random_state).permutation(len(objective.data.y))[:SAMPLE])
        Z, moved = move_dead(fitted.kernel, inducing_inputs(fitted), objective.data.X[rows])
        if moved == 0:
            return result, 0
        try:
            again = self.optimizer.within(left).maximise(
                objective.value_and_gradient,
                parameters.pack(at_values(objective.model, fitted, Z)),
                verbose=self.verbose,
                label=f"{self._label(objective)}, {moved} inducing inputs moved",
            )
        except (np.linalg.LinAlgError, KeyboardInterrupt):  # there is no posterior with them there, or no time
            return result, 0
        better = again if again.value > result.value else result
        told = f" {moved} inducing inputs that had no part in the model were moved to where they have."
        both = dataclasses.replace(
            better,
            iterations=result.iterations + again.iterations,
            evaluations=result.evaluations + again.evaluations,
            seconds=result.seconds + again.seconds,
            message=better.message + (told if better is again else ""),
        )
        return both, moved if better is again else 0
