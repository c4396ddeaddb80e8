"""Inference rules. A new one is one file and one line in :data:`INFERENCES`."""

from errorband.data import TrainingData
from errorband.inference.base import Conclusion, Evaluation, Inference, Status
from errorband.inference.conjugate import Conjugate
from errorband.inference.ep import EP
from errorband.inference.kl import KL, rule_of_power
from errorband.inference.laplace import Laplace
from errorband.inference.mcmc import MCMC, annealed_evidence

INFERENCES: dict[str, type[Inference]] = {cls.__name__: cls for cls in (Conjugate, Laplace, EP, KL, MCMC)}

__all__ = [
    *INFERENCES,
    "INFERENCES",
    "Conclusion",
    "Evaluation",
    "Inference",
    "Status",
    "TrainingData",
    "annealed_evidence",
    "rule_of_power",
]
