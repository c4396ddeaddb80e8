"""GPyTorch: `ExactGP`, with PyTorch's L-BFGS.

The library ships no optimiser. The Adam loop of its documentation (rate 0.1) is still 0.4 nat (N = 150) and 3.6 nats
(N = 400) short after a thousand steps on the data here, so it gets the same kind of search as the others have.

Above 800 points it goes over to conjugate gradients and a stochastic log-determinant, which is another quantity than
the others compute; Cholesky is asked for at every size here.
"""

from __future__ import annotations

import gpytorch
import numpy as np
import torch

from peers.base import Model, Record, softplus_inverse, softplus_to_log
from problems import SPARSE_ITERATIONS, Array, split_inducing_inputs


class Prior(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class ExactGP(Model):
    packages = ("gpytorch", "linear_operator", "torch")
    iterations = 1000

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

    def loss(self) -> torch.Tensor:
        """Minus the log evidence over N, as the library has it, with its gradient left in the parameters."""
        self.gp.train()
        with gpytorch.settings.max_cholesky_size(len(self.y) + 1):
            loss = -self.evidence(self.gp(self.inputs), self.targets)
            loss.backward()
        return loss

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        self.assign(theta)
        value = -len(self.y) * self.loss().item()
        gradient = -len(self.y) * np.concatenate([r.grad.numpy().ravel() for r in self.raw])
        return value, softplus_to_log(gradient, np.exp(theta), self.lower)

    def fit(self, record: Record) -> Array:
        optimiser = torch.optim.LBFGS(self.gp.parameters(), max_iter=self.iterations, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = self.loss()
            record(self.logs())
            return loss

        optimiser.step(closure)
        return self.logs()

    def predict(self, X: Array) -> tuple[Array, Array]:
        self.gp.eval()
        self.likelihood.eval()
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(self.y) + 1):
            prediction = self.likelihood(self.gp(torch.from_numpy(X)))
            return prediction.mean.numpy(), prediction.variance.numpy()


class VariationalGP(ExactGP):
    """`InducingPointKernel` (SGPR); the inducing inputs come last in the vector and are not transformed."""

    iterations = SPARSE_ITERATIONS

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        own, Z = split_inducing_inputs(theta, X.shape[1])
        super().__init__(X, y, own)
        self.theta = theta
        dense = self.gp.covar_module
        self.gp.covar_module = gpytorch.kernels.InducingPointKernel(dense, torch.from_numpy(Z.copy()), self.likelihood)

    def logs(self) -> Array:
        return np.append(super().logs(), self.gp.covar_module.inducing_points.detach().numpy())

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        own, Z = split_inducing_inputs(theta, self.X.shape[1])
        inducing = self.gp.covar_module.inducing_points
        inducing.data, inducing.grad = torch.from_numpy(Z.copy()), None
        self.gp.covar_module._clear_cache()
        value, gradient = super().value_and_gradient(own)
        return value, np.append(gradient, -len(self.y) * inducing.grad.numpy().ravel())


MODELS = {"exact": ExactGP, "vfe": VariationalGP}
