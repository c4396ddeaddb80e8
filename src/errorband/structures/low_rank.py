"""Low rank plus diagonal: sparse, inter-domain and weight-space models.

Products of size N·M² are written as loops over the latents (L is a static shape, 1 to a few): plain matrix products run
several times faster than batched contractions with the axes in between.
"""

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.sites import (
    Sites,
    block_diag_of,
    block_matmul,
    block_solve,
    block_times,
    minus_outer,
    symmetrise,
)


class LowRank(Structure):
    """K = diag(d) + ΦΦᵀ for each latent function, that is f = Φw + ε with w ~ N(0, I) and ε ~ N(0, diag(d)).

    For inducing variables Φ = K_fu L_uu⁻ᵀ with K_uu = L_uu L_uuᵀ; for weight-space models Φ holds the scaled basis
    functions and d = 0. Everything costs O(N(LM)²) or less and no N×N array is ever made.

    Parameters
    ----------
    diag : Array of shape (L, N)
        Variances d ≥ 0; zeros are fine.
    basis : Array of shape (L, N, M)
        The whitened basis Φ.
    """

    diag: Array
    basis: Array

    @property
    def n_data(self) -> int:
        return self.basis.shape[1]

    @property
    def n_latents(self) -> int:
        return self.basis.shape[0]

    def diagonal(self) -> Array:
        return (self.diag + jnp.sum(self.basis**2, axis=2)).T

    def dense(self) -> Array:
        L, N, _ = self.basis.shape
        dtype = self.basis.dtype
        K = self.basis @ jnp.swapaxes(self.basis, 1, 2) + self.diag[:, :, None] * jnp.eye(N, dtype=dtype)
        return jnp.einsum("lnm,lk->nlmk", K, jnp.eye(L, dtype=dtype)).reshape(N * L, N * L)

    def matvec(self, x: Array) -> Array:
        return self.diag.T * x + _basis_times(self.basis, _basis_adjoint(self.basis, x))

    def condition(self, sites: Sites) -> "LowRankConditioned":
        L, _, M = self.basis.shape
        gain, log_det = _absorb(self.diag.T, sites.precision)
        precision = symmetrise(block_matmul(sites.precision, gain))
        # B = I + ΦᵀEΦ (Naish-Guzman 2007, eq. 2.9c). E may have either sign: given that every I + D½ΠₙD½ is positive
        # definite, B is so exactly if the posterior is proper, and one Cholesky factorisation both decides and solves.
        B = [[self.basis[l].T @ (precision[:, l, k, None] * self.basis[k]) for k in range(L)] for l in range(L)]
        chol = jnp.linalg.cholesky(jnp.block(B) + jnp.eye(L * M, dtype=self.basis.dtype))
        weights, gamma = _solve(self, sites, gain, chol, sites.shift)
        log_det = log_det + 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol)))
        return LowRankConditioned(
            structure=self,
            sites=sites,
            gain=gain,
            precision=precision,
            chol=chol,
            gamma=gamma,
            weights=weights,
            mean=self.diag.T * weights + _basis_times(self.basis, gamma),
            log_det=log_det,
            proper=jnp.isfinite(log_det),
        )


def _basis_times(basis: Array, w: Array) -> Array:
    """Φ w: (L, M) → (N, L)."""
    return jnp.einsum("lnm,lm->nl", basis, w)


def _basis_adjoint(basis: Array, x: Array) -> Array:
    """Φᵀx: (N, L) → (L, M)."""
    return jnp.einsum("nl,lnm->lm", x, basis)


def _absorb(d: Array, precision: Array) -> tuple[Array, Array]:
    """Condition the independent part ε on the sites: T = (I + DΠ)⁻¹ for each datum, and log |I + DΠ|.

    NaN in the log-determinant if some I + D½ΠₙD½ is not positive definite.
    """
    if d.shape[1] == 1:
        ratio = d * precision[..., 0]
        return 1.0 / (1.0 + ratio)[..., None], jnp.sum(jnp.log1p(ratio))
    eye = jnp.eye(d.shape[1], dtype=d.dtype)
    root = jnp.sqrt(d)
    chol = jnp.linalg.cholesky(eye + root[:, :, None] * precision * root[:, None, :])
    gain = block_solve(eye + d[:, :, None] * precision, jnp.broadcast_to(eye, precision.shape))
    return gain, 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)))


