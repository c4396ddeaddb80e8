"""GPyTorch's sparse spectrum at the problem of ``spectral_speed.py``: `SpectralDeltaKernel`, value and gradient.

Run by an interpreter that has GPyTorch (``benchmarks/peers/gpytorch.txt``); the page is made by ``spectral_speed.py``.
Fewer rows come first, in case more take too long.
"""

import time

import gpytorch
import numpy as np
import torch
from common import Results, arguments

ROWS, D, H = (1000, 2000, 10_000), 8, 500


class Model(gpytorch.models.ExactGP):
    """Cosines and sines of H frequencies, with one variance; from 800 rows on solved by conjugate gradients."""

    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.SpectralDeltaKernel(D, H))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def cost(n: int) -> dict[str, float]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    y = np.sin(X @ np.arange(D)) + 0.1 * rng.standard_normal(n)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(torch.from_numpy(X), torch.from_numpy(y), likelihood).double().train()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def once() -> float:
        model.zero_grad()
        loss = -evidence(model(*model.train_inputs), model.train_targets)
        loss.backward()
        return float(loss.detach())

    once()
    times = []
    for _ in range(2):
        began = time.process_time()
        once()
        times.append(time.process_time() - began)
    return {
        "gpytorch": min(times),
        "version": gpytorch.__version__,
        "numbers": sum(p.numel() for p in model.parameters()),
    }


if __name__ == "__main__":
    options = arguments(__doc__, rows=ROWS)
    results = Results("spectral-speed", options.seconds, kept=True)
    for rows in options.rows:
        results.once(f"peer/{rows}", lambda: cost(rows))  # noqa: B023
