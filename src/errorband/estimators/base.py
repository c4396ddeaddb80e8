"""What the Gaussian-process estimators share: one way from (X, y) to a posterior."""

import dataclasses
import sys
import warnings
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband import interrupts, parameters
from errorband.data import TrainingData
from errorband.estimators import online
from errorband.estimators.arguments import WithArguments
from errorband.estimators.candidates import fit_best, is_auto
from errorband.estimators.defaults import default_kernel
from errorband.estimators.hyperparameters import Hyperparameters, hyperparameters
from errorband.estimators.scaling import Scaling, chunks
from errorband.estimators.spec import EXACT_ROWS, EXACT_ROWS_SITES, Spec, as_approximation, as_rule
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude, check_seed, check_spread
from errorband.inference import EP, Conjugate, Inference, Laplace, annealed_evidence, rule_of_power
from errorband.kernels import Kernel
from errorband.latents import Latent
from errorband.likelihoods import Likelihood
from errorband.model import Model
from errorband.parameters.checks import check_latent, check_whole
from errorband.posterior import MixturePosterior
from errorband.precision import in_double_precision
from errorband.predictive import MixturePredictive, Predictive
from errorband.samplers import Annealed
from errorband.training import LBFGS, STRATEGIES, Found, Objective, Problem, Settings, Start, Trainer, composed
from errorband.training.lbfgs import warn_if_not_converged
from errorband.training.objective import prepared
from errorband.training.starts import started_like
from errorband.training.strategy import further_starts

# Strategies around those that the approximation asks for.
AROUND_ALL = ("challenge", "gaussian_first", "few_first", "tie", "scout", "race_first")
HEAT = 10  # iterations of each start of a likelihood with many optima; the best of them goes on

# With so many rows a search with Gaussian noise ends when so many iterations gained next to nothing. It may creep and
# then find its way: on the power-plant table ten would be too few.
MANY, PATIENCE = 1000, 30

# Attributes that some fits set and others do not.
OF_ONE_FIT = (
    *("active_rows_", "inducing_sweep_", "moved_inducing_", "certificate_", "estimators_", "posterior_", "_state"),
    *("noise_bound_", "mixture_members_", "search_log_evidence_", "candidates_", "noise_gains_", "bands_"),
    "sharpness_",
)


def too_little(spec: Spec, data: TrainingData, scaling: Scaling) -> str | None:
    """Why targets, as the model sees them, say nothing of their noise and spread; None if they do."""
    y = data.y
    if not spec.likelihood.location_scale or (len(y) > 2 and np.ptp(y) > 0):
        return None
    if np.ptp(y) > 0:
        what = "Two rows say"
    elif len(y) == 1:
        what = "One row says"
    elif y.ndim > 1:
        what = f"Each target is the same in all {len(y)} rows, which says"
    else:
        what = f"All {len(y)} targets are {scaling.original(y)[0]:g}, which says"
    return (
        f"{what} nothing of how far other targets may lie from what is predicted. Hyperparameters were not searched "
        "for: bands follow from the size of the targets. Give kernel and noise their values if you know them, with "
        "optimizer=None."
    )


def _equal_before(fitted: list[Any], data: TrainingData, goes_on: bool) -> bool | None:
    """Whether the first of these found equal length-scales for all inputs, if it has as many rows.

    What those with a prior cost is asked again, unless the search of this model goes on.
    """
    first = next((b for b in fitted if b.fit_result_ is not None), None)
    if first is None or len(first._training_data.y) != len(data.y) or (first.fit_result_.cost > 0 and not goes_on):
        return None
    return first.fit_result_.tied


