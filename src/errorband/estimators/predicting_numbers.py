"""Predictions of numbers: distributions of targets and latent functions, in the units of the data."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from errorband.data import TrainingData
from errorband.estimators.bands import LEAST_ROWS, Bands, shaped
from errorband.estimators.base import GaussianProcess
from errorband.estimators.drawing import joint, normal_draws
from errorband.estimators.leave_one_out import LeaveOneOut
from errorband.estimators.several_targets import check_one, stacked
from errorband.estimators.spread import informative
from errorband.parameters.checks import check_answer, check_latent, check_whole, generator
from errorband.posterior.base import latent_of
from errorband.precision import double_precision
from errorband.predictive import GaussianPredictive, Predictive
from errorband.transforms import Transform, TransformedPredictive

JOINT_DRAWS = 2_000  # from which the joint covariance of transformed targets is estimated


class PredictsTargets(GaussianProcess):
    """A fitted Gaussian process that predicts numbers: what :class:`GPRegressor` can be asked after ``fit``."""

    bands_: Any  # where the shape of the predictive distribution was learned
    estimators_: list[Any]  # of several targets only

    # ------------------------------------------------------------------ distributions
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, latent: bool | str = False) -> Any:
        """Predict targets, with standard deviations or the joint covariance if asked for.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        return_std, return_cov : bool
            Also return the standard deviation of each target, or the covariance matrix of all; not both. After a fit to
            y (n, K) all are (n, K), and covariances (n, n, K).
        latent : bool or str
            Describe the function itself instead of noisy targets: noise is left out of the spread. With several latent
            functions the name of one, from ``latent_names_``.
        """
        check_answer("return_std", return_std)
        check_answer("return_cov", return_cov)
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not both; the standard deviations are in the diagonal.")
        if hasattr(self, "estimators_"):
            each = [one.predict(X, return_std, return_cov, latent) for one in self.estimators_]
            return stacked(each) if return_std or return_cov else np.stack(each, axis=-1)
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
            moments = joint(self.posterior_, scaled, self._latent_index(latent))
            draws = self._draw(*moments, scaled, JOINT_DRAWS, 0, latent, getattr(self, "bands_", None))
            return draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
        scale, shift = self._units(latent)
        if latent:
            mean, cov = joint(self.posterior_, scaled, self._latent_index(latent))
            return scale * mean + shift, scale**2 * cov
        if not self.likelihood_.location_scale:
            raise ValueError(
                f"The joint covariance of targets is offered for additive noise, not for "
                f"{type(self.likelihood_).__name__}; ask with latent=True for that of the function."
            )
        mean, cov = joint(self.posterior_, scaled, 0)  # the latent function that is in the units of the targets
        noisy = self.posterior_.predictive(self._model.likelihood, scaled).variance
        cov = cov + np.diag(noisy - np.diagonal(cov))
        cov = self.bands_.covariance(cov, scaled, mean) if hasattr(self, "bands_") else cov
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
        if hasattr(self, "estimators_"):
            return stacked([one.predict_interval(X, level, latent) for one in self.estimators_])
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
        if hasattr(self, "estimators_"):
            return np.stack([one.predict_quantiles(X, q, latent) for one in self.estimators_], axis=-1)
        return self.predictive(X, latent).quantile(q)

    def _units(self, latent: bool | str) -> tuple[float, float]:
        """Scale and shift from the units the model sees to those of the data; a log noise has none."""
        if latent and not self.likelihood_.latent_in_units(self._latent_index(latent)):
            return 1.0, self.scaling_.log_rate
        return self.scaling_.y_scale, self.scaling_.y_shift

    def _transform(self, latent: bool | str) -> Transform | None:
        """The transform that what is in the units of the targets has gone through."""
        check_latent(latent)
        in_units = not latent or self.likelihood_.latent_in_units(self._latent_index(latent))
        return self.scaling_.transform if in_units else None

    def _in_units(self, predictive: Predictive, latent: bool | str = False) -> Predictive:
        """A distribution as the model sees it, in the units of the data."""
        rescaled, transform = predictive.rescaled(*self._units(latent)), self._transform(latent)
        return rescaled if transform is None else TransformedPredictive(rescaled, transform)

    def _predictive(self, scaled: np.ndarray, latent: bool | str) -> Predictive:
        """In the units of the data."""
        check_latent(latent)
        if not latent:
            offset = self.scaling_.offset(scaled)
            own = self.posterior_.predictive(self._model.likelihood, scaled, offset=offset)
            return self._in_units(self._reshaped(own, scaled))
        l = self._latent_index(latent)
        mean, cov = self.posterior_.marginals(scaled)
        assert cov is not None  # asked for by default
        return self._in_units(GaussianPredictive(mean[:, l], np.sqrt(cov[:, l, l])), latent)

    def _reshaped(self, own: Any, X: Any) -> Predictive:
        """The model's own distribution of targets, at inputs as it sees them, in the shape that was learned."""
        return self.bands_.reshaped(own, np.asarray(X)) if hasattr(self, "bands_") else own

    def _point_prediction(self, scaled: np.ndarray, latent: bool | str) -> np.ndarray:
        """Mean only, in the units of the data: no variance is computed where the mean does not depend on it."""
        if self._transform(latent) is None and (latent or self.likelihood_.conjugate):
            mean = self.posterior_.marginals(scaled, variance=False)[0][:, self._latent_index(latent)]
            scale, shift = self._units(latent)
            return scale * mean + shift
        return self._predictive(scaled, latent).mean

    # ------------------------------------------------------------------ several targets
    @property
    def members_(self) -> list[Any]:
        """The fitted models this one is made of: itself, or one for each target."""
        return self.estimators_ if hasattr(self, "estimators_") else super().members_

    def _inputs(self, X: Any) -> np.ndarray:
        check_one(self)
        return super()._inputs(X)

    def _rows(self) -> TrainingData:
        check_one(self)
        return super()._rows()

    def _card(self) -> str:
        return "".join(one._card() for one in self.estimators_) if hasattr(self, "estimators_") else super()._card()

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
        check_one(self)
        check_whole("sample_posterior", "n_samples", n_samples)
        l = self._latent_index(latent)
        scaled = self._inputs(X)
        mean, cov = joint(self.posterior_, scaled, l)
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
        check_one(self)
        check_whole("sample_prior", "n_samples", n_samples)
        scaled, latents = self._inputs(X), self._model.latents
        prior = latent_of(latents, self._latent_index(latent))
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
        draws = normal_draws(mean, cov, n_samples, rng)
        if not latent:
            offset = self.scaling_.offset(scaled)
            draws = self._model.likelihood.conditional_sample(draws if offset is None else draws + offset, rng)
            if bands is not None:
                std = self.posterior_.predictive(self._model.likelihood, scaled).std
                draws = mean + bands.draws(draws - mean, std, scaled, mean, rng)
        scale, shift = self._units(latent)
        transform = self._transform(latent)
        return scale * draws + shift if transform is None else transform.inverse(scale * draws + shift)

    # ------------------------------------------------------------------ checking
    def loo(self) -> LeaveOneOut:
        """Predict each training target from all the others, at the fitted hyperparameters.

        In closed form with exact inference; from the cavities of the sites with Laplace and EP.
        """
        check_one(self)
        found = self._in_units(self._reshaped(self._leave_one_out(), self._rows().X))
        return LeaveOneOut(found, self.scaling_.original(self._rows().y))

    def _judged_by_rows_left_out(self, bands: bool) -> tuple[np.ndarray, float]:
        """With bands as far as they cost nothing: the hyperparameters are those of all rows.

        Each of their numbers costs ½ log n, and they are left away if they do not pay.
        """
        own: Any = self._leave_one_out()
        plain = LeaveOneOut(self._in_units(own), self.scaling_.original(self._rows().y))
        n, z = len(plain.y), (self._rows().y - own.mean) / own.std
        if not bands or not self.likelihood_.conjugate or self.approximation_.strategies or n < LEAST_ROWS:
            return plain.log_density, 0.0
        if np.ptp(plain.y) == 0 or not np.all(np.isfinite(z)):
            return plain.log_density, 0.0
        found = shaped(z, np.asarray(self._rows().X), informative(own.mean, self._rows().y))
        more = found.log_density + 0.5 * z**2 + 0.5 * np.log(2 * np.pi)
        gain = float(np.sum(more)) - 0.5 * found.n_numbers * np.log(n)
        return (plain.log_density + more, gain) if gain > 0 else (plain.log_density, 0.0)

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
