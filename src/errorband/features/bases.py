"""Basis functions of networks. A new basis is one class and one line in :data:`BASES`."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from errorband import special
from errorband.kernels import KERNELS, Kernel, spectral

NAME = "Network"


class Basis:
    """φ(x; w) with weights w drawn at unit length-scale and scaled by those of the kernel."""

    power: ClassVar[float | None] = None
    """Average of φ² over inputs and weights; None: the average over the training rows at the first weights."""

    first_is_free: ClassVar[bool] = False
    """Whether the first column of weights is learned even if the others are held."""

    activation: Any

    def check(self, kernel: Kernel) -> None:
        """Refuse a kernel that does not say how weights are scaled."""
        if not (hasattr(kernel, "lengthscale") and hasattr(kernel, "variance")) or kernel.children():
            raise ValueError(
                f"{NAME} needs a kernel with a lengthscale and a variance for this basis, such as ArcSine or "
                f"SquaredExponential; got {type(kernel).__name__}."
            )

    def n_columns(self, kernel: Any, n_features: int) -> int:
        """Numbers that each unit has."""
        return 1 + kernel.select(np.zeros((1, n_features))).shape[1]

    def draw(self, kernel: Any, X: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
        """First weights (n, columns)."""
        return rng.standard_normal((n, self.n_columns(kernel, X.shape[1])))

    def place(self, kernel: Any, n_features: int, weights: Any) -> tuple[Any, Any, Any, Any]:
        """W (M, D), b (M,), share (M,) of the prior variance, and precision (D,) or None: see ``Layer``. Traced."""
        raise NotImplementedError


class Cosine(Basis):
    """cos(ωᵀx + phase), ω from the spectral density of the kernel, to which the prior converges."""

    power, first_is_free, activation = 0.5, True, staticmethod(special.cos)

    def check(self, kernel):
        spectral.check_spectrum(kernel, NAME, KERNELS)

    def n_columns(self, kernel, n_features):
        return 1 + spectral.n_columns(kernel, n_features)

    def draw(self, kernel, X, rng, n):
        phases = rng.uniform(0.0, 2.0 * np.pi, (n, 1))
        return np.hstack([phases, spectral.draw(kernel, X.shape[1], rng, n)])

    def place(self, kernel, n_features, weights):
        omega, share = spectral.frequencies(kernel, n_features, weights[:, 1:])
        return omega, weights[:, 0], share, None


class Activation(Basis):
    """function(w₀/ℓ₀ + Σ w_d x_d/ℓ_d) with normal weights; ℓ₀ is ``bias_lengthscale`` of the kernel, or else ‖ℓ‖."""

    def __init__(self, function: Callable[[Any], Any], power: float | None = None):
        self.activation, self.power = function, power  # pyright: ignore[reportAttributeAccessIssue]

    def place(self, kernel, n_features, weights):
        scale = jnp.broadcast_to(kernel.lengthscale, (weights.shape[1] - 1,))
        bias_scale = getattr(kernel, "bias_lengthscale", None)
        if bias_scale is None:
            bias_scale = jnp.sqrt(jnp.sum(scale**2))
        share = jnp.full(len(weights), kernel.variance / len(weights))
        return in_all_columns(kernel, weights[:, 1:] / scale, n_features), weights[:, 0] / bias_scale, share, None


class Bumps(Basis):
    """exp(−½ Σ (x_d − c_d)²/(ρℓ_d)²) around centres c that start at rows of the data.

    ρ = min(1, 2/M^(1/D)), so that M bumps cover the range of D inputs and no more where ℓ is half of it: wider ones are
    all alike, and a search that starts with them ends with noise.
    """

    activation = staticmethod(jnp.exp)

    def n_columns(self, kernel, n_features):
        return super().n_columns(kernel, n_features) - 1

    def draw(self, kernel, X, rng, n):
        return np.asarray(kernel.select(np.asarray(X[np.sort(rng.choice(len(X), n, replace=n > len(X)))])))

    def place(self, kernel, n_features, weights):
        M, D = weights.shape
        narrow = min(1.0, 2.0 * M ** (-1.0 / D))
        precision = (narrow * jnp.broadcast_to(kernel.lengthscale, (D,))) ** -2
        share = jnp.full(M, kernel.variance / M)
        W, p = (in_all_columns(kernel, a, n_features) for a in (weights * precision, precision[None]))
        return W, -0.5 * jnp.sum(weights**2 * precision, axis=1), share, p[0]


def in_all_columns(kernel: Any, values: Any, n_features: int) -> Any:
    """Columns for the active inputs of a kernel, among those for all inputs. Traced."""
    if kernel.active_dims is None:
        return values
    return spectral.embedded(values, np.asarray(kernel.active_dims), n_features)


BASES: dict[str, Basis] = {"cosine": Cosine(), "erf": Activation(jax.lax.erf, 1.0), "bumps": Bumps()}

# The same activations in NumPy alone.
IN_NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cosine": np.cos,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "bumps": np.exp,
}


def basis_of(given: Any) -> Basis:
    """A basis by name, or from a function of the activation."""
    if isinstance(given, str) and given in BASES:
        return BASES[given]
    if callable(given):
        return Activation(given)
    raise ValueError(
        f"{NAME}(basis={given!r}): choose {', '.join(map(repr, BASES))}, or give a function of an array that JAX can "
        "trace, such as jax.numpy.tanh."
    )
