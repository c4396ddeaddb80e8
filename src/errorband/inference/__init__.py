"""Inference rules. A new one is one file and one line in :data:`INFERENCES`."""

from errorband.inference.base import Inference, Status, TrainingData
from errorband.inference.ep import EP
from errorband.inference.exact import Exact
from errorband.inference.kl import KL
from errorband.inference.laplace import Laplace
from errorband.inference.nystrom import SparseNystrom
from errorband.inference.sparse import Sparse
from errorband.inference.sparse_blocks import SparseBlocks

INFERENCES: dict[str, type[Inference]] = {
    cls.__name__: cls for cls in (Exact, Sparse, SparseBlocks, SparseNystrom, Laplace, EP, KL)
}

__all__ = [*INFERENCES, "INFERENCES", "Inference", "Status", "TrainingData"]
