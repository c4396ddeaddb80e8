"""A normal distribution for each class."""

import numpy as np

from errorband import linalg
from errorband.estimators.probabilistic import ProbabilisticClassifier, softmax
from errorband.parameters.checks import check_number


class GenerativeGaussianClassifier(ProbabilisticClassifier):
    r"""Inputs of each class are normal, p(x | c) = N(μ_c, Σ_c), and Bayes' rule does the rest.

    With one covariance for all classes the log odds are linear in x, as in logistic regression (Rasmussen & Williams
    2006, §3.1); with one for each they are quadratic. Closed form, O(ND²): the baseline for inputs that are numbers.

    Parameters
    ----------
    covariance : {"shared", "each"}
        One covariance for all classes, or one for each.
    regularisation : float
        Share of the average variance that is added to all variances; constant and collinear columns need some.
    normalize : bool
        Standardise the inputs first.

    Attributes
    ----------
    means_ : array (C, D)
        Of standardised inputs.
    covariances_ : array (C, D, D)
    log_evidence_ : float
        Log density of inputs and labels.
    classes_, class_prior_, scaling_, n_features_in_, feature_names_in_
        As in :class:`GPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GenerativeGaussianClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-1, 1, (50, 2)), rng.normal(1, 1, (50, 2))])
    >>> model = GenerativeGaussianClassifier().fit(X, np.repeat(["low", "high"], 50))
    >>> model.predict([[-1.0, -1.0], [1.0, 1.0]]).tolist()
    ['low', 'high']
    """

    def __init__(self, *, covariance="shared", regularisation=1e-3, normalize=True):
        self.covariance = covariance
        self.regularisation = regularisation
        self.normalize = normalize

    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        if self.covariance not in ("shared", "each"):
            raise ValueError(f"covariance={self.covariance!r}: choose 'shared' or 'each'.")
        check_number(type(self).__name__, "regularisation", self.regularisation)
        C, D = len(self.classes_), scaled.shape[1]
        self.means_ = np.stack([scaled[codes == c].mean(axis=0) for c in range(C)])
        centred = scaled - self.means_[codes]
        scatter = np.stack([centred[codes == c].T @ centred[codes == c] for c in range(C)])
        if self.covariance == "shared":
            scatter = np.broadcast_to(scatter.sum(axis=0) / len(codes), (C, D, D))
        else:
            scatter = scatter / np.bincount(codes)[:, None, None]
        size = max(float(np.mean(scaled**2)), np.finfo(float).tiny)
        self.covariances_ = scatter + self.regularisation * size * np.eye(D)
        joint = self._log_joint(scaled)
        self.log_evidence_ = float(np.sum(joint[np.arange(len(codes)), codes]))

    def _log_joint(self, scaled: np.ndarray) -> np.ndarray:
        columns = []
        for mean, cov, share in zip(self.means_, self.covariances_, self.class_prior_, strict=True):
            chol = linalg.cholesky(cov)
            z = linalg.solve_lower(chol.factor, np.asfortranarray((scaled - mean).T))
            log_det = chol.log_det + len(mean) * np.log(2 * np.pi)
            columns.append(np.log(share) - 0.5 * (np.sum(z**2, axis=0) + log_det))
        return np.stack(columns, axis=1)

    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        return softmax(self._log_joint(scaled))
