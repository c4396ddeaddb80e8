"""Structures: the prior covariance at the training inputs, with all Gaussian algebra.

Given sites, a structure returns the log-determinant, solves, marginals, predictions, gradients and single-site updates
that every inference rule is built from. ``docs/contracts/structures.md`` states the contract with its mathematics.
"""

from errorband.structures.base import Conditioned, Predictor, State, Structure
from errorband.structures.dense import Dense, DensePredictor
from errorband.structures.low_rank import LowRank, LowRankPredictor
from errorband.structures.low_rank_blocks import LowRankBlocks
from errorband.structures.signed_root import SignedRoot
from errorband.structures.simplex import Factors, SimplexPredictor
from errorband.structures.sites import SimplexSites, Sites

STRUCTURES: dict[str, type[Structure]] = {
    "dense": Dense,
    "low_rank": LowRank,
    "low_rank_blocks": LowRankBlocks,
}
"""All structures by name; the contract tests run over this table."""

PREDICTORS: dict[str, type] = {
    cls.__name__: cls for cls in (DensePredictor, SignedRoot, SimplexPredictor, Factors, LowRankPredictor)
}
"""Predictors and their parts: the classes that saved models may contain."""

__all__ = [
    "PREDICTORS",
    "STRUCTURES",
    "Conditioned",
    "Dense",
    "LowRank",
    "LowRankBlocks",
    "Predictor",
    "SimplexSites",
    "Sites",
    "State",
    "Structure",
]
