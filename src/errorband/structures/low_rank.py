"""Low rank plus diagonal: sparse, inter-domain and weight-space models.

Work of size N·M² is done by plain matrix products, which are several times faster than batched contractions. With
several latent functions they are computed for one pair of latents at a time, or in chunks of rows: no array has L·N·M
elements, and the size of the compiled program hardly grows with L.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Bool, Float

from errorband.rows import Piece, map_over_rows, piece_size
from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.sites import (
    Index,
    SimplexSites,
    Sites,
    block_diag_of,
    block_matmul,
    block_solve,
    block_times,
    data_major,
    minus_outer,
    site_change,
    symmetrise,
)


class LowRank(Structure):
    """K = diag(d) + ΦΦᵀ for each latent function, that is f = Φw + ε with w ~ N(0, I) and ε ~ N(0, diag(d)).

    For inducing variables Φ = K_fu L_uu⁻ᵀ with K_uu = L_uu L_uuᵀ; for weight-space models Φ holds the scaled basis
    functions and d = 0. All operations cost O(N(LM)²) or less, and no N×N array is computed. Latent functions with the
    same covariance share one basis; memory is then a few arrays of N·M and of N·L² elements.

    Parameters
    ----------
    diag : Array of shape (L, N), or (1, N) if shared
        Variances d ≥ 0; zeros are fine.
    basis : Array of shape (L, N, M), or (1, N, M) if shared
        The whitened basis Φ.
    shared_by : int
        Number of latent functions that share the one basis and diagonal given; 1 if each has its own.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> LowRank(jnp.zeros((1, 50)), jnp.ones((1, 50, 3)), shared_by=4).n_latents
    4
    """

    diag: Float[Array, "own N"]
    basis: Float[Array, "own N M"]
    shared_by: int = eqx.field(default=1, static=True)

    def __check_init__(self):
        if self.shared_by > 1 and len(self.basis) != 1:
            raise ValueError(
                f"LowRank(shared_by={self.shared_by}) takes one basis, (1, N, M), for all latent functions; got "
                f"{len(self.basis)}. Give one, or leave shared_by at 1 for a basis each."
            )

    @property
    def n_data(self) -> int:
        return self.basis.shape[1]

    @property
    def n_latents(self) -> int:
        return len(self.basis) * self.shared_by

    @property
    def order(self) -> int:
        return self.basis.shape[2] * self.n_latents

    def diagonal(self) -> Float[Array, "N L"]:
        return jnp.broadcast_to((self.diag + jnp.sum(self.basis**2, axis=2)).T, (self.n_data, self.n_latents))

    def dense(self) -> Float[Array, "NL NL"]:
        N = self.n_data
        K = self.basis @ jnp.swapaxes(self.basis, 1, 2) + self.diag[:, :, None] * jnp.eye(N, dtype=self.basis.dtype)
        return data_major(jnp.broadcast_to(K, (self.n_latents, N, N)))

    def matvec(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return self.diag.T * x + _basis_times(self.basis, _basis_adjoint(self.basis, x))

    def repeated(self, n_latents: int) -> "LowRank":
        self._check_one_latent()
        return LowRank(self.diag, self.basis, shared_by=n_latents)

    @classmethod
    def stacked(cls, structures: "Sequence[LowRank]") -> "LowRank":
        for structure in structures:
            structure._check_one_latent()
        diag = jnp.concatenate([structure.diag for structure in structures])
        return LowRank(diag, concatenate_bases([structure.basis for structure in structures]))

    def latent(self, l: int) -> "LowRank":
        if self.shared_by > 1:
            return LowRank(self.diag, self.basis)
        return LowRank(self.diag[l][None], self.basis[l][None])

    def summed(self) -> "LowRank":
        """The adjoint of a shared basis is the sum over the latents already, so this only drops ``shared_by``."""
        if self.shared_by > 1:
            return LowRank(self.diag, self.basis)
        return LowRank(jnp.sum(self.diag, axis=0, keepdims=True), jnp.sum(self.basis, axis=0, keepdims=True))

    def part(self, piece: Piece) -> "LowRank":
        """The structure of some of the rows, zero for rows that an earlier piece contains."""
        return jax.tree.map(lambda array: piece.once(array, axis=1), self)

    def condition(self, sites: Sites) -> "LowRankConditioned":
        LM = self.n_latents * self.basis.shape[2]
        gain, precision, log_det = _absorb(self.diag.T, sites)
        # B = I + ΦᵀEΦ (Naish-Guzman 2007, eq. 2.9c). E may be indefinite. If every I + D½ΠₙD½ is positive definite,
        # then B is positive definite if and only if the posterior is proper: one Cholesky factorisation decides.
        B = _weighted_product(self.basis, precision) + jnp.eye(LM, dtype=self.basis.dtype)
        chol = jnp.linalg.cholesky(B, symmetrize_input=False)
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


def concatenate_bases(bases: Sequence[Float[Array, "1 ..."]]) -> Float[Array, "L ..."]:
    """Bases (1, ..., M_l) of L latents as one array (L, ..., max M_l), the narrower ones padded with zero columns."""
    M = max(basis.shape[-1] for basis in bases)
    pad = lambda basis: [(0, 0)] * (basis.ndim - 1) + [(0, M - basis.shape[-1])]  # noqa: E731
    return jnp.concatenate([jnp.pad(basis, pad(basis)) for basis in bases])


def _basis_times(basis: Float[Array, "#L N M"], w: Float[Array, "L M"]) -> Float[Array, "N L"]:
    """Φ w."""
    return basis[0] @ w.T if len(basis) == 1 else jnp.einsum("lnm,lm->nl", basis, w)


def _basis_adjoint(basis: Float[Array, "#L N M"], x: Float[Array, "N L"]) -> Float[Array, "L M"]:
    """Φᵀx."""
    return x.T @ basis[0] if len(basis) == 1 else jnp.einsum("nl,lnm->lm", x, basis)


def _of(basis: Float[Array, "own N M"], l: Index) -> Float[Array, "N M"]:
    """The basis of latent l; all latents may share one."""
    return basis[0] if len(basis) == 1 else basis[l]


def _weighted_product(basis: Float[Array, "#L N M"], E: Float[Array, "N L L"]) -> Float[Array, "LM LM"]:
    """Lower triangle of ΦᵀEΦ. Only the blocks Φ_kᵀE_klΦ_l with k ≥ l are computed, one by one."""
    L, M = E.shape[-1], basis.shape[2]

    def block(pair):
        k, l = pair
        return _of(basis, k).T @ (E[:, k, l, None] * _of(basis, l))

    if L == 1:
        return block((0, 0))
    k, l = (jnp.asarray(index) for index in np.tril_indices(L))
    blocks = jax.lax.map(block, (k, l))
    return jnp.zeros((L, M, L, M), basis.dtype).at[k, :, l].set(blocks).reshape(L * M, L * M)


def _absorb(
    d: Float[Array, "N #L"], sites: Sites
) -> tuple[Float[Array, "N L L"], Float[Array, "N L L"], Float[Array, ""]]:
    """Condition the independent part ε on the sites: T = (I + DΠ)⁻¹ and E = ΠT for each datum, and log |I + DΠ|.

    The log-determinant is NaN if some I + D½ΠₙD½ is not positive definite.
    """
    precision = sites.precision
    if precision.shape[-1] == 1:
        ratio = d * precision[..., 0]
        gain = 1.0 / (1.0 + ratio)[..., None]
        return gain, precision * gain, jnp.sum(jnp.log1p(ratio))
    if isinstance(sites, SimplexSites):
        return _absorb_simplex(d, sites.share)
    eye = jnp.eye(precision.shape[-1], dtype=d.dtype)
    root = jnp.sqrt(d)
    chol = jnp.linalg.cholesky(eye + root[:, :, None] * precision * root[:, None, :])
    gain = block_solve(eye + d[:, :, None] * precision, jnp.broadcast_to(eye, precision.shape))
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)))
    return gain, symmetrise(block_matmul(precision, gain)), log_det


def _absorb_simplex(
    d: Float[Array, "N #L"], share: Float[Array, "N L"]
) -> tuple[Float[Array, "N L L"], Float[Array, "N L L"], Float[Array, ""]]:
    """The same for the sites of softmax with share s, in closed form: E is again such a site, with share e.

    With Π = diag(s) − ssᵀ/Σs and e = s/(1 + ds)::

        E = diag(e) − eeᵀ/Σe        T = I − DE = diag(1/(1 + ds)) + D eeᵀ/Σe
        |I + DΠ| = ∏(1 + ds) · Σe/Σs
    """
    scale = 1.0 / (1.0 + d * share)
    e = share * scale
    active = jnp.any(share > 0.0, axis=1)  # False for padding
    before, after = (jnp.where(active, jnp.sum(x, axis=1), 1.0) for x in (share, e))
    outer = e[:, :, None] * e[:, None, :] / after[:, None, None]
    log_det = jnp.sum(jnp.log1p(d * share)) + jnp.sum(jnp.log(after / before))
    return block_diag_of(scale) + d[:, :, None] * outer, block_diag_of(e) - outer, log_det


def _solve(
    structure: LowRank,
    sites: Sites,
    gain: Float[Array, "N L L"],
    chol: Float[Array, "LM LM"],
    shift: Float[Array, "N L"],
) -> tuple[Float[Array, "N L"], Float[Array, "L M"]]:
    """(I + ΠK)⁻¹b = Tᵀ(b − ΠΦγ) and the posterior mean of w, γ = B⁻¹ΦᵀTᵀb."""
    gain_T = jnp.swapaxes(gain, 1, 2)
    right = _basis_adjoint(structure.basis, block_times(gain_T, shift))
    gamma = cho_solve((chol, True), right.reshape(-1)).reshape(right.shape)
    return block_times(gain_T, shift - sites.times(_basis_times(structure.basis, gamma))), gamma


def triangular_inverse(chol: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """C⁻¹. It is small, and it replaces triangular solves for thousands of rows by one matrix product."""
    return solve_triangular(chol, jnp.eye(len(chol), dtype=chol.dtype), lower=True)


def _gram(inverse: Float[Array, "LM LM"], basis: Float[Array, "#L S M"]) -> Float[Array, "S L L"]:
    """φ̃B⁻¹φ̃ᵀ for every row of a basis, as sums of squares with C⁻¹."""
    _, S, M = basis.shape
    L = len(inverse) // M

    def rows(piece):
        phi = piece.of(basis, axis=1)
        # C⁻¹ is lower triangular: the columns of latent l are zero above its own rows.
        half = [_of(phi, l) @ inverse[l * M :, l * M : (l + 1) * M].T for l in range(L)]
        upper = [[jnp.sum(half[l][:, (k - l) * M :] * half[k], axis=1) for k in range(l, L)] for l in range(L)]
        return jnp.stack([jnp.stack([upper[min(l, k)][abs(l - k)] for k in range(L)], 1) for l in range(L)], 1)

    return map_over_rows(rows, S, S if L == 1 else piece_size(S, L * M))


class LowRankConditioned(Conditioned):
    """Posterior under a low-rank covariance.

    Notation of Naish-Guzman (*Sparse and robust kernel methods*, 2007), §2.2.1, with the inducing variables whitened,
    R₀ = I: D = TD₀, P = TΦ, RᵀR = B⁻¹, A = D + PB⁻¹Pᵀ and W = E − EΦB⁻¹ΦᵀE with E = Π(I + D₀Π)⁻¹.
    """

    structure: LowRank
    gain: Float[Array, "N L L"]  # T = (I + D₀Π)⁻¹
    precision: Float[Array, "N L L"]  # E = ΠT
    chol: Float[Array, "LM LM"]  # C with CCᵀ = B = I + ΦᵀEΦ
    gamma: Float[Array, "L M"]  # γ, posterior mean of w
    sites: Sites
    weights: Float[Array, "N L"]
    mean: Float[Array, "N L"]
    log_det: Float[Array, ""]
    proper: Bool[Array, ""]

    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return _solve(self.structure, self.sites, self.gain, self.chol, shift)[0]

    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        gram = block_matmul(self.gain, _gram(triangular_inverse(self.chol), self.structure.basis))
        return self.mean, self._noise() + symmetrise(block_matmul(gram, jnp.swapaxes(self.gain, 1, 2)))

    def _noise(self) -> Float[Array, "N L L"]:
        return symmetrise(self.gain * self.structure.diag.T[:, None, :])  # D = TD₀

    def adjoint(self) -> LowRank:
        """With G = ggᵀ − W: ∂/∂d = ½ diag G and ∂/∂Φ = GΦ = gγᵀ − EΦB⁻¹ (as Φᵀg = γ and WΦ = EΦB⁻¹).

        Only the diagonal blocks over the latents are needed, since the prior has no others. They are summed over the
        latents if these share the basis. Beyond conditioning this costs one product of size N·(LM)², ΦB⁻¹, from which
        diag W = E − E diag(ΦB⁻¹Φᵀ) E follows too.
        """
        basis, E, g, (L, M) = self.structure.basis, self.precision, self.weights, self.gamma.shape
        inverse = cho_solve((self.chol, True), jnp.eye(L * M, dtype=basis.dtype)).reshape(L, M, L, M)

        def take_off(basis_bar, pair):
            j, l = pair
            X = _of(basis, j) @ inverse[j, :, l]  # Φ_j (B⁻¹)_jl
            place = l if len(basis) == L else 0
            return basis_bar.at[place].add(-E[:, l, j, None] * X), jnp.sum(X * _of(basis, l), axis=1)

        if len(basis) == L:
            basis_bar, diag_bar = g.T[:, :, None] * self.gamma[:, None, :], g**2
        else:
            basis_bar, diag_bar = (g @ self.gamma)[None], jnp.sum(g**2, axis=1, keepdims=True)
        if L == 1:
            basis_bar, gram = take_off(basis_bar, (0, 0))
        else:
            pairs = jnp.indices((L, L)).reshape(2, -1)
            basis_bar, gram = jax.lax.scan(take_off, basis_bar, tuple(pairs))
        gram = gram.reshape(L, L, -1).transpose(2, 0, 1)
        W = jnp.diagonal(E - block_matmul(E, block_matmul(gram, E)), axis1=1, axis2=2)
        W = W if len(basis) == L else jnp.sum(W, axis=1, keepdims=True)
        return LowRank(0.5 * (diag_bar - W).T, basis_bar, self.structure.shared_by)

    def state(self) -> "LowRankState":
        noise = self._noise()
        inverse = triangular_inverse(self.chol)
        return LowRankState(
            basis=self.structure.basis,
            gain=self.gain,
            noise=noise,
            spread=inverse.T @ inverse,
            zeta=block_times(noise, self.sites.shift),
            gamma=self.gamma,
        )

    def predictor(self) -> "LowRankPredictor":
        return LowRankPredictor(self.gamma, triangular_inverse(self.chol))


class LowRankState(State):
    """A = D + P S Pᵀ and h = ζ + Pγ, where the rows of P are Tₙφ̃ₙ; an update costs O((LM)²).

    S = RᵀR is the posterior covariance of w. It is stored itself rather than as a triangular factor, because a rank-one
    update of a factor is a long scalar recurrence and that of S is one outer product.
    """

    basis: Float[Array, "#L N M"]  # Φ
    gain: Float[Array, "N L L"]  # T
    noise: Float[Array, "N L L"]  # D
    spread: Float[Array, "LM LM"]  # S
    zeta: Float[Array, "N L"]  # ζ
    gamma: Float[Array, "L M"]  # γ

    def marginal(self, n: Index) -> tuple[Float[Array, "L"], Float[Array, "L L"]]:
        P, PS = self._row(n)
        return self.zeta[n] + P @ self.gamma.reshape(-1), symmetrise(self.noise[n] + PS @ P.T)

    def _row(self, n: Index) -> tuple[Float[Array, "L LM"], Float[Array, "L LM"]]:
        """Pₙ and Pₙ S."""
        P = (self.gain[n][:, :, None] * self.basis[:, n]).reshape(self.gain.shape[1], -1)
        return P, P @ self.spread

    def update(self, n: Index, d_shift: Float[Array, "L"], d_precision: Float[Array, "L L"]) -> "LowRankState":
        h, A = self.marginal(n)
        PS = self._row(n)[1]
        L, D, eye = len(h), self.noise[n], jnp.eye(len(h), dtype=h.dtype)
        # γ is updated with the old S and Aₙ, which avoids a division by 1 + Δd: S_new p = S p (1 + Δd)/(1 + ΔAₙ).
        change, shift = site_change(h, A, d_shift, d_precision)
        # (I + DΔ)⁻¹ applied to the rows of datum n.
        right = jnp.concatenate([self.gain[n], D, (self.zeta[n] + D @ d_shift)[:, None]], axis=1)
        rows = block_solve(eye + D @ d_precision, right)
        return LowRankState(
            basis=self.basis,
            gain=self.gain.at[n].set(rows[:, :L]),
            noise=self.noise.at[n].set(symmetrise(rows[:, L : 2 * L])),
            spread=minus_outer(self.spread, change @ PS, PS),
            zeta=self.zeta.at[n].set(rows[:, 2 * L]),
            gamma=self.gamma + (shift @ PS).reshape(self.gamma.shape),
        )


class LowRankPredictor(Predictor):
    """Mean φ*γ in O(M), covariance k** − φ*φ*ᵀ + φ*B⁻¹φ*ᵀ in O(M²) per point.

    ``cross`` is the basis at the new inputs, whitened like the training basis: Φ* = K_*u L_uu⁻ᵀ, shape (L, S, M).
    """

    gamma: Float[Array, "L M"]  # posterior mean of w
    inverse: Float[Array, "LM LM"]  # C⁻¹: C⁻ᵀC⁻¹ is the posterior covariance of w

    @property
    def mean_weights(self) -> Float[Array, "L M"]:
        return self.gamma

    def __call__(
        self, cross: Float[Array, "#L S M"], prior: Float[Array, "S L"]
    ) -> tuple[Float[Array, "S L"], Float[Array, "S L L"]]:
        unexplained = prior - jnp.sum(cross**2, axis=2).T
        return _basis_times(cross, self.gamma), block_diag_of(unexplained) + _gram(self.inverse, cross)

    def joint(
        self, cross: Float[Array, "S M"], prior: Float[Array, "S S"], latent: Index = 0
    ) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
        # With the columns of C⁻¹ that belong to this latent, halfᵀhalf = Φ* Cov(w) Φ*ᵀ.
        half = self.inverse.reshape(-1, *self.gamma.shape)[:, latent] @ cross.T
        return cross @ self.gamma[latent], prior - cross @ cross.T + half.T @ half
