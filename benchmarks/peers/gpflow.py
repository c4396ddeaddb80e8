"""GPflow: `GPR`, compiled by `tf.function`, with its SciPy optimiser (L-BFGS-B)."""

from __future__ import annotations

from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf

from peers.base import Model, Record, softplus_inverse, softplus_to_log
from problems import SPARSE_ITERATIONS, Array, split, split_inducing_inputs


class ExactGP(Model):
    packages = ("gpflow", "tensorflow", "tensorflow-probability")
    options: ClassVar[dict[str, int]] = {}

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        lengthscale, variance, noise = split(theta)
        kernel = gpflow.kernels.SquaredExponential(variance=variance, lengthscales=lengthscale)
        self.gp = gpflow.models.GPR((X, y[:, None]), kernel, noise_variance=noise)
        self.variables = [
            p.unconstrained_variable for p in (kernel.lengthscales, kernel.variance, self.gp.likelihood.variance)
        ]
        self.lower = np.append(np.zeros(theta.size - 1), self.gp.likelihood.variance_lower_bound)
        self.loss_and_gradient = tf.function(self._loss_and_gradient)

    def _loss_and_gradient(self) -> Any:
        with tf.GradientTape() as tape:
            loss = self.gp.training_loss()
        return loss, tape.gradient(loss, self.variables)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        values = np.exp(theta)
        unconstrained = softplus_inverse(values - self.lower)
        for variable, new in zip(self.variables, (unconstrained[:-2], *unconstrained[-2:]), strict=True):
            variable.assign(new)
        loss, gradients = self.loss_and_gradient()
        gradient = np.concatenate([-np.atleast_1d(g.numpy()) for g in gradients])
        return -float(loss), softplus_to_log(gradient, values, self.lower)

    def fit(self, record: Record) -> Array:
        gpflow.optimizers.Scipy().minimize(
            self.gp.training_loss,
            self.variables,
            step_callback=lambda step, variables, values: record(self.logs(values)),
            options=self.options,
        )
        return self.logs([v.numpy() for v in self.variables])

    def logs(self, values: Any) -> Array:
        unconstrained = np.concatenate([np.atleast_1d(v) for v in values])
        return np.log(self.lower + np.logaddexp(0.0, unconstrained))

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self.gp.predict_y(X)
        return mean.numpy()[:, 0], variance.numpy()[:, 0]


class VariationalGP(ExactGP):
    """`SGPR`; the inducing inputs come last in the vector and are not transformed."""

    model = gpflow.models.SGPR
    options: ClassVar[dict[str, int]] = {"maxiter": SPARSE_ITERATIONS}

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        Model.__init__(self, X, y, theta)
        own, Z = split_inducing_inputs(theta, X.shape[1])
        lengthscale, variance, noise = split(own)
        kernel = gpflow.kernels.SquaredExponential(variance=variance, lengthscales=lengthscale)
        self.gp = self.model((X, y[:, None]), kernel, inducing_variable=Z.copy(), noise_variance=noise)
        parts = (kernel.lengthscales, kernel.variance, self.gp.likelihood.variance, self.gp.inducing_variable.Z)
        self.variables = [p.unconstrained_variable for p in parts]
        self.lower = np.append(np.zeros(own.size - 1), self.gp.likelihood.variance_lower_bound)
        self.loss_and_gradient = tf.function(self._loss_and_gradient)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        own, Z = split_inducing_inputs(theta, self.X.shape[1])
        values = np.exp(own)
        unconstrained = softplus_inverse(values - self.lower)
        for variable, new in zip(self.variables, (unconstrained[:-2], *unconstrained[-2:], Z), strict=True):
            variable.assign(new)
        loss, gradients = self.loss_and_gradient()
        *own_gradient, Z_gradient = [-np.ravel(tf.convert_to_tensor(g).numpy()) for g in gradients]
        return -float(loss), np.append(softplus_to_log(np.concatenate(own_gradient), values, self.lower), Z_gradient)

    def logs(self, values: Any) -> Array:
        return np.append(super().logs(values[:-1]), values[-1])


class IndependentGP(VariationalGP):
    """`GPRFITC`."""

    model = gpflow.models.GPRFITC


MODELS = {"exact": ExactGP, "vfe": VariationalGP, "fitc": IndependentGP}
