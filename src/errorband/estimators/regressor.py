"""Gaussian-process regression."""

import copy
import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband.data import TrainingData
from errorband.estimators import noise_check
from errorband.estimators.bands import Bands, learned_bands
from errorband.estimators.base import GaussianProcess, too_little
from errorband.estimators.candidates import is_auto
from errorband.estimators.defaults import REGRESSION_KERNELS, noises
from errorband.estimators.leave_one_out import LeaveOneOut
from errorband.estimators.mixture import mixed
from errorband.estimators.online import streams
from errorband.estimators.scaling import READ_AS, Scaling, is_constant, training_inputs
from errorband.estimators.spec import Spec, as_likelihood, as_transform
from errorband.estimators.validation import (
    check_columns_are_numeric,
    check_finite,
    check_kind,
    check_magnitude,
    check_noise_variance,
    check_one_target,
    check_spread,
    check_weights,
)
from errorband.likelihoods import Gaussian, Likelihood
from errorband.parameters.checks import check_whole, generator
from errorband.posterior.base import latent_of
from errorband.precision import double_precision
from errorband.predictive import GaussianPredictive, Predictive
from errorband.training import Found, Objective, Problem
from errorband.training.tie import ties
from errorband.transforms import Transform, TransformedPredictive

# Residuals of at least and at most so many rows are looked at for what noise they ask for.
CHECKED = 30, 2000

# Joint covariances and draws are for plotting and small sets: beyond this many rows they ask for too much memory.
MAX_JOINT_ROWS = 20_000
JOINT_DRAWS = 2_000  # from which the joint covariance of transformed targets is estimated


