"""The approximation contract: how the prior covariance at the training inputs is kept.

A new approximation is a subclass of :class:`Approximation` with parameters of its own (inducing inputs, frequencies, …,
declared like any hyperparameter) that builds one of the structures of :mod:`errorband.structures`.
"""

import abc
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from errorband.kernels import Kernel
from errorband.numerics import pad_rows, padded_size
from errorband.parameters import Printable
from errorband.structures import LowRank, Structure
from errorband.structures.rows import piece_size, sum_over_rows


class Approximation(Printable):
    """From a kernel and inputs to a structure."""

    has_structure: ClassVar[bool] = True
    """Whether :meth:`structure` is there for rules with sites; else a rule of its own deals with it."""

    rows_follow_values: ClassVar[bool] = False
    """Whether the rows to learn from are chosen anew as hyperparameters are found."""

    @property
    def ep_power(self) -> float | None:
        """The exponent of EP that it is defined with, 0 standing for KL; None if every rule goes with it."""
        return None

    def initialised(
        self, kernel: Kernel, X: np.ndarray, classes: np.ndarray | None = None, random_state: Any = None
    ) -> Self:
        """Copy with every value set, those left at None from the data. On the host, once, before the search.

        ``classes`` (n,) are the targets if these are classes, None if they are numbers.
        """
        return self

    def at_rows(self, X: np.ndarray, n: int) -> Self:
        """Copy that :meth:`structure` makes one for these rows with; the first n are data, the rest is padding.

        On the host, once for each set of rows: for what depends on all of them together.
        """
        return self

    def rows(
        self,
        kernel: Kernel,
        X: np.ndarray,
        random_state: Any = None,
        residual: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> np.ndarray | None:
        """Positions of the rows to learn from; None for all. On the host, once, before the search.

        ``residual`` and ``noise`` (n,) are the targets less the prior mean and the variances of their noise, None if
        noise is not Gaussian.
        """
        return None

    @abc.abstractmethod
    def structure(self, kernel: Kernel, X: Any, n_latents: int) -> Structure:
        """Prior covariance of the latent values at X. Traceable: the optimiser differentiates it."""

    def residual(self, kernel: Kernel, X: Any, n_latents: int) -> Any:
        """Variance (N, L) of latent values at X given what the structure says of them; None if there is none."""
        return None

    def at(self, kernel: Kernel, X: Any, n_latents: int) -> tuple[Structure, Any]:
        """Structure and residual. Override it where both come from one computation."""
        return self.structure(kernel, X, n_latents), self.residual(kernel, X, n_latents)

    def inner(self, kernel: Kernel, X: Any, n_latents: int, bar: Any, residual_bar: Any = None) -> Any:
        """⟨bar, structure⟩ + ⟨residual_bar, residual⟩ for derivatives in their numbers: what reverse mode takes.

        A low-rank structure is made anew, a piece of rows at a time: nothing of its size is kept for the way back.
        """
        if not isinstance(bar, LowRank):
            return sum_of_products((bar, residual_bar), self.at(kernel, X, n_latents))

        def rows(piece):
            bars = bar.part(piece), None if residual_bar is None else piece.once(residual_bar)
            return sum_of_products(bars, self.at(kernel, piece.of(X), n_latents))

        return sum_over_rows(rows, bar.n_data, piece_size(bar.n_data, bar.basis.shape[2]))

    @abc.abstractmethod
    def cross(self, kernel: Kernel, anchors: Any, X_new: Any, n_latents: int) -> Any:
        """Covariance of new latent values with what the structure is expressed in: (L, S, ·). Traceable."""

    def anchors(self, kernel: Kernel, X: np.ndarray) -> np.ndarray:
        """What :meth:`cross` has need of, made once and kept for prediction: the training inputs, padded."""
        return pad_rows(X, padded_size(len(X)))

    def cross_times(self, kernel: Kernel, anchors: Any, X_new: Any, weights: Any) -> Any:
        """``cross`` times weights (L, ·), for predictive means: (S, L). Override it if there is a cheaper way."""
        return jnp.einsum("lsm,lm->sl", self.cross(kernel, anchors, X_new, len(weights)), weights)

    def new_variance(self, kernel: Kernel, X_new: Any, cross: Any) -> Any:
        """Prior variance of new latent values, (S, L): that of the kernel, unless the model has another there."""
        return jnp.broadcast_to(kernel.gram_diag(X_new)[:, None], (X_new.shape[0], len(cross)))

    def new_covariance(self, kernel: Kernel, X_new: Any, cross: Any) -> Any:
        """Prior covariance (S, S) of new values of one latent function; ``cross`` is (S, ·)."""
        return kernel.gram(X_new, X_new)


def sum_of_products(bar: Any, values: Any) -> Any:
    """Inner product of two pytrees of the same structure."""
    return sum(jnp.vdot(b, v) for b, v in zip(jax.tree.leaves(bar), jax.tree.leaves(values), strict=True))


def for_each_latent(array: Any, n_latents: int) -> Any:
    """The array once for each latent function: they share the kernel."""
    return jnp.broadcast_to(array[None], (n_latents, *array.shape))
