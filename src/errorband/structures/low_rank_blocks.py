"""Low rank plus blocks: inducing points, and the covariance given them among rows of the same block.

Each block is a :class:`~errorband.structures.dense.Dense` problem with prior Λ_b, the covariance given the inducing
points; the low rank part is added as in :class:`~errorband.structures.low_rank.LowRank`. Blocks are processed one at a
time (``lax.scan``, ``lax.map``), so that a block without negative sites skips the second half of its factorisation, and
only one block's workspace is in memory.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve
from jaxtyping import Bool, Float, Int

from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.dense import Dense, DenseConditioned
from errorband.structures.low_rank import LowRankPredictor, concatenate_bases, triangular_inverse
from errorband.structures.sites import (
    Index,
    Sites,
    block_matmul,
    block_solve,
    block_times,
    data_major,
    minus_outer,
    site_change,
    symmetrise,
)


class LowRankBlocks(Structure):
    """K = Λ + ΦΦᵀ for each latent function, Λ block diagonal: f = Φw + ε with w ~ N(0, I) and ε ~ N(0, Λ).

    Blocks of unequal size are padded to one size B with unused places, where Λ and Φ are zero. Rows may share a place:
    padding consists of copies of a row, which have the same latent value.

    Parameters
    ----------
    rest : Array of shape (L, blocks, B, B)
        The blocks of Λ: symmetric and positive semi-definite.
    basis : Array of shape (L, blocks, B, M)
        The whitened basis Φ.
    place : Array of shape (N,)
        Place of each row: number of its block times B, plus its position in the block. Integers stored as floats, so
        that JAX can differentiate with respect to the whole structure; their derivative is zero.
    local : bool
        Whether a new input is correlated with the rows of its block beyond w (PIC). If False it is predicted from w
        alone (PITC).
    """

    rest: Float[Array, "L blocks B B"]
    basis: Float[Array, "L blocks B M"]
    place: Float[Array, "N"]
    local: bool = eqx.field(default=False, static=True)

    @property
    def n_data(self) -> int:
        return self.place.shape[0]

    @property
    def n_latents(self) -> int:
        return self.basis.shape[0]

    @property
    def order(self) -> int:
        return max(self.basis.shape[2:]) * self.n_latents

    @property
    def shape(self) -> tuple[int, int]:
        """Number of blocks, and number of places in each."""
        return self.basis.shape[1], self.basis.shape[2]

    def to_places(self, x: Float[Array, "N *rest"]) -> Float[Array, "blocks B *rest"]:
        """Sum over the rows at each place."""
        blocks, B = self.shape
        summed = jnp.zeros((blocks * B, *x.shape[1:]), x.dtype).at[self.place.astype(int)].add(x)
        return summed.reshape(blocks, B, *x.shape[1:])

    def to_rows(self, x: Float[Array, "blocks B *rest"]) -> Float[Array, "N *rest"]:
        """Value at the place of each row."""
        return x.reshape(-1, *x.shape[2:])[self.place.astype(int)]

    def firsts(self) -> Bool[Array, "N"]:
        """Whether a row is the first at its place."""
        index, rows = self.place.astype(int), jnp.arange(self.n_data)
        blocks, B = self.shape
        return jnp.full(blocks * B, self.n_data).at[index].min(rows)[index] == rows

    def diagonal(self) -> Float[Array, "N L"]:
        variances = jnp.diagonal(self.rest, axis1=2, axis2=3) + jnp.sum(self.basis**2, axis=3)
        return self.to_rows(jnp.moveaxis(variances, 0, -1))

    def dense(self) -> Float[Array, "NL NL"]:
        L, blocks, B, M = self.basis.shape
        index, flat = self.place.astype(int), self.basis.reshape(L, blocks * B, M)
        own = jnp.einsum("lkij,kq->lkiqj", self.rest, jnp.eye(blocks, dtype=flat.dtype)).reshape(L, blocks * B, -1)
        return data_major((own + flat @ jnp.swapaxes(flat, 1, 2))[:, index[:, None], index])

    def matvec(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        x = self.to_places(x)
        return self.to_rows(self.at_places(x, jnp.einsum("kil,lkim->lm", x, self.basis)))

    def repeated(self, n_latents: int) -> "LowRankBlocks":
        self._check_one_latent()
        rest, basis = (jnp.broadcast_to(a, (n_latents, *a.shape[1:])) for a in (self.rest, self.basis))
        return LowRankBlocks(rest, basis, self.place, self.local)

    @classmethod
    def stacked(cls, structures: "Sequence[LowRankBlocks]") -> "LowRankBlocks":
        """All must have the same blocks: ``place`` and ``local`` are those of the first."""
        for structure in structures:
            structure._check_one_latent()
        rest = jnp.concatenate([structure.rest for structure in structures])
        basis = concatenate_bases([structure.basis for structure in structures])
        return LowRankBlocks(rest, basis, structures[0].place, structures[0].local)

    def latent(self, l: int) -> "LowRankBlocks":
        return LowRankBlocks(self.rest[l][None], self.basis[l][None], self.place, self.local)

    def summed(self) -> "LowRankBlocks":
        rest, basis = (jnp.sum(a, axis=0, keepdims=True) for a in (self.rest, self.basis))
        return LowRankBlocks(rest, basis, self.place, self.local)

    def at_places(self, g: Float[Array, "blocks B L"], gamma: Float[Array, "L M"]) -> Float[Array, "blocks B L"]:
        """Λg + Φγ at all places."""
        return jnp.einsum("lkij,kjl->kil", self.rest, g) + jnp.einsum("lkim,lm->kil", self.basis, gamma)

    def condition(self, sites: Sites) -> "LowRankBlocksConditioned":
        L, M = self.n_latents, self.basis.shape[-1]

        def one_block(B, block):
            """Add ΦᵀEΦ of a block to B; the posterior of ε in the block, and its rows of EΦ."""
            rest, basis, shift, precision = block
            own = Dense(rest).signed(Sites(shift, precision))
            half = own.root.half(basis).reshape(-1, L * M)  # E = RᵀΔR; this is RΦ
            signed = own.root.signs[:, None] * half
            return B + half.T @ signed, (own, own.root.back(signed))

        eye = jnp.eye(L * M, dtype=self.basis.dtype)
        summed = (self.to_places(sites.shift), self.to_places(sites.precision))
        blocks = (jnp.moveaxis(self.rest, 1, 0), jnp.moveaxis(self.basis, 1, 0), *summed)
        B, (own, G) = jax.lax.scan(one_block, eye, blocks)
        # E may be indefinite. If every block of I + Λ½ΠΛ½ is positive definite, then B, the Schur complement of the
        # joint precision of ε and w, is positive definite if and only if the posterior is proper.
        chol = jnp.linalg.cholesky(B)
        log_det = jnp.sum(own.log_det) + 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol)))
        weights, mean, gamma = _solved(self, sites, G, chol, sites.shift, own.weights)
        return LowRankBlocksConditioned(
            structure=self,
            sites=sites,
            own=own,
            precision_basis=G,
            chol=chol,
            gamma=gamma,
            weights=weights,
            mean=mean,
            log_det=log_det,
            proper=jnp.isfinite(log_det),
        )


def _solved(
    structure: LowRankBlocks,
    sites: Sites,
    G: Float[Array, "blocks B L LM"],
    chol: Float[Array, "LM LM"],
    shift: Float[Array, "N L"],
    own: Float[Array, "blocks B L"],
) -> tuple[Float[Array, "N L"], Float[Array, "N L"], Float[Array, "L M"]]:
    """Vectors g = (I + ΠK)⁻¹b, h = Kg and γ = B⁻¹ΦᵀTᵀb, from Tᵀb of all blocks: g = Tᵀb − EΦγ and h = Λg + Φγ.

    At a place with several rows g is the sum over these rows. All but the first get b − Πh, the first gets the rest. If
    the others are padding the rest is all of g, and nothing cancels.
    """
    right = jnp.einsum("lkim,kil->lm", structure.basis, own)
    gamma = cho_solve((chol, True), right.reshape(-1)).reshape(right.shape)
    g = own - G @ gamma.reshape(-1)
    h = structure.to_rows(structure.at_places(g, gamma))
    each, first = shift - sites.times(h), structure.firsts()[:, None]
    others = structure.to_places(jnp.where(first, 0.0, each))
    return jnp.where(first, structure.to_rows(g - others), each), h, gamma


class LowRankBlocksConditioned(Conditioned):
    """Posterior under a covariance of low rank plus blocks.

    As for low rank plus diagonal, with a matrix for each block: T = (I + ΛΠ)⁻¹, E = ΠT = (Λ + Π⁻¹)⁻¹,
    B = I + ΦᵀEΦ, A = TΛ + TΦB⁻¹ΦᵀTᵀ and W = E − EΦB⁻¹ΦᵀE.
    """

    structure: LowRankBlocks
    own: DenseConditioned  # of each block under the prior Λ, stacked
    precision_basis: Float[Array, "blocks B L LM"]  # EΦ
    chol: Float[Array, "LM LM"]  # C with CCᵀ = B
    gamma: Float[Array, "L M"]  # posterior mean of w
    sites: Sites
    weights: Float[Array, "N L"]
    mean: Float[Array, "N L"]
    log_det: Float[Array, ""]
    proper: Bool[Array, ""]

    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        solve = lambda block: block[0].solve(block[1])  # noqa: E731
        own = jax.lax.map(solve, (self.own, self.structure.to_places(shift)))
        return _solved(self.structure, self.sites, self.precision_basis, self.chol, shift, own)[0]

    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        _, own = jax.lax.map(lambda block: block.marginals(), self.own)
        half = self._gain_basis() @ triangular_inverse(self.chol).T
        return self.mean, self.structure.to_rows(own + half @ jnp.swapaxes(half, -1, -2))

    def _gain_basis(self) -> Float[Array, "blocks B L LM"]:
        """TΦ = Φ − ΛEΦ."""
        taken = jnp.einsum("lkij,kjlc->kilc", self.structure.rest, self.precision_basis)
        return self._wide_basis() - taken

    def _wide_basis(self) -> Float[Array, "blocks B L LM"]:
        """Φ with the M columns of each latent among LM columns, zero elsewhere."""
        L, blocks, B, M = self.structure.basis.shape
        wide = jnp.einsum("lkim,lj->kiljm", self.structure.basis, jnp.eye(L, dtype=self.mean.dtype))
        return wide.reshape(blocks, B, L, L * M)

    def predicted_without_own_site(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]] | None:
        """Prediction of a new input equal to each row, from w without the effect of the row's site.

        With P = TΦ and X = φₙB⁻¹Pₙᵀ the covariance of φₙw with fₙ, mean and covariance are

            φₙγ + X (I − ΠAₙ)⁻¹(Πhₙ − bₙ),        k − φₙφₙᵀ + φₙB⁻¹φₙᵀ + X (I − ΠAₙ)⁻¹Π Xᵀ.
        """
        if self.structure.local:
            return None
        structure, L = self.structure, self.structure.n_latents
        inverse_T = triangular_inverse(self.chol).T
        phi = structure.to_rows(self._wide_basis() @ inverse_T)
        cross = phi @ jnp.swapaxes(structure.to_rows(self._gain_basis() @ inverse_T), 1, 2)
        h, A = self.marginals()
        factor = jnp.eye(L, dtype=h.dtype) - block_matmul(self.sites.precision, A)
        right = jnp.concatenate([self.sites.precision, (self.sites.times(h) - self.sites.shift)[..., None]], axis=2)
        change = block_solve(factor, right)
        mean = structure.to_rows(jnp.einsum("lkim,lm->kil", structure.basis, self.gamma))
        left_out = structure.to_rows(jnp.moveaxis(jnp.diagonal(structure.rest, axis1=2, axis2=3), 0, -1))
        cov = left_out[:, :, None] * jnp.eye(L, dtype=h.dtype) + phi @ jnp.swapaxes(phi, 1, 2)
        back = cross @ symmetrise(change[:, :, :L]) @ jnp.swapaxes(cross, 1, 2)
        return mean + block_times(cross, change[:, :, L]), cov + back

    def adjoint(self) -> LowRankBlocks:
        """With G = ggᵀ − W: ∂/∂Λ = ½G (blocks only) and ∂/∂Φ = GΦ = gγᵀ − EΦB⁻¹, for each latent."""
        structure, basis = self.structure, self.structure.basis
        L, _, B, M = basis.shape
        g = structure.to_places(self.weights)
        eye = jnp.broadcast_to(jnp.eye(B, dtype=g.dtype), (L, B, B))

        def one_block(block):
            own, G, g = block
            R = jnp.moveaxis(own.root.half(eye), 1, 0)  # (L, BL, B)
            E = jnp.swapaxes(R, 1, 2) @ (own.root.signs[:, None] * R)
            GB = cho_solve((self.chol, True), G.reshape(-1, L * M).T).T.reshape(G.shape)  # EΦB⁻¹
            W = E - jnp.einsum("ilc,jlc->lij", GB, G)
            basis_bar = g.T[:, :, None] * self.gamma[:, None, :]
            basis_bar -= jnp.stack([GB.reshape(B, L, L, M)[:, l, l] for l in range(L)])
            return 0.5 * (g.T[:, :, None] * g.T[:, None, :] - W), basis_bar

        rest_bar, basis_bar = jax.lax.map(one_block, (self.own, self.precision_basis, g))
        return LowRankBlocks(
            rest=jnp.moveaxis(rest_bar, 0, 1),
            basis=jnp.moveaxis(basis_bar, 0, 1),
            place=jnp.zeros_like(structure.place),
            local=structure.local,
        )

    def state(self) -> "LowRankBlocksState":
        blocks, B = self.structure.shape
        L = self.structure.n_latents
        covariance = jax.lax.map(lambda block: block.state().covariance, self.own)
        inverse = triangular_inverse(self.chol)
        return LowRankBlocksState(
            place=self.structure.place,
            covariance=covariance.reshape(blocks, B, L, B, L),
            gain_basis=self._gain_basis(),
            spread=inverse.T @ inverse,
            zeta=self.own.mean,
            gamma=self.gamma,
        )

    def predictor(self) -> Predictor:
        """Prediction from w alone, as for low rank plus diagonal; PIC's posterior adds the effect of the blocks."""
        return LowRankPredictor(self.gamma, triangular_inverse(self.chol))


