"""What classifiers that are no Gaussian processes share: labels, scaling, probabilities, decisions, files."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband.estimators.base import Savable
from errorband.estimators.classifier import GPClassifier
from errorband.estimators.scaling import Scaling
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude


class ProbabilisticClassifier(Savable, ClassifierMixin, BaseEstimator):
    """Base: a subclass fits standardised inputs and codes of labels, and gives probabilities of standardised inputs."""

    normalize: bool

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to inputs X (n, D) and labels y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
            Labels of two or more classes.
        """
        check_columns_are_numeric(X)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        check_magnitude(X, "X")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"A classifier needs two classes or more; y has one class ({self.classes_.tolist()[0]!r}). Add rows of "
                "another class."
            )
        self.class_prior_ = np.bincount(codes) / len(codes)
        everything = np.zeros(X.shape[1], bool)
        self.scaling_ = Scaling.standardise(X, None, everything) if self.normalize else Scaling.identity(X.shape[1])
        self._rows, self._codes = self.scaling_.inputs(X), codes
        self._fit(self._rows, codes)
        return self

    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        raise NotImplementedError

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        check_columns_are_numeric(X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        check_magnitude(X, "X")
        return self.scaling_.inputs(X)

    def training_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs (n, D) and labels (n,) the model learned from, in the units of the data."""
        check_is_fitted(self)
        return self._rows * self.scaling_.x_scale + self.scaling_.x_shift, self.classes_[self._codes]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class: (n, C), columns in the order of ``classes_``."""
        return self._probabilities(self._inputs(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    decide = GPClassifier.decide


def softmax(log_p: np.ndarray) -> np.ndarray:
    """Probabilities from their logarithms up to a constant."""
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
