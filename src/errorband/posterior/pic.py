"""Posterior from inducing points and blocks of rows."""

import numpy as np

from errorband import linalg
from errorband.approximations import PIC
from errorband.kernels import Kernel
from errorband.kernels.padded import diagonal, gram
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, in_double_precision, slices
from errorband.posterior.base import Posterior, checked_variance, prior_mean


class PICPosterior(Posterior):
    """Posterior from inducing points and, for each input, the training rows of its block.

    With φ* = L⁻¹k_u*, d* = k_*b − φ*V_bᵀ for the block b of the input, and ψ* = φ* − d*S_b⁻¹V_b,

        f* | data ~ N( m* + φ*γ + d*g_b,  k** − ‖φ*‖² − d*S_b⁻¹d*ᵀ + ψ*B⁻¹ψ*ᵀ ).

    Between inputs of different blocks only the last term and the mean are there.

    Attributes
    ----------
    factor, gamma, inverse : arrays (M, M), (M,), (M, M)
        L, γ and C⁻¹ with B = CCᵀ.
    labels, X, weights, factors : tuples, an entry for each block
        Its number, its inputs, g_b, and the Cholesky factor of S_b.
    """

    kernel: Kernel
    mean: Mean
    approximation: PIC
    factor: np.ndarray
    gamma: np.ndarray
    inverse: np.ndarray
    labels: tuple[int, ...]
    X: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    factors: tuple[np.ndarray, ...]
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        means, variances = np.empty(len(X)), np.empty(len(X))
        for block, rows in self._assigned(X):
            chunk = max(16, MEMORY_BUDGET // (64 * (len(self.gamma) + len(self.X[block]))))
            for part in (rows[piece] for piece in slices(len(rows), chunk)):
                means[part], phi, psi, half, _ = self._at(block, X[part])
                prior = diagonal(self.kernel, X[part])
                left = prior - np.sum(phi**2, axis=1) - np.sum(half**2, axis=0)
                variances[part] = checked_variance(left + np.sum((psi @ self.inverse.T) ** 2, axis=1), prior)
        return means[:, None], variances[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        means, psis, cov = np.empty(len(X)), np.empty((len(X), len(self.gamma))), np.zeros((len(X), len(X)))
        for block, rows in self._assigned(X):
            means[rows], phi, psis[rows], half, K = self._at(block, X[rows], square=True)
            cov[np.ix_(rows, rows)] = K - phi @ phi.T - half.T @ half
        half = psis @ self.inverse.T
        return means, cov + half @ half.T

    def _assigned(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Blocks and the positions of the inputs that fall to them."""
        nearest = self.approximation.labels(X)
        found = [(i, np.flatnonzero(nearest == label)) for i, label in enumerate(self.labels)]
        empty = np.flatnonzero(~np.isin(nearest, self.labels))  # a centre that no training row is near to
        return [(i, rows) for i, rows in [*found, (-1, empty)] if len(rows)]

    def _at(self, block: int, X: np.ndarray, square: bool = False) -> tuple[np.ndarray, ...]:
        """Mean, φ*, ψ* and L_S⁻¹d*ᵀ at inputs of one block, and their prior covariance if asked for."""
        phi = self._whitened(X)
        mean = prior_mean(self.mean, X) + phi @ self.gamma
        K = gram(self.kernel, X, X) if square else np.zeros((0, 0))
        if block < 0:
            return mean, phi, phi, np.zeros((0, len(X))), K
        V = self._whitened(self.X[block])
        d = gram(self.kernel, X, self.X[block]) - phi @ V.T
        half = linalg.solve_lower(self.factors[block], np.asfortranarray(d.T))
        psi = phi - half.T @ linalg.solve_lower(self.factors[block], np.asfortranarray(V))
        return mean + d @ self.weights[block], phi, psi, half, K

    def _whitened(self, X: np.ndarray) -> np.ndarray:
        return linalg.solve_lower_rows(self.factor, gram(self.kernel, X, self.approximation.inducing_inputs))
