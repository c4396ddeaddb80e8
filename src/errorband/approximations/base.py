"""The approximation contract: how the prior covariance at the training inputs is kept.

A new approximation is a subclass of :class:`Approximation` with parameters of its own (inducing inputs, frequencies, …,
declared like any hyperparameter) that builds one of the structures of :mod:`errorband.structures`.
"""

import abc
from typing import Any

import jax
import jax.numpy as jnp

from errorband.kernels import Kernel
from errorband.parameters import Printable
from errorband.structures import Structure


class Approximation(Printable):
    """From a kernel and inputs to a structure."""

    @abc.abstractmethod
    def structure(self, kernel: Kernel, X: Any, n_latents: int) -> Structure:
        """Prior covariance of the latent values at X. Traceable: the optimiser differentiates it."""

    def inner(self, kernel: Kernel, X: Any, n_latents: int, bar: Any) -> Any:
        """⟨bar, structure⟩ for derivatives ``bar`` in the structure's numbers: what reverse mode differentiates."""
        return sum_of_products(bar, self.structure(kernel, X, n_latents))

    @abc.abstractmethod
    def cross(self, kernel: Kernel, X: Any, X_new: Any, n_latents: int) -> Any:
        """Covariance of new latent values with what the structure is expressed in: (L, S, ·). Traceable."""


def sum_of_products(bar: Any, values: Any) -> Any:
    """Inner product of two pytrees of the same structure."""
    return sum(jnp.vdot(b, v) for b, v in zip(jax.tree.leaves(bar), jax.tree.leaves(values), strict=True))
