"""What the Gaussian-process estimators share: one way from (X, y) to a posterior."""

import copy
import sys
import warnings
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband import parameters
from errorband.approximations import APPROXIMATIONS, FITC, IVM, Approximation, Exact, Inducing
from errorband.arguments import check_whole
from errorband.estimators.active import rows_to_learn_from
from errorband.estimators.scaling import Scaling, chunks, spread_rows
from errorband.estimators.search import Found, Search
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude
from errorband.inference import EP, INFERENCES, KL, Inference, Laplace, TrainingData
from errorband.kernels import Kernel, SquaredExponential
from errorband.likelihoods import ClassLikelihood, Gaussian, Likelihood
from errorband.means import Mean, as_mean
from errorband.model import Model, at_values, inducing_inputs
from errorband.numerics import in_double_precision
from errorband.objective import EvidenceObjective
from errorband.optimise import LBFGS, warn_if_not_converged
from errorband.parameters import Parameter
from errorband.predictive import Predictive

# approximation="auto" keeps the whole covariance up to this many rows: two arrays of 200 MB and a few seconds for each
# evaluation; fewer where sites are found by many sweeps over it.
EXACT_ROWS, EXACT_ROWS_SITES = 5000, 2000

# A marginalised mean has no other way; up to this many rows, of which matrices take some 5 GB, it is taken unasked.
EXACT_ROWS_MARGINAL = 10_000

