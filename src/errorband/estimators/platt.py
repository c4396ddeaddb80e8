"""Probabilities from scores: Platt scaling with the normal cdf or the logistic function."""

from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import expit, log_expit, log_ndtr, ndtr
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from errorband.estimators.probabilistic import ProbabilisticClassifier
from errorband.parameters.checks import check_whole

LINKS = {"probit": (log_ndtr, ndtr), "logit": (log_expit, expit)}


def fit_sigmoid(
    score: np.ndarray, sign: np.ndarray, link: str = "probit", variance: np.ndarray | None = None
) -> tuple[float, float]:
    """A and b of p(+1) = s(af + b) that make the signs (±1) most probable, with a ≥ 0.

    With the variance of each score, p(+1) = Φ((af + b)/√(1 + a²v)): the average over a normal score. Of the labels, as
    many as there are classes count as unknown (Platt 2000), so that a stays finite where scores separate the classes.
    """
    log_s = LINKS[link][0]
    size = float(np.std(score)) or 1.0
    positive, negative = np.sum(sign > 0), np.sum(sign < 0)
    soft = np.where(sign > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(theta: np.ndarray) -> float:
        z = _standardised(score, variance, np.exp(theta[0]) / size, theta[1])
        return -float(np.sum(soft * log_s(z) + (1 - soft) * log_s(-z)))

    found = scipy.optimize.minimize(loss, np.array([0.0, 0.0]), method="Nelder-Mead", options={"maxiter": 2000})
    return float(np.exp(found.x[0]) / size), float(found.x[1])


def sigmoid(score: np.ndarray, a: float, b: float, link: str = "probit", variance: np.ndarray | None = None) -> Any:
    """p(+1) of each score."""
    return LINKS[link][1](_standardised(score, variance, a, b))


def _standardised(score: np.ndarray, variance: np.ndarray | None, a: float, b: float) -> np.ndarray:
    z = a * score + b
    return z if variance is None else z / np.sqrt(1 + a**2 * variance)


def one_against_rest(columns: np.ndarray) -> np.ndarray:
    """Probabilities (n, C) of all classes from those of each against the rest; of the second of two from one column."""
    if columns.shape[1] == 1:
        return np.concatenate([1 - columns, columns], axis=1)
    shares = np.maximum(columns, np.finfo(float).tiny)
    return shares / shares.sum(axis=1, keepdims=True)


class PlattScaling(ProbabilisticClassifier):
    r"""Probabilities for any classifier with scores, such as a support vector machine (Platt 2000).

    p(y = ±1) = s(±(af + b)), with a and b fitted to scores f of rows that the classifier was not fitted to, and s the
    normal cdf or Platt's logistic function. With several classes each has a sigmoid of its own, against the rest.

    Parameters
    ----------
    estimator : classifier, optional
        With ``decision_function`` or ``predict_proba``. Default: scikit-learn's ``SVC()``. A model with another
        package's estimator in it is kept by pickle, not by ``save``.
    link : {"probit", "logit"}
        s.
    cv : int
        Number of folds in which scores are made.
    normalize : bool
        Standardise the inputs first.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all rows.
    slopes_, offsets_ : arrays
        a and b, of each class against the rest; of two classes for the second.
    classes_, class_prior_, scaling_, n_features_in_, feature_names_in_
        As in :class:`GPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=100) > 0, "right", "left")
    >>> model = PlattScaling().fit(X, y)
    >>> model.predict([[1.0, 0.0], [-1.0, 0.0]]).tolist()
    ['right', 'left']
    """

    def __init__(self, estimator=None, *, link="probit", cv=5, normalize=True):
        self.estimator = estimator
        self.link = link
        self.cv = cv
        self.normalize = normalize

    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        if self.link not in LINKS:
            raise ValueError(f"link={self.link!r}: choose 'probit' or 'logit'.")
        check_whole(type(self).__name__, "cv", self.cv, least=2)
        template: Any = SVC() if self.estimator is None else clone(self.estimator)
        method = "decision_function" if hasattr(template, "decision_function") else "predict_proba"
        if not hasattr(template, method):
            raise TypeError(
                f"Platt scaling needs a classifier with decision_function or predict_proba; got {template!r}."
            )
        folds = min(self.cv, int(np.min(np.bincount(codes))))
        if folds < 2:
            rare = self.classes_[np.argmin(np.bincount(codes))].item()
            raise ValueError(f"Platt scaling needs two rows or more of each class; {rare!r} has one. Add rows of it.")
        splits = StratifiedKFold(folds, shuffle=True, random_state=0)
        held_out: Any = cross_val_predict(template, scaled, codes, cv=splits, method=method)
        scores = _columns(held_out, len(self.classes_))
        self.estimator_ = template.fit(scaled, codes)
        self._method = method
        signs = np.where(codes[:, None] == np.arange(len(self.classes_))[-scores.shape[1] :], 1.0, -1.0)
        found = [fit_sigmoid(scores[:, c], signs[:, c], self.link) for c in range(scores.shape[1])]
        self.slopes_, self.offsets_ = (np.array(values) for values in zip(*found, strict=True))

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        scores = _columns(getattr(self.estimator_, self._method)(scaled), len(self.classes_))
        each = [sigmoid(s, a, b, self.link) for s, a, b in zip(scores.T, self.slopes_, self.offsets_, strict=True)]
        return one_against_rest(np.stack(each, axis=1))


def _columns(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Scores (n, C), of two classes that of the second only."""
    scores = scores[:, None] if scores.ndim == 1 else scores
    return scores[:, 1:] if n_classes == 2 and scores.shape[1] == 2 else scores
