"""What an engine must do: condition one latent function on targets with Gaussian noise, in closed form.

An approximation names the engine that suits the structure it builds. Engines know nothing of models or inference: they
are given the prior of the latent function, the noise variance of each target, and the data.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.data import TrainingData
from errorband.latents import Latent
from errorband.posterior import Posterior
from errorband.predictive import Predictive


class Closed(NamedTuple):
    """Log evidence and its derivatives.

    Attributes
    ----------
    log_evidence : float
    latent : Latent
        Derivatives in every array of the latent prior (kernel, mean, features), in their places.
    noise : array (n,)
        Derivative in the noise variance of each row.
    targets : array (n,) or (n, K)
        Derivative in each target.
    """

    log_evidence: float
    latent: Latent
    noise: np.ndarray
    targets: np.ndarray


class Engine(abc.ABC):
    """Gaussian conditioning for one kind of approximation. Engines have no state."""

    reads_rows: ClassVar[bool] = False
    """Whether X is read a chunk of rows at a time, so that it may stay in a file."""

    sites: ClassVar[bool] = True
    """Whether the approximation has a structure, for rules with sites (EP, Laplace, KL)."""

    def supports(self, latent: Latent, data: TrainingData) -> str | None:
        """None if this prior and these data can be dealt with; else a sentence with the reason and a remedy."""
        if data.n_targets > 1:
            return (
                f"y has {data.n_targets} columns, which share one factorisation with approximation='exact' only; for a "
                "model each use MultiOutputRegressor of sklearn.multioutput."
            )
        if latent.mean.marginalize:
            return "A marginalised mean needs approximation='exact'; use marginalize=False with an approximation."
        return None

    @abc.abstractmethod
    def evaluate(self, approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData) -> Closed:
        """Log evidence and derivatives; ``noise`` (n,) is the noise variance of each target."""

    @abc.abstractmethod
    def posterior(
        self, approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData
    ) -> tuple[float, Posterior]:
        """Log evidence and posterior, from one factorisation."""

    @abc.abstractmethod
    def leave_one_out(self, approximation: Any, latent: Latent, noise: np.ndarray, data: TrainingData) -> Predictive:
        """Distribution of each target given all others."""

    @abc.abstractmethod
    def inner(self, approximation: Any, latent: Latent, X: Any, layout: Any, bar: Any, residual_bar: Any) -> Any:
        """⟨bar, structure⟩ + ⟨residual_bar, residual⟩ at X, for derivatives in the latent prior. Traced.

        The structure is made again, a piece at a time, so that nothing of its size is kept for the backward pass.
        """

    def unseen_variance(self, approximation: Any, latent: Latent, X: Any) -> Any:
        """Prior variance (N,) that a new input equal to a row has beyond that of the row; None if none. Traced."""
        return None

    @abc.abstractmethod
    def site_posterior(
        self, approximation: Any, latents: tuple[Latent, ...], data: TrainingData, conditioned: Any
    ) -> Posterior:
        """Posterior from a structure conditioned on the sites of a rule (arrays as NumPy)."""


def gradient(function: Any, tree: Any) -> Any:
    """Derivatives of a scalar function in every array of a pytree; zero for arrays of integers."""
    moving, still = eqx.partition(tree, eqx.is_inexact_array)
    bar = jax.grad(lambda m: function(eqx.combine(m, still)))(moving)
    return eqx.combine(bar, jax.tree.map(jnp.zeros_like, still))


def values_and_pull(function: Any, tree: Any) -> tuple[Any, Any]:
    """What a function of a pytree returns, and the way back from derivatives in it: those of :func:`gradient`.

    The way back is a pytree of what was computed on the way: one program can return it, and another call it.
    """
    moving, still = eqx.partition(tree, eqx.is_inexact_array)
    values, pull = jax.vjp(lambda m: function(eqx.combine(m, still)), moving)
    return values, jax.tree_util.Partial(_pulled, pull, jax.tree.map(jnp.zeros_like, still))


def _pulled(pull: Any, still: Any, bar: Any) -> Any:
    return eqx.combine(pull(bar)[0], still)


def sum_of_products(bar: Any, values: Any) -> Any:
    """Inner product of two pytrees of the same structure."""
    return sum(jnp.vdot(b, v) for b, v in zip(jax.tree.leaves(bar), jax.tree.leaves(values), strict=True))
