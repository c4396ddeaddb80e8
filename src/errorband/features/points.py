"""Inducing points: the values of the function at M inputs."""

from dataclasses import KW_ONLY
from typing import Any

import equinox as eqx
import numpy as np

from errorband.features.base import Features
from errorband.features.placement import PLACEMENTS, add_places, move_dead, place
from errorband.features.windows import points
from errorband.parameters import PLACE, Parameter, Real, as_flags, broadcasts, hyperparameter, replace_values, value_of

# One inducing input influences a small part of the data, a length-scale all of it, so the evidence is much flatter in
# the former. In units of 4 (of standardised data) the search takes steps of the right size in both.
UNIT = 4.0


class Points(Features):
    """Values u = f(Z) of the function at M inputs Z that are learned: K_uu = k(Z, Z), K_fu = k(X, Z).

    The default features of every approximation with inducing points; ``FITC(100, init="random")`` means
    ``FITC(100, features=Points(init="random"))``.

    Parameters
    ----------
    inducing_inputs : array (M, D), Parameter or None
        Where they start, in the units of the data; None chooses places by ``init``. Rows may repeat and may lie outside
        the data.
    optimize_inputs : bool or array of bool
        Learn the inducing inputs with the other hyperparameters, or leave them where they start. Some of them: True
        for each column (D,), each point (M, 1) or each entry (M, D) that is to be learned. Columns that a kernel reads
        as labels are never learned.
    init : {"kmeans", "random", "pivoted", "ivm"}
        Centres of clusters, of each class in turn if targets are classes; rows at random; one after the other, the row
        of largest variance given those before (pivoted Cholesky factorisation at the starting values of the kernel), at
        random once none is left; or the rows that an informative vector machine (``IVM``) chooses, with the
        hyperparameters it finds to begin with.

    Examples
    --------
    >>> from errorband.approximations import FITC
    >>> FITC(100, features=Points(init="random"))
    FITC(n_inducing=100, features=Points(init='random'))
    """

    inducing_inputs: Any = hyperparameter(Real(unit=UNIT), ndim=2, unit=PLACE)
    _: KW_ONLY
    optimize_inputs: Any = eqx.field(default=True, static=True, converter=as_flags)
    init: str = eqx.field(default="kmeans", static=True)

    def __check_init__(self):
        if self.init not in PLACEMENTS:
            raise ValueError(f"init={self.init!r}: choose one of {', '.join(map(repr, PLACEMENTS))}.")

    @property
    def size(self) -> int:
        return len(value_of(self.inducing_inputs))

    def K_uu(self, kernel):
        return kernel.gram(self.inducing_inputs, self.inducing_inputs)

    def K_fu(self, kernel, X):
        return kernel.gram(X, self.inducing_inputs)

    def windows(self, kernel: Any) -> Any:
        """The points as windows of no width, for :class:`~errorband.features.Mixed`. Traced."""
        return points(kernel.select(self.inducing_inputs) / kernel.lengthscale)

    # ------------------------------------------------------------------ where they start
    def initialised(self, kernel, X, n=None, classes=None, random_state=None):
        given = value_of(self.inducing_inputs)
        if given is not None and (np.ndim(given) != 2 or np.shape(given)[1] != X.shape[1] or len(given) == 0):
            raise ValueError(
                f"inducing_inputs must be an array of shape (M, {X.shape[1]}), a row for each inducing input and a "
                f"column for each input of X; got shape {np.shape(given)}."
            )
        if given is not None:
            Z = np.asarray(given)
        elif n is not None:
            Z = place(self.init, n, kernel, X, classes, random_state)
        else:
            raise ValueError("Points() has no number of inducing inputs: give it one in FITC(n, features=Points()).")
        kernel.check(Z)
        return self.at(self._as_parameter(Z, kernel.raw_columns(X.shape[1])))

    def at(self, Z: Any) -> "Points":
        """Copy with other inducing inputs; priors, bounds and what is fixed stay."""
        return replace_values(self, {("inducing_inputs",): Z})

    def _as_parameter(self, Z: np.ndarray, labels: np.ndarray) -> Any:
        """Z, with the entries fixed that are not to be learned: as asked for, and those of columns of labels."""
        learned, held = np.asarray(self.optimize_inputs), self.inducing_inputs
        if not broadcasts(learned.shape, Z.shape):
            M, D = Z.shape
            raise ValueError(
                f"optimize_inputs has shape {learned.shape}; for {M} inducing inputs of {D} columns give True, False, "
                f"or an array of these: ({D},) for columns, ({M}, 1) for points, ({M}, {D})."
            )
        fixed = ~learned | labels if np.any(labels) else ~learned
        if not isinstance(held, Parameter):
            return Parameter(Z, fixed) if np.any(fixed) else Z
        return Parameter(Z, fixed | np.asarray(held.fixed), held.prior, held.bounds)

    # ------------------------------------------------------------------ during the search
    @property
    def movable(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every inducing input is free to move."""
        held = self.inducing_inputs
        return not isinstance(held, Parameter) or held.fixed is False

    def revived(self, kernel: Any, X: np.ndarray) -> tuple["Points", int]:
        """Copy in which points without influence at the rows X are moved to where they have some; how many moved."""
        Z, moved = move_dead(kernel, np.asarray(value_of(self.inducing_inputs)), X)
        return self.at(Z), moved

    def enlarged(self, kernel: Any, X: np.ndarray, n: int, rng: np.random.RandomState) -> "Points":
        """Copy with n points: the present ones, the dead ones moved, and new ones; all distinct rows if there are n."""
        distinct = np.unique(X[: 2 * n], axis=0)
        if len(distinct) <= n and len(distinct := np.unique(X, axis=0)) <= n:
            return self.at(distinct)
        Z = np.asarray(value_of(self.inducing_inputs))
        Z, _ = move_dead(kernel, Z, X[rng.permutation(len(X))[: max(5000, len(Z))]])
        return self.at(add_places(kernel, Z, X, n - len(Z), rng))

    def afresh(
        self, kernel: Any, X: np.ndarray, n: int, classes: np.ndarray | None, rng: np.random.RandomState
    ) -> "Points":
        """Copy with n points placed by ``init`` as if for the first time."""
        return self.at(place(self.init, n, kernel, X, classes, rng))
