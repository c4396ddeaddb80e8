"""The Bayesian committee machine."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from errorband.estimators import query_points
from errorband.estimators.committee import Committee, _condition, rows_of
from errorband.parameters.checks import check_whole
from errorband.posterior import Posterior

WEIGHTS = "entropy", "none"


class BayesianCommittee(Committee):
    r"""Members on parts of the rows, taken together with the prior divided out: Gaussian processes for 10⁵ rows.

    If the parts were independent given the values asked for, the posterior would be (Tresp 2000)

        p(f | all rows) ∝ ∏_k p(f | part k)/p(f)^(K−1).

    Two things make that nearly true. With ``communication`` rows that all members see (Liu et al. 2018) the division is
    by what they say, and members correct each other. With ``query`` points f is the function at all of these together;
    predictions elsewhere follow from them, and new rows can be taken in one batch after the other in constant memory,
    which is a Kalman filter. The more of either, the closer to the exact model, at its cost.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier, optional
        What members are; with more than two classes they are joint ones. Default: ``GPRegressor()``.
    n_members : int, optional
        Number of parts, about; by default as many as make 1000 rows each.
    weights : {"entropy", "none"}
        "entropy": a member counts by what it learned at the input, ½ log of prior over posterior variance, so that
        those without rows there are silent (the robust committee of Deisenroth & Ng 2015). "none": all count once, as
        above; then bands far from the rows of most members are too narrow.
    communication : int
        Rows that every member sees, drawn at random; 0 for none.
    query : int, array (Q, D) or None
        Inputs at which the members are taken together, in the units of the data; a number draws as many of the rows.
        None takes them together at each input asked about, alone.
    iterations : int
        With query points and a likelihood that is not Gaussian: how often each member is conditioned again, with what
        the others say for a prior.
    partition : {"clusters", "random"}
        Rows of a member: near each other, or drawn at random.
    n_jobs : int, optional
        Members conditioned at a time, as in joblib.
    random_state : int, RandomState or None
        Seed of the partition and of all rows that are drawn.

    Attributes
    ----------
    committee_ : GPRegressor or GPClassifier
        The members as one model.
    first_ : GPRegressor or GPClassifier
        The model that hyperparameters were learned with.
    n_members_ : int
    part_sizes_ : array (n_members_,)
        Rows of each member.
    query_points_ : array (Q, D)
        With ``query``: their inputs, in the units of the data.
    log_evidence_ : float
        Sum over the members: that of parts independent of each other.
    kernel_, likelihood_, scaling_, classes_, n_features_in_, feature_names_in_
        Those of the members.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import BayesianCommittee
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = BayesianCommittee(n_members=3, communication=20, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[np.pi / 2], [30.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1), bool(std[1] > 3 * std[0])
    (True, True)
    >>> online = BayesianCommittee(query=30, random_state=0)
    >>> for rows in np.split(np.arange(300), 3):
    ...     online = online.partial_fit(X[rows], y[rows])
    >>> bool(abs(online.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    short_names: ClassVar = {"bayesian-committee": {}, "bcm": {}}
    query: Any
    _state: Any

    def __init__(
        self,
        estimator=None,
        *,
        n_members=None,
        weights="entropy",
        communication=0,
        query=None,
        iterations=0,
        partition="clusters",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_members = n_members
        self.weights = weights
        self.communication = communication
        self.query = query
        self.iterations = iterations
        self.partition = partition
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "BayesianCommittee":
        """Fit to inputs X (n, D) and targets or labels y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
        """
        self._check()
        self._base = self._state = None
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "BayesianCommittee":
        """Take in more rows; the first call is :meth:`fit`.

        With ``query`` the rows change mean and covariance at the query points, and are forgotten: memory is constant,
        and the result the same as that of :meth:`fit` to the same parts. Without, they become one more member.
        Hyperparameters stay those of the first call.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
        classes : array, optional
            Not used: the first batch must have a row of each class.
        """
        if not hasattr(self, "committee_"):
            return self.fit(X, y)
        y = np.asarray(y)
        self._take_in([_condition(self.first_, X, y)])
        if self.query is not None:
            self._learned_from = None
        elif self._learned_from is not None:
            self._learned_from = [*self._learned_from, (np.asarray(X), y)]
        return self

    def _check(self) -> None:
        name = type(self).__name__
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights={self.weights!r}: choose 'entropy' or 'none'.")
        check_whole(name, "iterations", self.iterations, least=0)
        if np.ndim(self.query) == 0 and self.query is not None:
            check_whole(name, "query", self.query, other=", an array of inputs, or None")
        if self.query is None and self.iterations:
            raise ValueError(f"iterations={self.iterations} needs query points: give query=200, say.")

    def _conditioned(self, first: Any, X: Any, y: np.ndarray, parts: list[np.ndarray]) -> list[Any]:
        if len(self._seen):
            self._base = _condition(first, rows_of(X, self._seen), y[self._seen]).posterior_
        if self.query is not None:
            self._start_query(X)
        return super()._conditioned(first, X, y, parts)

    def _posterior(self, members: list[Any]) -> Posterior:
        if self.query is not None:
            return self._at_query_points(members)
        weighting = "entropy" if self.weights == "entropy" else "plain"
        return self._committee_posterior(members, base=self._base, weighting=weighting)

    def _take_in(self, members: list[Any]) -> None:
        """One batch more."""
        if self.query is not None:
            posterior = self._at_query_points(members)
        else:
            before = self.committee_.posterior_
            more = tuple(member.posterior_ for member in members)
            posterior = dataclasses.replace(before, members=(*before.members, *more))
        self.n_members_ += len(members)
        self.part_sizes_ = np.append(self.part_sizes_, [m.n_training_rows_ for m in members])
        self.log_evidence_ += float(sum(m.log_evidence_ for m in members))
        self.committee_ = self._with_posterior(posterior)

    # ------------------------------------------------------------------ at query points
    def _start_query(self, X: Any) -> None:
        first = self.first_
        if np.ndim(self.query) == 0:
            scaled, rng = first._inputs(X), check_random_state(self.random_state)
            Z = scaled[rng.permutation(len(scaled))[: self.query]]
        else:
            Z = first._inputs(self.query)
        Z = np.unique(Z, axis=0)
        self.query_points_ = Z * first.scaling_.x_scale + first.scaling_.x_shift
        self._state = tuple(query_points.start(first, Z))

    def _at_query_points(self, members: list[Any]) -> Posterior:
        """Add what these members say to what is known, after they heard each other."""
        state = query_points.State(*self._state)
        said = [query_points.said(state, member) for member in members]
        for _ in range(0 if self.first_.likelihood_.conjugate else self.iterations):
            for k, member in enumerate(members):
                others = query_points.added(state, [s for j, s in enumerate(said) if j != k])
                said[k] = query_points.said_again(others, member)
        state = query_points.added(state, said)
        self._state = tuple(state)
        return query_points.posterior(state)
