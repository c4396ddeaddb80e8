"""Dense covariance matrices."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from errorband.rows import sum_over_rows
from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.paired import PairedConditioned
from errorband.structures.signed_root import SignedRoot, solve_stably
from errorband.structures.simplex import SimplexConditioned
from errorband.structures.sites import (
    Index,
    SimplexSites,
    Sites,
    block_diag_of,
    data_major,
    minus_outer,
    site_change,
)


class Dense(Structure):
    """One dense N×N covariance matrix per latent function.

    Conditioning costs O((NL)³), or O(LN³) for the sites of softmax and for two latent functions. K is never inverted or
    factorised, so it may be singular.

    Parameters
    ----------
    K : Array of shape (L, N, N)
        Covariance of each latent function at the training inputs.
    """

    K: Float[Array, "L N N"]

    @property
    def n_data(self) -> int:
        return self.K.shape[1]

    @property
    def n_latents(self) -> int:
        return self.K.shape[0]

    @property
    def order(self) -> int:
        return self.n_data if self.n_latents == 2 else self.n_data * self.n_latents  # two: `PairedRoot`

    def diagonal(self) -> Float[Array, "N L"]:
        return jnp.diagonal(self.K, axis1=1, axis2=2).T

    def rows(self, start: Index, size: int) -> Float[Array, "L size N"]:
        """Rows start, …, start + size − 1 of each matrix."""
        return jax.lax.dynamic_slice_in_dim(self.K, start, size, axis=1)

    def dense(self) -> Float[Array, "NL NL"]:
        return data_major(self.K)

    def matvec(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return jnp.einsum("lnm,ml->nl", self.K, x)

    def repeated(self, n_latents: int) -> "Dense":
        self._check_one_latent()
        return Dense(jnp.broadcast_to(self.K, (n_latents, *self.K.shape[1:])))

    @classmethod
    def stacked(cls, structures: "Sequence[Dense]") -> "Dense":
        for structure in structures:
            structure._check_one_latent()
        return Dense(jnp.concatenate([structure.K for structure in structures]))

    def latent(self, l: int) -> "Dense":
        return Dense(self.K[l][None])

    def summed(self) -> "Dense":
        return Dense(jnp.sum(self.K, axis=0, keepdims=True))

    def condition(self, sites: Sites) -> Conditioned:
        if isinstance(sites, SimplexSites):
            return SimplexConditioned.of(self, self.K, sites)
        if self.n_latents == 2:
            return PairedConditioned.of(self, self.K, sites)
        return self.signed(sites)

    def signed(self, sites: Sites) -> "DenseConditioned":
        """Posterior under any sites, by factors of order NL."""
        root = SignedRoot.factorise(self.K, sites)
        weights = solve_stably(self, sites, root, sites.shift)
        diagonal = jnp.diagonal(root.chol)
        return DenseConditioned(
            structure=self,
            sites=sites,
            root=root,
            weights=weights,
            mean=self.matvec(weights),
            log_det=2.0 * jnp.sum(jnp.log(diagonal)),
            proper=jnp.all(jnp.isfinite(diagonal)),
        )


class DenseConditioned(Conditioned):
    """Posterior under a dense covariance."""

    structure: Dense
    root: SignedRoot
    sites: Sites
    weights: Float[Array, "N L"]
    mean: Float[Array, "N L"]
    log_det: Float[Array, ""]
    proper: Bool[Array, ""]

    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return solve_stably(self.structure, self.sites, self.root, shift)

    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        half = self.root.half(self.structure.K)
        return self.mean, block_diag_of(self.structure.diagonal()) - self.root.gram(half)  # A = K − KWK

    def adjoint(self) -> Dense:
        eye = jnp.broadcast_to(jnp.eye(self.structure.n_data, dtype=self.mean.dtype), self.structure.K.shape)
        R = jnp.moveaxis(self.root.half(eye), 1, 0)  # (L, NL, N)
        W = jnp.swapaxes(R, 1, 2) @ (self.root.signs[:, None] * R)
        g = self.weights.T
        return Dense(0.5 * (g[:, :, None] * g[:, None, :] - W))

    def state(self) -> "DenseState":
        K = self.structure.dense()
        half = jnp.swapaxes(self.root.half(self.structure.K), 1, 2).reshape(K.shape)
        return DenseState(K - half.T @ (self.root.signs[:, None] * half), self.mean)

    def predictor(self) -> "DensePredictor":
        return DensePredictor(self.weights, self.root)


class DenseState(State):
    """Mean and dense covariance of the posterior; an update is a change of rank L, in O((NL)²L)."""

    covariance: Float[Array, "NL NL"]  # A, data-major
    mean: Float[Array, "N L"]  # h

    def marginal(self, n: Index) -> tuple[Float[Array, "L"], Float[Array, "L L"]]:
        L = self.mean.shape[1]
        return self.mean[n], jax.lax.dynamic_slice(self.covariance, (n * L, n * L), (L, L))

    def update(self, n: Index, d_shift: Float[Array, "L"], d_precision: Float[Array, "L L"]) -> "DenseState":
        h, A = self.marginal(n)
        L = len(h)
        a = jax.lax.dynamic_slice_in_dim(self.covariance, n * L, L, axis=0)  # rows are contiguous, and A is symmetric
        # Equation (5) of EP, in a form that holds for singular Δ too: A − aᵀ(I + ΔAₙ)⁻¹Δ a.
        change, shift = site_change(h, A, d_shift, d_precision)
        covariance = minus_outer(self.covariance, change @ a, a)
        return DenseState(covariance, self.mean + (shift @ a).reshape(self.mean.shape))


class DensePredictor(Predictor):
    """Mean k*ᵀg in O(N), covariance k** − k*ᵀWk* in O(N²) per point. ``cross`` is K(X*, X), shape (L, S, N)."""

    weights: Float[Array, "N L"]
    root: SignedRoot

    @property
    def mean_weights(self) -> Float[Array, "L N"]:
        return self.weights.T

    def __call__(
        self, cross: Float[Array, "L S N"], prior: Float[Array, "S L"]
    ) -> tuple[Float[Array, "S L"], Float[Array, "S L L"]]:
        half = self.root.half(jnp.swapaxes(cross, 1, 2))
        return jnp.einsum("lsn,nl->sl", cross, self.weights), block_diag_of(prior) - self.root.gram(half)

    def joint(
        self, cross: Float[Array, "S N"], prior: Float[Array, "S S"], latent: Index = 0
    ) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
        return cross @ self.weights[:, latent], prior - self.root.within(cross, latent)


BLOCK = 2**18  # entries of K computed again at once for its derivatives: they fit the cache


def gram_inner(gram: Callable[[Array, Array], Array], X: Array, rows: Callable[[Array, int], Array]) -> Array:
    """⟨G, k(X, X)⟩, for derivatives in the kernel, where ``rows(start, size)`` returns some rows of G.

    A block of rows of the covariance at a time, computed again in the backward pass: nothing of size N² is kept.
    """
    n = X.shape[0]

    def inner(piece):
        return jnp.vdot(piece.new_only(rows(piece.start, piece.size)), gram(piece.of(X), X))

    return sum_over_rows(inner, n, min(n, max(8, BLOCK // n)))
