"""Inputs that are made more like draws of a normal distribution first."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import yeojohnson, yeojohnson_llf

from errorband.kernels.base import Kernel
from errorband.kernels.stationary import SquaredExponential
from errorband.parameters import (
    LENGTH,
    PLACE,
    POSITIVE,
    REAL,
    Parameter,
    entries,
    fill,
    hyperparameter,
    plain,
    with_fields,
)

POWERS = (-3.0, 5.0)  # that are tried; λ of x and 2 − λ of −x do the same
TINY = 1e-8  # beside one, of a power


class Unskewed(Kernel):
    r"""k(x, z) = kernel(g(x), g(z)), where g makes each input more like draws of a normal distribution.

    Length-scales say how fast a function changes, and it should be as fast everywhere. Inputs with a long tail, such as
    incomes, concentrations or word counts, are crowded at one end and lonely at the other. Yeo and Johnson's transform
    g(x) = h((x − centre)/scale)/spread has

        h(t) = ((1 + t)^λ − 1)/λ for t ≥ 0,    h(t) = −((1 − t)^(2−λ) − 1)/(2 − λ) below;

    λ < 1 draws in what is far above, λ > 1 what is far below, and λ = 1 changes nothing. All four are chosen from the
    inputs alone, λ so that g(x) is most likely as draws of one normal distribution (Yeo & Johnson 2000), and held;
    values that are given are learned with the others from there.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the transformed inputs, which have standard deviation one; the squared exponential by default.
    power : array (D,) or None
        λ of each input.
    centre, scale : array (D,) or None
        In the units of the inputs: their mean and standard deviation.
    spread : array (D,) or None
        Standard deviation of h.
    active_dims : sequence of int or str, optional
        Inputs that are transformed.

    Examples
    --------
    >>> from errorband.kernels import SquaredExponential
    >>> k = Unskewed(SquaredExponential(1.0, 1.0), power=[0.0], centre=[0.0], scale=[1.0], spread=[1.0])
    >>> k([[0.0]], [[np.e - 1.0]]).round(4)  # λ = 0: the logarithm of 1 + x
    array([[0.6065]])
    >>> from errorband import GPClassifier
    >>> X = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    >>> float(GPClassifier("unskewed").fit(X, X[:, 0] > 1).kernel_.power[0]) < 0.3
    True
    """

    passes_units: ClassVar[bool] = False

    kernel: Kernel = eqx.field(default_factory=SquaredExponential)
    power: Any = hyperparameter(REAL, ndim=1)
    centre: Any = hyperparameter(REAL, ndim=1, unit=PLACE)
    scale: Any = hyperparameter(POSITIVE, ndim=1, unit=LENGTH)
    spread: Any = hyperparameter(POSITIVE, ndim=1)

    def evaluate(self, X, Z):
        return self.kernel.gram(self._drawn_in(X), self._drawn_in(Z))

    def evaluate_diag(self, X):
        return self.kernel.gram_diag(self._drawn_in(X))

    def _drawn_in(self, X):
        """Inputs transformed."""
        t = (X - self.centre) / self.scale
        powers, logs = (self.power, 2.0 - self.power), (jnp.log1p(jnp.maximum(s * t, 0.0)) for s in (1.0, -1.0))
        above, below = (_power(log, power) for log, power in zip(logs, powers, strict=True))
        return (above - below) / self.spread

    def defaults(self, X, y_variance):
        centre, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        t = (X - centre) / scale
        power = np.array([_likeliest(column) for column in t.T])
        spread = np.std(_transformed(t, power), axis=0)
        found = {"power": power, "centre": centre, "scale": scale, "spread": np.where(spread > 0, spread, 1.0)}
        return {name: Parameter(value, fixed=True) for name, value in found.items()}

    def child_inputs(self, X):
        X = np.asarray(self.select(X), dtype=np.float64)
        open_ = any(len(e.path) == 1 and e.value is None for e in entries(self))
        k: Any = plain(fill(self, self.defaults(X, 1.0)) if open_ else self)
        return _transformed((X - k.centre) / k.scale, k.power) / k.spread

    def raw_columns(self, n_features):
        return np.zeros(n_features, bool)

    def columns_alike(self, n_features):
        columns = np.arange(n_features) if self.active_dims is None else np.asarray(self.active_dims, int)
        return [columns] if self._says_of_all_inputs() else []  # the child sees numbers without a unit

    def in_units(self, change):
        own = Kernel.in_units(with_fields(self, kernel=None), change)
        return with_fields(own, kernel=self.kernel.in_units(self.own_change(change).of_targets()))


def _power(logs: Any, power: Any) -> Any:
    """(e^(power · logs) − 1)/power, with its limit at power 0."""
    none = jnp.abs(power) < TINY
    return jnp.where(none, logs, jnp.expm1(power * logs) / jnp.where(none, 1.0, power))


def _transformed(t: np.ndarray, power: np.ndarray) -> np.ndarray:
    """The function h of each column, with NumPy."""
    columns: list[Any] = [yeojohnson(column, float(p)) for column, p in zip(t.T, power, strict=True)]
    return np.stack(columns, axis=1)


def _likeliest(t: np.ndarray) -> float:
    """The power for which t look most like draws of a normal distribution; 1 if they have two values at most."""
    if len(np.unique(t)) < 3:
        return 1.0
    with np.errstate(all="ignore"):
        lack = lambda power: -float(np.nan_to_num(yeojohnson_llf(power, t), nan=-np.inf))  # noqa: E731
        found: Any = minimize_scalar(lack, bounds=POWERS, method="bounded")
    return float(found.x)
