"""Two latent functions under dense covariances: three factorisations of order N instead of one or two of order 2N."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from errorband.programs import program
from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.signed_root import SignedRoot, solve_from_right, solve_stably
from errorband.structures.sites import Sites


class PlainRoot(eqx.Module):
    """W = (K + D⁻¹)⁻¹ = √D (CCᵀ)⁻¹ √D for one latent and D ≥ 0, where CCᵀ = I + √D K √D."""

    chol: Float[Array, "N N"]  # C
    scale: Float[Array, "N"]  # √D

    @classmethod
    def factorise(cls, K: Float[Array, "N N"], diagonal: Float[Array, "N"]) -> "PlainRoot":
        scale = jnp.sqrt(diagonal)
        eye = jnp.eye(len(scale), dtype=K.dtype)
        return cls(jnp.linalg.cholesky(scale[:, None] * K * scale + eye), scale)

    def within(self, rows: Float[Array, "S N"]) -> Float[Array, "S S"]:
        """cWcᵀ of rows c."""
        half = solve_from_right(self.chol, rows * self.scale)
        return half @ half.T

    def times(self, x: Float[Array, "N 1"]) -> Float[Array, "N 1"]:
        """W x."""
        y = solve_triangular(self.chol, self.scale[:, None] * x, lower=True)
        return self.scale[:, None] * solve_triangular(self.chol, y, lower=True, trans="T")


class PairedRoot(eqx.Module):
    """W = (K + Π⁻¹)⁻¹ = Π − ΠAΠ for two latents, by sites that do not couple them and a change of rank N.

    Each site is split as Πₙ = Dₙ − vₙvₙᵀ, Dₙ diagonal. Under D alone the latents are independent, with covariances
    A_l = K_l − K_lW_lK_l. Stack the vₙ into V, of 2N rows and N columns, two diagonal matrices one above the other::

        CCᵀ = I − VᵀA_D V,    W = W_D − HHᵀ,    A = A_D + TTᵀ,    H = (I − W_D K)VC⁻ᵀ,    T = A_D VC⁻ᵀ

    W_D K = DA_D, and |I + KΠ| = |I + KD| |C|². D is above Π, so if K⁻¹ + Π is positive definite then K⁻¹ + D is, and C
    exists: the test for a proper posterior is exact. D of the first latent is never negative, that of the second only
    where a site is negative definite.
    """

    K: Float[Array, "2 N N"]
    own: tuple[PlainRoot, SignedRoot]  # W_l
    alone: tuple[Float[Array, "N N"], Float[Array, "N N"]]  # A_l
    diagonal: Float[Array, "N 2"]  # D
    v: Float[Array, "N 2"]
    chol: Float[Array, "N N"]  # C

    @classmethod
    def factorise(cls, K: Float[Array, "2 N N"], sites: Sites) -> "PairedRoot":
        diagonal, v = uncoupled(sites.precision, jnp.diagonal(K, axis1=1, axis2=2).T)
        second = Sites(sites.shift[:, 1:], diagonal[:, 1, None, None])
        own = PlainRoot.factorise(K[0], diagonal[:, 0]), SignedRoot.factorise(K[1:], second)
        first, second = (K[l] - root.within(K[l]) for l, root in enumerate(own))
        inner = v[:, 0, None] * first * v[:, 0] + v[:, 1, None] * second * v[:, 1]
        chol = jnp.linalg.cholesky(jnp.eye(len(v), dtype=v.dtype) - inner)
        return cls(K, own, (first, second), diagonal, v, chol)

    @property
    def diagonals(self) -> Float[Array, "M"]:
        """Diagonals of all triangular factors, concatenated."""
        return jnp.concatenate([jnp.diagonal(chol) for chol in (self.own[0].chol, self.own[1].chol, self.chol)])

    def times(self, x: Float[Array, "N 2"]) -> Float[Array, "N 2"]:
        """W x."""
        w = self._own_times(x)
        rest = x - self._prior_times(w)
        y = solve_triangular(self.chol, jnp.sum(self.v * rest, axis=1), lower=True)
        back = self.v * solve_triangular(self.chol, y, lower=True, trans="T")[:, None]
        return w - back + self._own_times(self._prior_times(back))

    def _own_times(self, x: Float[Array, "N 2"]) -> Float[Array, "N 2"]:
        return jnp.concatenate([root.times(x[:, l : l + 1]) for l, root in enumerate(self.own)], axis=1)

    def _prior_times(self, x: Float[Array, "N 2"]) -> Float[Array, "N 2"]:
        return jnp.einsum("lnm,ml->nl", self.K, x)

    def covariances(self) -> Float[Array, "N 2 2"]:
        """The 2×2 blocks on the diagonal of A."""
        T = [solve_from_right(self.chol, self.alone[l] * self.v[:, l]) for l in range(2)]
        first, second = (jnp.diagonal(self.alone[l]) + jnp.sum(T[l] * T[l], axis=1) for l in range(2))
        cross = jnp.sum(T[0] * T[1], axis=1)
        return jnp.stack([jnp.stack([first, cross], axis=1), jnp.stack([cross, second], axis=1)], axis=1)

    def blocks(self) -> Float[Array, "2 N N"]:
        """The blocks of W of each latent with itself."""
        eye, found = jnp.eye(len(self.v), dtype=self.v.dtype), []
        for l, root in enumerate(self.own):
            H = solve_from_right(self.chol, (eye - self.diagonal[:, l, None] * self.alone[l]) * self.v[:, l])
            found.append(root.within(eye) - H @ H.T)
        return jnp.stack(found)


def uncoupled(
    precision: Float[Array, "N 2 2"], variance: Float[Array, "N 2"]
) -> tuple[Float[Array, "N 2"], Float[Array, "N 2"]]:
    """Πₙ as a diagonal matrix minus vₙvₙᵀ: the diagonals, and the vectors vₙ.

    With c the coupling, vₙ = (x, ∓c/x) for any x > 0. x² and c²/x², which are added to the diagonal and taken off
    again, share the load by the precision that each latent has from site and prior. Diagonals are kept from being
    negative where that is possible, which is unless Πₙ is negative definite: then the second is. Where one of them is
    zero it is so exactly, as negative ones cost another factorisation.
    """
    a, b, c = precision[:, 0, 0], precision[:, 1, 1], precision[:, 0, 1]
    size = 1.0 / jnp.maximum(variance, 1e-100)
    first = jnp.maximum(jnp.abs(c) * jnp.sqrt((jnp.abs(a) + size[:, 0]) / (jnp.abs(b) + size[:, 1])), -a)
    first = jnp.where(b < 0.0, jnp.minimum(first, jnp.maximum(c**2 / jnp.where(b < 0.0, -b, 1.0), -a)), first)
    x = jnp.sqrt(first)
    z = jnp.where(x > 0.0, -c / jnp.where(x > 0.0, x, 1.0), 0.0)
    alone = (b < 0.0) & (x == 0.0)  # uncoupled, and only the second is negative
    z = jnp.where(alone, jnp.sqrt(jnp.abs(b)), z)
    definite = (a < 0.0) & (b < 0.0) & (a * b > c**2)
    second = jnp.where(definite, b + z * z, jnp.maximum(b + z * z, 0.0))
    return jnp.stack([a + first, second], axis=1), jnp.stack([x, z], axis=1)


class PairedConditioned(Conditioned):
    """Posterior of two latent functions under dense covariances."""

    structure: Structure
    sites: Sites
    root: PairedRoot
    weights: Float[Array, "N L"]
    mean: Float[Array, "N L"]
    log_det: Float[Array, ""]
    proper: Bool[Array, ""]

    @classmethod
    def of(cls, structure: Structure, K: Float[Array, "2 N N"], sites: Sites) -> "PairedConditioned":
        root = PairedRoot.factorise(K, sites)
        weights = solve_stably(structure, sites, root, sites.shift)
        diagonals = root.diagonals
        return cls(
            structure=structure,
            sites=sites,
            root=root,
            weights=weights,
            mean=structure.matvec(weights),
            log_det=2.0 * jnp.sum(jnp.log(diagonals)),
            proper=jnp.all(jnp.isfinite(diagonals)),
        )

    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return solve_stably(self.structure, self.sites, self.root, shift)

    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        return self.mean, self.root.covariances()

    def adjoint(self) -> Structure:
        g = self.weights.T
        return type(self.structure)(0.5 * (g[:, :, None] * g[:, None, :] - self.root.blocks()))  # pyright: ignore[reportCallIssue]

    def state(self) -> State:
        """That of the general algebra: one is made for a whole sweep of updates."""
        return self.structure.signed(self.sites).state()  # pyright: ignore[reportAttributeAccessIssue]

    def predictor(self) -> Predictor:
        """That of the general algebra: one factor to keep."""
        return _predictor(self.structure, self.sites)


@program
def _predictor(structure: Any, sites: Sites) -> Predictor:
    """As one program: its operations, called outside of any, would be compiled one by one."""
    return structure.signed(sites).predictor()
