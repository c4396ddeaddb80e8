"""GPy: `GPRegression` with its own L-BFGS-B."""

from __future__ import annotations

import GPy
import numpy as np

from peers.base import Model, Record
from problems import Array, labels, split, split_inducing_inputs


class Recorded(GPy.models.GPRegression):
    """Tells which parameters the optimiser asked for."""

    record: Record | None = None

    def parameters_changed(self) -> None:
        super().parameters_changed()
        if self.record:
            self.record(ours(np.log(self.param_array)))


def ours(theirs: Array) -> Array:
    """From (variance, length-scales, noise) to (length-scales, variance, noise)."""
    return np.concatenate([theirs[1:-1], theirs[:1], theirs[-1:]])


class ExactGP(Model):
    packages = ("gpy", "paramz")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        kernel = GPy.kern.RBF(X.shape[1], variance=variance, lengthscale=lengthscale, ARD=True)
        self.gp = Recorded(X, y[:, None], kernel, noise_var=noise)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        lengthscale, variance, noise = split(theta)
        self.gp[:] = np.concatenate([[variance], lengthscale, [noise]])  # infers and differentiates at once
        return float(self.gp.log_likelihood()), ours(self.gp.gradient * self.gp.param_array)

    def fit(self, record: Record) -> Array:
        self.gp.record = record
        self.gp.optimize()
        self.gp.record = None
        return ours(np.log(self.gp.param_array))

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self.gp.predict(X)
        return mean[:, 0], variance[:, 0]


class VariationalGP(Model):
    """`SparseGPRegression`: its default inference is VarDTC."""

    packages = ("gpy", "paramz")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        own, Z = split_inducing_inputs(theta, X.shape[1])
        lengthscale, variance, noise = split(own)
        kernel = GPy.kern.RBF(X.shape[1], variance=variance, lengthscale=lengthscale, ARD=True)
        self.gp = GPy.models.SparseGPRegression(X, y[:, None], kernel, Z=Z.copy())
        self.gp.likelihood.variance = noise

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        own, Z = split_inducing_inputs(theta, self.X.shape[1])
        lengthscale, variance, noise = split(own)
        values = np.concatenate([[variance], lengthscale, [noise]])
        self.gp[:] = np.concatenate([Z.ravel(), values])
        gradient = np.asarray(self.gp.gradient)
        value = float(np.squeeze(self.gp.log_likelihood()))  # a matrix here
        return value, np.append(ours(gradient[Z.size :] * values), gradient[: Z.size])


class IndependentGP(VariationalGP):
    """The same with FITC's inference."""

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.gp.inference_method = GPy.inference.latent_function_inference.FITC()


class ProbitEP(Model):
    """`core.GP` with a Bernoulli likelihood; EP begins anew at every evaluation."""

    packages = ("gpy", "paramz")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, _ = split(theta)
        kernel = GPy.kern.RBF(X.shape[1], variance=variance, lengthscale=lengthscale, ARD=True)
        likelihood = GPy.likelihoods.Bernoulli()
        classes = 0.5 * (labels(y)[:, None] + 1.0)
        self.gp = GPy.core.GP(X, classes, kernel=kernel, likelihood=likelihood, inference_method=self.inference())

    @staticmethod
    def inference() -> object:
        return GPy.inference.latent_function_inference.EP(always_reset=True)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        lengthscale, variance, _ = split(theta)
        self.gp[:] = np.concatenate([[variance], lengthscale])
        gradient = self.gp.gradient * self.gp.param_array
        return float(np.squeeze(self.gp.log_likelihood())), np.append(gradient[1:], gradient[0])


class ProbitLaplace(ProbitEP):
    """The same by Laplace's approximation."""

    @staticmethod
    def inference() -> object:
        return GPy.inference.latent_function_inference.Laplace()


class StudentLaplace(Model):
    """Student's t with four degrees of freedom; the noise variance of theta is its squared scale."""

    packages = ("gpy", "paramz")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        kernel = GPy.kern.RBF(X.shape[1], variance=variance, lengthscale=lengthscale, ARD=True)
        likelihood = GPy.likelihoods.StudentT(deg_free=4.0, sigma2=noise)
        likelihood.deg_free.fix()
        laplace = GPy.inference.latent_function_inference.Laplace()
        self.gp = GPy.core.GP(X, y[:, None], kernel=kernel, likelihood=likelihood, inference_method=laplace)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        lengthscale, variance, noise = split(theta)
        values = np.concatenate([[variance], lengthscale, [noise, 4.0]])
        self.gp[:] = values
        gradient = self.gp.gradient[:-1] * values[:-1]
        return float(np.squeeze(self.gp.log_likelihood())), ours(gradient)


MODELS = {
    "exact": ExactGP,
    "vfe": VariationalGP,
    "fitc": IndependentGP,
    "probit-ep": ProbitEP,
    "probit-laplace": ProbitLaplace,
    "student-laplace": StudentLaplace,
}
