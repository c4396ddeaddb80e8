"""Kernels of inner products: linear models, polynomials, infinite neural networks."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import Kernel, half_range
from errorband.kernels.projection import of_one_unit
from errorband.parameters import LENGTH, POSITIVE, VARIANCE, GreaterThan, Unit, hyperparameter
from errorband.parameters.checks import check_whole


class Constant(Kernel):
    """k = variance: an unknown offset, the same everywhere (a bias).

    Parameters
    ----------
    variance : float or None
        Prior variance of the offset. None starts at the variance of the targets.
    active_dims : sequence of int or str, optional
        Has no effect: the kernel does not depend on the inputs.

    Examples
    --------
    >>> Constant(0.5)([[0.0], [3.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        return jnp.broadcast_to(self.variance, (X.shape[0], Z.shape[0]))

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def defaults(self, X, y_variance):
        return {"variance": y_variance}


class Linear(Kernel):
    """k = Σ variance_d x_d z_d: Bayesian linear regression (Rasmussen & Williams 2006, §4.2).

    Add :class:`Constant` for the intercept.

    Parameters
    ----------
    variance : float, array or None
        Prior variance of the slopes: one for all inputs or one per input (relevance).
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.

    Examples
    --------
    >>> Linear(2.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[22.]])
    """

    variance: Any = hyperparameter(POSITIVE, ndim=1, unit=Unit(x=-2, y=2), label="prior spread of the slope")

    def evaluate(self, X, Z):
        return (X * self.variance) @ Z.T

    def evaluate_diag(self, X):
        return jnp.sum(self.variance * X * X, axis=1)

    def defaults(self, X, y_variance):
        return {"variance": y_variance / (X.shape[1] * np.mean(half_range(X)) ** 2)}


class Polynomial(Kernel):
    """k = variance · (x·z/D + offset)^degree, degree a positive integer (Rasmussen & Williams 2006, §4.2).

    The inner product is divided by D so that one starting value suits any number of inputs.

    Parameters
    ----------
    variance : float or None
        Overall scale. None starts at the value for which the average prior variance is that of the targets.
    offset : float or None
        c ≥ 0, the weight of lower powers; with 0 there is only the highest power. None starts at 1.
    degree : int
        Highest power, one or more.
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.

    Examples
    --------
    >>> Polynomial(1.0, 1.0, degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[42.25]])
    """

    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    offset: Any = hyperparameter(GreaterThan(0.0, strict=False), ndim=0)
    degree: int = eqx.field(default=2, static=True, kw_only=True)

    def __check_init__(self):
        check_whole("Polynomial", "degree", self.degree)

    @property
    def units(self) -> dict[str, Unit]:
        """The variance is that of the coefficient of the highest power."""
        return {"variance": Unit(x=-2 * self.degree, y=2), "offset": Unit(x=2)}

    def in_units(self, change):
        return of_one_unit(self, change)

    def evaluate(self, X, Z):
        return self.variance * (X @ Z.T / X.shape[1] + self.offset) ** self.degree

    def evaluate_diag(self, X):
        return self.variance * (jnp.mean(X * X, axis=1) + self.offset) ** self.degree

    def defaults(self, X, y_variance):
        size = np.mean(X**2) + 1.0
        return {"variance": y_variance / size**self.degree, "offset": 1.0}


class ArcSine(Kernel):
    """Limit of a neural network with infinitely many erf units (Williams 1997).

    k = variance · (2/π) asin( 2x̃ᵀΛz̃ / √((1 + 2x̃ᵀΛx̃)(1 + 2z̃ᵀΛz̃)) ), x̃ = (1, x), Λ = diag(ℓ0⁻², ℓ1⁻², …).
    Not stationary: centre the inputs (``normalize=True`` does).

    Parameters
    ----------
    lengthscale : float, array or None
        Scale of the inputs, one or one per input.
    bias_lengthscale : float or None
        ℓ0, the scale of the constant input.
    variance : float or None
        Limit of the prior variance far from the origin.
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.

    Examples
    --------
    >>> ArcSine(1.0, 1.0, 1.0)([[0.0]], [[0.0]]).round(4)
    array([[0.4646]])
    """

    lengthscale: Any = hyperparameter(POSITIVE, ndim=1, unit=LENGTH)
    bias_lengthscale: Any = hyperparameter(POSITIVE, ndim=0)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    def evaluate(self, X, Z):
        norm = jnp.sqrt(1 + 2 * self._size(X))[:, None] * jnp.sqrt(1 + 2 * self._size(Z))[None, :]
        inner = (X / self.lengthscale) @ (Z / self.lengthscale).T + self.bias_lengthscale**-2
        return self.variance * (2 / jnp.pi) * jnp.arcsin(jnp.clip(2 * inner / norm, -1 + 1e-15, 1 - 1e-15))

    def evaluate_diag(self, X):
        size = 2 * self._size(X)
        return self.variance * (2 / jnp.pi) * jnp.arcsin(jnp.minimum(size / (1 + size), 1 - 1e-15))

    def _size(self, X):
        return jnp.sum((X / self.lengthscale) ** 2, axis=1) + self.bias_lengthscale**-2

    def defaults(self, X, y_variance):
        scales = half_range(X)
        return {"lengthscale": scales, "bias_lengthscale": np.sqrt(np.sum(scales**2)), "variance": y_variance}