ASKED_FOR = "As asked for."  # why an approximation was taken that was given


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
        search = Search(
            self._optimizer(), self._n_restarts(), self.random_state, self.verbose, name=type(self).__name__
        )
        start, inference = self._start(data)
        if self.verbose > 0 and self.approximation == "auto" and not isinstance(start.approximation, Exact):
            print(f"{type(self).__name__}: {self.approximation_reason_}", file=sys.stderr)
        found = search.run(start, inference, data, float(np.log(scaling.y_scale)))
        self._keep_search(found)
        self._keep_posterior(found.objective, found.theta, scaling)

    def _keep_posterior(self, objective: EvidenceObjective, theta: np.ndarray, scaling: Scaling) -> None:
        """Condition the model at ``theta`` on the data of the objective and store the fitted attributes."""
        model, prior = objective.at(theta)
        last = objective.conclude(prior)
        inference = objective.inference  # which may have been followed by another
        # Density of the targets as given, not as standardised.
        degrees = len(objective.data.y) - objective.basis.shape[1]
        self.log_evidence_ = last.log_evidence - degrees * float(np.log(scaling.y_scale))
        self.inference_status_ = last.status
        self.posterior_ = inference.posterior(model, prior, objective.data, objective.basis, last.state)
        self.kernel_, self.likelihood_, self.mean_ = model.kernel, model.likelihood, model.mean
        self.approximation_, self.inference_ = model.approximation, inference
        self.jitter_ = float(self.posterior_.jitter)
        self.scaling_ = scaling
        self._training_data = objective.data
        self._state = jax.tree.map(np.asarray, last.state)
        if not last.status.converged:
            warnings.warn(f"{last.status.message} See inference_status_.", ConvergenceWarning, stacklevel=5)
        if self.jitter_ > 0:
            warnings.warn(
                f"The covariance was not positive definite; {self.jitter_:.2g} was added to its diagonal (jitter_). "
                "Duplicate rows without noise are a common cause.",
                RuntimeWarning,
                stacklevel=5,
            )

    def _remember_search(self) -> None:
        """Keep the evidence of the rows that were searched: ``log_evidence_`` is about to become that of others."""
        self.search_log_evidence_ = getattr(self, "search_log_evidence_", self.log_evidence_)

    @in_double_precision
    def _condition(self, data: TrainingData) -> None:
        """Replace the posterior by the one given ``data``, which are scaled by ``scaling_`` already.

        Called on a copy of a fitted estimator. All hyperparameters are held fixed, so nothing is searched.
        """
        fitted = Model(self.kernel_, self.likelihood_, self.mean_, self.approximation_)
        model = parameters.replace_values(
            fitted, {e.path: Parameter(e.value, fixed=True) for e in parameters.entries(fitted)}
        )
        self.likelihood_.check_targets(data.y)
        for rows in chunks(data.X):
            self.kernel_.check(rows)
        reason = self.inference_.supports(fitted, data)
        if reason is not None:
            raise ValueError(reason)
        self._remember_search()
        active = rows_to_learn_from(fitted, data, self.random_state)
        objective = EvidenceObjective(model, self.inference_, data if active is None else data.rows(active))
        self._keep_posterior(objective, objective.theta0, self.scaling_)
        if active is not None:
            self.active_rows_ = active

    def _forget(self) -> None:
        """What an earlier fit found and the next may not."""
        for name in (
            "active_rows_",
            "inducing_sweep_",
            "moved_inducing_",
            "estimators_",
            "posterior_",
            "_state",
            "search_log_evidence_",
        ):
            vars(self).pop(name, None)

    def _keep_search(self, found: Found) -> None:
        self._forget()
        self.fit_result_ = found.result
        if found.result is not None:
            warn_if_not_converged(found.result)
        for name in ("active_rows", "inducing_sweep", "moved_inducing"):
            if getattr(found, name) is not None:
                setattr(self, f"{name}_", getattr(found, name))
        if found.inducing_sweep is not None:
            self.approximation_reason_ += f" {found.inducing_sweep.certificate}"

    def _start(self, data: TrainingData) -> tuple[Model, Inference]:
        """The model at its starting values, and a rule that can deal with it."""
        model = self._initial_model(data)
        inference = self._inference(model)
        reason = inference.supports(model, data)
        if reason is not None:
            raise ValueError(reason)
        return model, inference

    def _objective(self, data: TrainingData) -> EvidenceObjective:
        model, inference = self._start(data)
        rows = rows_to_learn_from(model, data, self.random_state)
        return EvidenceObjective(model, inference, data if rows is None else data.rows(rows))

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
        approximation, self.approximation_reason_ = self._approximation(len(data.y), likelihood, mean)
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
        return self._at_informative_rows(model, data) if _wants_informative_rows(approximation) else model

    def _at_informative_rows(self, model: Model, data: TrainingData) -> Model:
        """The model as an informative vector machine leaves it: its hyperparameters, inducing inputs at its rows."""
        machine: Any = copy.copy(self)
        optimizer, number = self._optimizer(), len(inducing_inputs(model))
        machine.approximation, machine.verbose = IVM(number), 0
        machine.optimizer = None if optimizer is None else optimizer.within(optimizer.seconds / 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # another search follows
            machine._fit(data, Scaling.identity(data.X.shape[1]))
        found = Model(machine.kernel_, machine.likelihood_, machine.mean_, model.approximation)
        return at_values(model, found, data.X[machine.active_rows_])

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
            return self.approximation, ASKED_FOR
        if self.approximation == "exact":
            return Exact(), ASKED_FOR
        if self.approximation == "auto":
            limit = self._exact_rows(likelihood)
            if n <= limit:
                return Exact(), f"No approximation: {n} rows, of at most {limit}."
            if not mean.marginalize:
                return FITC(), f"FITC with {FITC().n_inducing} inducing inputs: {n} rows are more than {limit}."
            if n <= EXACT_ROWS_MARGINAL:
                return Exact(), "No approximation: a marginalised mean needs the whole covariance."
            raise ValueError(
                f"A marginalised mean needs the whole covariance: for {n} rows several matrices of "
                f"{8e-9 * n**2:.1f} GB. Use marginalize=False, or approximation='exact' if there is memory and time."
            )
        raise ValueError(
            f"approximation={self.approximation!r}: choose 'auto', 'exact' or one of errorband.approximations: "
            f"{', '.join(APPROXIMATIONS)}, such as approximation=FITC(200)."
        )

    def _exact_rows(self, likelihood: Likelihood) -> int:
        """How many rows an evaluation without approximation can have that takes seconds and a few hundred MB.

        With L latents the covariance is L times as large in each direction: work of (LN)³; under Laplace with the
        softmax it comes apart into L of size N.
        """
        if isinstance(likelihood, Gaussian):
            return EXACT_ROWS
        L = likelihood.n_latents
        comes_apart = likelihood.simplex and isinstance(self._rule(likelihood), Laplace)
        return int(EXACT_ROWS_SITES / (L ** (1 / 3) if comes_apart else L))

    def _inference(self, model: Model) -> Inference:
        return self._automatic_inference(model) if self.inference == "auto" else self._rule(model.likelihood)

    def _rule(self, likelihood: Likelihood) -> Inference:
        """The rule asked for; what suits the likelihood if none was."""
        if isinstance(self.inference, Inference):
            return self.inference
        if self.inference == "auto":
            return self._automatic_rule(likelihood)
        named = {name.lower(): rule for name, rule in INFERENCES.items()}
        if self.inference in named:
            return named[self.inference]()
        raise ValueError(
            f"inference={self.inference!r}: choose 'auto', {', '.join(map(repr, named))}, or an object of "
            "errorband.inference."
        )

    def _automatic_inference(self, model: Model) -> Inference:
        """What ``inference="auto"`` stands for: a closed form, the approximation's rule, or that of the likelihood."""
        closed_form = next((rule for rule in INFERENCES.values() if rule.applies(model)), None)
        if closed_form is not None:
            return closed_form()
        power = model.approximation.ep_power
        if power is not None:
            return EP(power=power) if power > 0 else KL()
        return self._automatic_rule(model.likelihood)

    def _automatic_rule(self, likelihood: Likelihood) -> Inference:
        """Which sites suit the likelihood.

        EP is the more accurate rule, and needs no curvature; for several latents its integrals are costly, and where
        the likelihood is not log-concave its fixed point is hard to find at some hyperparameters. There it has the last
        word, at those that were found.
        """
        if likelihood.smooth and likelihood.n_latents > 1:
            return Laplace()
        return Laplace(last_word=EP()) if likelihood.smooth and not likelihood.log_concave else EP()

    def _n_restarts(self) -> int:
        check_whole(type(self).__name__, "n_restarts", self.n_restarts, least=0)
        return int(self.n_restarts)

    def _optimizer(self) -> LBFGS | None:
        if self.optimizer is None or isinstance(self.optimizer, LBFGS):
            return self.optimizer
        if self.optimizer == "lbfgs":
            return LBFGS()
        raise ValueError(f"optimizer={self.optimizer!r}: choose 'lbfgs', LBFGS(...), or None to keep the given values.")

    # ------------------------------------------------------------------ what reports and tools ask for
    @property
    def members_(self) -> list[Any]:
        """The fitted models this one is made of: itself, or one for each class with ``multi_class="one_vs_rest"``."""
        check_is_fitted(self)
        return [self]

    @property
    def n_training_rows_(self) -> int | None:
        """Number of rows the model keeps; None if it was loaded from a file that does not hold them."""
        check_is_fitted(self)
        return None if self._training_data is None else len(self._training_data.y)

    def training_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs (n, D) and targets (n,) the model learned from, in the units of the data.

        With ``SubsetOfData`` and ``IVM`` these are the rows that were kept.
        """
        data, scaling = self._rows(), self.scaling_
        return np.asarray(data.X) * scaling.x_scale + scaling.x_shift, data.y * scaling.y_scale + scaling.y_shift

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
        return self.inference_.leave_one_out(*self._at_training_data(), self._state)

    def _rows(self) -> TrainingData:
        """The rows learned from, as the model sees them, if it has them."""
        check_is_fitted(self)
        if self._training_data is None:
            raise ValueError(
                f"This {type(self).__name__} was fitted to a memory-mapped file and saved without its rows, which are "
                "asked for here: fit it again."
            )
        return self._training_data

    def _at_training_data(self) -> tuple[Any, TrainingData, np.ndarray]:
        """The fitted prior at the training data, the data, and the basis of a marginalised mean."""
        data = self._rows()
        model = Model(self.kernel_, self.likelihood_, self.mean_, self.approximation_)
        objective = EvidenceObjective(model, self.inference_, data)
        _, prior = objective.at(objective.theta0)
        return prior, data, objective.basis


def _wants_informative_rows(approximation: Approximation) -> bool:
    if not isinstance(approximation, Inducing):
        return False
    return approximation.init == "ivm" and parameters.value_of(approximation.inducing_inputs) is None
