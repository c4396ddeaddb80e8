"""GPyTorch's stochastic variational GP, to be run by its own interpreter: ``python svgp.py ROWS.npz STEPS``.

ROWS.npz holds standardised X, y, X_test, y_test. Prints one line of JSON. Minibatches of 1024 rows and Adam with a rate
of 0.01, as in the library's example; 500 inducing inputs, which begin at random rows; Matérn 5/2 with a length-scale
per input; single precision.
"""

from __future__ import annotations

import json
import sys
import time

import gpytorch
import numpy as np
import torch

INDUCING, BATCH, RATE = 500, 1024, 0.01


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, Z: torch.Tensor) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=Z.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def main() -> None:
    torch.manual_seed(0)
    with np.load(sys.argv[1]) as data:
        X, y, new, y_new = (torch.as_tensor(data[k], dtype=torch.float32) for k in ("X", "y", "X_test", "y_test"))
    began = time.process_time()
    model, likelihood = Model(X[torch.randperm(len(X))[:INDUCING]].clone()), gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)
    model.train()
    likelihood.train()
    order = torch.empty(0, dtype=torch.long)
    for _ in range(int(sys.argv[2])):
        if len(order) < BATCH:
            order = torch.randperm(len(y))
        rows, order = order[:BATCH], order[BATCH:]
        optimiser.zero_grad()
        loss = -bound(model(X[rows]), y[rows])
        loss.backward()
        optimiser.step()
    fitted = time.process_time() - began
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        parts = [likelihood(model(part)) for part in new.split(BATCH)]
        mean, var = (torch.cat([getattr(p, k) for p in parts]).double() for k in ("mean", "variance"))
        error = y_new.double() - mean
        nlpd = 0.5 * torch.mean(torch.log(2 * torch.pi * var) + error**2 / var)
    print(json.dumps({"rmse": float(torch.sqrt(torch.mean(error**2))), "nlpd": float(nlpd), "processor": fitted}))


if __name__ == "__main__":
    main()
