"""Products of experts."""

from typing import Any, ClassVar

from errorband.estimators.committee import Committee
from errorband.posterior import Posterior

WEIGHTS = {"none": "plain", "entropy": "entropy", "normalised": "share"}


class ProductOfExperts(Committee):
    r"""Members on parts of the rows whose posteriors are multiplied: Gaussian processes for 10⁵ rows and more.

    Precisions add up, τ(x) = Σ_k β_k τ_k(x), and means are averaged by them. Without weights (Hinton 2002) the product
    is more certain the more members there are, even where none has data; with weights that sum to one (Cao & Fleet
    2014), each member's share of what was learned at the input, the band falls back to the prior.
    :class:`BayesianCommittee` divides the prior out instead, and is usually better.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier, optional
        What members are; with more than two classes they are joint ones. Default: ``GPRegressor()``.
    n_members : int, optional
        Number of parts, about; by default as many as make 1000 rows each.
    weights : {"normalised", "entropy", "none"}
        β: what a member learned at the input divided by the sum over members; not divided; or all one.
    communication : int
        Rows that every member sees, drawn at random; 0 for none.
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
    log_evidence_ : float
        Sum over the members: that of parts independent of each other.
    kernel_, likelihood_, scaling_, classes_, n_features_in_, feature_names_in_
        Those of the members.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import ProductOfExperts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = ProductOfExperts(n_members=3, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[np.pi / 2], [30.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1), bool(std[1] > 3 * std[0])
    (True, True)
    """

    short_names: ClassVar = {"product-of-experts": {}, "poe": {}}

    def __init__(
        self,
        estimator=None,
        *,
        n_members=None,
        weights="normalised",
        communication=0,
        partition="clusters",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_members = n_members
        self.weights = weights
        self.communication = communication
        self.partition = partition
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "ProductOfExperts":
        """Fit to inputs X (n, D) and targets or labels y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
        """
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights={self.weights!r}: choose one of {', '.join(map(repr, WEIGHTS))}.")
        return super().fit(X, y)

    def _posterior(self, members: list[Any]) -> Posterior:
        return self._committee_posterior(members, weighting=WEIGHTS[self.weights], corrects=False)