class GPRegressor(RegressorMixin, GaussianProcess):
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
        learned variance. "auto" chooses among the Gaussian and others that the residuals ask for; see ``candidates_``.
    approximation : "auto", "exact", another name, Approximation or Features
        How the prior covariance is kept: whole, or by inducing points, for instance ``FITC(200)`` of
        :mod:`errorband.approximations`, or ``"fitc(200)"``. Features that are a whole prior can be given as they are.
        "auto": whole up to 5000 rows (2000 if noise is not Gaussian, 1000 with two latent functions), else ``FITC()``.
    inference : "auto", "conjugate", "laplace", "ep", "kl" or Inference
        How the posterior is found. "auto": in closed form for Gaussian noise, by Laplace's approximation for
        likelihoods of several latents, else by EP; see ``inference_``. Where the likelihood is not log-concave, the
        search before it goes by Laplace's evidence.
    optimizer : "lbfgs", LBFGS or None
        Search for hyperparameters; None keeps the given values.
    n_restarts : int
        Additional random starts of the search.
    target_transform : str or Transform, optional
        An increasing function that targets go through first: ``"log"``, ``"box-cox"``, ``"yeo-johnson"``, ``"logit"``,
        ``"logit(0, 100)"`` or one of :mod:`errorband.transforms`. Predictions, bands and ``log_evidence_`` are those of
        the targets as given.
    exposure : str or int, optional
        The column of X, by name or position, that counts are proportional to (population, time, area), for ``Poisson``
        and ``NegativeBinomial``: its logarithm is added to the latent function, the log rate, and kernels do not look
        at it.
    calibrate : bool
        Learn the shape of the predictive distribution from leave-one-out errors, in which hyperparameters too are those
        of the other rows: Student's, with a width of its own. For Gaussian noise without approximation, from 20 rows
        on; ``optimizer=None`` learns nothing. The function itself (``latent=True``) is not concerned.
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
    jitter_ : float
        What had to be added to the covariance's diagonal; 0 almost always.
    outlier_probability_ : array (n,)
        Probability of each training row to be an outlier; only with ``OutlierMixture``.
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
        noise_variance : array (n,), optional
            Known noise variance of each target, on top of the likelihood's own.
        sample_weight : array (n,), optional
            Power of each row's likelihood: 2 counts a row twice, 0 leaves it out. For Gaussian noise a weight divides
            the variance of the noise; predictions are of targets of weight 1.
        """
        ready = self._training(X, y, noise_variance, sample_weight)
        if self.optimizer is not None and (told := too_little(*ready)) is not None:
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
        if hasattr(self, "mixture_members_"):
            return mixed([m.condition_on(X, y, noise_variance) for m in self.mixture_members_])
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
        y = check_finite(np.asarray(y, dtype=np.float64), "y")
        if noise_variance is not None:
            noise_variance = check_noise_variance(noise_variance, len(y))
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(y))
            if not np.all(weights > 0):
                noise_variance = None if noise_variance is None else noise_variance[weights > 0]
                X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        check_magnitude(y, "y")
        spec = self._spec(X.shape[1])
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
            transform.check(y)
            transform = transform.fitted(y)
            z = transform.forward(y)
        scaling = self._scaling(spec, X, z if additive else None, weights)
        scaling = dataclasses.replace(scaling, transform=transform)
        return scaling.with_exposure(self._exposure_column(X.shape[1]), X, y, self.normalize)

    def _spec(self, n_features: int) -> Spec:
        spec, column = super()._spec(n_features), self._exposure_column(n_features)
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

    def _likelihood_candidates(self, y: np.ndarray) -> tuple[str, ...]:
        return noises(y)

    def _worth_trying(self, argument: str, name: str, first: Any) -> bool:
        """Noises that differ from the first in the shape of residuals are fitted if residuals have that shape."""
        if first.fit_result_ is None and self.optimizer is not None:  # targets that say nothing choose nothing
            return False
        gains = getattr(first, "noise_gains_", {})
        return argument != "likelihood" or gains.get(name, np.inf) > 0

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
        self.noise_gains_ = noise_check.gains(z, np.asarray(data.X), found.mean)
        told = noise_check.advice(self.noise_gains_, len(data.y)) if self.likelihood is None else None
        if told is not None:
            warnings.warn(told, UserWarning, stacklevel=3)

    def _learn_bands(self, problem: Problem, found: Found) -> None:
        result, model = found.result, problem.model
        if not self.calibrate or result is None or result.interrupted or result.draws is not None:
            return
        whole = not model.approximation.strategies and all(latent.features is None for latent in model.latents)
        if whole and model.likelihood.conjugate and self._state is None:  # no state: in closed form
            bands = learned_bands(found.objective, found.theta, ties(problem) if result.tied else None)
            if bands is not None:
                self.bands_ = bands

    def _likelihood(self) -> Likelihood:
        if is_auto(self.likelihood):
            return getattr(self, "likelihood_", Gaussian())
        return as_likelihood(self.likelihood)

    # ------------------------------------------------------------------ predicting
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, latent: bool | str = False) -> Any:
        """Predict targets, with standard deviations or the joint covariance if asked for.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        return_std, return_cov : bool
            Also return the standard deviation of each target, or the covariance matrix of all; not both.
        latent : bool or str
            Describe the function itself instead of noisy targets: noise is left out of the spread. With several latent
            functions the name of one, from ``latent_names_``.
        """
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not both; the standard deviations are in the diagonal.")
        scaled = self._inputs(X)
        if return_cov:
            return self._joint_prediction(scaled, latent)
        if not return_std:
            return self._point_prediction(scaled, latent)
        predictive = self._predictive(scaled, latent)
        return predictive.mean, predictive.std

    def _joint_prediction(self, scaled: np.ndarray, latent: bool | str) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the targets, or of a latent function, in the units of the data."""
        if self._transform(latent) is not None:  # no closed form
            moments = self._joint(scaled, self._latent_index(latent or True))
            draws = self._draw(*moments, scaled, JOINT_DRAWS, 0, latent, getattr(self, "bands_", None))
            return draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
        scale, shift = self._units(latent)
        if latent:
            mean, cov = self._joint(scaled, self._latent_index(latent))
            return scale * mean + shift, scale**2 * cov
        if not self.likelihood_.location_scale:
            raise ValueError(
                f"The joint covariance of targets is offered for additive noise, not for "
                f"{type(self.likelihood_).__name__}; ask with latent=True for that of the function."
            )
        mean, cov = self._joint(scaled, 0)  # the latent function that is in the units of the targets
        noisy = self.posterior_.predictive(self._model.likelihood, scaled).variance
        cov = cov + np.diag(noisy - np.diagonal(cov))
        cov = self.bands_.covariance(cov) if hasattr(self, "bands_") else cov
        return scale * mean + shift, scale**2 * cov

    def predictive(self, X: Any, latent: bool | str = False) -> Predictive:
        """Predictive distribution at each input: mean, std, quantile, interval, cdf, log_density, sample.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        latent : bool or str
            Describe the function itself instead of noisy targets; by name if there are several.

        Returns
        -------
        predictive : Predictive
            In the units of the data.

        Examples
        --------
        >>> from errorband import GPRegressor
        >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> there = model.predictive([[0.5], [10.0]])
        >>> bool(there.std[0] < there.std[1])  # far from the data less is known
        True
        >>> there.cdf(there.mean)
        array([0.5, 0.5])
        """
        return self._predictive(self._inputs(X), latent)

    def predict_interval(
        self, X: Any, level: float = 0.95, latent: bool | str = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval of each target.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        level : float
            Probability of the interval, between 0 and 1.
        latent : bool or str
            Describe the function itself instead of noisy targets; by name if there are several.

        Returns
        -------
        lower, upper : arrays (n,)

        Examples
        --------
        >>> from errorband import GPRegressor
        >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> lower, upper = model.predict_interval([[0.5]], level=0.9)
        >>> inner = model.predict_interval([[0.5]], level=0.9, latent=True)
        >>> bool(lower < inner[0] < model.predict([[0.5]]) < inner[1] < upper)
        True
        """
        return self.predictive(X, latent).interval(level)

    def predict_quantiles(self, X: Any, q: Any, latent: bool | str = False) -> np.ndarray:
        """Quantiles of each target: (n,) for a number, (n, len(q)) for a sequence.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        q : float or sequence of float
            Probabilities, between 0 and 1.
        latent : bool or str
            Describe the function itself instead of noisy targets; by name if there are several.

        Examples
        --------
        >>> from errorband import GPRegressor
        >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> low, median, high = model.predict_quantiles([[0.5]], [0.1, 0.5, 0.9])[0]
        >>> bool(low < median < high), bool(abs(median - model.predict([[0.5]])[0]) < 1e-12)
        (True, True)
        """
        return self.predictive(X, latent).quantile(q)

    def _units(self, latent: bool | str) -> tuple[float, float]:
        """Scale and shift from the units the model sees to those of the data; a log noise has none."""
        if latent and not self.likelihood_.latent_in_units(self._latent_index(latent)):
            return 1.0, self.scaling_.log_rate
        return self.scaling_.y_scale, self.scaling_.y_shift

    def _transform(self, latent: bool | str) -> Transform | None:
        """The transform that what is in the units of the targets has gone through."""
        in_units = not latent or self.likelihood_.latent_in_units(self._latent_index(latent))
        return self.scaling_.transform if in_units else None

    def _in_units(self, predictive: Predictive, latent: bool | str = False) -> Predictive:
        """A distribution as the model sees it, in the units of the data."""
        rescaled, transform = predictive.rescaled(*self._units(latent)), self._transform(latent)
        return rescaled if transform is None else TransformedPredictive(rescaled, transform)

    def _predictive(self, scaled: np.ndarray, latent: bool | str) -> Predictive:
        """In the units of the data."""
        if not latent:
            offset = self.scaling_.offset(scaled)
            own = self.posterior_.predictive(self._model.likelihood, scaled, offset=offset)
            return self._in_units(self._reshaped(own))
        l = self._latent_index(latent)
        mean, cov = self.posterior_.marginals(scaled)
        assert cov is not None  # asked for by default
        return self._in_units(GaussianPredictive(mean[:, l], np.sqrt(cov[:, l, l])), latent)

    def _reshaped(self, own: Any) -> Predictive:
        """The model's own distribution of targets in the shape that was learned."""
        return self.bands_.reshaped(own) if hasattr(self, "bands_") else own

    def _point_prediction(self, scaled: np.ndarray, latent: bool | str) -> np.ndarray:
        """Mean only, in the units of the data: no variance is computed where the mean does not depend on it."""
        if self._transform(latent) is None and (latent or self.likelihood_.conjugate):
            mean = self.posterior_.marginals(scaled, variance=False)[0][:, self._latent_index(latent or True)]
            scale, shift = self._units(latent)
            return scale * mean + shift
        return self._predictive(scaled, latent).mean

    def _joint(self, scaled: np.ndarray, l: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of latent function l, as the model sees it."""
        if len(scaled) > MAX_JOINT_ROWS:
            raise ValueError(
                f"A joint covariance of {len(scaled)} rows needs {8e-9 * len(scaled) ** 2:.0f} GB. Use return_std, or "
                f"at most {MAX_JOINT_ROWS} rows at a time."
            )
        return self.posterior_.joint(scaled, l)

    # ------------------------------------------------------------------ drawing functions
    def sample_posterior(
        self, X: Any, n_samples: int = 1, random_state: Any = None, latent: bool | str = True
    ) -> np.ndarray:
        """Draw functions from the posterior at the inputs X.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        n_samples : int
            How many functions.
        random_state : int, Generator or None
            Seed.
        latent : bool or str
            False adds noise to the values. With several latent functions the name of one, from ``latent_names_``.

        Returns
        -------
        draws : array (n_samples, n)
            A function in each row.

        Examples
        --------
        >>> import numpy as np
        >>> from errorband import GPRegressor
        >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> draws = model.sample_posterior([[0.9], [1.0], [1.1]], n_samples=200, random_state=0)
        >>> draws.shape
        (200, 3)
        >>> bool(np.corrcoef(draws.T)[0, 1] > 0.9)  # neighbours go together
        True
        """
        check_whole("sample_posterior", "n_samples", n_samples)
        l = self._latent_index(latent or True)
        scaled = self._inputs(X)
        mean, cov = self._joint(scaled, l)
        return self._draw(mean, cov, scaled, n_samples, random_state, latent, getattr(self, "bands_", None))

    def sample_prior(
        self, X: Any, n_samples: int = 1, random_state: Any = None, latent: bool | str = True
    ) -> np.ndarray:
        """Draw functions from the fitted prior at the inputs X.

        Parameters
        ----------
        X, n_samples, random_state, latent
            As in :meth:`sample_posterior`.

        Returns
        -------
        draws : array (n_samples, n)
            A function in each row.

        Examples
        --------
        >>> from errorband import GPRegressor
        >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.sample_prior([[0.0], [5.0]], n_samples=3, random_state=0).shape
        (3, 2)
        """
        check_whole("sample_prior", "n_samples", n_samples)
        scaled, latents = self._inputs(X), self._model.latents
        prior = latent_of(latents, self._latent_index(latent or True))
        with double_precision():
            mean = np.asarray(prior.mean.evaluate(scaled))
            if prior.features is not None and prior.features.weight_space:
                phi = np.asarray(prior.features.K_fu(prior.kernel, scaled))
                return self._draw(mean, phi @ phi.T, scaled, n_samples, random_state, latent)
        return self._draw(mean, prior.kernel(scaled), scaled, n_samples, random_state, latent)

    def _draw(
        self,
        mean: np.ndarray,
        cov: np.ndarray,
        scaled: np.ndarray,
        n_samples: int,
        random_state: Any,
        latent: bool | str,
        bands: Bands | None = None,
    ) -> np.ndarray:
        """Draws of a normal distribution as the model sees it, in the units of the data, with noise if not latent."""
        rng = generator(random_state)
        # By eigenvectors: the covariance of many close points is singular to rounding, where Cholesky gives up.
        size, axes = np.linalg.eigh(0.5 * (cov + cov.T))
        root = axes * np.sqrt(np.maximum(size, 0.0))
        draws = mean + rng.standard_normal((n_samples, len(mean))) @ root.T
        if not latent:
            offset = self.scaling_.offset(scaled)
            draws = self._model.likelihood.conditional_sample(draws if offset is None else draws + offset, rng)
            draws = draws if bands is None else mean + bands.draws(draws - mean, rng)
        scale, shift = self._units(latent)
        transform = self._transform(latent)
        return scale * draws + shift if transform is None else transform.inverse(scale * draws + shift)

    # ------------------------------------------------------------------ checking
    def loo(self) -> LeaveOneOut:
        """Predict each training target from all the others, at the fitted hyperparameters.

        In closed form with exact inference; from the cavities of the sites with Laplace and EP.
        """
        found = self._in_units(self._reshaped(self._leave_one_out()))
        return LeaveOneOut(found, self.scaling_.original(self._rows().y))

    @property
    def outlier_probability_(self) -> np.ndarray:
        """Probability of each training row to be an outlier, for a likelihood that expects some.

        From its target and what the other rows predict for it. An outlier is a target from the wide component of
        ``OutlierMixture`` or ``Twinned``; with other heavy-tailed noise, one whose noise is more than three times that
        of the bulk.
        """
        self._check_outliers()
        data, rule = self._prepared_rows(), self.inference_
        mean, cov = rule.cavities(self._model, data, self._state)  # pyright: ignore[reportAttributeAccessIssue]
        likelihood: Any = self._model.likelihood
        return likelihood.outlier_probability(data.y, *self._of_latents(mean, cov))

    def predict_outlier_probability(self, X: Any, y: Any = None) -> np.ndarray:
        """Probability that a target at each input is an outlier: before it is seen, or given its value.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,), optional
            New targets. Without them the answer is the share of outliers to be expected there.

        Returns
        -------
        probability : array (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from errorband import GPRegressor
        >>> from errorband.likelihoods import OutlierMixture
        >>> X, y = np.linspace(0, 6, 40)[:, None], np.sin(np.linspace(0, 6, 40))
        >>> model = GPRegressor(likelihood=OutlierMixture(0.01, 100.0, 0.05), optimizer=None).fit(X, y)
        >>> model.predict_outlier_probability([[1.0]]), model.predict_outlier_probability([[1.0]], [3.0]).round(3)
        (array([0.05]), array([1.]))
        """
        self._check_outliers()
        mean, cov = self.posterior_.marginals(self._inputs(X))
        likelihood: Any = self._model.likelihood
        arguments = self._of_latents(mean, cov)
        if y is None:
            return likelihood.outlier_rate(*arguments)
        return likelihood.outlier_probability(self.scaling_.targets(np.asarray(y, float)), *arguments)

    def _check_outliers(self) -> None:
        check_is_fitted(self)
        if not hasattr(self.likelihood_, "outlier_probability"):
            name = type(self.likelihood_).__name__
            raise AttributeError(
                f"{name} expects no outliers; use likelihood=OutlierMixture(), or Twinned() if they come in bursts."
            )

    def _of_latents(self, mean: Any, cov: Any) -> tuple[np.ndarray, np.ndarray]:
        """Moments as the likelihood takes them: numbers per row if there is one latent function."""
        return (mean[:, 0], cov[:, 0, 0]) if self.likelihood_.n_latents == 1 else (mean, cov)
