"""Approximations of the prior. A new one is one file and one line in :data:`APPROXIMATIONS`."""

from errorband.approximations.base import Approximation
from errorband.approximations.blocks import PIC, PITC
from errorband.approximations.exact import Exact
from errorband.approximations.greedy import SparseGreedy
from errorband.approximations.inducing import DTC, FITC, VFE, Inducing, PowerEP, SoR, WeightSpace
from errorband.approximations.ivm import IVM
from errorband.approximations.nystrom import Nystrom
from errorband.approximations.relevance import RelevanceVectors
from errorband.approximations.subset import SubsetOfData

APPROXIMATIONS: dict[str, type[Approximation]] = {
    cls.__name__: cls
    for cls in (
        Exact,
        SubsetOfData,
        IVM,
        SoR,
        DTC,
        FITC,
        VFE,
        PowerEP,
        PITC,
        PIC,
        Nystrom,
        WeightSpace,
        RelevanceVectors,
        SparseGreedy,
    )
}

__all__ = [*APPROXIMATIONS, "APPROXIMATIONS", "Approximation", "Inducing"]
