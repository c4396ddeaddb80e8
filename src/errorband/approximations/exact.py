"""No approximation."""

from errorband.approximations.base import Approximation
from errorband.conjugate import DenseEngine
from errorband.structures import Dense


class Exact(Approximation):
    """Keep the whole N × N covariance: O(N³) time and O(N²) memory.

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> model = GPRegressor(approximation=Exact(), optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> type(model.posterior_).__name__
    'DensePosterior'
    """

    @property
    def engine(self):
        return DenseEngine()

    def structure(self, latent, X, layout=None):
        return Dense(latent.kernel.gram(X, X)[None]), None
