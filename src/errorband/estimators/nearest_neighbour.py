"""The nearest neighbour with a probability."""

from typing import ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from errorband.estimators.probabilistic import ProbabilisticClassifier


class ProbabilisticNearestNeighbour(ProbabilisticClassifier):
    """The label of the nearest row, with the probability that this is right: a baseline that is hard to beat in errors.

    The probability π is the share of training rows whose nearest other row has their label; the other classes share
    1 − π (Rasmussen & Williams 2006, §3.7.3). It is the same everywhere: to leave rows undecided, go by
    :meth:`distance`.

    Parameters
    ----------
    normalize : bool
        Standardise the inputs first.

    Attributes
    ----------
    accuracy_ : float
        π, kept below 1 by half a row.
    classes_, class_prior_, scaling_, n_features_in_, feature_names_in_
        As in :class:`GPClassifier`.

    Examples
    --------
    >>> from errorband import ProbabilisticNearestNeighbour
    >>> model = ProbabilisticNearestNeighbour().fit([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.6], [5.4]]).tolist(), model.accuracy_
    (['a', 'b'], 0.875)
    >>> model.predict_proba([[0.6]])
    array([[0.875, 0.125]])
    """

    short_names: ClassVar = {"nearest-neighbour": {}, "p1nn": {}}

    def __init__(self, *, normalize=True):
        self.normalize = normalize

    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        n = len(codes)
        # Of duplicates either may come first: the nearest other row is the one that is not the row itself.
        _, near = NearestNeighbors(n_neighbors=2).fit(scaled).kneighbors(scaled)
        other = np.where(near[:, 0] == np.arange(n), near[:, 1], near[:, 0])
        right = float(np.mean(codes[other] == codes))
        self.accuracy_ = min(max(right, 0.5 / n), 1.0 - 0.5 / n)

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        C = len(self.classes_)
        p = np.full((len(scaled), C), (1.0 - self.accuracy_) / (C - 1))
        p[np.arange(len(scaled)), self._codes[self._nearest(scaled)[1]]] = self.accuracy_
        return p

    def distance(self, X) -> np.ndarray:
        """Distance of each row to the nearest training row, of standardised inputs: large where nothing is known."""
        return self._nearest(self._inputs(X))[0]

    def _nearest(self, scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distance, row = NearestNeighbors(n_neighbors=1).fit(self._rows).kneighbors(scaled)
        return distance[:, 0], row[:, 0]
