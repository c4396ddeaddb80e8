"""What prediction needs and nothing else: the latent posterior at new inputs, a chunk at a time."""

import abc
import warnings
from typing import Any

import equinox as eqx
import jax
import numpy as np

from errorband import linalg
from errorband.approximations import PIC, Approximation
from errorband.kernels import Kernel
from errorband.kernels.padded import diagonal, gram
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, at_rows, in_double_precision, pad_rows, padded_size, slices
from errorband.structures import Predictor


class Posterior(eqx.Module):
    """Posterior of the latent function."""

    jitter: eqx.AbstractVar[float]

    @abc.abstractmethod
    def marginals(self, X: np.ndarray, variance: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean (n, L) and, if asked for, covariance (n, L, L) at each of n inputs, in chunks of bounded memory."""

    @abc.abstractmethod
    def joint(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of the latent function at n inputs together."""


class DensePosterior(Posterior):
    """Posterior of one latent function from all training points.

    f* | data ~ N( m* + k*ᵀg + h*ᵀβ,  k** − ‖v*‖² + ‖C⁻¹R*‖² ),  v* = L⁻¹(s ∘ k*),  R* = h* − Bᵀv*

    Attributes
    ----------
    weights : array (n,)
        g, the weights of the kernels.
    factor, scale : arrays (n, n), (n,)
        L and s with (K + Π⁻¹)⁻¹ = s L⁻ᵀL⁻¹ s. Exact inference: L is the Cholesky factor of K + Σ and s = 1.
    coefficients, basis_factor, whitened_basis : arrays (p,), (p, p), (n, p)
        β, C and B = L⁻¹(s ∘ H): the mean's coefficients that were integrated out; p = 0 if none.
    jitter : float
        What had to be added to the diagonal to factorise.
    """

    kernel: Kernel
    mean: Mean
    X: np.ndarray
    weights: np.ndarray
    factor: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    basis_factor: np.ndarray
    whitened_basis: np.ndarray
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        n = len(X)
        chunk = min(padded_size(n), max(16, MEMORY_BUDGET // (24 * padded_size(len(self.X)))))
        means, variances = np.empty(n), np.empty(n)
        for part in slices(n, chunk):
            means[part], cross, h = self._cross(X[part], chunk)
            if variance:
                prior = diagonal(self.kernel, X[part], chunk)
                v, r = self._whiten(cross, h)
                variances[part] = checked_variance(prior - np.sum(v * v, axis=0), prior) + np.sum(r * r, axis=0)
        return means[:, None], variances[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        mean, cross, h = self._cross(X)
        v, r = self._whiten(cross, h)
        return mean, gram(self.kernel, X, X) - v.T @ v + r.T @ r

    def _cross(self, rows: np.ndarray, size: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean at some rows, their covariance with the training points (rows, n), and their basis (rows, p)."""
        cross = gram(self.kernel, rows, self.X, size)
        mean = prior_mean(self.mean, rows, size) + cross @ self.weights
        if len(self.coefficients) == 0:
            return mean, cross, np.zeros((len(rows), 0))
        h = at_rows(lambda padded: _basis(self.mean, padded), rows, size)
        return mean + h @ self.coefficients, cross, h

    def _whiten(self, cross: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v* (n, rows) and C⁻¹R* (p, rows)."""
        v = linalg.solve_lower(self.factor, (cross * self.scale).T)
        if h.shape[1] == 0:
            return v, np.zeros((0, len(h)))
        return v, linalg.solve_lower(self.basis_factor, np.asfortranarray(h.T - self.whitened_basis.T @ v))


class SitePosterior(Posterior):
    """Posterior of one or several latent functions from a structure and its sites.

    Attributes
    ----------
    X : array (n, D)
        The training inputs, as far as the approximation looks at them again: none for inducing points.
    predictor : Predictor
        What the structure kept.
    """

    kernel: Kernel
    mean: Mean
    approximation: Approximation
    n_latents: int = eqx.field(static=True)
    X: np.ndarray
    predictor: Predictor
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        n, L = len(X), self.n_latents
        train = self._train()
        chunk = min(
            padded_size(n), max(16, MEMORY_BUDGET // (48 * self.predictor.numbers_per_row))
        )  # several at a time
        means, covariances = np.empty((n, L)), np.empty((n, L, L))

        @in_double_precision
        def predict(part: slice) -> None:
            rows = X[part]
            if not variance:
                means[part] = np.asarray(_site_mean(self, train, pad_rows(rows, chunk)))[: len(rows)]
                return
            mean, cov, prior = _site_predict(self, train, pad_rows(rows, chunk))
            means[part] = np.asarray(mean)[: len(rows)]
            cov = np.array(cov)[: len(rows)]
            diagonal = np.einsum("nll->nl", cov)  # a view
            diagonal[:] = checked_variance(diagonal, np.asarray(prior)[: len(rows)])
            covariances[part] = cov

        for _ in linalg.in_parallel(predict, slices(n, chunk)):
            pass
        return means, covariances if variance else None

    @in_double_precision
    def joint(self, X):
        if self.n_latents > 1:
            raise ValueError("Joint covariances are offered for models with one latent function.")
        mean, cov = _site_joint(self, self._train(), pad_rows(X, padded_size(len(X))))
        return np.asarray(mean)[: len(X)], np.asarray(cov)[: len(X), : len(X)]

    def _train(self) -> np.ndarray:
        return pad_rows(self.X, padded_size(len(self.X))) if len(self.X) else self.X


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


class NystromPosterior(Posterior):
    """What the Nyström approximation predicts; not the posterior of any process, and variances may have to be clipped.

    With A⁻¹ = E − HHᵀ the inverse of what stands in for the covariance of the targets, and k* = k(X, x*),

        mean  m* + k*ᵀg,     variance  k** − k*ᵀEk* + ‖Hᵀk*‖².

    Attributes
    ----------
    weights, precision, half : arrays (n,), (n,), (n, M)
        g, E and H.
    """

    kernel: Kernel
    mean: Mean
    X: np.ndarray
    weights: np.ndarray
    precision: np.ndarray
    half: np.ndarray
    jitter: float

    @in_double_precision
    def marginals(self, X, variance=True):
        means, variances = np.empty(len(X)), np.empty(len(X))
        chunk = max(16, MEMORY_BUDGET // (32 * padded_size(len(self.X))))
        for part in slices(len(X), chunk):
            cross = gram(self.kernel, X[part], self.X)
            means[part] = prior_mean(self.mean, X[part]) + cross @ self.weights
            if variance:
                taken = np.sum(cross**2 * self.precision, axis=1) - np.sum((cross @ self.half) ** 2, axis=1)
                variances[part] = diagonal(self.kernel, X[part]) - taken
        return means[:, None], clipped_variance(variances)[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        cross = gram(self.kernel, X, self.X)
        half = cross @ self.half
        cov = gram(self.kernel, X, X) - (cross * self.precision) @ cross.T + half @ half.T
        return prior_mean(self.mean, X) + cross @ self.weights, cov


POSTERIORS: dict[str, type[Posterior]] = {
    cls.__name__: cls for cls in (DensePosterior, SitePosterior, PICPosterior, NystromPosterior)
}


def prior_mean(mean: Mean, X: np.ndarray, size: int | None = None) -> np.ndarray:
    """m(X), padded to ``size`` rows for the compiler and cut again."""
    return at_rows(lambda rows: _mean(mean, rows), X, size)


def clipped_variance(variance: np.ndarray) -> np.ndarray:
    """Zero in place of variances below zero, which the Nyström approximation can have; a warning says how many."""
    below = int(np.sum(variance < 0))
    if below:
        warnings.warn(
            f"{below} of {len(variance)} variances of the Nyström approximation came out below zero and were set to "
            "zero: its bands cannot be trusted there. Use FITC or VFE, or more inducing inputs.",
            RuntimeWarning,
            stacklevel=5,
        )
    return np.maximum(variance, 0.0)


def checked_variance(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Clip variances that round-off made negative; anything worse is an error, not a number to hide."""
    worst = float(np.min(variance / np.maximum(prior, np.finfo(float).tiny), initial=0.0))
    if worst < -1e-5:
        raise linalg.NotPositiveDefinite(
            f"A predictive variance came out at {worst:.2g} of the prior variance: the covariance is too close to "
            "singular. Raise the noise, or remove near-duplicate rows."
        )
    return np.maximum(variance, 0.0)


@jax.jit
def _mean(mean: Mean, X: Any) -> Any:
    return mean.evaluate(X)


@jax.jit
def _basis(mean: Mean, X: Any) -> Any:
    return mean.basis(X)


@jax.jit
def _site_predict(posterior: SitePosterior, train: Any, X: Any) -> tuple[Any, Any, Any]:
    L = posterior.n_latents
    cross = posterior.approximation.cross(posterior.kernel, train, X, L)
    prior = posterior.approximation.new_variance(posterior.kernel, X, cross)
    mean, cov = posterior.predictor(cross, prior)
    return mean.at[:, 0].add(posterior.mean.evaluate(X)), cov, prior


@jax.jit
def _site_mean(posterior: SitePosterior, train: Any, X: Any) -> Any:
    weights = posterior.predictor.mean_weights
    mean = posterior.approximation.cross_times(posterior.kernel, train, X, weights)
    return mean.at[:, 0].add(posterior.mean.evaluate(X))


@jax.jit
def _site_joint(posterior: SitePosterior, train: Any, X: Any) -> tuple[Any, Any]:
    cross = posterior.approximation.cross(posterior.kernel, train, X, 1)
    prior = posterior.approximation.new_covariance(posterior.kernel, X, cross[0])
    mean, cov = posterior.predictor.joint(cross[0], prior)
    return mean + posterior.mean.evaluate(X), cov
