"""Interface of structures. The mathematics is in ``docs/contracts/structures.md``.

Four classes::

    Structure ──condition(sites)──▶ Conditioned ──state()──────▶ State       (one site at a time)
                                                └─predictor()──▶ Predictor   (new inputs)

Vectors over the data have shape (N, L): N data, L latent functions that are independent a priori. Where one long vector
is needed it is data-major, ``f.reshape(N * L)``. The prior has zero mean; callers with a prior mean subtract it from f.
"""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from errorband.structures.sites import Index, Sites


class Structure(eqx.Module):
    """The covariance K of f ~ N(0, K) at the training inputs, block diagonal over the latent functions."""

    @property
    @abc.abstractmethod
    def n_data(self) -> int:
        """Number of data N."""

    @property
    @abc.abstractmethod
    def n_latents(self) -> int:
        """Number of latent functions L."""

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """Order of the largest matrix that conditioning factorises."""

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, "N L"]:
        """Prior variances."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "NL NL"]:
        """K as one matrix, data-major; for tests and small problems."""

    @abc.abstractmethod
    def matvec(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """K x. Differentiable by JAX, unlike ``condition``."""

    @abc.abstractmethod
    def condition(self, sites: Sites) -> "Conditioned":
        """Posterior of the prior times the sites."""

    @abc.abstractmethod
    def repeated(self, n_latents: int) -> "Structure":
        """Structure of n_latents latent functions that all have this covariance. ``self`` has one latent function."""

    @classmethod
    @abc.abstractmethod
    def stacked(cls, structures: Sequence[Any]) -> "Structure":
        """Structure of len(structures) latent functions, each with its own covariance.

        Each of the given structures has one latent function. Bases with different numbers of columns are padded with
        zero columns, which add nothing to the covariance.
        """

    @abc.abstractmethod
    def latent(self, l: int) -> "Structure":
        """Structure of latent function l alone. Applied to an adjoint: the adjoint of the arrays of that latent."""

    @abc.abstractmethod
    def summed(self) -> "Structure":
        """Transpose of `repeated`: maps the adjoint of a repeated structure to that of the one-latent structure."""

    def unstacked(self, like: Sequence["Structure"]) -> "tuple[Structure, ...]":
        """Transpose of `stacked`: the adjoint of each of the structures ``like``, without the padding of the bases."""

        def one(l: int, target: Structure) -> Structure:
            return jax.tree.map(lambda a, b: a[tuple(slice(n) for n in b.shape)], self.latent(l), target)

        return tuple(one(l, target) for l, target in enumerate(like))

    def _check_one_latent(self) -> None:
        if self.n_latents != 1:
            raise ValueError(
                f"Expected the structure of one latent function; this {type(self).__name__} has {self.n_latents}. "
                "Take them apart with latent(l) first."
            )


class Conditioned(eqx.Module):
    """The posterior q(f) = N(h, A), A = (K⁻¹ + Π)⁻¹, from a structure and sites.

    If it is improper (K⁻¹ + Π is not positive definite), ``proper`` is False, ``log_det`` is not finite and all other
    values are meaningless. No exception is raised, so that an inference rule can shorten its step and try again.

    Attributes
    ----------
    sites : Sites
        The sites (b, Π).
    weights : Array of shape (N, L)
        g = (I + ΠK)⁻¹ b = K⁻¹h = b − Πh.
    mean : Array of shape (N, L)
        h = K g.
    log_det : Array, scalar
        log |I + KΠ|.
    proper : Array, boolean scalar
        Whether K⁻¹ + Π is positive definite.
    """

    sites: eqx.AbstractVar[Sites]
    weights: eqx.AbstractVar[Float[Array, "N L"]]
    mean: eqx.AbstractVar[Float[Array, "N L"]]
    log_det: eqx.AbstractVar[Float[Array, ""]]
    proper: eqx.AbstractVar[Bool[Array, ""]]

    @property
    def log_partition(self) -> Float[Array, ""]:
        """Log ∫ N(f; 0, K) ∏ₙ exp(bₙᵀfₙ − ½ fₙᵀΠₙfₙ) df = ½ bᵀh − ½ log |I + KΠ|."""
        return 0.5 * jnp.vdot(self.sites.shift, self.mean) - 0.5 * self.log_det

    @abc.abstractmethod
    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """(I + ΠK)⁻¹ times a vector; ``weights`` is ``solve(sites.shift)``."""

    @abc.abstractmethod
    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        """Posterior mean and covariance of the L latent values of each datum."""

    @abc.abstractmethod
    def adjoint(self) -> Structure:
        """∂ log_partition / ∂(each array of the structure), with constant sites, as a structure of the same type."""

    @abc.abstractmethod
    def state(self) -> "State":
        """The posterior in a form that can be updated one site at a time."""

    @abc.abstractmethod
    def predictor(self) -> "Predictor":
        """The part of the posterior that prediction needs."""

    def predicted_without_own_site(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]] | None:
        """Prediction, for each row, of a new input equal to it from all sites but its own: mean and covariance.

        None if this equals the cavity of fₙ, which holds for all structures except that of PITC, whose new inputs do
        not share the block correction of the training rows.
        """
        return None


class State(eqx.Module):
    """A posterior that can be updated cheaply when one site changes, as sequential EP does inside ``lax.fori_loop``.

    Round-off accumulates over many updates: call ``condition`` again after every sweep.
    """

    @abc.abstractmethod
    def marginal(self, n: Index) -> tuple[Float[Array, "L"], Float[Array, "L L"]]:
        """Mean and covariance of the L latent values of datum n."""

    @abc.abstractmethod
    def update(self, n: Index, d_shift: Float[Array, "L"], d_precision: Float[Array, "L L"]) -> "State":
        """Add (d_shift, d_precision) to site n."""

    def admits(self, n: Index, d_precision: Float[Array, "L L"]) -> Bool[Array, ""]:
        """Whether a proper posterior stays proper when d_precision is added to site n.

        Only one block of K⁻¹ + Π changes, so it stays positive definite if and only if I + RᵀΔR is, where Aₙ = RRᵀ is
        the marginal covariance.
        """
        covariance = self.marginal(n)[1]
        if covariance.shape[-1] == 1:
            return 1.0 + d_precision[0, 0] * covariance[0, 0] > 0.0
        values, vectors = jnp.linalg.eigh(covariance)
        root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
        return jnp.linalg.eigvalsh(jnp.eye(len(values), dtype=values.dtype) + root.T @ d_precision @ root)[0] > 0.0


class Predictor(eqx.Module):
    """Posterior of latent values at new inputs, from their prior variance and covariance with the training rows."""

    @property
    @abc.abstractmethod
    def mean_weights(self) -> Float[Array, "L K"]:
        """Weights of the mean: mean = cross @ weights. (L, N) for `Dense`, (L, M) for `LowRank`."""

    @property
    def numbers_per_row(self) -> int:
        """Number of elements, per new input, of the largest temporary array of a prediction."""
        return len(self.mean_weights) * self.mean_weights.size

    @abc.abstractmethod
    def __call__(
        self, cross: Float[Array, "L S K"], prior: Float[Array, "S L"]
    ) -> tuple[Float[Array, "S L"], Float[Array, "S L L"]]:
        """Predict the latents at S new inputs.

        Parameters
        ----------
        cross : Array of shape (L, S, N) for `Dense`, (L, S, M) for `LowRank`
            For `Dense` the covariance with the training latents, for `LowRank` the whitened basis at the new inputs.
        prior : Array of shape (S, L)
            Prior variance of the new latents.

        Returns
        -------
        mean : Array of shape (S, L)
        covariance : Array of shape (S, L, L)
            The sites couple the latents, so the posterior is not diagonal.
        """

    @abc.abstractmethod
    def joint(
        self, cross: Float[Array, "S K"], prior: Float[Array, "S S"], latent: Index = 0
    ) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
        """Joint posterior of one latent function at S new inputs.

        Parameters
        ----------
        cross : Array of shape (S, N) for `Dense`, (S, M) for `LowRank`
            The same as in ``__call__``, for this latent function only.
        prior : Array of shape (S, S)
            Prior covariance of this latent function between the new inputs.
        latent : int
            Index of the latent function.

        Returns
        -------
        mean : Array of shape (S,)
        covariance : Array of shape (S, S)
        """
