"""A kernel of learned linear combinations of the inputs."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from errorband.kernels.base import Kernel
from errorband.parameters import (
    REAL,
    Change,
    Parameter,
    Unit,
    entries,
    hyperparameter,
    in_units,
    replace_values,
    value_of,
    with_fields,
)


class Projection(Kernel):
    """k(x, z) = kernel(Pᵀx, Pᵀz), P a learned (D × rank) matrix: supervised dimensionality reduction.

    The scale of P and the kernel's length-scales are redundant; fix the latter with
    ``SquaredExponential(lengthscale=Parameter(1.0, fixed=True))`` if P is to be interpreted.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the projected inputs.
    rank : int
        Number of projected inputs.
    matrix : array (D, rank), optional
        Starting value of P. By default the leading principal directions, each scaled to unit standard deviation.
    active_dims : sequence of int or str, optional
        Inputs that are projected.

    Examples
    --------
    >>> from errorband.kernels import SquaredExponential
    >>> k = Projection(SquaredExponential(1.0, 1.0), rank=1, matrix=[[1.0], [-1.0]])
    >>> k([[1.0, 1.0]], [[5.0, 5.0]])  # the projection is the difference of the inputs
    array([[1.]])
    """

    passes_units: ClassVar[bool] = False

    kernel: Kernel
    rank: int = eqx.field(static=True)
    matrix: Any = hyperparameter(REAL, unit=Unit(x=-1))

    def __check_init__(self):
        value = self._given()
        if value is not None and (np.ndim(value) != 2 or np.shape(value)[1] != self.rank):
            raise ValueError(f"matrix must have shape (inputs, {self.rank}); got {np.shape(value)}.")

    def evaluate(self, X, Z):
        return self.kernel.gram(X @ self.matrix, Z @ self.matrix)

    def evaluate_diag(self, X):
        return self.kernel.gram_diag(X @ self.matrix)

    def child_inputs(self, X):
        X, matrix = self.select(X), self._given()
        return X @ (self.defaults(np.asarray(X), 1.0)["matrix"] if matrix is None else matrix)

    def child_columns(self, names, n_features):
        return None, self.rank

    def check_inputs(self, X):
        matrix = self._given()
        if matrix is not None and len(matrix) != X.shape[1]:
            raise ValueError(
                f"matrix of Projection has {len(matrix)} rows for {X.shape[1]} inputs; give one for each, shape "
                f"({X.shape[1]}, {self.rank})."
            )

    def _given(self):
        return value_of(self.matrix)

    def raw_columns(self, n_features):
        return np.zeros(n_features, bool)

    def columns_alike(self, n_features):
        columns = np.arange(n_features) if self.active_dims is None else np.asarray(self.active_dims, int)
        return [columns] if self._says_of_all_inputs() else []  # the child sees projections, which have no unit

    def in_units(self, change):
        change = self.own_change(change)
        inner = Change(np.ones(self.rank), np.zeros(self.rank), change.y, change.y_origin)
        kernel = with_fields(self, kernel=self.kernel.in_units(inner))
        if change.x_alike:
            return with_fields(kernel, matrix=in_units(self.matrix, Unit(x=-1), change))
        matrix = self._given()  # inputs are its rows
        if matrix is None or len(matrix) != len(change.x):  # none yet, or of a shape that will be refused
            return kernel
        return replace_values(kernel, {("matrix",): matrix / change.x[:, None]})

    def defaults(self, X, y_variance):
        centred = X - X.mean(axis=0)
        _, size, axes = np.linalg.svd(centred, full_matrices=False)
        matrix = np.zeros((X.shape[1], self.rank))
        for j in range(min(self.rank, len(size))):
            if size[j] > 1e-10 * size[0]:
                matrix[:, j] = axes[j] * np.sqrt(len(X)) / size[j]
        for j in np.flatnonzero(~matrix.any(axis=0)):  # the data have fewer directions than ``rank``
            matrix[j % X.shape[1], j] = 1.0
        return {"matrix": matrix}


def of_one_unit(kernel: Kernel, change: Change) -> Kernel:
    """A kernel of which something has the unit of all inputs, in other units.

    Where each input changes by a number of its own there is no such kernel; then it is that of the inputs changed back.
    """
    own = kernel.own_change(change)
    if own.x_alike or all(e.value is None for e in entries(kernel) if e.unit.x):
        return Kernel.in_units(kernel, change)
    inner = Kernel.in_units(with_fields(kernel, active_dims=None), own.of_targets())
    back = Parameter(np.diag(1.0 / own.x), fixed=True)  # pyright: ignore[reportArgumentType]
    return Projection(inner, rank=len(own.x), matrix=back, active_dims=kernel.active_dims)  # pyright: ignore[reportCallIssue]
