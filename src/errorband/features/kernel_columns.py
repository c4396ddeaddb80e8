"""Kernel functions at given centres as basis functions, each with a precision of its own: relevance vectors."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.features.base import Features
from errorband.parameters import PLACE, POSITIVE, VARIANCE, Real, Unit, hyperparameter, value_of

# A precision beyond which a basis function has no part in the model (its column is 1e-8 of what it was).
DEAD = 1e16


class KernelColumns(Features):
    r"""Kernel functions as a basis: f(x) = Σ_m w_m k(x, c_m), w_m ~ N(0, 1/α_m) (Tipping 2001).

    The prior covariance is K S Kᵀ with K = k(X, c) and S = diag(1/α), so the kernel need not be positive definite. The
    prior variance falls to zero far from the centres. With a ``variance`` v the prior is *whitened*
    (Quiñonero-Candela, Snelson & Williams 2007): independent noise of unit variance is added to f, and the sum is
    rescaled at each input to the variance v,

        f(x) = √(v/(1 + s(x))) [Σ_m w_m k(x, c_m) + ε(x)],    s(x) = Σ_m k(x, c_m)²/α_m,

    so that far from the centres nothing is known, as it should be.

    Parameters
    ----------
    centres : array (M, D) or None
        In the units of the data; None takes the training inputs.
    precision : array (M,), Parameter or None
        α; None starts all at 1.
    variance : float, Parameter or None
        v, for a whitened prior; None for none.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> X = np.linspace(-3, 3, 50)[:, None]
    >>> basis = KernelColumns(centres=X[::7], precision=np.ones(8))
    >>> model = GPRegressor(SquaredExponential(1.0, 1.0), approximation=basis, normalize=False).fit(X, np.sin(X[:, 0]))
    >>> bool(np.max(np.abs(model.predict(X) - np.sin(X[:, 0]))) < 0.05)
    True
    """

    weight_space: ClassVar[bool] = True

    centres: Any = eqx.field(
        default=None, converter=lambda c: None if c is None else np.asarray(c, float), metadata={"unit": PLACE}
    )
    precision: Any = hyperparameter(POSITIVE, ndim=1)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)

    @property
    def units(self) -> dict[str, Unit]:
        """The square of a column is that of a variance; of whitened columns only their ratios matter, s(x)."""
        return {"precision": Unit(y=2 if self.variance is None else 4)}

    @property
    def constraints(self) -> dict[str, Real | None]:
        """A variance of None is not a hyperparameter."""
        return {"variance": None} if self.variance is None else {}

    @property
    def size(self) -> int:
        return len(self.centres)

    @property
    def alive(self) -> np.ndarray:
        """Which of the basis functions have a part in the model, (M,)."""
        return np.asarray(value_of(self.precision)) < 0.1 * DEAD

    def initialised(self, kernel, X, n=None, classes=None, random_state=None):
        centres = np.asarray(X) if self.centres is None else np.asarray(self.centres)
        if centres.ndim != 2 or centres.shape[1] != X.shape[1] or len(centres) == 0:
            raise ValueError(
                f"centres of KernelColumns must have shape (M, {X.shape[1]}), a row for each basis function and a "
                f"column for each input of X; got {np.shape(centres)}."
            )
        kernel.check(centres)
        held = self.precision
        if value_of(held) is None:
            held = np.ones(len(centres))
        elif np.shape(value_of(held)) != (len(centres),):
            raise ValueError(
                f"precision of KernelColumns must have a number for each of the {len(centres)} centres; got shape "
                f"{np.shape(value_of(held))}."
            )
        return KernelColumns(centres, held, self.variance)

    def K_fu(self, kernel, X):
        columns = kernel.gram(X, self.centres) / jnp.sqrt(self.precision)
        if self.variance is None:
            return columns
        return columns * jnp.sqrt(self.variance / (1.0 + jnp.sum(columns**2, axis=1, keepdims=True)))

    def k_ff(self, kernel, X):
        return super().k_ff(kernel, X) if self.variance is None else jnp.broadcast_to(self.variance, X.shape[:1])
