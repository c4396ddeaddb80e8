"""A model as one pytree of hyperparameters, and its prior at the training inputs."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from errorband import parameters
from errorband.approximations import Approximation
from errorband.conjugate.base import sum_of_products
from errorband.latents import Latent
from errorband.likelihoods import Likelihood
from errorband.parameters import Change, Module
from errorband.structures import Structure


class Model(Module):
    """Latent priors, likelihood and approximation: everything that has hyperparameters, in the order of the vector.

    Attributes
    ----------
    latents : tuple of Latent
        One that all L latent functions share, or one for each.
    likelihood : Likelihood
    approximation : Approximation
    """

    latents: tuple[Latent, ...]
    likelihood: Likelihood
    approximation: Approximation

    @property
    def latent(self) -> Latent:
        """The prior of a model with one, or the first of several."""
        return self.latents[0]

    @property
    def shared(self) -> bool:
        """Whether all latent functions have one prior."""
        return len(self.latents) == 1

    def with_features(self, features: Any) -> "Model":
        """Copy in which every latent prior has these features (one for each)."""
        latents = (dataclasses.replace(l, features=f) for l, f in zip(self.latents, features, strict=True))
        return dataclasses.replace(self, latents=tuple(latents))

    def without_features(self, approximation: Approximation) -> "Model":
        """Copy whose latent priors are those of the kernels, under an approximation that needs no features."""
        return Model(tuple(dataclasses.replace(l, features=None) for l in self.latents), self.likelihood, approximation)

    def in_units(self, change: Change) -> "Model":
        """Copy that says of data in other units what this one says of the data as they are."""
        latents = latents_in_units(self.latents, self.likelihood, change)
        return Model(latents, self.likelihood.in_units(change), self.approximation.in_units(change))

    def prior(self, X: Any, layout: Any = None) -> "PriorAtData":
        """Prior of all latent functions at X. Traced."""
        built = [self.approximation.structure(latent, X, layout) for latent in self.latents]
        structures, residuals = zip(*built, strict=True)
        L = self.likelihood.n_latents
        structure = structures[0].repeated(L) if self.shared else type(structures[0]).stacked(structures)
        residual = None
        if residuals[0] is not None:
            residual = jnp.broadcast_to(jnp.stack(residuals, axis=1), (X.shape[0], L))
        return PriorAtData(structure, self.likelihood, self.mean_at(X), residual)

    def inner(self, X: Any, layout: Any, bar: "PriorAtData") -> Any:
        """⟨bar, prior⟩: its gradient in the model pulls derivatives in the prior back to the model. Traced."""
        total = sum_of_products((bar.likelihood, bar.mean), (self.likelihood, self.mean_at(X)))
        structures = [bar.structure.summed()] if self.shared else self._unstacked(bar.structure)
        for l, (latent, structure) in enumerate(zip(self.latents, structures, strict=True)):
            residual = None
            if bar.residual is not None:
                residual = jnp.sum(bar.residual, axis=1) if self.shared else bar.residual[:, l]
            total += self.approximation.engine.inner(self.approximation, latent, X, layout, structure, residual)
        return total

    def _unstacked(self, bar: Structure) -> list[Any]:
        """The adjoint of each latent's structure, without the zero columns that stacking added."""
        found: list[Any] = [bar.latent(l) for l in range(len(self.latents))]
        sizes = [None if latent.features is None else latent.features.size for latent in self.latents]
        return [
            b if M is None else eqx.tree_at(lambda s: s.basis, b, b.basis[..., :M])
            for b, M in zip(found, sizes, strict=True)
        ]

    def mean_at(self, X: Any) -> Any:
        """Prior mean (N, L). Traced."""
        means = jnp.stack([latent.mean.evaluate(X) for latent in self.latents], axis=1)
        return jnp.broadcast_to(means, (X.shape[0], self.likelihood.n_latents))


def latents_in_units(latents: tuple[Latent, ...], likelihood: Likelihood, change: Change) -> tuple[Latent, ...]:
    """Latent priors for data in other units; a function that is not in the units of the targets keeps its own."""
    changes = [change if likelihood.latent_in_units(l) else change.of_inputs() for l in range(len(latents))]
    return tuple(latent.in_units(own) for latent, own in zip(latents, changes, strict=True))


class PriorAtData(eqx.Module):
    """What rules with sites need at the training inputs: the arrays that carry gradients.

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


def at_values(model: Model, fitted: Model) -> Model:
    """The model with the values of a fitted one; what is fixed, bounded or has a prior stays so."""
    return parameters.replace_values(model, {e.path: e.value for e in parameters.entries(fitted)})
