"""Dense covariance matrices."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float, Int

from errorband.rows import sum_over_rows
from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.simplex import SimplexConditioned
from errorband.structures.sites import (
    Index,
    SimplexSites,
    Sites,
    block_diag_of,
    block_matmul,
    block_times,
    data_major,
    minus_outer,
    site_change,
)


class Dense(Structure):
    """One dense N×N covariance matrix per latent function.

    Conditioning costs O((NL)³), or O(LN³) for the sites of softmax. K is never inverted or factorised, so it may be
    singular.

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
        return self.n_data * self.n_latents

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

    def condition(self, sites: Sites) -> "DenseConditioned | SimplexConditioned":
        if isinstance(sites, SimplexSites):
            return SimplexConditioned.of(self, self.K, sites)
        root = SignedRoot.factorise(self.K, sites)
        weights = _solve(self, sites, root, sites.shift)
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


class SignedRoot(eqx.Module):
    """W = (K + Π⁻¹)⁻¹ = Π − ΠAΠ as RᵀΔR, where R = C⁻¹Fᵀ and Δ is a diagonal of signs.

    Factorise Π = FΔFᵀ (F block diagonal, Δ the signs of the eigenvalues of the sites). Then W = F B⁻¹ Fᵀ with
    B = Δ + FᵀKF. With the positive signs sorted to the front::

        B = ⎡ I + F₊ᵀKF₊   F₊ᵀKF₋      ⎤ = C Δ Cᵀ,    C = ⎡ C₊  0  ⎤
            ⎣ F₋ᵀKF₊       F₋ᵀKF₋ − I  ⎦                  ⎣ Yᵀ  C₋ ⎦

    C₊C₊ᵀ = I + F₊ᵀKF₊, Y = C₊⁻¹F₊ᵀKF₋ and C₋C₋ᵀ = I − F₋ᵀA₊F₋, where A₊ = K − KF₊(C₊C₊ᵀ)⁻¹F₊ᵀK is the posterior
    covariance under the positive parts alone. The first Cholesky factor always exists; the second exists if and only if
    A₊⁻¹ − F₋F₋ᵀ = K⁻¹ + Π is positive definite. So the test for a proper posterior is exact, without an LU
    factorisation. Without negative sites this is the usual B = I + Π½KΠ½ with one Cholesky factorisation.

    Zero eigenvalues count as positive: their column of F is zero and their row of C is that of the identity.
    """

    chol: Float[Array, "NL NL"]  # C, lower triangular
    signs: Float[Array, "NL"]  # Δ, sorted: 1 … 1 −1 … −1
    order: Int[Array, "NL"]  # position of each sorted entry in the data-major order
    blocks: Float[Array, "N L L"]  # F

    @classmethod
    def factorise(cls, K: Float[Array, "L N N"], sites: Sites) -> "SignedRoot":
        values, vectors = sites.eigen()
        # Singular sites are common (softmax has Πₙ1 = 0). A zero eigenvalue computed as −1e-17 must not trigger the
        # second factorisation: negative eigenvalues that are negligible beside the I of I + ΠK are set to zero.
        strength = jnp.max(jnp.diagonal(K, axis1=1, axis2=2), axis=0)[:, None] * values
        values = jnp.where((strength < 0.0) & (strength > -100.0 * jnp.finfo(K.dtype).eps), 0.0, values)
        blocks = vectors * jnp.sqrt(jnp.abs(values))[:, None, :]
        negative = values.reshape(-1) < 0.0
        order = jnp.argsort(negative, stable=True)
        signs = jnp.where(negative, -1.0, 1.0).astype(K.dtype)[order]
        # FᵀKF with axes (l; n, i; m, j), summed over l; one multiplication per element when L = 1.
        F = jnp.moveaxis(blocks, 1, 0)
        B = jnp.sum(F[:, :, :, None, None] * K[:, :, None, :, None] * F[:, None, None, :, :], axis=0)
        B = B.reshape(negative.size, negative.size)
        chol = jax.lax.cond(jnp.any(negative), _signed_cholesky, _plain_cholesky, B, signs, order)
        return cls(chol, signs, order, blocks)

    def half(self, columns: Float[Array, "L N S"]) -> Float[Array, "NL L S"]:
        """R c for columns c of length NL that are zero except for one latent, S of them for each latent."""
        L, N, S = columns.shape
        scaled = self.blocks.transpose(0, 2, 1)[..., None] * columns.transpose(1, 0, 2)[:, None]
        scaled = scaled.reshape(N * L, L * S)[self.order]
        return solve_triangular(self.chol, scaled, lower=True).reshape(N * L, L, S)

    def half_of(self, columns: Float[Array, "N S"], latent: Index) -> Float[Array, "NL S"]:
        """R c for columns c that are zero except for the given latent."""
        scaled = self.blocks[:, latent, :, None] * columns[:, None, :]
        return solve_triangular(self.chol, scaled.reshape(-1, columns.shape[1])[self.order], lower=True)

    def times(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """W x."""
        y = block_times(jnp.swapaxes(self.blocks, 1, 2), x).reshape(-1)[self.order]
        y = self.signs * solve_triangular(self.chol, y, lower=True)
        return self.back(y[:, None])[..., 0]

    def back(self, half: Float[Array, "NL S"]) -> Float[Array, "N L S"]:
        """Rᵀ y for columns y."""
        N, L, _ = self.blocks.shape
        y = solve_triangular(self.chol, half, lower=True, trans="T")
        y = jnp.zeros_like(y).at[self.order].set(y).reshape(N, L, -1)
        return block_matmul(self.blocks, y)

    def gram(self, half: Float[Array, "NL L S"]) -> Float[Array, "S L L"]:
        """cᵀWc' between the L columns of each of S points, from R c."""
        signed = self.signs[:, None, None] * half
        return jnp.moveaxis(jnp.sum(signed[:, :, None] * half[:, None, :], axis=0), -1, 0)


def _plain_cholesky(B: Float[Array, "n n"], signs: Float[Array, "n"], order: Int[Array, "n"]) -> Float[Array, "n n"]:
    """C if there are no negative signs; B does not include Δ yet."""
    return jnp.linalg.cholesky(B + jnp.diag(signs))


def _signed_cholesky(B: Float[Array, "n n"], signs: Float[Array, "n"], order: Int[Array, "n"]) -> Float[Array, "n n"]:
    """C in general. The number of negative signs is known at run time only, so blocks are selected by masks."""
    B = B[order[:, None], order] + jnp.diag(signs)
    plus, minus = signs > 0.0, signs < 0.0
    plus_plus, plus_minus, minus_minus = (a[:, None] & b for a, b in ((plus, plus), (plus, minus), (minus, minus)))
    C_plus = jnp.linalg.cholesky(jnp.where(plus_plus, B, jnp.diag(1.0 - plus)))
    Y = solve_triangular(C_plus, jnp.where(plus_minus, B, 0.0), lower=True)
    C_minus = jnp.linalg.cholesky(jnp.where(minus_minus, Y.T @ Y - B, jnp.diag(1.0 - minus)))
    return jnp.where(plus[:, None], C_plus, Y.T + C_minus)


def _solve(structure: Dense, sites: Sites, root: SignedRoot, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
    """(I + ΠK)⁻¹ b, computed as W(c − Kr) + r with a split b = Πc + r that avoids cancellation.

    The textbook form b − WKb loses log₁₀ ‖ΠK‖ digits: six for a noise variance of 1e-6. Along directions in which the
    site is stronger than the prior, c = Π⁻¹b is used instead; r is the rest.
    """
    values, vectors = sites.eigen()
    along = block_times(jnp.swapaxes(vectors, 1, 2), shift)
    strong = jnp.abs(values) * jnp.max(structure.diagonal(), axis=1, keepdims=True) > 1.0
    c = block_times(vectors, jnp.where(strong, along / jnp.where(strong, values, 1.0), 0.0))
    r = block_times(vectors, jnp.where(strong, 0.0, along))
    return root.times(c - structure.matvec(r)) + r


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
        return _solve(self.structure, self.sites, self.root, shift)

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
        half = self.root.half_of(cross.T, latent)
        return cross @ self.weights[:, latent], prior - half.T @ (self.root.signs[:, None] * half)


BLOCK = 2**18  # entries of K computed again at once for its derivatives: they fit the cache


def gram_inner(gram: Callable[[Array, Array], Array], X: Array, rows: Callable[[Array, int], Array]) -> Array:
    """⟨G, k(X, X)⟩, for derivatives in the kernel, where ``rows(start, size)`` returns some rows of G.

    A block of rows of the covariance at a time, computed again in the backward pass: nothing of size N² is kept.
    """
    n = X.shape[0]

    def inner(piece):
        return jnp.vdot(piece.new_only(rows(piece.start, piece.size)), gram(piece.of(X), X))

    return sum_over_rows(inner, n, min(n, max(8, BLOCK // n)))
