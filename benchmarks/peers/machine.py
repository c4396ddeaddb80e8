"""Not a library but the machine itself: a 2000 × 2000 matrix product in NumPy, timed like everybody else."""

from __future__ import annotations

import numpy as np

from peers.base import Model
from problems import Array

SIDE = 2000
FLOPS = 2.0 * SIDE**3


class Product(Model):
    def __init__(self, X: Array, y: Array, theta: Array) -> None:
        super().__init__(X, y, theta)
        self.A, self.B = np.random.default_rng(0).standard_normal((2, SIDE, SIDE))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        self.A @ self.B
        return 0.0, theta


MODELS = {"exact": Product, "vfe": Product, "fitc": Product}
