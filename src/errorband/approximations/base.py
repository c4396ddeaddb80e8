"""The approximation contract: what becomes of the part of the prior covariance that features leave out.

A latent function is seen through features u (:mod:`errorband.features`), or at the inputs themselves. An approximation
builds a structure (:mod:`errorband.structures`) for the covariance of ONE latent function at the training inputs; the
model puts those of several latent functions together.
"""

import abc
import dataclasses
from typing import Any, Self

import numpy as np

from errorband.conjugate import Engine
from errorband.features import Features
from errorband.latents import Latent
from errorband.parameters import Module
from errorband.structures import Structure


class Approximation(Module):
    """From the prior of a latent function to a structure."""

    @property
    @abc.abstractmethod
    def engine(self) -> Engine:
        """Closed form for Gaussian noise, and the posterior that goes with the structure."""

    @property
    def site_power(self) -> float | None:
        """Power of EP that the approximation is defined with, 0 standing for KL; None if every rule goes with it."""
        return None

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the training strategies it needs, outermost first (:data:`errorband.training.STRATEGIES`)."""
        return ()

    def initialised(
        self, latents: tuple[Latent, ...], X: np.ndarray, classes: np.ndarray | None = None, random_state: Any = None
    ) -> tuple[Self, tuple[Latent, ...]]:
        """The approximation and the latent priors with every value set. On the host, once, before the search.

        ``classes`` (n,) are the targets if these are classes, None otherwise.
        """
        return self, latents

    def layout(self, X: np.ndarray, n: int) -> Any:
        """How the rows of X are arranged, for :meth:`structure`; the first n are real, the rest padding.

        On the host, once for each set of rows. None if each row stands for itself.
        """
        return None

    def fitted(self, latents: tuple[Latent, ...]) -> Self:
        """Copy for people to look at, with what these fitted latent priors hold on behalf of the approximation."""
        return self

    @abc.abstractmethod
    def structure(self, latent: Latent, X: Any, layout: Any = None) -> tuple[Structure, Any]:
        """Prior covariance of one latent function at X, and the variance (N,) given what that says, None if none.

        Traced: the optimiser differentiates it.
        """


def with_features(latents: tuple[Latent, ...], features: list[Features]) -> tuple[Latent, ...]:
    """The latent priors with these features."""
    return tuple(dataclasses.replace(latent, features=f) for latent, f in zip(latents, features, strict=True))
