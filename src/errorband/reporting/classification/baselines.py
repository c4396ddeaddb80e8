"""Simple ways to predict class probabilities: the same in reports, ``errorband fit`` and ``compare``."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from errorband.reporting.classification.scores import class_score
from errorband.reporting.parts.comparison import EXACT_BOOSTING_ROWS, MAX_BOOSTING_ROWS, Scores

FREQUENCIES = "Class frequencies"
ClassBaseline = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray | None]


def class_baseline_scores(
    X_train: np.ndarray, codes_train: np.ndarray, X: np.ndarray, codes: np.ndarray, n_classes: int
) -> list[Scores]:
    """Return the scores of all :data:`CLASS_BASELINES` that can be fitted to the training rows.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> [s.name for s in class_baseline_scores(x, (x[:, 0] > 0).astype(int), x, (x[:, 0] > 0).astype(int), 2)]
    ['Class frequencies', 'Logistic regression', 'Gradient boosting']
    """
    frequency = np.bincount(codes_train, minlength=n_classes) / len(codes_train)
    found: list[Scores] = []
    for name, (note, fit) in CLASS_BASELINES.items():
        share = fit(X_train, codes_train, X, n_classes)
        if share is not None:
            found.append(class_score(name, note, codes, share, frequency))
    return found


def probabilities(model: Any, X: Any, n_classes: int) -> np.ndarray:
    """Return the probability of every class 0 … C − 1 as columns; zero for those the training rows lacked."""
    full = np.zeros((len(X), n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    return full


def _frequencies(X_train: np.ndarray, codes: np.ndarray, X: np.ndarray, n_classes: int) -> np.ndarray | None:
    return np.tile(np.bincount(codes, minlength=n_classes) / len(codes), (len(X), 1))


def _logistic(X_train: np.ndarray, codes: np.ndarray, X: np.ndarray, n_classes: int) -> np.ndarray | None:
    if len(np.unique(codes)) < 2:
        return None
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return probabilities(model.fit(X_train, codes), X, n_classes)


def _boosting(X_train: np.ndarray, codes: np.ndarray, X: np.ndarray, n_classes: int) -> np.ndarray | None:
    n = len(codes)
    if not 20 <= n <= MAX_BOOSTING_ROWS or len(np.unique(codes)) < 2:
        return None
    trees: Any = (
        GradientBoostingClassifier(subsample=0.8, random_state=0)
        if n <= EXACT_BOOSTING_ROWS
        else HistGradientBoostingClassifier(random_state=0)
    )
    return probabilities(trees.fit(X_train, codes), X, n_classes)


# By name: what it is, and a function of training inputs, classes 0 … C − 1, new inputs and C that returns probabilities
# (n, C) of the new rows, or None where it cannot be fitted.
CLASS_BASELINES: dict[str, tuple[str, ClassBaseline]] = {
    FREQUENCIES: ("the shares of the classes among the training rows, whatever the inputs", _frequencies),
    "Logistic regression": ("linear in the standardised inputs", _logistic),
    "Gradient boosting": ("scikit-learn's trees", _boosting),
}
