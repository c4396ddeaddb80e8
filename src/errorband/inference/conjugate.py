"""Gaussian noise: the posterior in closed form, whatever the approximation."""

import jax
import numpy as np

from errorband.inference.base import Conclusion, Evaluation, Inference, Status
from errorband.model import Model
from errorband.parameters import with_fields
from errorband.precision import in_double_precision
from errorband.predictive import GaussianPredictive


class Conjugate(Inference):
    """Exact inference under the (approximate) prior: a Gaussian likelihood is its own site, Π = 1/σ², b = y/σ².

    A row of weight w has N(y; f, v)ʷ = c N(y; f, v/w) in place of N(y; f, v), v its noise variance: a site of variance
    v/w, and log c = ½(1 − w) log 2πv − ½ log w in the log evidence.

    The work is done by the engine that the approximation names (:mod:`errorband.conjugate`).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import multivariate_normal
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import FITC
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), inference=Conjugate(), optimizer=None, normalize=False)
    >>> exact = GPRegressor(kernel, **settings).fit(X, y)
    >>> bool(np.isclose(exact.log_evidence_, multivariate_normal(cov=kernel(X) + 0.1 * np.eye(3)).logpdf(y)))
    True
    >>> sparse = GPRegressor(kernel, approximation=FITC(inducing_inputs=X), **settings).fit(X, y)
    >>> bool(np.isclose(sparse.log_evidence_, exact.log_evidence_, rtol=1e-6))  # an inducing input at each row
    True
    """

    def supports(self, model, data):
        """Gaussian likelihood."""
        if not model.likelihood.conjugate:
            return (
                f"Conjugate inference needs a Gaussian likelihood, not {type(model.likelihood).__name__}; leave "
                "inference='auto', or choose 'laplace', 'ep' or 'kl'."
            )
        return model.approximation.engine.supports(model.latent, data)

    def reads_rows(self, model):
        return model.approximation.engine.reads_rows

    @in_double_precision
    def evaluate(self, model, data, state=None):
        found = model.approximation.engine.evaluate(*_arguments(model, data))
        constant, noise_bar = _constant(model, data, found.noise)
        likelihood, approximation = jax.tree.map(np.zeros_like, (model.likelihood, model.approximation))
        likelihood = with_fields(likelihood, noise_variance=np.asarray(noise_bar))
        gradient = with_fields(model, latents=(found.latent,), likelihood=likelihood, approximation=approximation)
        return Evaluation(found.log_evidence + constant, gradient, None, _STATUS, self, found.targets)

    @in_double_precision
    def conclude(self, model, data, state=None):
        log_evidence, posterior = model.approximation.engine.posterior(*_arguments(model, data))
        return Conclusion(log_evidence + _constant(model, data)[0], posterior, None, _STATUS, self)

    @in_double_precision
    def leave_one_out(self, model, data, state=None):
        found = model.approximation.engine.leave_one_out(*_arguments(model, data))
        if data.weights is None:
            return found
        noise = data.noise(model.likelihood)  # a target has this, whatever its row's weight
        more = noise - noise / data.weights
        return GaussianPredictive(found.mean, np.sqrt(found.variance + (more if data.y.ndim == 1 else more[:, None])))


_STATUS = Status(True, 0, "In closed form.")


def _arguments(model: Model, data):
    return model.approximation, model.latent, data.site_noise(model.likelihood), data


def _constant(model: Model, data, noise_bar: np.ndarray | float = 0.0) -> tuple[float, float]:
    """Σ log c, and the derivative of the log evidence in σ² from those in the variances of the sites."""
    if data.weights is None:
        return 0.0, float(np.sum(noise_bar))
    noise, w = data.noise(model.likelihood), data.weights
    constant = 0.5 * data.n_targets * np.sum((1.0 - w) * np.log(2 * np.pi * noise) - np.log(w))
    return float(constant), float(np.sum(noise_bar / w + 0.5 * data.n_targets * (1.0 - w) / noise))