class LowRankBlocksState(State):
    """A = D + P S Pᵀ and h = ζ + Pγ, with D the posterior covariance of ε given w and P = TΦ.

    An update costs O((LM)² + B(B + LM)). A change Δ of the site at a place also changes its block of D, P and ζ. With d
    the rows of D at that place

        D ← D − dᵀ(I + ΔDₙ)⁻¹Δ d,    P ← P − dᵀ(I + ΔDₙ)⁻¹Δ Pₙ,    ζ ← ζ + dᵀ(I + ΔDₙ)⁻¹(δ − Δζₙ).
    """

    place: Float[Array, "N"]
    covariance: Float[Array, "blocks B L B L"]  # D
    gain_basis: Float[Array, "blocks B L LM"]  # P
    spread: Float[Array, "LM LM"]  # S
    zeta: Float[Array, "blocks B L"]  # ζ
    gamma: Float[Array, "L M"]  # γ

    def marginal(self, n: Index) -> tuple[Float[Array, "L"], Float[Array, "L L"]]:
        k, i = self._at(n)
        P = self.gain_basis[k, i]
        own = self.covariance[k, i][:, i]
        return self.zeta[k, i] + P @ self.gamma.reshape(-1), symmetrise(own + P @ self.spread @ P.T)

    def _at(self, n: Index) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """Number of the block of row n, and its place within the block."""
        return jnp.divmod(self.place[n].astype(int), self.zeta.shape[1])

    def update(self, n: Index, d_shift: Float[Array, "L"], d_precision: Float[Array, "L L"]) -> "LowRankBlocksState":
        h, A = self.marginal(n)
        (k, i), L = self._at(n), len(h)
        P, d, zeta = self.gain_basis[k, i], self.covariance[k, i], self.zeta[k, i]
        change, shift = site_change(h, A, d_shift, d_precision)
        own_change, own_shift = site_change(zeta, d[:, i], d_shift, d_precision)
        PS, d_long = P @ self.spread, d.reshape(L, -1)
        D = minus_outer(self.covariance[k].reshape(d_long.shape[1], -1), own_change @ d_long, d_long)
        gain = self.gain_basis[k] - (d_long.T @ (own_change @ P)).reshape(self.gain_basis.shape[1:])
        return LowRankBlocksState(
            place=self.place,
            covariance=self.covariance.at[k].set(D.reshape(self.covariance.shape[1:])),
            gain_basis=self.gain_basis.at[k].set(gain),
            spread=minus_outer(self.spread, change @ PS, PS),
            zeta=self.zeta.at[k].add((own_shift @ d_long).reshape(self.zeta.shape[1:])),
            gamma=self.gamma + (shift @ PS).reshape(self.gamma.shape),
        )
