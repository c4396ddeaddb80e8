"""What the tests of inducing points share: a model with given values, and the covariance Q in plain NumPy."""

import numpy as np

from errorband import GPRegressor
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.linalg import INDUCING_JITTER

KERNEL, NOISE = SquaredExponential([0.8, 1.3], 1.44), 0.0625


def fixed(approximation, kernel=KERNEL, likelihood=None, **options):
    """A regressor that keeps the values it is given."""
    likelihood = Gaussian(NOISE) if likelihood is None else likelihood
    options = {"optimizer": None, "normalize": False, **options}
    return GPRegressor(kernel, likelihood=likelihood, approximation=approximation, **options)


def q_matrix(kernel, Z, A, B):
    """K_au K_uu⁻¹ K_ub, with the noise that inducing variables always have."""
    K_uu = kernel(Z)
    K_uu = K_uu + INDUCING_JITTER * np.mean(np.diagonal(K_uu)) * np.eye(len(Z))
    return kernel(A, Z) @ np.linalg.solve(K_uu, kernel(Z, B))
