"""What a library has to offer to take part. A peer's module lists its models by name in `MODELS`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from problems import Array

Record = Callable[[Array], None]


class Model:
    """One library's model of one data set. `theta` is always the vector that `problems.parameters` describes.

    A constructor may be slow, as it counts as part of a fit; it starts the model at `theta`.
    """

    packages: ClassVar[tuple[str, ...]] = ()  # distributions whose versions go into the table

    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        self.X, self.y, self.theta = X, y, theta

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Log evidence and its gradient with respect to the log parameters."""
        raise NotImplementedError

    def seconds(self, theta: Array) -> float:
        """How long one evaluation of evidence and gradient takes at `theta`."""
        begin = time.perf_counter()
        self.value_and_gradient(theta)
        return time.perf_counter() - begin

    def fit(self, record: Record) -> Array:
        """Optimise with the library's standard optimiser, `record` the parameters on the way, return the last ones."""
        raise NotImplementedError

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of new observations (noise included) under the fitted model."""
        raise NotImplementedError


def softplus_inverse(value: Array) -> Array:
    """The unconstrained number whose softplus is `value`."""
    return value + np.log(-np.expm1(-value))


def softplus_to_log(gradient: Array, value: Array, lower: float | Array = 0.0) -> Array:
    """Turn a gradient in u, where value = lower + softplus(u), into one in log value."""
    return gradient * value / -np.expm1(lower - value)
