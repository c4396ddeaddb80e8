"""Likelihoods: how a target arises from the latent function.

A new likelihood is one file and one line in :data:`LIKELIHOODS`, which feeds the contract tests and the docs.
"""

from errorband.likelihoods.base import Likelihood
from errorband.likelihoods.gaussian import Gaussian

LIKELIHOODS: dict[str, type[Likelihood]] = {cls.__name__: cls for cls in (Gaussian,)}

__all__ = [*LIKELIHOODS, "LIKELIHOODS", "Likelihood"]
