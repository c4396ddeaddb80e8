"""Structures: the prior covariance at the training inputs, and all the Gaussian algebra done with it.

Given sites, a structure returns the log-determinant, solves, marginals, predictions, gradients and single-site updates
that every inference rule is built from. ``docs/contracts/structures.md`` states the contract with its mathematics.
"""

from errorband.structures.base import Conditioned, Predictor, State, Structure, log_partition
from errorband.structures.dense import Dense
from errorband.structures.low_rank import LowRank
from errorband.structures.sites import SimplexSites, Sites

STRUCTURES: dict[str, type[Structure]] = {"dense": Dense, "low_rank": LowRank}
"""Every structure by name; the contract tests run over this table."""

__all__ = [
    "STRUCTURES",
    "Conditioned",
    "Dense",
    "LowRank",
    "Predictor",
    "SimplexSites",
    "Sites",
    "State",
    "Structure",
    "log_partition",
]
