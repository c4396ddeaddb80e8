"""W = (K + Π⁻¹)⁻¹ of dense covariances and sites of any sign, in triangular factors."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.lax.linalg import triangular_solve
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float, Int

from errorband.structures.base import Structure
from errorband.structures.sites import Index, Sites, block_matmul, block_times


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

    def within(self, rows: Float[Array, "S N"], latent: Index = 0) -> Float[Array, "S S"]:
        """cWcᵀ of rows c that are zero except for the given latent."""
        scaled = (rows[:, :, None] * self.blocks[:, latent]).reshape(len(rows), -1)[:, self.order]
        half = solve_from_right(self.chol, scaled)
        return (half * self.signs) @ half.T

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


def solve_from_right(chol: Float[Array, "n n"], rows: Float[Array, "S n"]) -> Float[Array, "S n"]:
    """Rows c times C⁻ᵀ: the transpose of C⁻¹cᵀ, whose products with itself XLA forms in half the time."""
    return triangular_solve(chol, rows, left_side=False, lower=True, transpose_a=True)


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


def solve_stably(structure: Structure, sites: Sites, root: Any, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
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
