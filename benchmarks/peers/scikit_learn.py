"""scikit-learn: `GaussianProcessRegressor` with its own L-BFGS-B."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from peers.base import Model, Record
from problems import Array, labels, split


def ours(theirs: Array) -> Array:
    """From (variance, length-scales, noise) to (length-scales, variance, noise)."""
    return np.concatenate([theirs[1:-1], theirs[:1], theirs[-1:]])


def theirs(theta: Array) -> Array:
    return np.concatenate([theta[-2:-1], theta[:-2], theta[-1:]])


class Recorded(GaussianProcessRegressor):
    """Tells which parameters the optimiser asked for."""

    record: Record | None = None

    def log_marginal_likelihood(self, theta: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = super().log_marginal_likelihood(theta, *args, **kwargs)
        if self.record and theta is not None:
            self.record(ours(theta))
        return result


class ExactGP(Model):
    packages = ("scikit-learn",)

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        self.kernel = ConstantKernel(variance) * RBF(lengthscale) + WhiteKernel(noise)

    @cached_property
    def unfitted(self) -> GaussianProcessRegressor:
        return GaussianProcessRegressor(self.kernel, optimizer=None).fit(self.X, self.y)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        value, gradient = self.unfitted.log_marginal_likelihood(theirs(theta), eval_gradient=True, clone_kernel=False)
        return value, ours(gradient)

    def fit(self, record: Record) -> Array:
        self.fitted = Recorded(self.kernel)
        self.fitted.record = record
        self.fitted.fit(self.X, self.y)
        return ours(self.fitted.kernel_.theta)

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, deviation = self.fitted.predict(X, return_std=True)
        return mean, deviation**2  # the white kernel puts the noise in


class LogitLaplace(Model):
    """`GaussianProcessClassifier`: Laplace's approximation and a logistic link only."""

    packages = ("scikit-learn",)

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, _ = split(theta)
        kernel = ConstantKernel(variance) * RBF(lengthscale)
        self.gp = GaussianProcessClassifier(kernel, optimizer=None).fit(X, labels(y))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        own = np.append(theta[-2], theta[:-2])
        value, gradient = self.gp.log_marginal_likelihood(own, eval_gradient=True, clone_kernel=False)
        return value, np.append(gradient[1:], gradient[0])


MODELS = {"exact": ExactGP, "logit-laplace": LogitLaplace}
