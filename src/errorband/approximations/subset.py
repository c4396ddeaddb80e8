"""The exact model of some of the rows."""

import equinox as eqx

from errorband.approximations.exact import Exact
from errorband.features.placement import PLACEMENTS, SCORES
from errorband.parameters.checks import check_whole


class SubsetOfData(Exact):
    """Learn from some of the rows and leave out the others: O(n_rows³) whatever N. A baseline for the rest to beat.

    ``log_evidence_`` and ``loo()`` are those of the rows that were kept.

    Parameters
    ----------
    n_rows : int
        How many rows to keep; all if there are no more.
    select : {"random", "kmeans", "pivoted", "entropy", "information"}
        Drawn at random; those nearest to the centres of clusters; or, one after the other and at the starting values
        of the kernel: the row of largest variance given the function at those before; the row whose target lowers the
        entropy of the posterior most given the targets before (Lawrence, Seeger & Herbrich 2003); the row whose target
        changes the posterior most (Seeger 2003). The last two are for Gaussian noise and take it into account.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> X = np.linspace(0, 10, 500)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=500)
    >>> model = GPRegressor(approximation=SubsetOfData(50), random_state=0).fit(X, y)
    >>> model.loo().y.shape
    (50,)
    """

    n_rows: int = eqx.field(default=1000, static=True)
    select: str = eqx.field(default="random", static=True, kw_only=True)

    def __check_init__(self):
        check_whole("SubsetOfData", "n_rows", self.n_rows)
        known = (*PLACEMENTS, *SCORES)
        if self.select not in known:
            raise ValueError(f"SubsetOfData(select={self.select!r}): choose one of {', '.join(map(repr, known))}.")

    @property
    def strategies(self):
        return ("subset",)
