"""errorband itself, from the environment that runs the harness."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE
from errorband.features.points import UNIT
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, StudentT
from errorband.parameters import Parameter
from errorband.training import LBFGS
from peers.base import Model, Record
from problems import SPARSE_ITERATIONS, Array, labels, split, split_inducing_inputs


@dataclasses.dataclass(frozen=True)
class Recorded(LBFGS):
    """The default search; tells which parameters it asked for."""

    record: Record = lambda theta: None

    def maximise(self, objective: Callable[[Array], Any], *args: Any, **options: Any) -> Any:
        def recorded(theta: Array) -> Any:
            result = objective(theta)
            self.record(theta)
            return result

        return super().maximise(recorded, *args, **options)


class ExactGP(Model):
    packages = ("errorband", "jax", "jaxlib", "equinox")
    iterations = LBFGS.max_iter

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        self.gp = GPRegressor(
            SquaredExponential(lengthscale=lengthscale, variance=variance),
            likelihood=Gaussian(noise_variance=noise),
            normalize=False,
        )
        self.objective = None

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        if self.objective is None:
            self.objective = self.gp.objective(self.X, self.y)
        value, gradient = self.objective.value_and_gradient(theta)
        return float(value), np.asarray(gradient)  # waits for the result

    def fit(self, record: Record) -> Array:
        self.gp.set_params(optimizer=Recorded(max_iter=self.iterations, record=record)).fit(self.X, self.y)
        kernel, likelihood = self.gp.kernel_, self.gp.likelihood_
        return np.log(np.hstack([kernel.lengthscale, kernel.variance, likelihood.noise_variance]))

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, deviation = self.gp.predict(X, return_std=True)
        return mean, deviation**2


class VariationalGP(ExactGP):
    approximation = VFE
    iterations = SPARSE_ITERATIONS

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        own, Z = split_inducing_inputs(theta, X.shape[1])
        super().__init__(X, y, own)
        self.theta = theta
        self.gp.set_params(approximation=self.approximation(inducing_inputs=Z))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        order = self.order()
        value, gradient = super().value_and_gradient((theta / self.units())[order])
        back = np.empty_like(gradient)
        back[order] = gradient
        return value, back / self.units()

    def units(self) -> Array:
        """The library's vector has inducing inputs in units of its own."""
        own, Z = split_inducing_inputs(self.theta, self.X.shape[1])
        return np.append(np.ones(own.size), np.full(Z.size, UNIT))

    def order(self) -> Array:
        """The library's vector has the noise last."""
        noise = self.X.shape[1] + 1
        return np.append(np.delete(np.arange(len(self.theta)), noise), noise)

    def fit(self, record: Record) -> Array:
        """From the starting values and places of inducing inputs that the library chooses."""
        M = len(split_inducing_inputs(self.theta, self.X.shape[1])[1])
        self.gp = GPRegressor(approximation=self.approximation(M), normalize=False, random_state=0)
        order = self.order()

        def recorded(theta: Array) -> Any:
            theirs = np.empty_like(theta)
            theirs[order] = theta
            return record(theirs * self.units())

        own = super().fit(recorded)
        return np.append(own, self.gp.approximation_.inducing_inputs)


class IndependentGP(VariationalGP):
    approximation = FITC


class ProbitEP(Model):
    """`GPClassifier`; every evaluation begins without sites."""

    packages = ("errorband", "jax", "jaxlib", "equinox")
    likelihood, rule = "probit", "ep"

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, _ = split(theta)
        kernel = SquaredExponential(lengthscale=lengthscale, variance=variance)
        likelihood = Bernoulli(self.likelihood)  # without the offset that others have not
        gp = GPClassifier(kernel, likelihood=likelihood, inference=self.rule, normalize=False)
        self.objective = gp.objective(X, labels(y))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        return self.objective.value_and_gradient(theta[:-1])


class ProbitLaplace(ProbitEP):
    rule = "laplace"


class LogitLaplace(ProbitLaplace):
    likelihood = "logit"


class OwnVector(Model):
    """Models that no other library has: at the starting values that the library chooses, moved as theta is."""

    packages = ("errorband", "jax", "jaxlib", "equinox")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.objective = self.made(X, y)

    def made(self, X: Array, y: Array) -> Any:
        """The objective."""
        raise NotImplementedError

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        return self.objective.value_and_gradient(self.objective.theta0 + (theta[0] - self.theta[0]))


class ProbitEPInducing(OwnVector):
    rule = "ep"

    def made(self, X: Array, y: Array) -> Any:
        Z = split_inducing_inputs(self.theta, X.shape[1])[1]
        approximation = FITC(inducing_inputs=Z)
        return GPClassifier(inference=self.rule, approximation=approximation, normalize=False).objective(X, labels(y))


class ProbitLaplaceInducing(ProbitEPInducing):
    rule = "laplace"


class Softmax3(OwnVector):
    classes = 3

    def made(self, X: Array, y: Array) -> Any:
        edges = np.quantile(y, np.arange(1, self.classes) / self.classes)
        return GPClassifier(multi_class="joint", inference="laplace").objective(X, np.digitize(y, edges))


class Softmax10(Softmax3):
    classes = 10


class Heteroscedastic(OwnVector):
    def made(self, X: Array, y: Array) -> Any:
        return GPRegressor(likelihood="heteroscedastic", inference="laplace").objective(X, y)


class StudentLaplace(Model):
    """Student's t with four degrees of freedom; the noise variance of theta is its squared scale."""

    packages = ("errorband", "jax", "jaxlib", "equinox")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        likelihood = StudentT(df=Parameter(4.0, fixed=True), scale=np.sqrt(noise))
        kernel = SquaredExponential(lengthscale=lengthscale, variance=variance)
        gp = GPRegressor(kernel, likelihood=likelihood, inference="laplace", normalize=False)
        self.objective = gp.objective(X, y)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        half = np.append(np.ones(len(theta) - 1), 0.5)  # the library's vector has the logarithm of the scale
        value, gradient = self.objective.value_and_gradient(half * theta)
        return value, half * gradient


MODELS = {
    "exact": ExactGP,
    "vfe": VariationalGP,
    "fitc": IndependentGP,
    "probit-ep": ProbitEP,
    "probit-laplace": ProbitLaplace,
    "logit-laplace": LogitLaplace,
    "probit-ep-fitc": ProbitEPInducing,
    "probit-laplace-fitc": ProbitLaplaceInducing,
    "softmax-3": Softmax3,
    "softmax-10": Softmax10,
    "heteroscedastic": Heteroscedastic,
    "student-laplace": StudentLaplace,
}
