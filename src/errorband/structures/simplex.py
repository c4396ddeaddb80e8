"""Dense covariances under the sites of softmax: C factorisations of order N instead of one of order CN."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.sites import Index, SimplexSites, Sites, block_diag_of


class Factors(eqx.Module):
    """W = (K + Π⁻¹)⁻¹ for Π = D − DR S⁻¹RᵀD, R the C stacked identities, S = RᵀDR (Rasmussen & Williams, §3.5).

    With B_c = I + D_c½K_cD_c½ = L_cL_cᵀ and E_c = (K_c + D_c⁻¹)⁻¹ = D_c½B_c⁻¹D_c½ for each class, block diagonal E,

        W = E − ER (Σ_c E_c)⁻¹ RᵀE,        log|I + KΠ| = Σ_c log|B_c| + log|S⁻½ (Σ_c E_c) S⁻½|.

    The last term is missing in the book's algorithm 3.3. Rows without information (D = 0) have a zero in
    ``inner_scale`` and a one on the diagonal of the matrix in the last term.
    """

    chol: Float[Array, "C N N"]  # L_c
    root: Float[Array, "C N"]  # D_c½
    inner_chol: Float[Array, "N N"]  # of S⁻½ (Σ E_c) S⁻½
    inner_scale: Float[Array, "N"]  # S⁻½

    @classmethod
    def factorise(cls, K: Float[Array, "C N N"], share: Float[Array, "N C"]) -> "Factors":
        root, total = jnp.sqrt(share.T), jnp.sum(share, axis=1)
        scale = jnp.where(total > 0.0, 1.0 / jnp.sqrt(jnp.where(total > 0.0, total, 1.0)), 0.0)
        eye = jnp.eye(K.shape[1], dtype=K.dtype)

        def one_class(inner, inputs):
            K_c, r = inputs
            chol = jnp.linalg.cholesky(eye + r[:, None] * K_c * r)
            return inner + _gram(solve_triangular(chol, jnp.diag(r), lower=True)), chol

        inner, chol = jax.lax.scan(one_class, jnp.zeros_like(eye), (K, root))
        inner = scale[:, None] * inner * scale + jnp.diag(jnp.where(total > 0.0, 0.0, 1.0))
        return cls(chol, root, jnp.linalg.cholesky(inner), scale)

    @property
    def diagonals(self) -> Float[Array, "n"]:
        """Diagonals of all triangular factors, concatenated."""
        return jnp.append(jnp.diagonal(self.chol, axis1=1, axis2=2), jnp.diagonal(self.inner_chol))

    def times(self, x: Float[Array, "N C"]) -> Float[Array, "N C"]:
        """W x."""
        Ex = self._E(x.T)
        inner = _cho_solve(self.inner_chol, self.inner_scale * jnp.sum(Ex, axis=0))
        return (Ex - self._E(jnp.broadcast_to(self.inner_scale * inner, Ex.shape))).T

    def _E(self, x: Float[Array, "C N"]) -> Float[Array, "C N"]:
        return self.root * jax.vmap(_cho_solve)(self.chol, self.root * x)

    def covariance(self, columns: Float[Array, "C N S"], prior: Float[Array, "S C"]) -> Float[Array, "S C C"]:
        """Covariance k** − kᵀWk between the classes at each of S inputs, for columns k of each class."""

        def one_class(inputs):
            half, across = self._halves(*inputs)
            return jnp.sum(half * half, axis=0), across

        own, across = jax.lax.map(one_class, (self.chol, self.root, columns))
        between = jax.lax.map(lambda a: jnp.sum(a[None] * across, axis=1), across)  # (C, C, S)
        return block_diag_of(prior - own.T) + jnp.moveaxis(between, 2, 0)

    def joint(self, columns: Float[Array, "N S"], prior: Float[Array, "S S"], latent: Index) -> Float[Array, "S S"]:
        """Covariance K** − kᵀWk of one class between S inputs, for the columns k of that class."""
        half, across = self._halves(self.chol[latent], self.root[latent], columns)
        return prior - half.T @ half + across.T @ across

    def _halves(
        self, chol: Float[Array, "N N"], root: Float[Array, "N"], columns: Float[Array, "N S"]
    ) -> tuple[Float[Array, "N S"], Float[Array, "N S"]]:
        """For columns k of class c, H = L_c⁻¹D_c½k and J such that kᵀE_ck = HᵀH and kᵀE_c(Σ_c E_c)⁻¹E_ck = JᵀJ."""
        half = solve_triangular(chol, root[:, None] * columns, lower=True)
        back = root[:, None] * solve_triangular(chol, half, lower=True, trans="T")  # E_c k
        return half, solve_triangular(self.inner_chol, self.inner_scale[:, None] * back, lower=True)

    def blocks(self) -> Float[Array, "C N N"]:
        """The diagonal blocks of W."""

        def one_class(inputs):
            chol, r = inputs
            E = _gram(solve_triangular(chol, jnp.diag(r), lower=True))
            return E - _gram(solve_triangular(self.inner_chol, self.inner_scale[:, None] * E, lower=True))

        return jax.lax.map(one_class, (self.chol, self.root))


class SimplexConditioned(Conditioned):
    """Posterior of C latent functions under a dense covariance and softmax sites, for O(CN³)."""

    structure: Structure
    sites: SimplexSites
    factors: Factors
    weights: Float[Array, "N L"]
    mean: Float[Array, "N L"]
    log_det: Float[Array, ""]
    proper: Bool[Array, ""]

    @classmethod
    def of(cls, structure: Structure, K: Float[Array, "L N N"], sites: SimplexSites) -> "SimplexConditioned":
        factors = Factors.factorise(K, sites.share)
        weights = _solve(structure, factors, sites.shift)
        diagonals = factors.diagonals
        return cls(
            structure=structure,
            sites=sites,
            factors=factors,
            weights=weights,
            mean=structure.matvec(weights),
            log_det=2.0 * jnp.sum(jnp.log(diagonals)),
            proper=jnp.all(jnp.isfinite(diagonals)),
        )

    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        return _solve(self.structure, self.factors, shift)

    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        return self.mean, self.factors.covariance(self.structure.K, self.structure.diagonal())  # pyright: ignore[reportAttributeAccessIssue]

    def adjoint(self) -> Structure:
        g = self.weights.T
        return type(self.structure)(0.5 * (g[:, :, None] * g[:, None, :] - self.factors.blocks()))  # pyright: ignore[reportCallIssue]

    def state(self) -> State:
        """The state for general sites: a change of one site gives sites that are not of softmax."""
        return self.structure.condition(Sites(self.sites.shift, self.sites.precision)).state()

    def predictor(self) -> "SimplexPredictor":
        return SimplexPredictor(self.weights, self.factors)


class SimplexPredictor(Predictor):
    """Mean k*ᵀg and the exact C×C covariance k** − k*ᵀWk* of new latents; ``cross`` is K(X*, X), shape (C, S, N)."""

    weights: Float[Array, "N L"]
    factors: Factors

    @property
    def mean_weights(self) -> Float[Array, "L N"]:
        return self.weights.T

    @property
    def numbers_per_row(self) -> int:
        return 2 * self.weights.size  # cross and its whitened form; no array for each pair of classes

    def __call__(
        self, cross: Float[Array, "L S N"], prior: Float[Array, "S L"]
    ) -> tuple[Float[Array, "S L"], Float[Array, "S L L"]]:
        mean = jnp.einsum("csn,nc->sc", cross, self.weights)
        return mean, self.factors.covariance(jnp.swapaxes(cross, 1, 2), prior)

    def joint(
        self, cross: Float[Array, "S N"], prior: Float[Array, "S S"], latent: Index = 0
    ) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
        return cross @ self.weights[:, latent], self.factors.joint(cross.T, prior, latent)


def _solve(structure: Structure, factors: Factors, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
    """(I + ΠK)⁻¹b = b − WKb. There is little cancellation, since the precisions of softmax are below one."""
    return shift - factors.times(structure.matvec(shift))


def _gram(half: Float[Array, "n S"]) -> Float[Array, "S S"]:
    return half.T @ half


def _cho_solve(chol: Float[Array, "n n"], x: Float[Array, "n"]) -> Float[Array, "n"]:
    return solve_triangular(chol, solve_triangular(chol, x, lower=True), lower=True, trans="T")