class Savable:
    """An estimator that can be written to a file."""

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that :func:`errorband.load` reads; no pickle, nothing in it can run."""
        from errorband.persistence import save

        save(self, path)


class GaussianProcess(Savable, WithArguments):
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
    mixture_members_: list[Any]  # of a mixture only

    _kernel_candidates: ClassVar[tuple[str, ...]]
    """Names that ``kernel="auto"`` chooses from, the default first."""

    _mixes_candidates: ClassVar[bool] = False
    """Whether "auto" predicts with a mixture of the candidates, or with the best of them."""

    _settle: ClassVar[int | None] = 10
    """Iterations that may gain next to nothing before a search without Gaussian noise ends: evaluations are dear."""

    # ------------------------------------------------------------------ fitting
    @in_double_precision
    def _fit(self, spec: Spec, data: TrainingData, scaling: Scaling) -> None:
        """Fit to validated data, as the model sees them: ``scaling`` says how they were scaled."""
        name = type(self).__name__
        problem, strategies, reason = self._problem(spec, data)
        before, goes_on = vars(self).pop("_fitted_before", []), vars(self).pop("_goes_on", False)
        started = started_like(problem.model, [other._model for other in before])
        if started is not None:
            problem = dataclasses.replace(problem, model=started)
        if self.verbose > 0 and reason is not None and strategies:
            print(f"{name}: {reason}", file=sys.stderr)
        alike = [b for b in before if started is not None and type(b._model.likelihood) is type(spec.likelihood)]
        # What was found for the same kind of noise has been through a race of starts.
        trainer, starts = self._trainer(), () if alike else further_starts(problem)
        dear = not problem.model.likelihood.conjugate
        if isinstance(trainer, LBFGS) and trainer.usual_precision:
            settle = self._settle if dear else PATIENCE if len(data.y) >= MANY else None
            heat = HEAT if dear and starts else None
            trainer = dataclasses.replace(trainer, settle=trainer.settle or settle, heat=trainer.heat or heat)
        settings = Settings(
            trainer if too_little(spec, data, scaling) is None else None,
            self._n_restarts(),
            self.random_state,
            self.verbose,
            name=name,
            log_scale=float(np.log(scaling.y_scale)),
            starts=starts,
            scouted=started is not None,
            equal=_equal_before(alike, data, goes_on) if dear else None,
        )
        found = composed((*AROUND_ALL, *strategies)).run(problem, settings)
        if interrupts.happened() and found.result is not None:  # in whichever search, kept or not
            found = dataclasses.replace(found, result=found.result.cut_short())
        found, scaling = self._learn_transform(problem, found, scaling, settings)
        self._forget()
        self.scaling_, self.approximation_reason_ = scaling, reason
        self._keep_search(found)
        self._condition(found)
        self._learn_bands(problem, found)

    def _learn_transform(
        self, problem: Problem, found: Found, scaling: Scaling, settings: Settings
    ) -> tuple[Found, Scaling]:
        """What is to be learned of a transform of the targets."""
        return found, scaling

    def _learn_bands(self, problem: Problem, found: Found) -> None:
        """What is learned of predictive distributions beside the hyperparameters."""

    @in_double_precision  # as one computation: Ctrl-C ends the search in hand and those after it
    def _fit_candidates(self, X: Any, y: Any, **given: Any) -> bool:
        """Where an argument is "auto": fit what is best in its place and take that over. Whether there was one."""
        stages = {}
        if is_auto(self.kernel):
            stages["kernel"] = self._kernels_to_try(X)
        if is_auto(self.likelihood):
            stages["likelihood"] = self._likelihood_candidates(np.asarray(y))
        if stages:
            fitted, table = fit_best(self, X, y, stages, given)
            self._forget()
            self._take_over(fitted)
            self.candidates_ = table
        return bool(stages)

    def _take_over(self, fitted: Any) -> None:
        """Make what another estimator found its own, but not the arguments it was made with."""
        arguments = self.get_params(deep=False)
        vars(self).update({name: value for name, value in vars(fitted).items() if name not in arguments})

    def _kernels_to_try(self, X: Any) -> tuple[str, ...]:
        """The candidates for a table of inputs."""
        return self._kernel_candidates

    def _rows_to_search(self, n: int) -> int:
        """How many of n rows the hyperparameters of what "auto" has chosen are learned from."""
        return n

    def _worth_trying(self, argument: str, name: str, first: Any) -> bool:
        """Whether a candidate is worth a fit, given the fitted model of the first one for this argument."""
        return True

    def _problem(self, spec: Spec, data: TrainingData) -> tuple[Problem, tuple[str, ...], str | None]:
        """What to search; the strategies for it; and why this approximation, if it was chosen here."""
        check_seed(type(self).__name__, self.random_state)
        likelihood = spec.likelihood
        mean = spec.latents[0].mean
        approximation, reason = as_approximation(self.approximation, len(data.y), mean, self._exact_limit(likelihood))
        model = spec.model(data, approximation, self.random_state)
        rule = as_rule(self.inference, lambda: self._automatic_rule(likelihood, model))
        refusal = rule.supports(model, data)
        if refusal is not None:
            raise ValueError(refusal)
        return Problem(model, rule, data, spec.left_out(model)), approximation.strategies, reason

    def _keep_search(self, found: Found) -> None:
        self.fit_result_ = found.result
        if found.result is not None:
            warn_if_not_converged(found.result)
        for name in ("active_rows", "inducing_sweep", "moved_inducing", "certificate"):
            if getattr(found, name) is not None:
                setattr(self, f"{name}_", getattr(found, name))
        if found.noise_bound is not None:
            unit = next(e.unit for e in parameters.entries(found.objective.model.likelihood) if e.unit.y)
            self.noise_bound_ = found.noise_bound * float(self.scaling_.change().inverse().factor(unit))

    def _condition(self, found: Found) -> None:
        """Condition the model on the rows learned from, and keep what prediction needs."""
        objective, data = found.objective, found.objective.data
        model, last = objective.conclude(found.theta, found.warm)
        if not last.rule.reads_rows(model):  # rows of a file were read as a whole
            data = dataclasses.replace(data, X=np.asarray(data.X))
        mean = model.latent.mean
        p = np.shape(mean.basis(np.asarray(data.X[:1])))[1] if mean.marginalize else 0
        self.log_evidence_ = self.scaling_.log_density(last.log_evidence, data, p)
        self.inference_status_, self.inference_ = last.status, last.rule
        self.posterior_ = self._mixed(found, last.posterior)
        self._keep_model(model)
        self.jitter_ = float(self.posterior_.jitter)
        self._training_data = data
        self._state = jax.tree.map(np.asarray, last.state)
        if not last.status.converged or last.status.fell_back:
            warnings.warn(f"{last.status.message} See inference_status_.", ConvergenceWarning, stacklevel=5)
        if self.jitter_ > 0:
            warnings.warn(
                f"The covariance was not positive definite; {self.jitter_:.2g} was added to its diagonal (jitter_). "
                "Duplicate rows without noise are a common cause.",
                RuntimeWarning,
                stacklevel=5,
            )

    def _mixed(self, found: Found, posterior: Any) -> Any:
        """The mixture over the draws of a sampler, if the trainer was one."""
        draws = None if found.result is None else found.result.draws
        if draws is None:
            return posterior
        members = [found.objective.conclude(theta) for theta in draws]
        posteriors = tuple(conclusion.posterior for _, conclusion in members)
        weights = np.full(len(members), 1.0 / len(members))
        likelihoods = tuple(model.likelihood for model, _ in members)
        return MixturePosterior(weights=weights, members=posteriors, likelihoods=likelihoods)  # pyright: ignore[reportCallIssue]

    def _keep_model(self, model: Model) -> None:
        self._model = model
        shown = self._in_data_units()
        self.likelihood_: Any = shown.likelihood
        latents = self.latents_
        self.kernel_ = shown.latent.kernel if shown.shared else {name: l.kernel for name, l in latents.items()}
        self.mean_ = shown.latent.mean if shown.shared else {name: l.mean for name, l in latents.items()}
        self.approximation_ = shown.approximation.fitted(shown.latents)

    def _in_data_units(self) -> Model:
        """The model as people see it: its values, given to another estimator, make the same model again."""
        return self._model.in_units(self.scaling_.change().inverse())

    def _forget(self) -> None:
        """Delete what an earlier fit found and the next may not."""
        for name in OF_ONE_FIT:
            vars(self).pop(name, None)

    # ------------------------------------------------------------------ conditioning on other data
    @in_double_precision
    def _condition_on(self, data: TrainingData) -> None:
        """Replace the posterior by the one given ``data``, which are scaled by ``scaling_`` already.

        Called on a copy of a fitted estimator. All hyperparameters are held fixed, so nothing is searched.
        """
        self._remember_search()
        model = self._model
        model.likelihood.check_targets(data.y)
        for rows in chunks(data.X):
            self._check_inputs(rows)
        refusal = self.inference_.supports(model, data)
        if refusal is not None:
            raise ValueError(refusal)
        problem = Problem(parameters.all_fixed(model), self.inference_, data)
        choosing = [name for name in model.approximation.strategies if STRATEGIES[name].chooses_rows]
        found = composed(choosing).run(problem, Settings(None, random_state=self.random_state))
        if found.active_rows is not None:
            self.active_rows_ = found.active_rows
        self._condition(found)

    def _take_in(self, data: TrainingData) -> None:
        """Replace the posterior by the one after these rows too, which are scaled already. Nothing is searched."""
        if (reason := online.refusal(self.posterior_, self._model)) is not None:
            raise ValueError(reason)
        self._model.likelihood.check_targets(data.y)
        self._check_inputs(np.asarray(data.X))
        given = getattr(self.approximation, "inducing_inputs", None)  # where they were given they stay
        number = getattr(self._model.approximation, "n_inducing", None)
        most = None if given is not None or number is None else self._model.latent.features.size
        most = most if most is None or isinstance(number, str) else max(most, number)
        found = online.taken_in(self._model, self.posterior_, self.inference_, data, most)
        model, self.posterior_, more, self.inference_status_ = found
        self._keep_model(model)
        self.log_evidence_ += more - data.size * float(np.log(self.scaling_.y_scale))
        self.log_evidence_ += self.scaling_.log_slope(data.y, data.weights)
        self._training_data = self._state = None

    def _remember_search(self) -> None:
        """Keep the evidence of the rows that were searched: ``log_evidence_`` is about to become that of others."""
        self.search_log_evidence_ = getattr(self, "search_log_evidence_", self.log_evidence_)

    # ------------------------------------------------------------------ what reports and tools ask for
    @property
    def process_(self) -> Any:
        """The Gaussian process that predictions come from: the model itself."""
        return self

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
        return np.asarray(data.X) * scaling.x_scale + scaling.x_shift, scaling.original(data.y)

    def _objective(self, spec: Spec, data: TrainingData) -> Objective:
        problem, strategies, _ = self._problem(spec, data)
        # Where the search starts: rows chosen at the starting values, or values that another search found.
        first = [name for name in strategies if STRATEGIES[name].sets_start]
        chooses_rows = any(STRATEGIES[name].chooses_rows for name in first)
        settings = Settings(None if chooses_rows else self._trainer(), self._n_restarts(), self.random_state)
        return composed(first, Start()).run(problem, settings).objective

    def _scaling(
        self, spec: Spec, X: np.ndarray, y: np.ndarray | None = None, weights: np.ndarray | None = None
    ) -> Scaling:
        """How the model sees validated data; targets are left alone if they are not given."""
        check_magnitude(X, "X")
        check_spread(X, "X")
        if not self.normalize:
            return Scaling.identity(X.shape[1])
        return Scaling.standardise(X, y, spec.raw_columns(X.shape[1]), weights, spec.columns_alike(X.shape[1]))

    # ------------------------------------------------------------------ reading the constructor's arguments
    def _spec(self, n_features: int, fresh: bool = False) -> Spec:
        """What the arguments say; "auto" is what it chose, unless a new fit (``fresh``) is to choose again."""
        names = getattr(self, "feature_names_in_", None)
        return Spec.of(self._likelihood(fresh), self._kernel(fresh), self.mean, names, n_features)

    def _kernel(self, fresh: bool = False) -> Any:
        """As given; the default in the place of None, and of "auto" before it has chosen."""
        kernel = self.kernel
        if is_auto(kernel):
            kernel = None if fresh else getattr(self, "kernel_", None)
        return self._default_kernel() if kernel is None else kernel

    def _default_kernel(self) -> Kernel:
        return default_kernel(self._kernel_candidates, self.approximation)

    def _likelihood_candidates(self, y: np.ndarray) -> tuple[str, ...]:
        raise NotImplementedError

    def _seen(self, spec: Spec, scaling: Scaling) -> Spec:
        """What was said of the data, said of the data as the model sees them, with what the estimator adds to it."""
        seen = spec.in_units(scaling.change())
        latents = (dataclasses.replace(l, kernel=self._completed(l.kernel)) for l in seen.latents)
        return dataclasses.replace(seen, latents=tuple(latents))

    def _completed(self, kernel: Kernel) -> Kernel:
        """A kernel with what the estimator says where the user said nothing, in the units the model sees."""
        return kernel

    def _likelihood(self, fresh: bool = False) -> Likelihood:
        raise NotImplementedError

    def _exact_limit(self, likelihood: Likelihood) -> int:
        """How many rows an evaluation without approximation can have that takes seconds and a few hundred MB.

        With L latents the covariance is L times as large in each direction: work of (LN)³; under Laplace with the
        softmax it comes apart into L of size N.
        """
        if likelihood.conjugate:
            return EXACT_ROWS
        L = likelihood.n_latents
        rule = as_rule(self.inference, lambda: self._site_rule(likelihood))
        comes_apart = likelihood.simplex and getattr(rule, "simplex_sites", False)
        return int(EXACT_ROWS_SITES / (L ** (1 / 3) if comes_apart else L))

    def _automatic_rule(self, likelihood: Likelihood, model: Model) -> Inference:
        """What ``inference="auto"`` stands for: a closed form, the approximation's rule, or that of the likelihood."""
        if likelihood.conjugate:
            return Conjugate()
        power = model.approximation.site_power
        return self._site_rule(likelihood) if power is None else rule_of_power(power)

    def _site_rule(self, likelihood: Likelihood) -> Inference:
        """Which sites suit the likelihood.

        EP is the more accurate rule, and needs no curvature; for several latents its integrals are costly where they
        have no closed form, and where the likelihood is not log-concave its fixed point is hard to find at some
        hyperparameters. There it has the last word, at those that were found.
        """
        if likelihood.closed_tilted:  # several starts rather than the double loop, which is slow for several latents
            return EP(mode="parallel")
        if likelihood.smooth and likelihood.n_latents > 1:
            return Laplace()
        return Laplace(last_word=EP()) if likelihood.smooth and not likelihood.log_concave else EP()

    def _n_restarts(self) -> int:
        check_whole(type(self).__name__, "n_restarts", self.n_restarts, least=0)
        return int(self.n_restarts)

    def _trainer(self) -> Trainer | None:
        if self.optimizer is None or hasattr(self.optimizer, "train"):
            return self.optimizer
        if isinstance(self.optimizer, str) and self.optimizer == "lbfgs":
            return LBFGS()
        raise ValueError(f"optimizer={self.optimizer!r}: choose 'lbfgs', LBFGS(...), or None to keep the given values.")

    # ------------------------------------------------------------------ judging the evidence
    def annealed_evidence(
        self, runs: int = 100, temperatures: int = 1000, random_state: int = 0, start: str = "posterior"
    ) -> Annealed:
        """Estimate ``log_evidence_`` by annealed importance sampling: a judge of Laplace, EP and KL, with an error bar.

        For small data without approximation. Needs BlackJAX (the extra ``mcmc``).

        Parameters
        ----------
        runs, temperatures : int
            Independent runs, and steps to the exact posterior in each.
        random_state : int
            Seed.
        start : {"posterior", "prior"}
            Runs begin around the posterior of this fit, or with draws of the prior. Both are unbiased; from the prior
            the way is long, and many more temperatures are needed.

        Returns
        -------
        annealed : Annealed
            ``log_evidence`` of the targets as given, its standard ``error``, and ``effective_runs``.
        """
        data = self._prepared_rows()
        if any(latent.features is not None for latent in self._model.latents):
            raise ValueError("Annealed importance sampling needs the whole covariance: approximation='exact'.")
        if start not in ("posterior", "prior"):
            raise ValueError(f"start={start!r}: choose 'posterior' or 'prior'.")
        shown = self.mixture_members_[0] if hasattr(self, "mixture_members_") else self
        near = shown.posterior_ if start == "posterior" else None
        found = annealed_evidence(self._model, data, near, runs=runs, temperatures=temperatures, seed=random_state)
        return dataclasses.replace(found, log_evidence=self.scaling_.log_density(found.log_evidence, data))

    # ------------------------------------------------------------------ showing
    def hyperparameters(self, target: str = "target") -> Hyperparameters:
        """Return the fitted values in the units of the data, with names and units; printed, they are a table.

        Parameters
        ----------
        target : str
            What the targets are called.

        Returns
        -------
        rows : tuple of Hyperparameter
            With ``part``, ``name``, ``kind``, ``value``, ``unit`` and ``column``. Variances in the unit of the targets
            are shown as standard deviations. Matrices are left out.

        Examples
        --------
        >>> from errorband import GPRegressor
        >>> from errorband.kernels import Periodic
        >>> from errorband.likelihoods import Gaussian
        >>> model = GPRegressor(Periodic(1.0, 400.0, period=1.0), likelihood=Gaussian(4.0), optimizer=None)
        >>> model.fit([[1958.0], [1958.5], [1959.25]], [310.0, 330.0, 320.0]).hyperparameters()
        hyperparameter            value  unit    of
        roughness of x0               1          Periodic
        prior standard deviation     20  target  Periodic
        period of x0                  1  x0      Periodic
        noise standard deviation      2  target  Gaussian
        """
        check_is_fitted(self)
        return hyperparameters(self, target)

    @property
    def _repr_html_(self) -> Any:
        """What a notebook shows: scikit-learn's diagram before ``fit``, a card with what was found after."""
        shown = super()._repr_html_  # raises AttributeError where scikit-learn is told to show text
        return self._card if hasattr(self, "log_evidence_") else shown

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self._repr_html_()} if "text/html" in bundle else bundle

    def _card(self) -> str:
        from errorband.reporting.card import card_html

        return card_html(self)

    # ------------------------------------------------------------------ predicting
    @property
    def latent_names_(self) -> tuple[str, ...]:
        """Names of the latent functions, as the likelihood calls them."""
        check_is_fitted(self)
        return self.likelihood_.latent_names

    @property
    def latents_(self) -> dict[str, Latent]:
        """Fitted prior (kernel, mean, features) of each latent function by name; one entry if all share it."""
        check_is_fitted(self)
        likelihood, latents = self.likelihood_, self._in_data_units().latents
        names = likelihood.latent_names if len(latents) > 1 else likelihood.latent_kinds[:1]
        return dict(zip(names, latents, strict=True))

    def _latent_index(self, latent: Any) -> int:
        """Position of a latent function, by name; True and False mean the only one."""
        check_latent(latent)
        names = self.likelihood_.latent_names
        if latent in names:
            return names.index(latent)
        listed = ", ".join(map(repr, names))
        if isinstance(latent, str):
            raise ValueError(f"latent={latent!r}: this model has {listed}.")
        if len(names) > 1:
            raise ValueError(f"This model has {len(names)} latent functions; say which: latent= one of {listed}.")
        return 0

    def _inputs(self, X: Any) -> np.ndarray:
        """Validated test inputs as the model sees them."""
        check_is_fitted(self)
        check_columns_are_numeric(X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        check_magnitude(X, "X")
        scaled = self.scaling_.inputs(X)
        self._check_inputs(scaled)
        return scaled

    def _check_inputs(self, scaled: np.ndarray) -> None:
        for latent in self._model.latents:
            latent.kernel.check(scaled)

    def _leave_one_out(self) -> Predictive:
        """Distribution of each training target given the others, as the model sees them."""
        if hasattr(self, "mixture_members_"):
            members = [member._leave_one_out() for member in self.mixture_members_]
            return MixturePredictive(self.posterior_.weights, members)
        return self.inference_.leave_one_out(self._model, self._prepared_rows(), self._state)

    def _judged_by_rows_left_out(self, bands: bool) -> tuple[np.ndarray, float]:
        """Log density of each row given the others, and what learned bands, if asked for, add to the log evidence."""
        return self.loo().log_density, 0.0  # pyright: ignore[reportAttributeAccessIssue]

    def _rows(self) -> TrainingData:
        """The rows learned from, as the model sees them, if it has them."""
        check_is_fitted(self)
        if self._training_data is None:
            raise ValueError(
                f"This {type(self).__name__} was fitted to a memory-mapped file and saved without its rows, which are "
                "asked for here: fit it again."
            )
        return self._training_data

    def _prepared_rows(self) -> TrainingData:
        return prepared(self._model, self.inference_, self._rows())
