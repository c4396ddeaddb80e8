"""What the two relevance vector machines share."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from errorband import parameters
from errorband.approximations import RelevanceVectors
from errorband.estimators.spec import as_kernel
from errorband.kernels import Kernel
from errorband.parameters import Parameter


class RelevanceMachine:
    """A Gaussian process whose prior is a sum of kernel functions at training inputs, found by the data."""

    _settle: ClassVar[int | None] = None  # a search that gains little may still drop vectors

    mean = "zero"
    kernel: Any
    n_candidates: int
    algorithm: str
    healing: str | None
    hyperprior: tuple[float, float]

    @property
    def approximation(self) -> RelevanceVectors:
        """The prior: relevance vectors, with the settings of this machine."""
        return RelevanceVectors(
            self.n_candidates, algorithm=self.algorithm, healing=self.healing, hyperprior=self.hyperprior
        )

    @property
    def relevance_vectors_(self) -> Any:
        """Inputs of the relevance vectors, (m, D), in the units of the data; with a model for each class a list."""
        each = [m._columns() for m in self._machines()]
        vectors = [f.centres[f.alive] * m.scaling_.x_scale + m.scaling_.x_shift for m, f in each]
        return vectors[0] if len(vectors) == 1 else vectors

    @property
    def precision_(self) -> Any:
        """Precisions α of their weights, (m,); with a model for each class a list."""
        precisions = [np.asarray(f.precision)[f.alive] for _, f in (m._columns() for m in self._machines())]
        return precisions[0] if len(precisions) == 1 else precisions

    @property
    def n_relevance_vectors_(self) -> int:
        """How many there are, of all models together."""
        return sum(int(np.sum(m._columns()[1].alive)) for m in self._machines())

    def _kernel(self, fresh: bool = False) -> Any:
        return as_kernel(self.kernel)  # the default of Gaussian processes is none for basis functions

    def _completed(self, kernel: Kernel) -> Kernel:
        return without_variance(kernel)

    def _machines(self) -> list[Any]:
        check_is_fitted(self)
        return self.members_  # pyright: ignore[reportAttributeAccessIssue]

    def _columns(self) -> tuple[Any, Any]:
        return self, self._model.latent.features  # pyright: ignore[reportAttributeAccessIssue]


def without_variance(kernel: Kernel) -> Kernel:
    """The kernel with every variance fixed at 1 of which nothing was said: the weights have precisions of their own."""
    bare = [e for e in parameters.entries(kernel) if e.path[-1] == "variance" and e.value is None and not e.fixed]
    return parameters.replace_values(kernel, {e.path: Parameter(1.0, fixed=True) for e in bare})
