"""A mixture of models that differ in where their search began."""

import copy
import dataclasses
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from errorband import interrupts
from errorband.approximations import WeightSpace
from errorband.estimators.spec import APPROXIMATION_NAMES
from errorband.features import Features
from errorband.parameters.checks import check_whole
from errorband.posterior import MixturePosterior

HELD_OUT = 0.2  # of the rows, on which kind="auto" compares

KINDS = {"plain": "one model", "bounded": "one model with bounded noise", "mixed": "a mixture"}


class Mixture(MetaEstimatorMixin, BaseEstimator):
    """Average the predictive distributions of several models, each trained from another seed.

    Networks and sparse spectra that learn have many optima, and one that is found by chance is too sure of itself.
    Where members disagree the mixture is not sure (Lázaro-Gredilla 2010, §3.3.2). A prediction is the mixture of the
    members' predictive distributions, with its true density and quantiles; ``return_cov`` and ``sample_posterior`` are
    of the Gaussian process that has the mean and covariance of the mixture. All other attributes and methods are those
    of ``model_``, a fitted estimator like ``model`` whose hyperparameters are those of the member of highest evidence.

    Parameters
    ----------
    model : GPRegressor or GPClassifier
        What the members are copies of; its ``approximation`` should draw something, such as
        ``SparseSpectrum(100, learn=True)`` or ``Network(100)``.
    n : int
        Number of members.
    kind : {"mixed", "auto"}
        "auto" fits one model, one with bounded noise (``bound_noise``) and a mixture to four fifths of the rows, and
        fits the one to all rows that gives the others the highest log density.
    n_jobs : int or None
        So many members are trained at a time, in threads; -1: as many as there are cores.
    random_state : int, RandomState or None
        Seed of the members' seeds and of the rows held out.

    Attributes
    ----------
    model_ : GPRegressor or GPClassifier
        The mixture as a fitted estimator: what is saved, reported and plotted.
    members_of_mixture_ : list
        The fitted members.
    choice_ : dict
        Mean log density of held-out rows for each kind; only with "auto".
    reason_ : str
        Which kind was taken and why; only with "auto".

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.features import Network
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (100, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> mixture = Mixture(GPRegressor(approximation=Network(10)), n=2, random_state=0).fit(X, y)
    >>> mean, std = mixture.predict([[np.pi / 2]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1)
    True
    >>> len(mixture.members_of_mixture_)
    2
    """

    def __init__(self, model, n=4, *, kind="mixed", n_jobs=None, random_state=None):
        self.model = model
        self.n = n
        self.kind = kind
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **given: Any) -> "Mixture":
        """Fit every member to X and y; further arguments go to ``fit`` of the model.

        Ctrl-C ends the search of the member in hand, and those that have not begun are left out.
        """
        check_whole("Mixture", "n", self.n)
        if self.kind not in ("mixed", "auto"):
            raise ValueError(f"Mixture(kind={self.kind!r}): choose 'mixed' or 'auto'.")
        rng, kind = check_random_state(self.random_state), "mixed"
        seeds = rng.randint(2**31 - 1, size=self.n)
        for name in ("choice_", "reason_"):
            vars(self).pop(name, None)
        with interrupts.held():
            if self.kind == "auto":
                kind = self._chosen(X, y, given, seeds, rng)
            self.members_of_mixture_ = self._members(kind, X, y, given, seeds)
        self.model_ = mixed(self.members_of_mixture_)
        return self

    def _members(self, kind: str, X: Any, y: Any, given: dict[str, Any], seeds: np.ndarray) -> list[Any]:
        model: Any = self.model
        if kind == "bounded":
            model = _copy(model, approximation=bounded(model.approximation))
        models = [_copy(model, random_state=int(seed)) for seed in (seeds if kind == "mixed" else seeds[:1])]
        if self.n_jobs not in (None, 1):
            return Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(m.fit)(X, y, **given) for m in models)  # pyright: ignore
        members = []
        for member in models:
            members.append(member.fit(X, y, **given))
            if interrupts.happened():
                break
        return members

    def _chosen(self, X: Any, y: Any, given: dict[str, Any], seeds: np.ndarray, rng: np.random.RandomState) -> str:
        """The kind that gives held-out rows the highest log density; the seeds are those of the models to come."""
        n = len(y)
        order = rng.permutation(n)
        held, kept = np.sort(order[: int(HELD_OUT * n)]), np.sort(order[int(HELD_OUT * n) :])
        if len(held) < 5:
            raise ValueError(f"Mixture(kind='auto') holds out a fifth of the rows, at least 5 of them; got {n} rows.")
        part = {name: value if np.ndim(value) == 0 else np.asarray(value)[kept] for name, value in given.items()}
        self.choice_ = {}
        for kind in KINDS:
            model = mixed(self._members(kind, _rows(X, kept), _rows(y, kept), part, seeds))
            self.choice_[kind] = float(np.mean(_log_density(model, _rows(X, held), np.asarray(_rows(y, held)))))
        best = max(self.choice_, key=lambda kind: self.choice_[kind])
        scores = ", ".join(f"{KINDS[kind]} {value:.3f}" for kind, value in self.choice_.items())
        self.reason_ = f"{KINDS[best].capitalize()}: mean log density of {len(held)} rows held out: {scores}."
        return best

    def __getattr__(self, name: str) -> Any:
        """What a fitted estimator has, the mixture has."""
        if name.startswith("__") or "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; fit it first.")
        return getattr(self.model_, name)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)

    def predict(self, X: Any, **options: Any) -> Any:
        """As ``predict`` of the model."""
        check_is_fitted(self)
        return self.model_.predict(X, **options)

    def score(self, X: Any, y: Any) -> float:
        """As ``score`` of the model: R², or the share of labels predicted."""
        check_is_fitted(self)
        return self.model_.score(X, y)

    def save(self, path: Any) -> None:
        """Write ``model_`` to a file that :func:`errorband.load` reads."""
        check_is_fitted(self)
        self.model_.save(path)


