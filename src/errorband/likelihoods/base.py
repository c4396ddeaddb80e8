"""The likelihood contract: p(y_n | f_n), f_n the L latent values of datum n.

A new likelihood is a subclass of :class:`Likelihood` that declares its hyperparameters and writes ``log_prob``. All
inference rules work with that alone; what has a closed form may override the default.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.parameters import Printable, entries, replace_values
from errorband.predictive import Predictive
from errorband.quadrature import gauss_hermite


class Likelihood(Printable):
    """p(y | f) of one datum.

    Attributes
    ----------
    n_latents : int
        L, the number of latent values per datum.
    log_concave : bool
        Whether log p(y | f) is concave in f: then the posterior has one mode and site precisions are not negative.
    quadrature_order : int
        Nodes per latent of the default quadrature.
    """

    n_latents: eqx.AbstractClassVar[int]
    log_concave: eqx.AbstractClassVar[bool]
    quadrature_order = 32

    # ------------------------------------------------------------------ what a new likelihood writes
    @abc.abstractmethod
    def log_prob(self, y: Any, f: Any) -> Any:
        """log p(y | f) of one datum: f is a number if L = 1, else a vector of L numbers. Traceable."""

    def defaults(self, y: np.ndarray) -> dict[str, Any]:
        """Starting values, from the targets, of the hyperparameters left at None."""
        raise NotImplementedError(f"{type(self).__name__} has hyperparameters but no defaults for them.")

    def check_targets(self, y: np.ndarray) -> None:  # noqa: B027
        """Raise ValueError for targets the likelihood cannot have produced."""

    def predictive(self, mean: np.ndarray, variance: np.ndarray) -> Predictive:
        """Distribution of new targets, given mean (n, L) and covariance (n, L, L) of their latent values."""
        raise NotImplementedError(f"{type(self).__name__} does not offer a predictive distribution yet.")

    # ------------------------------------------------------------------ what inference calls
    def log_tilted(self, y: Any, mean: Any, cov: Any) -> Any:
        """log ∫ p(y | f) N(f; mean, cov) df of one datum; mean and cov are numbers if L = 1.

        The default is Gauss–Hermite quadrature centred on N(mean, cov). EP takes first and second derivatives in the
        mean by automatic differentiation.
        """
        nodes, log_weights = gauss_hermite(self.quadrature_order, self.n_latents)
        if self.n_latents == 1:
            f = mean + jnp.sqrt(cov) * nodes[:, 0]
        else:
            f = mean + nodes @ jnp.linalg.cholesky(cov).T
        return jax.nn.logsumexp(log_weights + jax.vmap(lambda fi: self.log_prob(y, fi))(f))

    def initialised(self, y: np.ndarray) -> "Likelihood":
        """Copy with every value set: those given stay, those left at None come from :meth:`defaults`."""
        missing = [e.path for e in entries(self) if e.value is None]
        if not missing:
            return self
        defaults = self.defaults(y)
        return replace_values(self, {path: np.asarray(defaults[path[0]], float) for path in missing})
