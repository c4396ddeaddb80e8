"""Gaussian-process regression."""

import copy
import dataclasses
import functools
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband import parameters
from errorband.data import TrainingData
from errorband.estimators import noise_check
from errorband.estimators.bands import learned_bands
from errorband.estimators.base import too_little
from errorband.estimators.candidates import is_auto
from errorband.estimators.defaults import REGRESSION_KERNELS, noises
from errorband.estimators.mixture import with_members
from errorband.estimators.online import streams
from errorband.estimators.predicting_numbers import PredictsTargets
from errorband.estimators.scaling import READ_AS, Scaling, is_constant, training_inputs
from errorband.estimators.several_targets import check_one, fit_targets, n_columns
from errorband.estimators.spec import Spec, as_likelihood, as_rule, as_transform
from errorband.estimators.spread import informative
from errorband.estimators.validation import (
    check_columns_are_numeric,
    check_kind,
    check_magnitude,
    check_noise_variance,
    check_one_target,
    check_spread,
    check_weights,
    finite_numbers,
    first_of_copies,
)
from errorband.inference import Conjugate
from errorband.likelihoods import Gaussian, Likelihood
from errorband.parameters import Parameter
from errorband.priors import Hypoexponential
from errorband.training import LBFGS, Found, Objective, Problem
from errorband.training.tie import ties
from errorband.training.warp import learned_transform

# Residuals of at least and at most so many rows are looked at for what noise they ask for.
CHECKED = 30, 2000

# Share of rows that repeat others, above which a word is said.
COPIES = 0.1

# Of the share of noise in the variance of the targets. Few rows, or inputs as many as rows, go with no noise at all as
# well as with some, and bands would have no width: below a hundredth a share is less likely in proportion. Many rows
# without noise have the last word: what they say has a power of half their number.
NOISE_PRIOR = Hypoexponential(low=0.01, high=10.0)

# The least share: rows that are repeated exactly ask for none at all, and then decide whatever function they come with.
LEAST_NOISE = 1e-10

# What "auto" fits another noise for: so many nats for each row, and more where learned bands have most of the gain.
WORTH, WORTH_BEYOND = 0.02, 0.1

# Rows that "auto" learns the hyperparameters of another noise from, at most: with 1,500 an evaluation takes seconds.
DEAR = 600


