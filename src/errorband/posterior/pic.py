"""Posterior from inducing points and blocks of rows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband.latents import Latent
from errorband.posterior.base import Posterior, checked_variance, latent_of
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.rows import pad_rows, padded_size, rows_within_budget, slices
from errorband.structures.low_rank import LowRankPredictor
from errorband.structures.signed_root import SignedRoot


class PICPosterior(Posterior):
    """Posterior from inducing points and, for each input, the training rows of its block.

    With φ* = L⁻¹k_u*, d* = k_*b − φ*V_bᵀ for the block b of the input, Λ_b what the inducing points leave out among its
    rows, E_b = (Λ_b + Π_b⁻¹)⁻¹ for sites of precision Π, and ψ* = φ* − d*E_bV_b,

        f* | data ~ N( m* + φ*γ + d*g_b,  k** − ‖φ*‖² − d*E_bd*ᵀ + ψ*B⁻¹ψ*ᵀ ).

    E_b and B couple the latent functions. Between inputs of different blocks only the last term and the mean are there.

    Attributes
    ----------
    latents : tuple of Latent
        One that all latent functions share, or one for each.
    centres : array (C, D)
        An input belongs to the nearest.
    block_of : array (C,)
        Number of the block around each centre; −1 if no training row is there, so that nothing but the inducing points
        predicts.
    X, there : arrays (blocks, B, D), (blocks, B)
        Training inputs of each block, padded, and which of them are real.
    weights : array (blocks, B, L)
        g_b.
    roots : SignedRoot
        Of E_b, stacked over the blocks.
    factors : tuple of arrays (M, M)
        L of each latent prior.
    predictor : LowRankPredictor
        γ and C⁻¹ with B = CCᵀ.
    """

    latents: tuple[Latent, ...]
    centres: np.ndarray
    block_of: np.ndarray
    X: np.ndarray
    there: np.ndarray
    weights: np.ndarray
    roots: SignedRoot
    factors: tuple[np.ndarray, ...]
    predictor: LowRankPredictor
    jitter: float

    @property
    def n_latents(self) -> int:
        """Number of latent functions L."""
        return len(self.predictor.gamma)

    @in_double_precision
    def marginals(self, X, variance=True):
        L, M = self.predictor.gamma.shape
        means, covariances = np.empty((len(X), L)), np.empty((len(X) if variance else 0, L, L))
        chunk = min(padded_size(len(X)), rows_within_budget(64 * L * L * (M + self.X.shape[1])))
        for block, rows in self._assigned(X):
            for part in slices(len(rows), chunk):
                here = rows[part]
                padded = pad_rows(X[here], padded_size(len(here)))
                found = _marginals(self, self._block(block), padded, variance)
                mean, *rest = (np.array(a)[: len(here)] for a in found)
                means[here] = mean
                if variance:
                    cov, prior = rest
                    diagonal = np.einsum("sll->sl", cov)  # a view
                    diagonal[:] = checked_variance(diagonal, prior)
                    covariances[here] = cov
        return means, covariances if variance else None

    @in_double_precision
    def joint(self, X, latent=0):
        means, spreads = np.empty(len(X)), np.empty((len(X), len(self.predictor.inverse)))
        cov = np.zeros((len(X), len(X)))
        for block, rows in self._assigned(X):
            padded = pad_rows(X[rows], padded_size(len(rows)))
            mean, own, spread = _joint(self, self._block(block), padded, latent)
            means[rows], spreads[rows] = np.asarray(mean)[: len(rows)], np.asarray(spread)[: len(rows)]
            cov[np.ix_(rows, rows)] = np.asarray(own)[: len(rows), : len(rows)]
        return means, cov + spreads @ spreads.T

    def _assigned(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Block of each centre that some inputs are nearest to, and the positions of these inputs."""
        from sklearn.metrics import pairwise_distances_argmin

        centres = pairwise_distances_argmin(X, self.centres)
        return [(int(self.block_of[centre]), np.flatnonzero(centres == centre)) for centre in np.unique(centres)]

    def _block(self, block: int) -> tuple[Any, ...]:
        """Inputs, mask, weights and root of a block; where there is none, those of the first without any row."""
        X, there, weights, roots = jax.tree.map(
            lambda a: a[max(block, 0)], (self.X, self.there, self.weights, self.roots)
        )
        return (X, there, weights, roots) if block >= 0 else (X, np.zeros_like(there), np.zeros_like(weights), roots)


