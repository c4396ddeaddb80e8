"""Least-squares classification: regression on labels, with probabilities afterwards."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from errorband import interrupts, parameters
from errorband.estimators.platt import fit_sigmoid, one_against_rest, sigmoid
from errorband.estimators.probabilistic import ProbabilisticClassifier
from errorband.estimators.regressor import GPRegressor
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.training import LBFGS, FitResult
from errorband.training.lbfgs import warn_if_not_converged

CRITERIA = "loo", "evidence"


class LeastSquaresGPClassifier(ProbabilisticClassifier):
    r"""Gaussian-process regression on labels ±1, and a sigmoid that makes probabilities of its predictions.

    Cheap, with no approximation of a posterior, and often as accurate as a proper classifier (Rasmussen & Williams
    2006, §6.5). Kernel and noise are found by leave-one-out prediction, or by the evidence of the regression; then
    p(y = ±1) = Φ(±(aμ + b)/√(1 + a²v)) is fitted to the leave-one-out means μ and variances v. Without ``variance``
    the variance is left out, as in the book, and far from the data the probability is the same as at the decision line.
    With several classes there is one regression for each against the rest.

    Parameters
    ----------
    kernel : Kernel, optional
        From :mod:`errorband.kernels`. Default: squared exponential with a length-scale per input.
    criterion : {"loo", "evidence"}
        What hyperparameters maximise: the leave-one-out log predictive density, or the evidence.
    variance : bool
        Let the predictive variance flatten the sigmoid.
    optimizer : "lbfgs", LBFGS or None
        Search for hyperparameters; None keeps the given values.
    normalize : bool
        Standardise the inputs first.
    random_state : int, RandomState or None
        Passed to the regressions.

    Attributes
    ----------
    regressors_ : list of GPRegressor
        Of each class against the rest; of two classes that of the second.
    slopes_, offsets_ : arrays
        a and b of each.
    fit_result_ : list of FitResult, or None
        How the search of each regression ended; None without one. Ctrl-C ends all of them.
    log_evidence_ : float
        Leave-one-out log probability of the labels.
    classes_, class_prior_, scaling_, n_features_in_, feature_names_in_
        As in :class:`GPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import LeastSquaresGPClassifier
    >>> x = np.linspace(-3, 3, 40)
    >>> model = LeastSquaresGPClassifier().fit(x[:, None], np.sin(2 * x) > 0)
    >>> model.predict([[0.8], [2.4]]).tolist()
    [True, False]
    """

    short_names: ClassVar = {"least-squares-gp": {}, "lsc": {}}

    def __init__(
        self, kernel=None, *, criterion="loo", variance=True, optimizer="lbfgs", normalize=True, random_state=None
    ):
        self.kernel = kernel
        self.criterion = criterion
        self.variance = variance
        self.optimizer = optimizer
        self.normalize = normalize
        self.random_state = random_state

    @in_double_precision
    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion={self.criterion!r}: choose 'loo' or 'evidence'.")
        positive = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        self.regressors_, found, results, self.log_evidence_ = [], [], [], 0.0
        for c in positive:
            sign = np.where(codes == c, 1.0, -1.0)
            model, result = self._regression(scaled, sign)
            left_out = model.loo().predictive
            score, spread = left_out.mean, left_out.variance if self.variance else None
            a, b = fit_sigmoid(score, sign, variance=spread)
            right = np.where(sign > 0, p := sigmoid(score, a, b, variance=spread), 1.0 - p)
            self.log_evidence_ += float(np.sum(np.log(np.maximum(right, np.finfo(float).tiny))))
            self.regressors_.append(model)
            found.append((a, b))
            results.append(result)
        self.fit_result_ = None if self.optimizer is None else results
        self.slopes_, self.offsets_ = (np.array(values) for values in zip(*found, strict=True))

    def _regression(self, X: np.ndarray, sign: np.ndarray) -> tuple[GPRegressor, FitResult | None]:
        settings: dict[str, Any] = {"normalize": False, "random_state": self.random_state, "approximation": "exact"}
        model = GPRegressor(self.kernel, optimizer=self.optimizer, **settings)
        if self.optimizer is None or self.criterion == "evidence":
            return model.fit(X, sign), model.fit_result_
        template = model.objective(X, sign).model
        trainer: Any = LBFGS() if self.optimizer == "lbfgs" else self.optimizer
        found = trainer.maximise(lambda theta: left_out_density(template, theta, X, sign), parameters.pack(template))
        warn_if_not_converged(found)
        fitted = parameters.plain(parameters.replace_values(template, _values(template, found.theta)))
        settings |= {"likelihood": fitted.likelihood, "optimizer": None}
        return GPRegressor(fitted.latent.kernel, **settings).fit(X, sign), found

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        columns = []
        for model, a, b in zip(self.regressors_, self.slopes_, self.offsets_, strict=True):
            mean, std = model.predict(scaled, return_std=True)
            columns.append(sigmoid(mean, a, b, variance=std**2 if self.variance else None))
        return one_against_rest(np.stack(columns, axis=1))


@in_double_precision
def left_out_density(template: Any, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Leave-one-out log predictive density and its gradient (Rasmussen & Williams 2006, eqs. 5.10-5.12)."""
    interrupts.safe_point()
    value, gradient = _left_out(template, theta, X, y)
    interrupts.safe_point()
    if not np.isfinite(value):
        raise np.linalg.LinAlgError("The covariance is not positive definite.")
    return float(value), np.asarray(gradient)


@in_double_precision
def _values(template: Any, theta: np.ndarray) -> dict[Any, Any]:
    return {e.path: np.asarray(e.value) for e in parameters.entries(parameters.unpack(template, theta))}


@program
def _left_out(template: Any, theta: Any, X: Any, y: Any) -> Any:
    def density(theta):
        model = parameters.unpack(template, theta)
        K = model.latent.kernel.gram(X, X) + model.likelihood.noise_variance * jnp.eye(len(y))
        inverse = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(K), True), jnp.eye(len(y)))
        own = jnp.diagonal(inverse)
        return jnp.sum(0.5 * jnp.log(own) - 0.5 * (inverse @ y) ** 2 / own) - 0.5 * len(y) * jnp.log(2 * jnp.pi)

    return jax.value_and_grad(density)(theta)
