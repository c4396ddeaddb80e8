"""GPyTorch: `ExactGP`, with the Adam loop of its documentation, as it ships no optimiser of its own.

Above 800 points it goes over to conjugate gradients and a stochastic log-determinant, which is another quantity than
the others compute; Cholesky is asked for at every size here.
"""

from __future__ import annotations

import gpytorch
import numpy as np
import torch

from peers.base import Model, Record, softplus_inverse, softplus_to_log
from problems import Array

STEPS, RATE = 500, 0.1
PATIENCE, GAIN = 20, 0.01  # Adam ends once this many steps have gained less than this many nats


class Prior(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class ExactGP(Model):
    packages = ("gpytorch", "linear_operator", "torch")

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.inputs, self.targets = torch.from_numpy(X), torch.from_numpy(y)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.gp = Prior(self.inputs, self.targets, self.likelihood).double()
        self.evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.gp)
        kernel = self.gp.covar_module
        self.raw = [
            kernel.base_kernel.raw_lengthscale,
            kernel.raw_outputscale,
            self.likelihood.noise_covar.raw_noise,
        ]
        bound = float(self.likelihood.noise_covar.raw_noise_constraint.lower_bound)
        self.lower = np.append(np.zeros(theta.size - 1), bound)
        self.assign(theta)

    def assign(self, theta: Array) -> None:
        unconstrained = softplus_inverse(np.exp(theta) - self.lower)
        for raw, new in zip(self.raw, (unconstrained[:-2], *unconstrained[-2:]), strict=True):
            raw.data = torch.as_tensor(new, dtype=torch.float64).reshape(raw.shape)
            raw.grad = None

    def logs(self) -> Array:
        raw = np.concatenate([r.detach().numpy().ravel() for r in self.raw])
        return np.log(self.lower + np.logaddexp(0.0, raw))

    def differentiated(self) -> float:
        """The log evidence, with the gradient of its negative left in the parameters."""
        self.gp.train()
        with gpytorch.settings.max_cholesky_size(len(self.y) + 1):
            loss = -len(self.y) * self.evidence(self.gp(self.inputs), self.targets)  # the library divides by N
            loss.backward()
        return -loss.item()

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        self.assign(theta)
        value = self.differentiated()
        gradient = np.concatenate([-r.grad.numpy().ravel() for r in self.raw])
        return value, softplus_to_log(gradient, np.exp(theta), self.lower)

    def fit(self, record: Record) -> Array:
        adam = torch.optim.Adam(self.gp.parameters(), lr=RATE)
        best, best_step = -np.inf, 0
        for step in range(STEPS):
            adam.zero_grad()
            value = self.differentiated()
            record(self.logs())
            if value > best + GAIN:
                best, best_step = value, step
            if step - best_step >= PATIENCE:
                break
            adam.step()
        return self.logs()

    def predict(self, X: Array) -> tuple[Array, Array]:
        self.gp.eval()
        self.likelihood.eval()
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(self.y) + 1):
            prediction = self.likelihood(self.gp(torch.from_numpy(X)))
            return prediction.mean.numpy(), prediction.variance.numpy()


MODELS = {"exact": ExactGP}