def bounded(approximation: Any) -> Any:
    """The approximation with noise bounding."""
    if isinstance(approximation, str) and approximation not in ("auto", "exact"):
        approximation = APPROXIMATION_NAMES(approximation)
    if isinstance(approximation, Features) and approximation.weight_space:
        return WeightSpace(approximation, bound_noise=True)  # pyright: ignore[reportCallIssue]
    if hasattr(approximation, "bound_noise"):
        inducing: Any = approximation
        return dataclasses.replace(inducing, bound_noise=True)
    raise ValueError(
        f"Noise bounding needs features that are learned, such as SparseSpectrum(100, learn=True); got "
        f"approximation={approximation!r}."
    )


def mixed(members: list[Any], weights: Any = None) -> Any:
    """One fitted estimator from several of the same data: a single one is itself.

    It shows the hyperparameters of the first where weights are given, else those of the highest evidence, with equal
    weights.
    """
    if len(members) == 1:
        return members[0]
    if any(len(m.members_) > 1 for m in members):
        raise ValueError("Mixture takes models with one posterior: of one target, or with multi_class='joint'.")
    if weights is None:
        members = sorted(members, key=lambda m: -m.log_evidence_)
        weights = np.full(len(members), 1.0 / len(members))
    model = copy.copy(members[0])
    posteriors, likelihoods = tuple(m.posterior_ for m in members), tuple(m._model.likelihood for m in members)
    model.posterior_ = MixturePosterior(weights=weights, members=posteriors, likelihoods=likelihoods)  # pyright: ignore[reportCallIssue]
    model.mixture_members_ = members
    for name in ("bands_", "sharpness_"):  # of one member
        vars(model).pop(name, None)
    if model.fit_result_ is not None and any(m.fit_result_.interrupted for m in members):
        model.fit_result_ = model.fit_result_.cut_short()
    return model


def with_members(mixture: Any, members: list[Any]) -> Any:
    """A copy of a mixture with other members, of the same weights and in the same order."""
    model = copy.copy(mixture)
    model._take_over(mixed(members, mixture.posterior_.weights))
    return model


def _copy(model: Any, **changes: Any) -> Any:
    unfitted: Any = clone(model)
    return unfitted.set_params(**changes)


def _rows(table: Any, which: np.ndarray) -> Any:
    return table.iloc[which] if hasattr(table, "iloc") else np.asarray(table)[which]


def _log_density(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Log density of targets, or log probability of labels."""
    if hasattr(model, "predictive"):
        return model.predictive(X).log_density(y)
    probabilities = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.log(np.maximum(probabilities, np.finfo(float).tiny))