def _solve(structure: LowRank, sites: Sites, gain: Array, chol: Array, shift: Array) -> tuple[Array, Array]:
    """(I + ΠK)⁻¹b = Tᵀ(b − ΠΦγ) and the posterior mean of w, γ = B⁻¹ΦᵀTᵀb."""
    gain_T = jnp.swapaxes(gain, 1, 2)
    right = _basis_adjoint(structure.basis, block_times(gain_T, shift))
    gamma = cho_solve((chol, True), right.reshape(-1)).reshape(right.shape)
    return block_times(gain_T, shift - sites.times(_basis_times(structure.basis, gamma))), gamma


def _inverse(chol: Array) -> Array:
    """C⁻¹. Small, and it turns the solves for thousands of rows into one matrix product."""
    return solve_triangular(chol, jnp.eye(len(chol), dtype=chol.dtype), lower=True)


def _gram(inverse: Array, basis: Array) -> Array:
    """φ̃B⁻¹φ̃ᵀ for every row of a basis, as sums of squares with C⁻¹: (L, S, M) → (S, L, L)."""
    L, _, M = basis.shape
    inverse = inverse.reshape(L * M, L, M)
    half = [basis[l] @ inverse[:, l].T for l in range(L)]
    return jnp.stack([jnp.stack([jnp.sum(a * b, axis=1) for b in half], axis=1) for a in half], axis=1)


class LowRankConditioned(Conditioned):
    """Posterior under a low-rank covariance.

    Notation of Naish-Guzman (*Sparse and robust kernel methods*, 2007), §2.2.1, with the inducing variables whitened,
    R₀ = I: D = TD₀, P = TΦ, RᵀR = B⁻¹, A = D + PB⁻¹Pᵀ and W = E − EΦB⁻¹ΦᵀE with E = Π(I + D₀Π)⁻¹.
    """

    structure: LowRank
    gain: Array  # T = (I + D₀Π)⁻¹, (N, L, L)
    precision: Array  # E = ΠT, (N, L, L)
    chol: Array  # C with CCᵀ = B = I + ΦᵀEΦ, (LM, LM)
    gamma: Array  # γ, posterior mean of w, (L, M)
    sites: Sites
    weights: Array
    mean: Array
    log_det: Array
    proper: Array

    def solve(self, shift: Array) -> Array:
        return _solve(self.structure, self.sites, self.gain, self.chol, shift)[0]

    def marginals(self) -> tuple[Array, Array]:
        gram = block_matmul(self.gain, _gram(_inverse(self.chol), self.structure.basis))
        return self.mean, self._noise() + symmetrise(block_matmul(gram, jnp.swapaxes(self.gain, 1, 2)))

    def _noise(self) -> Array:
        return symmetrise(self.gain * self.structure.diag.T[:, None, :])  # D = TD₀

    def adjoint(self) -> LowRank:
        """With G = ggᵀ − W: ∂/∂d = ½ diag G and ∂/∂Φ = GΦ = gγᵀ − EΦB⁻¹ (as Φᵀg = γ and WΦ = EΦB⁻¹).

        Only the blocks on the diagonal over the latents are kept, the prior having no others. Beyond conditioning this
        is one product of size N·M², ΦB⁻¹, which gives diag W = E − E diag(ΦB⁻¹Φᵀ) E as well.
        """
        basis, E = self.structure.basis, self.precision
        L, _, M = basis.shape
        inverse = cho_solve((self.chol, True), jnp.eye(L * M, dtype=basis.dtype)).reshape(L, M, L, M)
        X = [[basis[j] @ inverse[j, :, l] for l in range(L)] for j in range(L)]  # Φ_j (B⁻¹)_jl
        gram = jnp.stack([jnp.stack([jnp.sum(X[j][l] * basis[l], axis=1) for l in range(L)], 1) for j in range(L)], 1)
        W = E - block_matmul(E, block_matmul(gram, E))
        EX = jnp.stack([sum(E[:, l, j, None] * X[j][l] for j in range(L)) for l in range(L)])
        g = self.weights.T
        return LowRank(
            diag=0.5 * (g**2 - jnp.diagonal(W, axis1=1, axis2=2).T),
            basis=g[:, :, None] * self.gamma[:, None, :] - EX,
        )

    def state(self) -> "LowRankState":
        noise = self._noise()
        inverse = _inverse(self.chol)
        return LowRankState(
            basis=self.structure.basis,
            gain=self.gain,
            noise=noise,
            spread=inverse.T @ inverse,
            zeta=block_times(noise, self.sites.shift),
            gamma=self.gamma,
        )

    def predictor(self) -> "LowRankPredictor":
        return LowRankPredictor(self.gamma, _inverse(self.chol))


