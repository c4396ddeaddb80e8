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
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, in_double_precision, pad_rows, padded_size, slices
from errorband.structures import Predictor
from errorband.structures.dense import SignedRoot
from errorband.structures.low_rank_blocks import LowRankBlocksConditioned


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
        for start in range(0, n, chunk):
            rows = X[start : start + chunk]
            stop = start + len(rows)
            mean, cross, h = self._cross(rows, chunk)
            means[start:stop] = mean
            if variance:
                prior = np.asarray(prior_variance(self.kernel, pad_rows(rows, chunk)))[: len(rows)]
                v, r = self._whiten(cross, h)
                variances[start:stop] = checked_variance(prior - np.sum(v * v, axis=0), prior) + np.sum(r * r, axis=0)
        return means[:, None], variances[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        size = padded_size(len(X))
        mean, cross, h = self._cross(X, size)
        v, r = self._whiten(cross, h)
        prior = np.asarray(_cross_covariance(self.kernel, pad_rows(X, size), pad_rows(X, size)))[: len(X), : len(X)]
        return mean, prior - v.T @ v + r.T @ r

    def _cross(self, rows: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean at some rows, their covariance with the training points (rows, n), and their basis (rows, p)."""
        padded, train = pad_rows(rows, size), pad_rows(self.X, padded_size(len(self.X)))
        cross = np.asarray(_cross_covariance(self.kernel, padded, train))[: len(rows), : len(self.X)]
        mean = np.asarray(mean_at(self.mean, padded))[: len(rows)] + cross @ self.weights
        if len(self.coefficients) == 0:
            return mean, cross, np.zeros((len(rows), 0))
        h = np.asarray(_basis(self.mean, padded))[: len(rows)]
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

    With φ* = L⁻¹k_u*, d* = k_*b − φ*V_bᵀ for the block b of the input, Λ_b what the inducing points leave out among its
    rows, E_b = (Λ_b + Π_b⁻¹)⁻¹ for sites of precision Π, and ψ* = φ* − d*E_bV_b,

        f* | data ~ N( m* + φ*γ + d*g_b,  k** − ‖φ*‖² − d*E_bd*ᵀ + ψ*B⁻¹ψ*ᵀ ).

    Gaussian noise is a site of precision 1/σ²: E_b⁻¹ = Λ_b + σ²I. Latent functions share φ* and d*; E_b and B couple
    them. Between inputs of different blocks only the last term and the mean are there.

    Attributes
    ----------
    factor, gamma, inverse : arrays (M, M), (L, M), (LM, LM)
        L, γ and C⁻¹ with B = CCᵀ.
    labels, X, weights, roots : tuples, an entry for each block
        Its number, its inputs (n, D), g_b (n, L), and the root of E_b.
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
    roots: tuple[SignedRoot, ...]
    jitter: float

    @classmethod
    def from_sites(
        cls, kernel: Kernel, mean: Mean, approximation: PIC, X: np.ndarray, conditioned: LowRankBlocksConditioned
    ) -> "PICPosterior":
        """What prediction needs of the structure at rows X conditioned on sites, all of it as NumPy."""
        nearest, Z = approximation.labels(X), approximation.inducing_inputs
        labels = np.unique(nearest)
        rows = [np.flatnonzero(nearest == label) for label in labels]  # block k of the structure is number labels[k]
        root = conditioned.own.root
        roots = [jax.tree.map(lambda a, k=k: a[k], root) for k in range(len(labels))]
        uu = linalg.cholesky(linalg.regularised(gram_padded(kernel, Z, Z)))
        return cls(
            kernel=kernel,
            mean=mean,
            approximation=approximation,
            factor=uu.factor,
            gamma=np.asarray(conditioned.gamma),
            inverse=linalg.solve_lower(np.asarray(conditioned.chol), np.eye(len(conditioned.chol))),
            labels=tuple(int(label) for label in labels),
            X=tuple(X[part] for part in rows),
            weights=tuple(np.asarray(conditioned.weights)[part] for part in rows),
            roots=tuple(_of_rows(r, len(part)) for r, part in zip(roots, rows, strict=True)),
            jitter=uu.jitter,
        )

    @property
    def n_latents(self) -> int:
        """Number of latent functions L."""
        return len(self.gamma)

    @in_double_precision
    def marginals(self, X, variance=True):
        L, M = self.gamma.shape
        means, covariances = np.empty((len(X), L)), np.empty((len(X) if variance else 0, L, L))
        for block, rows in self._assigned(X):
            n = len(self.X[block]) if block >= 0 else 0
            for part in slices(len(rows), max(16, MEMORY_BUDGET // (64 * L * L * (M + n)))):
                here = rows[part]
                phi, d = self._cross(block, X[here])
                means[here] = self._means(block, X[here], phi, d)
                if variance:
                    prior = self._rows_of(prior_variance, self.kernel, X[here])
                    covariances[here] = self._covariances(block, phi, d, prior)
        return means, covariances if variance else None

    @in_double_precision
    def joint(self, X):
        if self.n_latents > 1:
            raise ValueError("Joint covariances are offered for models with one latent function.")
        means, psis, cov = np.empty(len(X)), np.empty((len(X), len(self.inverse))), np.zeros((len(X), len(X)))
        for block, rows in self._assigned(X):
            phi, d = self._cross(block, X[rows])
            means[rows] = self._means(block, X[rows], phi, d)[:, 0]
            half, psi = self._seen(block, phi, d)
            psis[rows] = psi[:, 0]
            taken = half[:, 0].T @ (self._signs(block)[:, None] * half[:, 0])
            cov[np.ix_(rows, rows)] = self._gram(X[rows], X[rows]) - phi @ phi.T - taken
        spread = psis @ self.inverse.T
        return means, cov + spread @ spread.T

    def _assigned(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Blocks and the positions of the inputs that fall to them."""
        nearest = self.approximation.labels(X)
        found = [(i, np.flatnonzero(nearest == label)) for i, label in enumerate(self.labels)]
        empty = np.flatnonzero(~np.isin(nearest, self.labels))  # a centre that no training row is near to
        return [(i, rows) for i, rows in [*found, (-1, empty)] if len(rows)]

    def _cross(self, block: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ* and d* at inputs of one block."""
        phi = self._whitened(X)
        if block < 0:
            return phi, np.zeros((len(X), 0))
        return phi, self._gram(X, self.X[block]) - phi @ self._whitened(self.X[block]).T

    def _means(self, block: int, X: np.ndarray, phi: np.ndarray, d: np.ndarray) -> np.ndarray:
        means = phi @ self.gamma.T
        if block >= 0:
            means += d @ self.weights[block]
        means[:, 0] += self._rows_of(mean_at, self.mean, X)
        return means

    def _covariances(self, block: int, phi: np.ndarray, d: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Of the latents at each input, (S, L, L)."""
        half, psi = self._seen(block, phi, d)
        spread = psi @ self.inverse.T
        cov = spread @ spread.swapaxes(1, 2)
        cov -= np.einsum("als,aks->slk", self._signs(block)[:, None, None] * half, half, optimize=True)
        diagonal = np.einsum("sll->sl", cov)  # a view
        diagonal += (prior - np.sum(phi**2, axis=1))[:, None]
        diagonal[:] = checked_variance(diagonal, prior[:, None])
        return cov

    def _seen(self, block: int, phi: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R d*ᵀ (nL, L, S), where E_b = RᵀΔR, and ψ* (S, L, LM)."""
        (L, M), S = self.gamma.shape, len(phi)
        psi = np.einsum("sm,lk->slkm", phi, np.eye(L)).reshape(S, L, L * M)
        if block < 0:
            return np.zeros((0, L, S)), psi
        half, of_basis = (_half(self.roots[block], a) for a in (d.T, self._whitened(self.X[block])))
        signed = (self._signs(block)[:, None, None] * of_basis).reshape(len(of_basis), L * M)
        return half, psi - (half.reshape(len(half), L * S).T @ signed).reshape(L, S, L * M).swapaxes(0, 1)

    def _signs(self, block: int) -> np.ndarray:
        return self.roots[block].signs if block >= 0 else np.zeros(0)  # pyright: ignore[reportReturnType]

    def _whitened(self, X: np.ndarray) -> np.ndarray:
        return linalg.solve_lower_rows(self.factor, self._gram(X, self.approximation.inducing_inputs))

    def _gram(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return gram_padded(self.kernel, self._padded(X), self._padded(Z))[: len(X), : len(Z)]

    def _rows_of(self, function: Any, module: Any, X: np.ndarray) -> np.ndarray:
        return rows_of(function, module, self._padded(X))[: len(X)]

    def _padded(self, X: np.ndarray) -> np.ndarray:
        """At least as many rows as the largest block has, so that blocks share compiled code."""
        return pad_rows(X, max(len(X), *(len(rows) for rows in self.X), len(self.factor)))


def _of_rows(root: Any, n: int) -> SignedRoot:
    """The root of the first n rows, where the others have no sites: their part of it is the identity."""
    n_latents = root.blocks.shape[-1]
    kept = root.order < n * n_latents
    chol: Any = np.asfortranarray(root.chol[np.ix_(kept, kept)])
    return SignedRoot(chol, root.signs[kept], root.order[kept], root.blocks[:n])


def _half(root: Any, columns: np.ndarray) -> np.ndarray:
    """:meth:`SignedRoot.half` on the host, of columns (n, S) that every latent function has: (nL, L, S)."""
    n, L, _ = root.blocks.shape
    scaled = root.blocks.swapaxes(1, 2)[..., None] * columns[:, None, None, :]
    scaled = scaled.reshape(n * L, -1)[root.order]
    return linalg.solve_lower(root.chol, np.asfortranarray(scaled)).reshape(n * L, L, -1)


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
            cross = gram_padded(self.kernel, X[part], self.X)
            means[part] = rows_of(mean_at, self.mean, X[part]) + cross @ self.weights
            if variance:
                taken = np.sum(cross**2 * self.precision, axis=1) - np.sum((cross @ self.half) ** 2, axis=1)
                variances[part] = rows_of(prior_variance, self.kernel, X[part]) - taken
        return means[:, None], clipped_variance(variances)[:, None, None] if variance else None

    @in_double_precision
    def joint(self, X):
        cross = gram_padded(self.kernel, X, self.X)
        half = cross @ self.half
        cov = gram_padded(self.kernel, X, X) - (cross * self.precision) @ cross.T + half @ half.T
        return rows_of(mean_at, self.mean, X) + cross @ self.weights, cov


POSTERIORS: dict[str, type[Posterior]] = {
    cls.__name__: cls for cls in (DensePosterior, SitePosterior, PICPosterior, NystromPosterior)
}


def gram_padded(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(X, Z), padded for the compiler and cut again."""
    padded = (pad_rows(a, padded_size(len(a))) for a in (X, Z))
    return np.asarray(_cross_covariance(kernel, *padded))[: len(X), : len(Z)]


def rows_of(function: Any, module: Any, X: np.ndarray) -> np.ndarray:
    """A number for each row, padded for the compiler and cut again."""
    return np.asarray(function(module, pad_rows(X, padded_size(len(X)))))[: len(X)]


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
def _cross_covariance(kernel: Kernel, X: Any, Z: Any) -> Any:
    return kernel.gram(X, Z)


@jax.jit
def prior_variance(kernel: Kernel, X: Any) -> Any:
    """Diagonal of k(X, X)."""
    return kernel.gram_diag(X)


@jax.jit
def mean_at(mean: Mean, X: Any) -> Any:
    """Prior mean m(X)."""
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
