"""What the Gaussian-process estimators share: one way from (X, y) to a posterior."""

import contextlib
import dataclasses
import sys
import time
import warnings
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband import parameters
from errorband.approximations import APPROXIMATIONS, FITC, Approximation, Exact, Inducing
from errorband.approximations.placement import SAMPLE, move_dead
from errorband.estimators.active import rows_to_learn_from, take_turns
from errorband.estimators.growth import INTERRUPTED, at_values, grow, inducing_inputs
from errorband.estimators.scaling import Scaling, chunks, spread_rows
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude
from errorband.inference import (
    EP,
    INFERENCES,
    KL,
    Inference,
    Laplace,
    Sparse,
    SparseBlocks,
    SparseNystrom,
    TrainingData,
)
from errorband.inference import Exact as ExactInference
from errorband.inference.base import Evaluation
from errorband.kernels import Kernel, SquaredExponential
from errorband.likelihoods import ClassLikelihood, Gaussian, Likelihood
from errorband.means import Mean, as_mean
from errorband.model import Model, PriorAtData
from errorband.numerics import in_double_precision
from errorband.objective import EvidenceObjective
from errorband.optimise import LBFGS, FitResult, draw_restarts, warn_if_not_converged
from errorband.predictive import Predictive

# approximation="auto" keeps the whole covariance up to this many rows: two arrays of 200 MB and a few seconds for each
# evaluation; fewer where sites are found by many sweeps over it.
EXACT_ROWS, EXACT_ROWS_SITES = 5000, 2000

# With inducing points, the search goes over a random sample of rows first if that is less than a quarter of them: this
# many, and this many for each inducing point.
WARM_START_ROWS, WARM_START_EACH = 5000, 10

# Where the number of inducing inputs is to be found, searches on the way need not be as exact as the last.
SWEEP_TOLERANCE = 1e-6


