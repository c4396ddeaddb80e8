"""Predictions of classes: probabilities, decisions and the latent functions behind them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband.estimators import one_vs_rest
from errorband.estimators.base import GaussianProcess
from errorband.estimators.drawing import joint, normal_draws
from errorband.estimators.leave_one_out import ClassLeaveOneOut
from errorband.estimators.sharpness import sharpened
from errorband.estimators.validation import check_columns_are_numeric
from errorband.parameters.checks import check_answer, check_whole, generator
from errorband.rows import map_rows, rows_within_budget


class PredictsClasses(GaussianProcess):
    """A fitted Gaussian process that predicts classes: what :class:`GPClassifier` can be asked after ``fit``."""

    classes_: np.ndarray
    estimators_: list[Any]  # with one model per class only

    # ------------------------------------------------------------------ probabilities and decisions
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: Any, plug_in: bool = False) -> np.ndarray:
        """Probability of each class: (n, C), columns in the order of ``classes_``.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        plug_in : bool
            Probabilities at the mean of the latent function instead of averaged over its posterior: they leave its
            uncertainty out and are too extreme.
        """
        scaled = self._inputs(X)
        check_answer("plug_in", plug_in)
        probabilities = self._plug_in_probabilities if plug_in else self._probabilities
        size = rows_within_budget(64 * len(self.classes_) ** 2, least=256)
        return map_rows(lambda part: probabilities(scaled[part]), len(scaled), size)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_latent(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function.

        Returns
        -------
        mean, variance : arrays (n,), (n,)
            With one latent function: two classes, or ordered ones.
        mean, covariance : arrays (n, C), (n, C, C)
            With one for each class: the covariance between the classes at each row; diagonal for one model per class.
        """
        mean, cov = self._latent(self._inputs(X))
        return (mean[:, 0], cov[:, 0, 0]) if mean.shape[1] == 1 else (mean, cov)

    def sample_posterior(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw latent functions from the posterior at the inputs X: of two or ordered classes, or of a model per class.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        n_samples : int
            How many functions.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        draws : array (n_samples, n)
            A function in each row; with one model per class (n_samples, n, C), one of each.

        Examples
        --------
        >>> from errorband import GPClassifier
        >>> model = GPClassifier(optimizer=None).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> draws = model.sample_posterior([[0.0], [3.0]], n_samples=200, random_state=0)
        >>> draws.shape, bool(draws[:, 0].mean() < draws[:, 1].mean())
        ((200, 2), True)
        """
        check_whole("sample_posterior", "n_samples", n_samples)
        scaled, rng = self._inputs(X), generator(random_state)
        if any(m.likelihood_.n_latents > 1 for m in self.members_):
            raise ValueError(
                "Functions of several classes with one joint posterior are not drawn; use multi_class='one_vs_rest' or "
                "predict_latent for their means and covariances at each row."
            )
        draws = [normal_draws(*joint(m.posterior_, scaled, 0), n_samples, rng) for m in self.members_]
        return draws[0] if len(draws) == 1 else np.stack(draws, axis=-1)

    def decide(self, X: Any, loss: Any = None, reject: float | None = None) -> np.ndarray:
        """The class of the smallest expected loss for each row; None where even that is more than ``reject``.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        loss : array (C, C), optional
            ``loss[i, j]`` is the loss of deciding for class j where i is true, in the order of ``classes_`` (as in a
            confusion matrix). Default: 1 for every error, 0 otherwise.
        reject : float, optional
            Price of leaving a row undecided, in the units of the loss. With the default loss, 0.1 decides for classes
            with a probability of at least 0.9 only.

        Returns
        -------
        decisions : array (n,)
            Labels, of the type of ``classes_``; if ``reject`` is given an array of objects, None where undecided.
        """
        probabilities = self.predict_proba(X)
        n = len(self.classes_)
        try:
            loss = 1.0 - np.eye(n) if loss is None else np.asarray(loss, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"loss must be a matrix of {n} × {n} finite numbers; got {loss!r} ({error}).") from None
        if loss.shape != (n, n) or not np.all(np.isfinite(loss)):
            raise ValueError(
                f"loss must be a matrix of {n} × {n} finite numbers, a row for each true class and a column for each "
                f"decision; got shape {loss.shape}."
            )
        expected = probabilities @ loss
        decisions = self.classes_[np.argmin(expected, axis=1)]
        if reject is None:
            return decisions
        if not (isinstance(reject, (int, float, np.integer, np.floating)) and np.isfinite(reject)):
            raise ValueError(f"reject={reject!r} must be a finite number: the price of leaving a row undecided.")
        decided = decisions.astype(object)
        # Without the margin a probability of 0.9 would be rejected at reject=0.1, for 1 − 0.9 is a little more.
        decided[expected.min(axis=1) > reject + 1e-12 * np.abs(loss).max()] = None
        return decided

    def _inputs(self, X: Any) -> np.ndarray:
        if not hasattr(self, "estimators_"):
            return super()._inputs(X)
        check_columns_are_numeric(X)
        return self.estimators_[0]._inputs(validate_data(self, X, reset=False, dtype=np.float64))

    def _latent(self, scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, L) and covariance (n, L, L) of the latent functions."""
        if not hasattr(self, "estimators_"):
            mean, cov = self.posterior_.marginals(scaled)
            assert cov is not None  # asked for by default
            return mean, cov
        return one_vs_rest.latent(self.estimators_, scaled)

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        """Class probabilities averaged over the posterior."""
        if hasattr(self, "estimators_"):
            return self._sharpened(one_vs_rest.shares([m._probabilities(scaled) for m in self.estimators_]))
        predictive: Any = self.posterior_.predictive(self._model.likelihood, scaled)
        return self._sharpened(predictive.probabilities)

    def _sharpened(self, shares: np.ndarray) -> np.ndarray:
        """Probabilities of the classes from what each has by itself; those of one model without a power stay."""
        if not hasattr(self, "estimators_") and not hasattr(self, "sharpness_"):
            return shares
        return sharpened(shares, getattr(self, "sharpness_", 1.0))

    def _plug_in_probabilities(self, scaled: np.ndarray) -> np.ndarray:
        """Class probabilities at the posterior mean."""
        if hasattr(self, "estimators_"):
            return self._sharpened(one_vs_rest.shares([m._plug_in_probabilities(scaled) for m in self.estimators_]))
        if hasattr(self, "mixture_members_"):
            each = np.stack([m._plug_in_probabilities(scaled) for m in self.mixture_members_])
            return self._sharpened(np.tensordot(self.posterior_.weights, each, axes=1))
        likelihood: Any = self._model.likelihood
        return self._sharpened(likelihood.plug_in_probabilities(self.posterior_.marginals(scaled, variance=False)[0]))

    # ------------------------------------------------------------------ what it was made of
    @property
    def members_(self) -> list[Any]:
        """The fitted models this one is made of: itself, or one for each class with ``multi_class="one_vs_rest"``."""
        return self.estimators_ if hasattr(self, "estimators_") else super().members_

    def training_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs (n, D) and labels (n,) the model learned from, in the units of the data."""
        return super().training_data()[0], self.classes_[self._training_codes()]

    # ------------------------------------------------------------------ checking
    def loo(self) -> ClassLeaveOneOut:
        """Predict the label of each training row from all the others, at the fitted hyperparameters.

        From the cavities: the posterior without the row's own site.
        """
        check_is_fitted(self)
        return ClassLeaveOneOut(self._sharpened(self._shares_left_out()), self._training_codes(), self.classes_)

    def _shares_left_out(self) -> np.ndarray:
        """What each class has of each row, given the others, before it is sharpened."""
        if not hasattr(self, "estimators_"):
            predictive: Any = self._leave_one_out()
            return predictive.probabilities
        if hasattr(self, "active_rows_"):
            raise ValueError("Each class learned from rows of its own; see loo() of each of estimators_.")
        return one_vs_rest.shares([m.loo().probabilities for m in self.estimators_])

    def _training_codes(self) -> np.ndarray:
        """Position in ``classes_`` of each training label."""
        y = self._rows().y
        if hasattr(self, "estimators_"):
            return y.astype(int)
        return np.searchsorted(self.likelihood_.class_values, y)
