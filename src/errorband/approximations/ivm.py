"""The exact model of the rows that say most."""

import equinox as eqx

from errorband.approximations.exact import Exact
from errorband.parameters.checks import check_whole


class IVM(Exact):
    """Informative vector machine: the exact model of the rows that lower the entropy of the posterior most.

    Rows are taken in one after the other by assumed-density filtering (Lawrence, Seeger & Herbrich 2003;
    :func:`errorband.training.informative.informative_rows`): O(N·n_rows²), and n_rows³ for the model. The choice
    depends on the hyperparameters and these on the choice, so that the two take turns, beginning with hyperparameters
    of as many rows drawn at random; the turn counts that accounts best for all rows, those left out included
    (:class:`errorband.training.turns.TakeTurns`). The sites with which rows were taken in are refined by the
    inference rule, on the active rows: at its fixed point the gradient of the evidence is right.

    ``log_evidence_`` and ``loo()`` are those of the active rows, which are ``active_rows_`` of the fitted estimator.
    Used as inducing inputs of :class:`FITC` they make the hybrid of the two, which learns from all rows; see the theory
    page of sparse models.

    Parameters
    ----------
    n_rows : int
        How many rows to keep; all if there are no more. Classes that overlap need many: a third of the rows or so.
    rounds : int
        How often rows are chosen and hyperparameters searched for on them, at most. It ends earlier if the choice stays
        the same or a round does not help. Without a search rows are chosen once, at the values given.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPClassifier
    >>> from errorband.approximations import IVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sin(2 * X[:, 0]) > 0
    >>> model = GPClassifier(approximation=IVM(70)).fit(X, y)
    >>> model.active_rows_.shape
    (70,)
    """

    n_rows: int = eqx.field(default=200, static=True)
    rounds: int = eqx.field(default=3, static=True, kw_only=True)

    def __check_init__(self):
        for name in ("n_rows", "rounds"):
            check_whole("IVM", name, getattr(self, name))

    @property
    def strategies(self):
        return ("take_turns",)
