"""Posterior from inducing points and blocks of rows."""

from typing import Any

import jax
import numpy as np

from errorband import linalg
from errorband.approximations import PIC
from errorband.kernels import Kernel
from errorband.kernels.padded import diagonal, gram
from errorband.means import Mean
from errorband.numerics import MEMORY_BUDGET, in_double_precision, pad_rows, padded_size, slices
from errorband.posterior.base import Posterior, check_one_latent, checked_variance, prior_mean
from errorband.structures.dense import SignedRoot
from errorband.structures.low_rank_blocks import LowRankBlocksConditioned


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
        uu = linalg.cholesky(linalg.regularised(gram(kernel, Z, Z)))
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
                    prior = diagonal(self.kernel, X[here], self._size(X[here]))
                    covariances[here] = self._covariances(block, phi, d, prior)
        return means, covariances if variance else None

    @in_double_precision
    def joint(self, X):
        check_one_latent(self.n_latents)
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
        means[:, 0] += prior_mean(self.mean, X, self._size(X))
        return means

    def _covariances(self, block: int, phi: np.ndarray, d: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Of the latents at each input, (S, L, L)."""
        half, psi = self._seen(block, phi, d)
        spread = psi @ self.inverse.T
        cov = spread @ spread.swapaxes(1, 2)
        cov -= np.einsum("als,aks->slk", self._signs(block)[:, None, None] * half, half, optimize=True)
        variances = np.einsum("sll->sl", cov)  # a view
        variances += (prior - np.sum(phi**2, axis=1))[:, None]
        variances[:] = checked_variance(variances, prior[:, None])
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
        return gram(self.kernel, X, pad_rows(Z, self._size(Z)), self._size(X))[:, : len(Z)]

    def _size(self, X: np.ndarray) -> int:
        """To pad X to: for at least as many rows as the largest block has, so that blocks share compiled code."""
        return padded_size(max(len(X), *(len(rows) for rows in self.X), len(self.factor)))


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
