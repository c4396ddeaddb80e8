"""What committees share: members on parts of the rows, fitted in parallel, that predict as one."""

import copy
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband.estimators.base import Savable
from errorband.estimators.regressor import GPRegressor
from errorband.estimators.scaling import READ_AS
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude
from errorband.parameters.checks import check_whole
from errorband.posterior import CommitteePosterior, Posterior

PARTITIONS = "clusters", "random"
ROWS = 1000  # of a member, if no number of members is given
LEARNED_FROM = 2000  # rows for hyperparameters, at most: a search factorises again and again, a member once


def _has(name: str) -> Any:
    """Whether the members have a method of this name."""

    def check(self: Any) -> bool:
        getattr(self._template(), name)
        return True

    return check


class Committee(Savable, BaseEstimator):
    """Base: hyperparameters from some rows, a member conditioned on each part, and their posteriors multiplied."""

    estimator: Any
    n_members: int | None
    communication: int
    partition: str
    n_jobs: int | None
    random_state: Any
    first_: Any
    committee_: Any
    _learned_from: list[tuple[np.ndarray, np.ndarray]] | None  # batch by batch

    # ------------------------------------------------------------------ fitting
    def fit(self, X: Any, y: Any) -> Any:
        """Fit to inputs X (n, D) and targets or labels y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
        """
        if self.partition not in PARTITIONS:
            raise ValueError(f"partition={self.partition!r}: choose 'clusters' or 'random'.")
        check_whole(type(self).__name__, "communication", self.communication, least=0)
        rng = check_random_state(self.random_state)
        X, y = self._checked(X, y)
        self._learned_from = [(np.asarray(X), y)]
        first = self._first(X, y, rng)
        self._keep(first)
        parts = self._with_rows_in_common(self._parts(first, X, rng), rng)
        self._assemble(self._conditioned(first, X, y, parts), parts)
        return self

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Rows that can be divided; a DataFrame stays one, as members know columns by name."""
        check_columns_are_numeric(X)
        array, y = validate_data(self, X, y, dtype=READ_AS)
        check_magnitude(np.asarray(array), "X")
        if is_classifier(self):
            check_classification_targets(y)
        return X if hasattr(X, "iloc") else array, y

    def _first(self, X: Any, y: np.ndarray, rng: Any) -> Any:
        """A member fitted to some rows drawn at random, as many as a part has or fewer; all have what it learned."""
        template = self._template()
        if not hasattr(template, "condition_on"):
            raise TypeError(
                f"estimator must be a Gaussian-process estimator of errorband, which can be conditioned on other rows; "
                f"got {type(template).__name__}."
            )
        rows = rng.permutation(len(y))
        if is_classifier(template):  # one row of each class at least
            known = np.unique(y, return_index=True)[1]
            rows = np.concatenate([known, rows[~np.isin(rows, known)]])
        rows = np.sort(rows[: max(min(self._part_size(len(y)), LEARNED_FROM), 2)])
        first = template.fit(rows_of(X, rows), y[rows])
        if hasattr(first, "estimators_"):
            raise ValueError("A committee multiplies posteriors: use multi_class='joint' for its members.")
        return first

    def _template(self) -> Any:
        if self.estimator is None:
            return GPRegressor()
        template: Any = clone(self.estimator)
        # One posterior for all classes: those of a model for each class cannot be multiplied.
        return template.set_params(multi_class="joint") if getattr(template, "multi_class", "") == "auto" else template

    def _part_size(self, n: int) -> int:
        if self.n_members is None:
            return min(n, ROWS)
        check_whole(type(self).__name__, "n_members", self.n_members)
        return -(-n // self.n_members)

    def _parts(self, first: Any, X: Any, rng: Any) -> list[np.ndarray]:
        """Rows of each member."""
        n = len(X)
        size = self._part_size(n)
        number = max(1, -(-n // max(size, 1)))
        if number == 1:
            return [np.arange(n)]
        if self.partition == "random":
            return [np.sort(part) for part in np.array_split(rng.permutation(n), number)]
        from sklearn.cluster import MiniBatchKMeans  # takes a while to import

        scaled = first._inputs(X)
        found = MiniBatchKMeans(number, random_state=rng.randint(2**31 - 1)).fit_predict(scaled)
        # Of clusters larger than twice the average the rest is divided at random: a member's work is cubic.
        parts = [np.flatnonzero(found == c) for c in range(number)]
        return [
            np.sort(piece)
            for part in parts
            if len(part)
            for piece in np.array_split(rng.permutation(part), -(-len(part) // (2 * size)))
        ]

    def _with_rows_in_common(self, parts: list[np.ndarray], rng: Any) -> list[np.ndarray]:
        """Parts with the rows that all members see, if any are asked for."""
        self._seen = np.zeros(0, int)
        if self.communication == 0 or len(parts) == 1:
            return parts
        self._seen = np.sort(rng.permutation(sum(map(len, parts)))[: self.communication])
        return [np.union1d(self._seen, part) for part in parts]

    def _conditioned(self, first: Any, X: Any, y: np.ndarray, parts: list[np.ndarray]) -> list[Any]:
        rows = ((rows_of(X, part), y[part]) for part in parts)
        return Parallel(n_jobs=self.n_jobs)(delayed(_condition)(first, *some) for some in rows)  # pyright: ignore[reportReturnType]

    def _keep(self, first: Any) -> None:
        if hasattr(first, "classes_"):
            self.classes_ = first.classes_
        self.first_ = first

    def _assemble(self, members: list[Any], parts: list[np.ndarray]) -> None:
        """Make one model of the members."""
        self.n_members_ = len(members)
        self.part_sizes_ = np.array([len(part) for part in parts])
        self.log_evidence_ = float(sum(m.log_evidence_ for m in members))
        self.committee_ = self._with_posterior(self._posterior(members))

    def _with_posterior(self, posterior: Posterior) -> Any:
        """The first member with what all of them know."""
        whole = copy.copy(self.first_)
        whole._remember_search()
        whole.posterior_, whole.log_evidence_ = posterior, self.log_evidence_
        whole._training_data = None
        return whole

    def _posterior(self, members: list[Any]) -> Posterior:
        raise NotImplementedError

    def _committee_posterior(self, members: list[Any], **settings: Any) -> CommitteePosterior:
        posteriors = tuple(m.posterior_ for m in members)
        return CommitteePosterior(members=posteriors, latents=self.first_._model.latents, **settings)  # pyright: ignore[reportCallIssue]

    # ------------------------------------------------------------------ predicting
    def predict(self, X: Any, **options: Any) -> Any:
        """Predict targets or labels; options are those of the members' ``predict``, such as ``return_std=True``."""
        check_is_fitted(self)
        return self.committee_.predict(X, **options)

    @available_if(_has("predictive"))
    def predictive(self, X: Any, **options: Any) -> Any:
        """Predictive distribution at each input, as that of a member."""
        check_is_fitted(self)
        return self.committee_.predictive(X, **options)

    @available_if(_has("predict_interval"))
    def predict_interval(self, X: Any, level: float = 0.95, **options: Any) -> Any:
        """Lower and upper end of the central interval of each target."""
        check_is_fitted(self)
        return self.committee_.predict_interval(X, level, **options)

    @available_if(_has("predict_quantiles"))
    def predict_quantiles(self, X: Any, q: Any, **options: Any) -> Any:
        """Quantiles of each target."""
        check_is_fitted(self)
        return self.committee_.predict_quantiles(X, q, **options)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.committee_.predict_proba(X)

    @available_if(_has("decide"))
    def decide(self, X: Any, **options: Any) -> np.ndarray:
        """The class of the smallest expected loss for each row, as that of a member."""
        check_is_fitted(self)
        return self.committee_.decide(X, **options)

    def score(self, X: Any, y: Any) -> float:
        """R² of regression, share of right labels of classification."""
        check_is_fitted(self)
        return self.committee_.score(X, y)

    # ------------------------------------------------------------------ what reports and tools ask for
    @property
    def process_(self) -> Any:
        """The Gaussian process that predictions come from: the members as one."""
        check_is_fitted(self)
        return self.committee_

    def training_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs (n, D) and targets or labels (n,) the committee learned from, in the units of the data."""
        check_is_fitted(self)
        if self._learned_from is None:
            raise ValueError(
                f"This {type(self).__name__} took in batches at its query points and forgot their rows, which are "
                "asked for here: give them along, as X_train and y_train."
            )
        X, y = (np.concatenate(parts) for parts in zip(*self._learned_from, strict=True))
        return X.astype(np.float64), y

    @property
    def kernel_(self) -> Any:
        """Kernel of the members, fitted."""
        check_is_fitted(self)
        return self.committee_.kernel_

    @property
    def likelihood_(self) -> Any:
        """Likelihood of the members, fitted."""
        check_is_fitted(self)
        return self.committee_.likelihood_

    @property
    def scaling_(self) -> Any:
        """How data become what the members see."""
        check_is_fitted(self)
        return self.committee_.scaling_

    def __sklearn_tags__(self):
        tags, own = super().__sklearn_tags__(), get_tags(self._template())
        tags.estimator_type = own.estimator_type
        tags.regressor_tags, tags.classifier_tags = own.regressor_tags, own.classifier_tags
        tags.target_tags = own.target_tags
        tags.target_tags.multi_output = False  # members may know several targets, a committee does not
        return tags


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or a DataFrame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _condition(first: Any, X: Any, y: np.ndarray) -> Any:
    return first.condition_on(X, y)
