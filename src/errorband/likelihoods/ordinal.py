"""Ordered classes: cumulative probit."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from errorband.likelihoods.base import ClassLikelihood
from errorband.parameters import Ordered, hyperparameter, value_of
from errorband.parameters.checks import check_whole
from errorband.special import log_ndtr_between

FAR = 1e10  # stands for infinity


class Ordinal(ClassLikelihood):
    """Ordered classes y = 0 … C − 1: f + ε, ε ~ N(0, 1), falls between two of the thresholds.

        p(y | f) = Φ(θ_y − f) − Φ(θ_{y−1} − f),    θ_{−1} = −∞, θ_{C−1} = ∞.

    Averaged over N(f; m, v), θ − f is replaced by (θ − m)/√(1 + v) (Chu & Ghahramani 2005).

    Parameters
    ----------
    n_classes : int
        C, two or more.
    thresholds : increasing array (C − 1,), Parameter or None
        Starting values of the learned thresholds. None starts at the normal quantiles of the class frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> Ordinal(3, [-1.0, 1.0]).class_probabilities(np.array([[0.0]]), np.array([[[1.0]]])).round(2)
    array([[0.24, 0.52, 0.24]])
    """

    n_classes: int = eqx.field(static=True)
    thresholds: Any = hyperparameter(Ordered(), ndim=1)
    log_concave: ClassVar[bool] = True

    def __check_init__(self):
        check_whole("Ordinal", "n_classes", self.n_classes, least=2)
        given = value_of(self.thresholds)
        if given is not None and np.shape(given) != (self.n_classes - 1,):
            raise ValueError(
                f"thresholds of Ordinal({self.n_classes}) must be {self.n_classes - 1} numbers; got shape "
                f"{np.shape(given)}."
            )

    @property
    def class_values(self) -> np.ndarray:
        return np.arange(float(self.n_classes))

    def log_prob(self, y, f):
        return self.log_tilted(y, f, 0.0)

    def log_tilted(self, y, mean, cov):
        edges = jnp.concatenate([jnp.array([-FAR]), jnp.asarray(self.thresholds), jnp.array([FAR])])
        y, scale = jnp.asarray(y, int), jnp.sqrt(1 + cov)
        return log_ndtr_between((edges[y] - mean) / scale, (edges[y + 1] - mean) / scale)

    def defaults(self, y):
        counts = np.array([np.sum(y == c) for c in self.class_values]) + 0.5
        return {"thresholds": np.sqrt(2) * ndtri(np.cumsum(counts)[:-1] / counts.sum())}