class GaussianProcess(BaseEstimator):
    """Base of the estimators: builds the model, searches its hyperparameters, conditions it on the data."""

    kernel: Any
    mean: Any
    likelihood: Any
    approximation: Any
    inference: Any
    optimizer: Any
    n_restarts: int
    normalize: bool
    random_state: Any
    verbose: int

    # ------------------------------------------------------------------ fitting
    @in_double_precision
    def _fit(self, data: TrainingData, scaling: Scaling) -> None:
        """Fit to validated data, as the model sees them: ``scaling`` says how they were scaled."""
        vars(self).pop("active_rows_", None)  # of an earlier fit
        objective = self._objective(data)
        start = objective.model
        _, self.approximation_reason_ = self._approximation(len(data.y), start.likelihood, start.mean)
        if self.verbose > 0 and self.approximation == "auto" and not isinstance(start.approximation, Exact):
            print(f"{type(self).__name__}: {self.approximation_reason_}", file=sys.stderr)
        optimizer, n_restarts = self._optimizer(), self._n_restarts()
        for name in ("inducing_sweep_", "moved_inducing_"):  # of an earlier fit
            vars(self).pop(name, None)
        if isinstance(start.approximation, Inducing) and start.approximation.n_inducing == "auto":
            objective, optimizer = self._grown(objective, optimizer, n_restarts, scaling)
            n_restarts = 0  # they were made where the search was short
        if optimizer is not None and start.approximation.rows_follow_values:
            objective, theta = self._take_turns(objective, data, optimizer, n_restarts)
        else:
            theta = self._search(objective, optimizer, n_restarts)
        model, prior = objective.at(theta)
        inference, found = self._concluded(objective, model, prior)
        # Density of the targets as given, not as standardised.
        degrees = len(objective.data.y) - objective.basis.shape[1]
        self.log_evidence_ = found.log_evidence - degrees * float(np.log(scaling.y_scale))
        self.inference_status_ = found.status
        self.posterior_ = inference.posterior(model, prior, objective.data, objective.basis, found.state)
        self.kernel_, self.likelihood_, self.mean_ = model.kernel, model.likelihood, model.mean
        self.approximation_, self.inference_ = model.approximation, inference
        self.jitter_ = float(self.posterior_.jitter)
        self.scaling_ = scaling
        self._training_data = objective.data
        self._state = jax.tree.map(np.asarray, found.state)
        if not found.status.converged:
            warnings.warn(f"{found.status.message} See inference_status_.", ConvergenceWarning, stacklevel=4)
        if self.jitter_ > 0:
            warnings.warn(
                f"The covariance was not positive definite; {self.jitter_:.2g} was added to its diagonal (jitter_). "
                "Duplicate rows without noise are a common cause.",
                RuntimeWarning,
                stacklevel=4,
            )

    def _concluded(
        self, objective: EvidenceObjective, model: Model, prior: PriorAtData
    ) -> tuple[Inference, Evaluation]:
        """The rule that has the last word at the hyperparameters found, and what it found."""
        found = objective.conclude(prior)
        if self.inference == "auto" and isinstance(objective.inference, Laplace) and _several_modes(model.likelihood):
            # Laplace believes the outliers of whichever mode it came to; EP's sweeps average over the modes nearby.
            with contextlib.suppress(np.linalg.LinAlgError):
                closer = EP().evaluate(prior, objective.data, objective.basis, found.state)
                if closer.status.converged:
                    return EP(), closer
        return objective.inference, found

    def _objective(self, data: TrainingData) -> EvidenceObjective:
        model = self._initial_model(data)
        inference = self._inference(model)
        reason = inference.supports(model, data)
        if reason is not None:
            raise ValueError(reason)
        rows = rows_to_learn_from(model, data, self.random_state)
        if rows is None:
            return EvidenceObjective(model, inference, data)
        self.active_rows_ = rows
        return EvidenceObjective(model, inference, data.rows(rows))

    def _take_turns(
        self, start: EvidenceObjective, data: TrainingData, optimizer: LBFGS, n_restarts: int
    ) -> tuple[EvidenceObjective, np.ndarray]:
        """Rows and hyperparameters, found in turn; restarts are of the first search."""
        began, limit = time.perf_counter(), optimizer.max_seconds

        def search(objective: EvidenceObjective, first: bool) -> FitResult:
            left = None if limit is None else max(limit - (time.perf_counter() - began), 0.0)
            result = self._maximise(
                objective, dataclasses.replace(optimizer, max_seconds=left), n_restarts if first else 0
            )
            assert result is not None  # there is an optimiser
            return result

        best = take_turns(start.model, start.inference, data, search, check_random_state(self.random_state))
        self.active_rows_, self.fit_result_ = best.rows, best.result
        warn_if_not_converged(best.result)
        return best.objective, best.theta

    def _scaling(self, X: np.ndarray, y: np.ndarray | None = None, weights: np.ndarray | None = None) -> Scaling:
        """How the model sees validated data; targets are left alone if they are not given."""
        check_magnitude(X, "X")
        if not self.normalize:
            return Scaling.identity(X.shape[1])
        kernel = self._kernel().with_columns(getattr(self, "feature_names_in_", None), X.shape[1])
        return Scaling.standardise(X, y, kernel, weights)

    def _initial_model(self, data: TrainingData) -> Model:
        """The model with every hyperparameter at its starting value."""
        names = getattr(self, "feature_names_in_", None)
        kernel = self._kernel().with_columns(None if names is None else list(names), data.X.shape[1])
        for rows in chunks(data.X):
            kernel.check(rows)
        likelihood, mean = self._likelihood(), as_mean(self.mean)
        likelihood.check_targets(data.y)
        approximation, _ = self._approximation(len(data.y), likelihood, mean)
        # Where latent values are not in the units of the targets (a log rate, a logit), one is a typical variance.
        y_variance = float(np.var(data.y)) if likelihood.location_scale else 1.0
        some = spread_rows(data.X)
        X, y = data.X[some], data.y[some]
        kernel = kernel.initialised(X, y_variance or 1.0)
        model = Model(
            kernel,
            likelihood.initialised(data.y),
            mean.initialised(X, y if likelihood.location_scale else np.zeros(len(y))),
            approximation.initialised(
                kernel, data.X, data.y if isinstance(likelihood, ClassLikelihood) else None, self.random_state
            ),
        )
        parameters.check(model)
        return model

    def _search(self, objective: EvidenceObjective, optimizer: LBFGS | None, n_restarts: int) -> np.ndarray:
        """Hyperparameters of the largest evidence; the starting values if there is no optimiser."""
        result = self._maximise(objective, optimizer, n_restarts)
        if optimizer and result and isinstance(objective.model.approximation, Inducing):
            result = self._without_dead(objective, optimizer, result)
        self.fit_result_ = result
        if result is None:
            return objective.theta0
        warn_if_not_converged(result)
        return result.theta

    def _maximise(
        self, objective: EvidenceObjective, optimizer: LBFGS | None, n_restarts: int, *others: np.ndarray
    ) -> FitResult | None:
        """One search, from the starting values and from others; None if there is no optimiser."""
        if optimizer is None:
            return None
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        theta0, optimizer = self._warm_start(objective, optimizer, rng)
        scattered = draw_restarts(theta0, n_restarts, rng, parameters.units(objective.model))
        restarts = np.concatenate([scattered, np.reshape(others, (-1, len(theta0)))])
        return optimizer.maximise(
            objective.value_and_gradient,
            theta0,
            restarts=restarts,
            verbose=self.verbose,
            label=self._label(objective),
        )

    def _label(self, objective: EvidenceObjective) -> str:
        return f"{type(self).__name__}, {len(objective.data.y)} rows, {type(objective.inference).__name__}"

    def _grown(
        self, objective: EvidenceObjective, optimizer: LBFGS | None, n_restarts: int, scaling: Scaling
    ) -> tuple[EvidenceObjective, LBFGS | None]:
        """The objective of a model with as many inducing inputs as help, and what time is left to maximise it."""
        approximation: Any = objective.model.approximation
        limit = None if optimizer is None else optimizer.max_seconds
        budget = approximation.budget if limit is None else min(approximation.budget, limit / 2)

        def search(step: EvidenceObjective, seconds: float, second: np.ndarray | None) -> FitResult | None:
            if optimizer is None:
                return None
            # A thousandth of the tolerance of the sweep, or less, is good enough for a step.
            brief = dataclasses.replace(
                optimizer, max_seconds=max(seconds, 0.0), tolerance=max(optimizer.tolerance, SWEEP_TOLERANCE)
            )
            return self._maximise(step, brief, n_restarts) if second is None else self._maximise(step, brief, 0, second)

        began = time.perf_counter()
        model, self.inducing_sweep_ = grow(
            objective.model,
            objective.inference,
            objective.data,
            search,
            budget,
            float(np.log(scaling.y_scale)),
            check_random_state(self.random_state),
        )
        self.approximation_reason_ += f" {self.inducing_sweep_.certificate}"
        if self.verbose > 0:
            print(f"{type(self).__name__}: {self.inducing_sweep_.certificate}", file=sys.stderr)
        if optimizer is not None and self.inducing_sweep_.stopped == INTERRUPTED:
            optimizer = dataclasses.replace(optimizer, max_seconds=0.0)  # one evaluation on all rows, and no more
        elif optimizer is not None and limit is not None:
            optimizer = dataclasses.replace(optimizer, max_seconds=max(limit - (time.perf_counter() - began), 0.0))
        return EvidenceObjective(model, objective.inference, objective.data), optimizer

    def _without_dead(self, objective: EvidenceObjective, optimizer: LBFGS, result: FitResult) -> FitResult:
        """The search continued once with dead inducing inputs moved to where they are of use, if that is better."""
        self.moved_inducing_ = 0
        free = any(e.path[-1] == "inducing_inputs" and not e.fixed for e in parameters.entries(objective.model))
        left = np.inf if optimizer.max_seconds is None else optimizer.max_seconds - result.seconds
        if not free or result.interrupted or left <= 0:
            return result
        fitted, _ = objective.at(result.theta)
        n = len(objective.data.y)
        rows = np.sort(check_random_state(self.random_state).permutation(n)[:SAMPLE])
        Z, moved = move_dead(fitted.kernel, inducing_inputs(fitted), objective.data.X[rows])
        if moved == 0:
            return result
        again = dataclasses.replace(optimizer, max_seconds=left if np.isfinite(left) else None).maximise(
            objective.value_and_gradient,
            parameters.pack(at_values(objective.model, fitted, Z)),
            verbose=self.verbose,
            label=f"{self._label(objective)}, {moved} inducing inputs moved",
        )
        better = again if again.value > result.value else result
        self.moved_inducing_ = moved if better is again else 0
        told = f" {moved} inducing inputs that had no part in the model were moved to where they have."
        return dataclasses.replace(
            better,
            iterations=result.iterations + again.iterations,
            evaluations=result.evaluations + again.evaluations,
            seconds=result.seconds + again.seconds,
            message=better.message + (told if better is again else ""),
        )

    def _warm_start(
        self, objective: EvidenceObjective, optimizer: LBFGS, rng: np.random.Generator
    ) -> tuple[np.ndarray, LBFGS]:
        """Where the search begins, and what time is left for it.

        With inducing points and many rows it begins where a search on a sample of the rows ended.
        """
        theta0, data, approximation = objective.theta0, objective.data, objective.model.approximation
        if not isinstance(approximation, Inducing):
            return theta0, optimizer
        size = max(WARM_START_ROWS, WARM_START_EACH * len(parameters.plain(approximation).inducing_inputs))
        if len(data.y) < 4 * size:
            return theta0, optimizer
        sample = data.rows(np.sort(rng.choice(len(data.y), size, replace=False)))
        smaller = EvidenceObjective(objective.model, objective.inference, sample)
        limit = optimizer.max_seconds
        first = dataclasses.replace(optimizer, max_seconds=None if limit is None else limit / 2)
        label = f"{type(self).__name__}, first on {size} of {len(data.y)} rows"
        found = first.maximise(smaller.value_and_gradient, theta0, verbose=self.verbose, label=label)
        if found.interrupted:  # one evaluation on all rows, and no more
            return found.theta, dataclasses.replace(optimizer, max_seconds=0.0)
        left = None if limit is None else max(limit - found.seconds, 0.0)
        return found.theta, dataclasses.replace(optimizer, max_seconds=left)

    # ------------------------------------------------------------------ reading the constructor's arguments
    def _kernel(self) -> Kernel:
        if self.kernel is None:
            return SquaredExponential()
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be an errorband kernel or None; got {type(self.kernel).__name__}.")
        return self.kernel

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _approximation(self, n: int, likelihood: Likelihood, mean: Mean) -> tuple[Approximation, str]:
        """The approximation for n rows, and why this one."""
        if isinstance(self.approximation, Approximation):
            return self.approximation, "As asked for."
        if self.approximation == "exact":
            return Exact(), "As asked for."
        if self.approximation == "auto":
            limit = EXACT_ROWS if isinstance(likelihood, Gaussian) else EXACT_ROWS_SITES
            if n <= limit:
                return Exact(), f"No approximation: {n} rows, of at most {limit}."
            if mean.marginalize:
                return Exact(), "No approximation: a marginalised mean needs the whole covariance."
            return FITC(), f"FITC with {FITC().n_inducing} inducing inputs: {n} rows are more than {limit}."
        raise ValueError(
            f"approximation={self.approximation!r}: choose 'auto', 'exact' or one of errorband.approximations: "
            f"{', '.join(APPROXIMATIONS)}, such as approximation=FITC(200)."
        )

    def _inference(self, model: Model) -> Inference:
        if isinstance(self.inference, Inference):
            return self.inference
        if self.inference == "auto":
            return self._automatic_inference(model)
        named = {name.lower(): rule for name, rule in INFERENCES.items()}
        if self.inference in named:
            return named[self.inference]()
        raise ValueError(
            f"inference={self.inference!r}: choose 'auto', {', '.join(map(repr, named))}, or an object of "
            "errorband.inference."
        )

    def _automatic_inference(self, model: Model) -> Inference:
        """What ``inference="auto"`` stands for: a closed form, the approximation's rule, or that of the likelihood."""
        rules = ExactInference(), SparseNystrom(), Sparse(), SparseBlocks()
        closed_form = next((rule for rule in rules if rule.applies(model)), None)
        if closed_form is not None:
            return closed_form
        power = model.approximation.ep_power
        if power is not None:
            return EP(power=power) if power > 0 else KL()
        return self._automatic_rule(model.likelihood)

    def _automatic_rule(self, likelihood: Likelihood) -> Inference:
        """Which sites suit the likelihood.

        EP is the more accurate rule, and needs no curvature; where the likelihood is not log-concave its fixed point is
        hard to find at some hyperparameters, and for several latents its integrals are costly: Laplace is quicker. In
        the former case EP has the last word at the hyperparameters found (:meth:`_concluded`).
        """
        return Laplace() if likelihood.smooth and (likelihood.n_latents > 1 or not likelihood.log_concave) else EP()

    def _n_restarts(self) -> int:
        if not (isinstance(self.n_restarts, (int, np.integer)) and self.n_restarts >= 0):
            raise ValueError(f"n_restarts={self.n_restarts!r} must be a whole number, zero or more.")
        return int(self.n_restarts)

    def _optimizer(self) -> LBFGS | None:
        if self.optimizer is None or isinstance(self.optimizer, LBFGS):
            return self.optimizer
        if self.optimizer == "lbfgs":
            return LBFGS()
        raise ValueError(f"optimizer={self.optimizer!r}: choose 'lbfgs', LBFGS(...), or None to keep the given values.")

    # ------------------------------------------------------------------ keeping
    def save(self, path: Any) -> None:
        """Write the fitted model to a file that :func:`errorband.load` reads; no pickle, nothing in it can run."""
        from errorband.persistence import save

        save(self, path)

    # ------------------------------------------------------------------ showing
    def _html_repr(self) -> str:
        """What a notebook shows: scikit-learn's diagram before ``fit``, a card with what was found after."""
        if not hasattr(self, "log_evidence_"):
            return super()._html_repr()
        from errorband.reporting.card import card_html

        return card_html(self)

    # ------------------------------------------------------------------ predicting
    def _inputs(self, X: Any) -> np.ndarray:
        """Validated test inputs as the model sees them."""
        check_is_fitted(self)
        check_columns_are_numeric(X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        check_magnitude(X, "X")
        scaled = self.scaling_.inputs(X)
        self.kernel_.check(scaled)
        return scaled

    def _leave_one_out(self) -> Predictive:
        """Distribution of each training target given the others, as the model sees them."""
        return self.inference_.leave_one_out(*self._at_training_data(), self._last_state())

    def _last_state(self) -> Any:
        """Where the inference rule ended; None in models of files that older versions wrote."""
        return getattr(self, "_state", None)

    def _at_training_data(self) -> tuple[PriorAtData, TrainingData, np.ndarray]:
        """The fitted prior at the training data, the data, and the basis of a marginalised mean."""
        check_is_fitted(self)
        model = Model(self.kernel_, self.likelihood_, self.mean_, self.approximation_)
        objective = EvidenceObjective(model, self.inference_, self._training_data)
        _, prior = objective.at(objective.theta0)
        return prior, self._training_data, objective.basis


def _several_modes(likelihood: Likelihood) -> bool:
    """Whether one latent function may have a posterior of several modes."""
    return likelihood.n_latents == 1 and not likelihood.log_concave
