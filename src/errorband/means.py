"""Prior mean functions: fixed at zero, learned with the other hyperparameters, or integrated out."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.parameters import (
    LEVEL,
    REAL,
    Change,
    Module,
    Unit,
    fill,
    hyperparameter,
    plain,
    replace_values,
    value_of,
)
from errorband.precision import in_double_precision


class Mean(Module):
    """Prior mean m(x) = h(x)ᵀβ of the latent function.

    Parameters
    ----------
    coefficients : array or None
        Starting value of β, in the units of the data; None starts at the least-squares fit.
    marginalize : bool
        Integrate β out under a flat prior (restricted likelihood) instead of learning a value. Its uncertainty is then
        part of the error bands. For a Gaussian likelihood with exact inference only.
    """

    coefficients: Any = hyperparameter(REAL)
    marginalize: bool = eqx.field(default=False, static=True, kw_only=True)

    @abc.abstractmethod
    def basis(self, X: Any) -> Any:
        """Basis functions h(x) of each row, (N, p). Traceable."""

    def evaluate(self, X: Any) -> Any:
        """m(x) for each row, (N,); zero if β is integrated out."""
        H = self.basis(X)
        return jnp.zeros(X.shape[0]) if self.marginalize or H.shape[1] == 0 else H @ self.coefficients

    @in_double_precision
    def initialised(self, X: np.ndarray, y: np.ndarray) -> "Mean":
        """Copy with a value of β: the given one, else the least-squares fit."""
        H = np.asarray(self.basis(X))
        if self.marginalize or H.shape[1] == 0:
            return replace_values(self, {("coefficients",): np.zeros(0)})
        ready = fill(self, {"coefficients": np.linalg.lstsq(H, y, rcond=None)[0]})
        if np.shape(plain(ready).coefficients) != H.shape[1:]:
            raise ValueError(
                f"{type(self).__name__} mean needs {H.shape[1]} coefficients, as a list; got shape "
                f"{np.shape(plain(ready).coefficients)}."
            )
        return ready


class Zero(Mean):
    """m(x) = 0.

    Parameters
    ----------
    coefficients, marginalize
        Have no effect: there are no coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> Zero().basis(np.array([[3.0], [5.0]])).shape
    (2, 0)
    """

    def basis(self, X):
        return X[:, :0]


class Constant(Mean):
    """m(x) = β.

    Parameters
    ----------
    coefficients, marginalize
        As in :class:`Mean`; one coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0]]), np.array([4.0, 6.0])
    >>> Constant().initialised(X, y)  # where the search starts
    Constant(coefficients=[5.])
    >>> from errorband import GPRegressor
    >>> model = GPRegressor("matern52", mean=Constant(marginalize=True), optimizer=None).fit(X, y)
    >>> model.predict([[100.0]]).round(6)  # far from the data the prediction is their average
    array([5.])
    """

    @property
    def units(self) -> dict[str, Unit]:
        """A level of the function."""
        return {"coefficients": LEVEL}

    def basis(self, X):
        return jnp.ones((X.shape[0], 1))


class Linear(Mean):
    """m(x) = β₀ + β₁x₁ + … + β_D x_D.

    Parameters
    ----------
    coefficients, marginalize
        As in :class:`Mean`; D + 1 coefficients, the constant first.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Linear().initialised(X, 1.0 + 2.0 * X[:, 0])  # where the search starts
    Linear(coefficients=[1., 2.])
    """

    def basis(self, X):
        return jnp.concatenate([jnp.ones((X.shape[0], 1)), X], axis=1)

    def in_units(self, change: Change) -> "Linear":
        held, beta = self.coefficients, value_of(self.coefficients)
        if beta is None or np.shape(beta) != (len(change.x) + 1,):  # none yet, integrated out, or refused later
            return self
        if getattr(held, "prior", None) or getattr(held, "bounds", None):
            raise ValueError(
                "Bounds or a prior for all coefficients of a Linear mean, which have different units, cannot be kept "
                "with normalize=True; use normalize=False."
            )
        slopes = change.y * beta[1:] / change.x
        level = change.y * beta[0] - slopes @ change.x_origin + change.y_origin
        return replace_values(self, {("coefficients",): np.concatenate([[level], slopes])})


MEANS: dict[str, type[Mean]] = {"zero": Zero, "constant": Constant, "linear": Linear}


def as_mean(mean: str | Mean) -> Mean:
    """The mean function of this name; mean functions are returned as they are."""
    if isinstance(mean, Mean):
        return mean
    if isinstance(mean, str) and mean in MEANS:
        return MEANS[mean]()
    raise ValueError(f"mean={mean!r}: choose one of {', '.join(map(repr, MEANS))}, or an object of errorband.means.")
