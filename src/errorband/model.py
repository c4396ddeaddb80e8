"""A model as one pytree of hyperparameters, and its prior at the training inputs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from errorband.approximations import Approximation
from errorband.kernels import Kernel
from errorband.likelihoods import Likelihood
from errorband.means import Mean
from errorband.parameters import Printable
from errorband.structures import Structure


class Model(Printable):
    """Kernel, likelihood, mean and approximation: everything that has hyperparameters, in the order of the vector."""

    kernel: Kernel
    likelihood: Likelihood
    mean: Mean
    approximation: Approximation

    def prior(self, X: Any) -> "PriorAtData":
        """What inference needs of the model at these inputs. Traceable."""
        L = self.likelihood.n_latents
        mean = (
            jnp.zeros((X.shape[0], L)).at[:, 0].set(self.mean.evaluate(X)) if L > 1 else self.mean.evaluate(X)[:, None]
        )
        return PriorAtData(self.approximation.structure(self.kernel, X, L), self.likelihood, mean)


class PriorAtData(eqx.Module):
    """Prior covariance, likelihood and prior mean (N, L) at the training inputs: the arrays that carry gradients."""

    structure: Structure
    likelihood: Likelihood
    mean: Any
