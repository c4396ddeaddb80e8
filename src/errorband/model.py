"""A model as one pytree of hyperparameters, and its prior at the training inputs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband import parameters
from errorband.approximations import Approximation, Inducing
from errorband.approximations.base import sum_of_products
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

    @property
    def inducing(self) -> Inducing:
        """The approximation, of a model with inducing inputs."""
        assert isinstance(self.approximation, Inducing)
        return self.approximation

    def prior(self, X: Any) -> "PriorAtData":
        """What inference needs of the model at these inputs. Traceable."""
        structure, residual = self.approximation.at(self.kernel, X, self.likelihood.n_latents)
        return PriorAtData(structure, self.likelihood, self.mean_at(X), residual)

    def inner(self, X: Any, bar: "PriorAtData") -> Any:
        """⟨bar, prior⟩: its derivative in the hyperparameters takes ``bar``, derivatives in the prior, to theirs."""
        L = self.likelihood.n_latents
        first = self.approximation.inner(self.kernel, X, L, bar.structure, bar.residual)
        return first + sum_of_products((bar.likelihood, bar.mean), (self.likelihood, self.mean_at(X)))

    def mean_at(self, X: Any) -> Any:
        """Prior mean (N, L): of the first latent function, zero for the others."""
        first, L = self.mean.evaluate(X)[:, None], self.likelihood.n_latents
        return first if L == 1 else jnp.concatenate([first, jnp.zeros((len(X), L - 1))], axis=1)


class PriorAtData(eqx.Module):
    """What inference needs at the training inputs: the arrays that carry gradients.

    Attributes
    ----------
    structure : Structure
        Prior covariance of what the sites act on.
    likelihood : Likelihood
    mean : array (N, L)
        Prior mean.
    residual : array (N, L) or None
        Variance of each latent value given what the structure says of it. The likelihood sees it, the sites do not:
        marginals and cavities have it added before they meet the likelihood. None: there is none.
    """

    structure: Structure
    likelihood: Likelihood
    mean: Any
    residual: Any = None


def inducing_inputs(model: Model) -> np.ndarray:
    """Z of a model that has inducing inputs."""
    return np.asarray(parameters.plain(model.inducing).inducing_inputs)


def at_values(model: Model, fitted: Model, Z: np.ndarray | None = None) -> Model:
    """The model with the values of a fitted one, and these inducing inputs; what is fixed or has a prior stays so."""
    values = {e.path: e.value for e in parameters.entries(fitted)}
    if Z is not None:
        values["approximation", "inducing_inputs"] = Z
    return parameters.replace_values(model, values)