class LowRankState(State):
    """A = D + P S Pᵀ and h = ζ + Pγ, where the rows of P are Tₙφ̃ₙ; an update costs O((LM)²).

    S = RᵀR, the posterior covariance of w, is kept itself rather than its triangular factor: a rank-one change of a
    factor is a long scalar recurrence, that of S one outer product.
    """

    basis: Array  # Φ, (L, N, M)
    gain: Array  # T, (N, L, L)
    noise: Array  # D, (N, L, L)
    spread: Array  # S, (LM, LM)
    zeta: Array  # ζ, (N, L)
    gamma: Array  # γ, (L, M)

    def marginal(self, n: Array | int) -> tuple[Array, Array]:
        P, PS = self._row(n)
        return self.zeta[n] + P @ self.gamma.reshape(-1), symmetrise(self.noise[n] + PS @ P.T)

    def _row(self, n: Array | int) -> tuple[Array, Array]:
        """Pₙ and Pₙ S, both (L, LM)."""
        P = (self.gain[n][:, :, None] * self.basis[:, n]).reshape(self.gain.shape[1], -1)
        return P, P @ self.spread

    def update(self, n: Array | int, d_shift: Array, d_precision: Array) -> "LowRankState":
        h, A = self.marginal(n)
        PS = self._row(n)[1]
        L, D, eye = len(h), self.noise[n], jnp.eye(len(h), dtype=h.dtype)
        # (I + ΔAₙ)⁻¹ applied to Δ and to the change of the mean. With the old S and Aₙ there is no division by 1 + Δd
        # in γ: S_new p = S p (1 + Δd)/(1 + ΔAₙ).
        right = jnp.concatenate([d_precision, (d_shift - d_precision @ h)[:, None]], axis=1)
        change = block_solve(eye + d_precision @ A, right)
        # (I + DΔ)⁻¹ applied to the rows of datum n.
        right = jnp.concatenate([self.gain[n], D, (self.zeta[n] + D @ d_shift)[:, None]], axis=1)
        rows = block_solve(eye + D @ d_precision, right)
        return LowRankState(
            basis=self.basis,
            gain=self.gain.at[n].set(rows[:, :L]),
            noise=self.noise.at[n].set(symmetrise(rows[:, L : 2 * L])),
            spread=minus_outer(self.spread, symmetrise(change[:, :L]) @ PS, PS),
            zeta=self.zeta.at[n].set(rows[:, 2 * L]),
            gamma=self.gamma + (change[:, L] @ PS).reshape(self.gamma.shape),
        )


class LowRankPredictor(Predictor):
    """Mean φ*γ in O(M), covariance k** − φ*φ*ᵀ + φ*B⁻¹φ*ᵀ in O(M²) per point.

    ``cross`` is the basis at the new inputs, whitened like the training basis: Φ* = K_*u L_uu⁻ᵀ, shape (L, S, M).
    """

    gamma: Array  # posterior mean of w, (L, M)
    inverse: Array  # C⁻¹, (LM, LM): C⁻ᵀC⁻¹ is the posterior covariance of w

    @property
    def mean_weights(self) -> Array:
        return self.gamma

    def __call__(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        unexplained = prior - jnp.sum(cross**2, axis=2).T
        return _basis_times(cross, self.gamma), block_diag_of(unexplained) + _gram(self.inverse, cross)

    def joint(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        half = self.inverse @ cross.T
        return cross @ self.gamma[0], prior - cross @ cross.T + half.T @ half