def _cross(posterior: PICPosterior, block: tuple[Any, ...], X: Any) -> tuple[Any, Any, Any]:
    """φ* (L, S, M) and d* (L, S, B) at inputs of one block, and φ at the rows of the block (L, B, M)."""
    rows, there, _, _ = block

    def one(latent, factor):
        phi, own = (latent.whitened(factor, x) for x in (X, rows))
        own = jnp.where(there[:, None], own, 0.0)
        return phi, jnp.where(there, latent.kernel.gram(X, rows) - phi @ own.T, 0.0), own

    found = [one(latent, factor) for latent, factor in zip(posterior.latents, posterior.factors, strict=True)]
    L, M = posterior.predictor.gamma.shape

    def stacked(arrays, width):
        wide = [jnp.pad(a, [(0, 0), (0, width - a.shape[1])]) for a in arrays]
        return jnp.broadcast_to(jnp.stack(wide), (L, *wide[0].shape))

    phi, d, own = zip(*found, strict=True)
    return stacked(phi, M), stacked(d, len(there)), stacked(own, M)


def _mean(posterior: PICPosterior, block: tuple[Any, ...], X: Any, phi: Any, d: Any) -> Any:
    prior = jnp.stack([latent.mean.evaluate(X) for latent in posterior.latents], axis=1)
    return prior + jnp.einsum("lsm,lm->sl", phi, posterior.predictor.gamma) + jnp.einsum("lsb,bl->sl", d, block[2])


def _halves(posterior: PICPosterior, block: tuple[Any, ...], phi: Any, d: Any, own: Any) -> tuple[Any, Any]:
    """R d*ᵀ (BL, L, S), where E_b = RᵀΔR, and ψ*C⁻ᵀ (S, L, LM)."""
    root = block[3]
    L, S, M = phi.shape
    half, of_basis = root.half(jnp.swapaxes(d, 1, 2)), root.half(own)
    wide = jnp.einsum("lsm,lk->slkm", phi, jnp.eye(L, dtype=phi.dtype))
    psi = wide - jnp.einsum("als,akm->slkm", root.signs[:, None, None] * half, of_basis)
    return half, psi.reshape(S, L, L * M) @ posterior.predictor.inverse.T


@program(static_argnums=3)
def _marginals(posterior: PICPosterior, block: tuple[Any, ...], X: Any, variance: bool) -> tuple[Any, ...]:
    """Mean and, if asked for, covariance and prior variance of the latents at each input of one block."""
    phi, d, own = _cross(posterior, block, X)
    mean = _mean(posterior, block, X, phi, d)
    if not variance:
        return (mean,)
    half, spread = _halves(posterior, block, phi, d, own)
    prior = jnp.stack([latent.variance(X) for latent in posterior.latents], axis=1)
    prior = jnp.broadcast_to(prior, mean.shape)
    signs = block[3].signs[:, None, None]
    cov = spread @ jnp.swapaxes(spread, 1, 2) - jnp.einsum("als,aks->slk", signs * half, half)
    left = prior - jnp.sum(phi**2, axis=2).T
    return mean, cov + left[:, :, None] * jnp.eye(len(phi), dtype=cov.dtype), prior


@program(static_argnums=3)
def _joint(posterior: PICPosterior, block: tuple[Any, ...], X: Any, latent: int) -> tuple[Any, Any, Any]:
    """Mean of one latent at the inputs of a block, covariance given w, and ψ*C⁻ᵀ."""
    phi, d, own = _cross(posterior, block, X)
    half, spread = _halves(posterior, block, phi, d, own)
    half = half[:, latent]
    given = latent_of(posterior.latents, latent).kernel.gram(X, X) - phi[latent] @ phi[latent].T
    given -= half.T @ (block[3].signs[:, None] * half)
    return _mean(posterior, block, X, phi, d)[:, latent], given, spread[:, latent]