class GPRegressor(RegressorMixin, PredictsTargets):
    """Gaussian-process regression: a prediction with an error band at every input.

    Hyperparameters are found by maximising the evidence (marginal likelihood), so there is nothing to cross-validate.

    Parameters
    ----------
    kernel : Kernel, str or dict, optional
        Covariance function, from :mod:`errorband.kernels`, or its name: ``"matern52+linear"``,
        ``"periodic(period=1, column=date)"``. Default: Matérn 5/2 plus a linear part, with a length-scale per input
        where the evidence pays for it. Values given are where the search starts; values left out are chosen from the
        data, and several starts are tried. "auto" chooses among some kernels; see ``candidates_``. A likelihood with
        several latent functions takes one for each, ``{"mean": ..., "log_noise": ...}``; a single kernel starts them
        all.
    mean : {"zero", "constant", "linear"}, Mean or dict
        Prior mean; a single one is that of the first latent function, the others have mean zero.
        ``Constant(marginalize=True)`` and ``Linear(marginalize=True)`` of :mod:`errorband.means` integrate the
        coefficients out.
    likelihood : Likelihood or str, optional
        How targets scatter around the function, or its name: ``"poisson"``, ``"student-t"``. Default: Gaussian noise of
        learned variance, which has a prior where nothing is said of it (``docs/theory/defaults.md``). "auto" chooses
        among the Gaussian and others that the residuals ask for; see ``candidates_``.
    approximation : "auto", "exact", another name, Approximation or Features
        How the prior covariance is kept: whole, or by inducing points, for instance ``FITC(200)`` of
        :mod:`errorband.approximations`, or ``"fitc(200)"``. Features that are a whole prior can be given as they are.
        "auto": whole up to 5000 rows (2000 if noise is not Gaussian, 1000 with two latent functions), else ``FITC()``.
    inference : "auto", "conjugate", "laplace", "ep", "kl" or Inference
        How the posterior is found. "auto": in closed form for Gaussian noise, by Laplace's approximation for several
        latent functions (twinned models by EP, whose integrals are closed there), else by EP; see ``inference_``.
        Where a likelihood of one latent function is not log-concave, the search before it goes by Laplace's evidence.
    optimizer : "lbfgs", LBFGS or None
        Search for hyperparameters; None keeps the given values.
    n_restarts : int
        Additional random starts of the search.
    target_transform : str or Transform, optional
        An increasing function that targets go through first: ``"log"``, ``"box-cox"``, ``"yeo-johnson"``, ``"logit"``,
        ``"logit(0, 100)"``, ``"warp"`` or one of :mod:`errorband.transforms`. What it leaves open, such as a power, is
        learned with the hyperparameters. Predictions, bands and ``log_evidence_`` are those of the targets as given.
    exposure : str or int, optional
        The column of X, by name or position, that counts are proportional to (population, time, area), for ``Poisson``
        and ``NegativeBinomial``: its logarithm is added to the latent function, the log rate, and kernels do not look
        at it.
    calibrate : bool
        Learn the shape of the predictive distribution from leave-one-out errors, in which hyperparameters too are those
        of the other rows: Student's, which may be skew, with a scale that may depend on inputs and prediction. For
        Gaussian noise without approximation; ``optimizer=None`` learns nothing. The function itself
        (``latent=True``) is not concerned.
    normalize : bool
        Standardise inputs and targets first, so that starting values suit any data and the prior mean zero is the mean
        of the targets. All that you give and get stays in the units of the data.
    random_state : int, RandomState or None
        Seed of all that is drawn: restarts, where inducing inputs and blocks start, rows held out to choose the number
        of inducing inputs, the rows of ``SubsetOfData`` and those ``IVM`` begins with.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    kernel_, likelihood_, mean_, approximation_, inference_
        The fitted parts, with plain values in the units of the data; given to another estimator they make the same
        model.
    latent_names_ : tuple of str
        Names of the latent functions; ``kernel_`` and ``mean_`` are dictionaries by name if there are several priors.
    approximation_reason_ : str or None
        Why this approximation was chosen; None if it was asked for.
    inference_status_ : Status
        Whether the inference rule converged, after how many sweeps, and a sentence about it.
    posterior_ : Posterior
        What predictions are made from; its inputs and results are in the units the model sees.
    scaling_ : Scaling
        How data become what the model sees: ``x_shift``, ``x_scale``, ``y_shift`` and ``y_scale``; shifts of zero and
        scales of one with ``normalize=False``.
    active_rows_ : array
        Positions of the rows learned from; only with ``SubsetOfData`` and ``IVM``.
    inducing_sweep_ : InducingSweep
        How the number of inducing inputs was chosen, with "auto" in place of it: ``print(model.inducing_sweep_)``.
    moved_inducing_ : int
        How many inducing inputs had no part in the model and were moved, if it has any.
    noise_bound_ : float
        The least noise that the search was allowed to claim, in the units of the data; only with ``bound_noise``.
    log_evidence_ : float
        Log marginal likelihood of the targets at the fitted hyperparameters.
    fit_result_ : FitResult or None
        How the search went.
    search_log_evidence_ : float
        Log evidence of the rows the search saw; only after :meth:`condition_on`, where ``log_evidence_`` is that of
        other rows.
    noise_gains_ : dict
        What other noises would gain in leave-one-out log density over Gaussian noise, in nats and about, by name; with
        Gaussian noise and 30 to 2000 rows. If it is much there is a warning.
    bands_ : Bands
        The shape of the predictive distribution of targets, if ``calibrate`` found one: ``print(model.bands_)``.
    candidates_ : Candidates
        What "auto" chose from, with log evidence and leave-one-out log density: ``print(model.candidates_)``.
    estimators_ : list of GPRegressor
        A fitted model for each target, after a fit to y (n, K); what is not about all targets is there: ``loo``,
        ``predictive``, ``kernel_``.
    jitter_ : float
        What had to be added to the covariance's diagonal; 0 almost always.
    outlier_probability_ : array (n,)
        Probability of each training row to be an outlier; with robust likelihoods: ``OutlierMixture``, ``StudentT``,
        ``DoubleExponential``, ``Huber``, ``Twinned`` and its relatives.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GPRegressor().fit(X, y)
    >>> mean, std = model.predict([[np.pi / 2], [20.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1), bool(std[0] < 0.2), bool(std[1] > 0.5)
    (True, True, True)
    """

    short_names: ClassVar = {}  # what the other names are of

    target_transform: Any = None  # of relatives that do not offer them
    exposure: Any = None
    calibrate: Any = False
    _kernel_candidates: ClassVar = REGRESSION_KERNELS

    def __init__(
        self,
        kernel=None,
        *,
        mean="zero",
        likelihood=None,
        approximation="auto",
        inference="auto",
        optimizer="lbfgs",
        n_restarts=0,
        target_transform=None,
        exposure=None,
        calibrate=True,
        normalize=True,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.likelihood = likelihood
        self.approximation = approximation
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.target_transform = target_transform
        self.exposure = exposure
        self.calibrate = calibrate
        self.normalize = normalize
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ fitting
    def fit(self, X: Any, y: Any, noise_variance: Any = None, sample_weight: Any = None) -> "GPRegressor":
        """Fit to inputs X (n, D) and targets y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
            Or (n, K), for Gaussian noise without approximation: K targets that share kernel and noise, in units of the
            standard deviation of each, and one factorisation. Predictions then have a column for each, and
            ``estimators_`` has a model for each.
        noise_variance : array (n,), optional
            Known noise variance of each target, on top of the likelihood's own.
        sample_weight : array (n,), optional
            Power of each row's likelihood: 2 counts a row twice, 0 leaves it out. For Gaussian noise a weight divides
            the variance of the noise; predictions are of targets of weight 1.
        """
        if n_columns(y) > 1:
            check_kind(y, "y")
            fit_targets(self, X, y, noise_variance, sample_weight)
            return self
        ready = self._training(X, y, noise_variance, sample_weight)
        for told in (too_little(*ready), self._copies(*ready[:2])) if self.optimizer is not None else ():
            if told is not None:
                warnings.warn(told, UserWarning, stacklevel=2)
        if not self._fit_candidates(X, y, noise_variance=noise_variance, sample_weight=sample_weight):
            self._fit(*ready)
            self._check_noise()
        return self

    def condition_on(self, X: Any, y: Any, noise_variance: Any = None, sample_weight: Any = None) -> "GPRegressor":
        """Return a new model with the same hyperparameters and the same scaling, conditioned on other data.

        Nothing is searched and this model is left as it is. ``fit_result_`` and ``approximation_reason_`` of the new
        model are those of this one; the rows it was fitted to are forgotten unless they are passed again.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            With the columns seen in ``fit``.
        y : array (n,)
        noise_variance : array (n,), optional
            Known noise variance of each target, on top of the likelihood's own.
        sample_weight : array (n,), optional
            Power of each row's likelihood, as in :meth:`fit`.

        Returns
        -------
        model : GPRegressor

        Examples
        --------
        >>> import numpy as np
        >>> from errorband import GPRegressor
        >>> x = np.linspace(0, 6, 40)
        >>> y = np.sin(x) + 0.05 * np.random.default_rng(0).normal(size=40)
        >>> model = GPRegressor().fit(x[:30, None], y[:30])
        >>> longer = model.condition_on(x[:, None], y)
        >>> repr(longer.kernel_) == repr(model.kernel_)
        True
        >>> (longer.predict([[5.5]]) - np.sin(5.5)).round(1) + 0.0
        array([0.])
        """
        check_is_fitted(self)
        check_one(self)
        if hasattr(self, "mixture_members_"):
            return with_members(
                self, [m.condition_on(X, y, noise_variance, sample_weight) for m in self.mixture_members_]
            )
        new = copy.copy(self)
        new._condition_on(new._training(X, y, noise_variance, sample_weight, self.scaling_)[1])
        return new

    @available_if(streams)
    def partial_fit(self, X: Any, y: Any, noise_variance: Any = None, sample_weight: Any = None) -> "GPRegressor":
        """Take in more rows, of a model with inducing points or other features; the first call is :meth:`fit`.

        Hyperparameters and scaling stay those of the first batch, so let it be a fair sample. What later batches say
        goes into the posterior, and the rows are forgotten: memory is constant. With features that stay, the result is
        that of all rows at once. Inducing points follow the data: they are added where the present ones leave more than
        a thousandth of the prior variance open and, beyond ``n_inducing``, those go that matter least; points that were
        given (``inducing_inputs=``) stay.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
        noise_variance : array (n,), optional
            Known noise variance of each target, on top of the likelihood's own.
        sample_weight : array (n,), optional
            Power of each row's likelihood: 2 counts a row twice, 0 leaves it out.

        Examples
        --------
        >>> import numpy as np
        >>> from errorband import GPRegressor
        >>> from errorband.approximations import VFE
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 10, (600, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=600)
        >>> model = GPRegressor(approximation=VFE(15), random_state=0)
        >>> for rows in np.split(np.arange(600), 3):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.05)
        True
        """
        check_one(self)
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, noise_variance, sample_weight)
        self._take_in(self._training(X, y, noise_variance, sample_weight, self.scaling_)[1])
        return self

    def exact_limit(self) -> int:
        """Return up to how many rows ``approximation="auto"`` keeps the whole covariance."""
        return self._exact_limit(self._likelihood())

    def objective(self, X: Any, y: Any, noise_variance: Any = None, sample_weight: Any = None) -> Objective:
        """The function ``fit`` maximises, for those who bring their own optimiser or sampler."""
        spec, data, _ = self._training(X, y, noise_variance, sample_weight)
        return self._objective(spec, data)

    def _training(
        self, X: Any, y: Any, noise_variance: Any, sample_weight: Any, scaling: Scaling | None = None
    ) -> tuple[Spec, TrainingData, Scaling]:
        """The model to be, validated data as it sees them, and their scaling: the one given, or one made from them."""
        check_columns_are_numeric(X)
        check_kind(y, "y")
        check_one_target(type(self).__name__, y)
        X, y = validate_data(self, X, y, reset=scaling is None, dtype=READ_AS, y_numeric=True)
        y = finite_numbers(y, "y")
        if noise_variance is not None:
            noise_variance = check_noise_variance(noise_variance, len(y))
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(y))
            if not np.all(weights > 0):
                noise_variance = None if noise_variance is None else noise_variance[weights > 0]
                X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        check_magnitude(y, "y")
        spec = self._spec(X.shape[1], fresh=scaling is None)
        if scaling is None:
            check_spread(y, "y")
            y = np.full_like(y, y[0]) if is_constant(y) else y
            scaling = self._new_scaling(spec, X, y, weights)
        else:
            check_magnitude(X, "X")
        if scaling.transform is not None:
            scaling.transform.check(y)
            if noise_variance is not None:
                raise ValueError("noise_variance is in the units of the targets, which a target_transform changes.")
        noise = None if noise_variance is None else noise_variance / scaling.y_scale**2
        inputs = training_inputs(X, scaling)
        data = TrainingData(inputs, scaling.targets(y), noise, weights, scaling.offset(inputs))
        return self._seen(spec, scaling), data, scaling

    def _new_scaling(self, spec: Spec, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> Scaling:
        """How these data become what the model sees."""
        transform, z = as_transform(self.target_transform), y
        # Counts, shares and the like mean what they are: only additive noise lets targets be transformed or rescaled.
        additive = spec.likelihood.location_scale
        if transform is not None:
            if not additive:
                raise ValueError(
                    f"target_transform={self.target_transform!r}: {type(spec.likelihood).__name__} is for targets as "
                    "they are; use a likelihood of additive noise, such as Gaussian(), or no transform."
                )
            closed = spec.likelihood.conjugate and not spec.latents[0].mean.marginalize
            closed = closed and as_rule(self.inference, Conjugate) == Conjugate()
            if transform.needs_evidence and not (closed and self.normalize and isinstance(self._trainer(), LBFGS)):
                raise ValueError(
                    f"target_transform={self.target_transform!r} is learned by a search with Gaussian noise "
                    "(optimizer='lbfgs', inference='auto'), normalize=True and a mean that is not integrated out; use "
                    "these, give its values, or choose 'box-cox' or 'yeo-johnson'."
                )
            transform.check(y)
            transform = transform.fitted(y)
            z = transform.forward(y)
        scaling = self._scaling(spec, X, z if additive else None, weights)
        scaling = dataclasses.replace(scaling, transform=transform)
        return scaling.with_exposure(self._exposure_column(X.shape[1]), X, y, self.normalize)

    def _spec(self, n_features: int, fresh: bool = False) -> Spec:
        spec, column = super()._spec(n_features, fresh), self._exposure_column(n_features)
        if column is None:
            return spec
        if not spec.likelihood.log_rate:
            raise ValueError(
                f"exposure={self.exposure!r} is for counts at a rate, and {type(spec.likelihood).__name__} is not; use "
                "likelihood='poisson' or 'negative-binomial'."
            )
        if n_features < 2:
            raise ValueError(
                f"exposure={self.exposure!r} is the only column of X; add columns to predict the rate from."
            )
        return spec.without_column(column, n_features)

    def _exposure_column(self, n_features: int) -> int | None:
        if self.exposure is None:
            return None
        names = list(getattr(self, "feature_names_in_", range(n_features)))
        if self.exposure in names:
            return names.index(self.exposure)
        if isinstance(self.exposure, int | np.integer) and 0 <= self.exposure < n_features:
            return int(self.exposure)
        raise ValueError(f"exposure={self.exposure!r} is not a column of X, which has {', '.join(map(repr, names))}.")

    def _seen(self, spec: Spec, scaling: Scaling) -> Spec:
        """With a prior of Gaussian noise of which nothing was said, where targets have unit variance.

        Only with the whole covariance: approximations are for many rows.
        """
        seen = super()._seen(spec, scaling)
        noise: Any = seen.likelihood
        if not (self._whole() and self.normalize and noise.conjugate and noise.noise_variance is None):
            return seen
        least = max(LEAST_NOISE, noise.min_noise_variance)
        prior: Any = {("noise_variance",): Parameter(None, prior=NOISE_PRIOR, bounds=(least, None))}
        return dataclasses.replace(seen, likelihood=parameters.replace_values(noise, prior))

    def _likelihood_candidates(self, y: np.ndarray) -> tuple[str, ...]:
        return noises(y)

    def _worth_trying(self, argument: str, name: str, first: Any) -> bool:
        """Noises that differ from the first in the shape of residuals are fitted if residuals have that shape."""
        if first.fit_result_ is None and self.optimizer is not None:  # targets that say nothing choose nothing
            return False
        if argument != "likelihood" or name not in (gains := getattr(first, "noise_gains_", {})):
            return True
        # Tails that are only heavy, and errors that only grow along an input, are in the bands.
        return gains[name] > (WORTH_BEYOND if self.calibrate else WORTH) * len(first._rows().y)

    def _whole(self) -> bool:
        """Whether the whole covariance is kept, of up to as many rows as can be."""
        return isinstance(self.approximation, str) and self.approximation in ("auto", "exact")

    def _rows_to_search(self, n):
        whole = self._whole() and n <= self.exact_limit()
        return min(n, DEAR) if whole and not self._likelihood().conjugate else n

    def _copies(self, spec: Spec, data: TrainingData) -> str | None:
        """What to say of rows that repeat others, target and all, if they are many; None if they are not."""
        n = len(data.y)
        if n > CHECKED[1] or data.weights is not None or not spec.likelihood.location_scale or np.ptp(data.y) == 0:
            return None
        again = n - len(first_of_copies(np.asarray(data.X), data.y))
        if again <= COPIES * n:
            return None
        return (
            f"{again} of {n} rows repeat another one, target and all, which says that targets have no noise. If they "
            "are copies leave them out (DataFrame.drop_duplicates), or bands will be too narrow."
        )

    def _check_noise(self) -> None:
        """Say what noise the residuals ask for, where nobody said what it is and looking costs little."""
        data, likelihood = self._rows(), self.likelihood_
        plain = likelihood.conjugate and data.noise_variance is None and data.weights is None
        if not plain or self.optimizer is None or self.approximation_.strategies:
            return
        if not CHECKED[0] <= len(data.y) <= CHECKED[1] or np.ptp(data.y) == 0:
            return
        found = self._leave_one_out()
        z = (data.y - found.mean) / found.std
        if not np.all(np.isfinite(z)):
            return
        X, mean = np.asarray(data.X), informative(found.mean, data.y)
        news = self.noise_gains_ = noise_check.gains(z, X, mean)
        if self.likelihood is not None:
            return
        spread = getattr(getattr(self, "bands_", None), "spread", None)
        if spread is not None:  # errors of unequal size, which the bands have, look like outliers
            news = noise_check.gains(z / spread(X, mean), X, mean)
            del news["heteroscedastic"]
        told = noise_check.advice(news, len(data.y))
        if told is not None:
            warnings.warn(told, UserWarning, stacklevel=3)

    def _learn_transform(self, problem, found, scaling, settings):
        given, first = as_transform(self.target_transform), scaling.transform
        result, data = found.result, found.objective.data
        if given is None or first is None or not given.left_open or result is None or result.interrupted:
            return found, scaling
        model = problem.model
        closed = problem.rule == Conjugate() and data.y.ndim == 1 and not model.latent.mean.marginalize
        if not closed or not self.normalize or not isinstance(settings.trainer, LBFGS):
            return found, scaling  # the transform stays the one that makes targets most like a normal distribution
        y = scaling.original(data.y)
        scaled = functools.partial(scaling.with_transform, y=y, weights=data.weights)
        groups = ties(problem) if result.tied else None
        found, transform = learned_transform(found, first, scaled, groups, settings.trainer, settings.verbose)
        return found, scaled(transform)

    def _learn_bands(self, problem: Problem, found: Found) -> None:
        result, model = found.result, problem.model
        if not self.calibrate or result is None or result.interrupted or result.draws is not None:
            return
        whole = not model.approximation.strategies and all(latent.features is None for latent in model.latents)
        if whole and model.likelihood.conjugate and self._state is None:  # no state: in closed form
            bands = learned_bands(found.objective, found.theta, ties(problem) if result.tied else None)
            if bands is not None:
                self.bands_ = bands[0] if found.objective.data.y.ndim == 1 else bands

    def _likelihood(self, fresh: bool = False) -> Likelihood:
        if is_auto(self.likelihood):
            return Gaussian() if fresh else getattr(self, "likelihood_", Gaussian())
        return as_likelihood(self.likelihood)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._whole() and self.likelihood is None
        return tags
