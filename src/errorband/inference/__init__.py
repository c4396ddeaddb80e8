"""Inference rules. A new one is one file and one line in :data:`INFERENCES`."""

from errorband.inference.base import Inference, Status, TrainingData
from errorband.inference.exact import Exact

INFERENCES: dict[str, type[Inference]] = {cls.__name__: cls for cls in (Exact,)}

__all__ = [*INFERENCES, "INFERENCES", "Inference", "Status", "TrainingData"]
