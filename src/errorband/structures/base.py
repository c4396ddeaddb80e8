"""What a structure must be able to do. The maths is in ``docs/contracts/structures.md``.

Four small objects share the work::

    Structure ──condition(sites)──▶ Conditioned ──state()──────▶ State       (one site at a time)
                                                └─predictor()──▶ Predictor   (new inputs)

Vectors over the data have shape (N, L): N data, L latent functions that are independent a priori. Where one long vector
is needed it is data-major, ``f.reshape(N * L)``. The prior has zero mean: a caller with a mean shifts f.
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

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, "N L"]:
        """Prior variances, shape (N, L)."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "NL NL"]:
        """K in full, (NL, NL) and data-major: for tests and small problems."""

    @abc.abstractmethod
    def matvec(self, x: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """K x for x of shape (N, L). Plain JAX: ∂(uᵀKx) may be taken by automatic differentiation."""

    @abc.abstractmethod
    def condition(self, sites: Sites) -> "Conditioned":
        """Multiply the prior by the sites."""

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

    If it is not proper (K⁻¹ + Π is not positive definite) then ``proper`` is False, ``log_det`` is not finite and the
    rest means nothing; no exception is raised, so that an inference rule can damp its step and try again.

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
        Whether the posterior is a distribution.
    """

    sites: eqx.AbstractVar[Sites]
    weights: eqx.AbstractVar[Float[Array, "N L"]]
    mean: eqx.AbstractVar[Float[Array, "N L"]]
    log_det: eqx.AbstractVar[Float[Array, ""]]
    proper: eqx.AbstractVar[Bool[Array, ""]]

    @property
    def log_partition(self) -> Float[Array, ""]:
        """The constant log ∫ N(f; 0, K) ∏ₙ exp(bₙᵀfₙ − ½ fₙᵀΠₙfₙ) df = ½ bᵀh − ½ log |I + KΠ|."""
        return 0.5 * jnp.vdot(self.sites.shift, self.mean) - 0.5 * self.log_det

    @abc.abstractmethod
    def solve(self, shift: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """(I + ΠK)⁻¹ applied to another shift of shape (N, L); ``weights`` is ``solve(sites.shift)``."""

    @abc.abstractmethod
    def marginals(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]]:
        """Posterior mean (N, L) and covariance (N, L, L) of the latents of each datum."""

    @abc.abstractmethod
    def adjoint(self) -> Structure:
        """∂ log_partition / ∂(each array of the structure), sites held constant, in the same kind of structure."""

    @abc.abstractmethod
    def state(self) -> "State":
        """The posterior in the form that takes changes of one site."""

    @abc.abstractmethod
    def predictor(self) -> "Predictor":
        """What prediction needs, and nothing else."""

    def predicted_without_own_site(self) -> tuple[Float[Array, "N L"], Float[Array, "N L L"]] | None:
        """Mean (N, L) and covariance (N, L, L) that a new input equal to each row's would have without the row's site.

        None, as for most, if that is fₙ itself without its site; not so where a row goes with others as no new input
        does.
        """
        return None


class State(eqx.Module):
    """A posterior in which one site can be changed cheaply, as sequential EP does inside ``lax.fori_loop``.

    Round-off builds up over many updates: condition afresh after every sweep.
    """

    @abc.abstractmethod
    def marginal(self, n: Index) -> tuple[Float[Array, "L"], Float[Array, "L L"]]:
        """Mean (L,) and covariance (L, L) of the latents of datum n."""

    @abc.abstractmethod
    def update(self, n: Index, d_shift: Float[Array, "L"], d_precision: Float[Array, "L L"]) -> "State":
        """Add (d_shift (L,), d_precision (L, L)) to site n."""

    def admits(self, n: Index, d_precision: Float[Array, "L L"]) -> Bool[Array, ""]:
        """Whether a proper posterior stays proper when d_precision is added to site n.

        K⁻¹ + Π is changed in one block only, so it stays positive definite if and only if I + RᵀΔR is, where
        Aₙ = RRᵀ is the marginal covariance.
        """
        covariance = self.marginal(n)[1]
        if covariance.shape[-1] == 1:
            return 1.0 + d_precision[0, 0] * covariance[0, 0] > 0.0
        values, vectors = jnp.linalg.eigh(covariance)
        root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
        return jnp.linalg.eigvalsh(jnp.eye(len(values), dtype=values.dtype) + root.T @ d_precision @ root)[0] > 0.0


class Predictor(eqx.Module):
    """Maps what a structure calls ``cross``, and the prior variance of new latents, to their posterior."""

    @property
    @abc.abstractmethod
    def mean_weights(self) -> Float[Array, "L K"]:
        """What ``cross`` is multiplied with for the mean: (L, N) for `Dense`, (L, M) for `LowRank`."""

    @property
    def numbers_per_row(self) -> int:
        """How many numbers the largest array has that a prediction makes, for each new input."""
        return len(self.mean_weights) * self.mean_weights.size

    @abc.abstractmethod
    def __call__(
        self, cross: Float[Array, "L S K"], prior: Float[Array, "S L"]
    ) -> tuple[Float[Array, "S L"], Float[Array, "S L L"]]:
        """Predict the latents at S new inputs.

        Parameters
        ----------
        cross : Array of shape (L, S, N) for `Dense`, (L, S, M) for `LowRank`
            The covariance between the new latents and what the structure is expressed in.
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
