"""No approximation."""

from errorband.approximations.base import Approximation
from errorband.structures import Dense


class Exact(Approximation):
    """Keep the whole N × N covariance: O(N³) time and O(N²) memory."""

    def structure(self, kernel, X):  # noqa: D102
        return Dense(kernel.gram(X, X)[None])
