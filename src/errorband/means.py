"""Prior mean functions: fixed at zero, learned with the other hyperparameters, or integrated out."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.parameters import REAL, Printable, hyperparameter, replace_values


class Mean(Printable):
    """Prior mean m(x) = h(x)ᵀβ of the latent function.

    Parameters
    ----------
    coefficients : array or None
        Starting value of β; None starts at zero.
    marginalize : bool
        Integrate β out under a flat prior (the restricted likelihood) instead of learning a value: its uncertainty is
        then part of the error bands. Gaussian likelihood with exact inference only.
    """

    coefficients: Any = hyperparameter(REAL)
    marginalize: bool = eqx.field(default=False, static=True, kw_only=True)

    @abc.abstractmethod
    def basis(self, X: Any) -> Any:
        """h(x) for each row: (N, p). Traceable."""

    def evaluate(self, X: Any) -> Any:
        """m(x) for each row; zero where β is integrated out."""
        H = self.basis(X)
        return jnp.zeros(X.shape[0]) if self.marginalize or H.shape[1] == 0 else H @ self.coefficients

    def initialised(self, X: np.ndarray) -> "Mean":
        """Copy with β set."""
        size = self.basis(X[:1]).shape[1]
        if self.marginalize or size == 0:
            return replace_values(self, {("coefficients",): np.zeros(0)})
        if self.coefficients is None:
            return replace_values(self, {("coefficients",): np.zeros(size)})
        return self


class Zero(Mean):
    """m(x) = 0."""

    def basis(self, X):  # noqa: D102
        return jnp.zeros((X.shape[0], 0))


class Constant(Mean):
    """m(x) = β."""

    def basis(self, X):  # noqa: D102
        return jnp.ones((X.shape[0], 1))


class Linear(Mean):
    """m(x) = β₀ + β₁x₁ + …"""

    def basis(self, X):  # noqa: D102
        return jnp.concatenate([jnp.ones((X.shape[0], 1)), X], axis=1)


MEANS: dict[str, type[Mean]] = {"zero": Zero, "constant": Constant, "linear": Linear}


def as_mean(mean: str | Mean) -> Mean:
    """The mean function of a name or of itself."""
    if isinstance(mean, Mean):
        return mean
    if mean in MEANS:
        return MEANS[mean]()
    raise ValueError(f"mean={mean!r}: choose one of {', '.join(map(repr, MEANS))}, or an object of errorband.means.")
