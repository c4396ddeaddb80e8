"""Transductive classification: unlabelled rows take part in the fit."""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_array

from errorband.estimators.classifier import GPClassifier
from errorband.estimators.probabilistic import ProbabilisticClassifier
from errorband.kernels.padded import diagonal, gram
from errorband.parameters.checks import check_whole
from errorband.precision import in_double_precision

NEWTON = 50  # steps for one mode, at most


class TransductiveGPClassifier(ProbabilisticClassifier):
    r"""The mode of the latent function over labelled and unlabelled rows, and of the missing labels, for two classes.

    By turns (expectation maximisation): given probabilities p of the missing labels, the mode of

        Σ_labelled log s(yf) + Σ_unlabelled [p log s(f) + (1 − p) log s(−f)] − ½ fᵀK⁻¹f,       s logistic;

    given f, p = s(f), which maximises the expectation plus the entropy of p ("entropic"), or the sign of f, which
    maximises the expectation alone ("hard"). Hyperparameters are those of a :class:`GPClassifier` of the labelled rows.
    Hard labels push the decision line into gaps between the rows; entropic ones hardly move it.

    Parameters
    ----------
    kernel : Kernel, optional
        As in :class:`GPClassifier`.
    labels : {"hard", "entropic"}
        What missing labels are between two modes.
    max_iter : int
        Turns, at most.
    optimizer : "lbfgs", LBFGS or None
        Search for hyperparameters on the labelled rows; None keeps the given values.
    normalize : bool
        Standardise the inputs first.
    random_state : int, RandomState or None
        Passed to the classifier of the labelled rows.

    Attributes
    ----------
    first_ : GPClassifier
        Of the labelled rows alone.
    n_iter_ : int
        Turns until labels no longer changed.
    objective_ : array (n_iter_ + 1,)
        What is maximised, after each turn.
    transduction_ : array
        Labels of the unlabelled rows.
    log_evidence_ : float
        Of the labelled rows.
    classes_, class_prior_, scaling_, n_features_in_, feature_names_in_
        As in :class:`GPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import TransductiveGPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 0.5, (30, 1)), rng.normal(2, 0.5, (30, 1))])
    >>> model = TransductiveGPClassifier().fit([[-1.0], [-1.5], [2.5], [2.0]], ["a", "a", "b", "b"], unlabelled=X)
    >>> model.predict([[-2.0], [2.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self, kernel=None, *, labels="hard", max_iter=50, optimizer="lbfgs", normalize=True, random_state=None
    ):
        self.kernel = kernel
        self.labels = labels
        self.max_iter = max_iter
        self.optimizer = optimizer
        self.normalize = normalize
        self.random_state = random_state

    def fit(self, X: Any, y: Any, unlabelled: Any = None) -> "TransductiveGPClassifier":
        """Fit to labelled rows and, if there are any, unlabelled ones.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
            Labels of two classes.
        unlabelled : array or DataFrame (m, D), optional
            Rows whose labels are asked for.
        """
        if self.labels not in ("hard", "entropic"):
            raise ValueError(f"labels={self.labels!r}: choose 'hard' or 'entropic'.")
        check_whole(type(self).__name__, "max_iter", self.max_iter)
        self._unlabelled = None if unlabelled is None else check_array(unlabelled, dtype="float64")
        return super().fit(X, y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # pyright: ignore[reportOptionalMemberAccess]
        return tags

    @in_double_precision
    def _fit(self, scaled: np.ndarray, codes: np.ndarray) -> None:
        unlabelled = vars(self).pop("_unlabelled")
        if unlabelled is not None and unlabelled.shape[1] != scaled.shape[1]:
            raise ValueError(
                f"unlabelled has {unlabelled.shape[1]} columns and X has {scaled.shape[1]}; give the same."
            )
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported by TransductiveGPClassifier; y has {len(self.classes_)} "
                "classes: use GPClassifier for more."
            )
        self.first_ = GPClassifier(
            self.kernel, likelihood="logit", optimizer=self.optimizer, normalize=False, random_state=self.random_state
        ).fit(scaled, codes)
        self.log_evidence_ = self.first_.log_evidence_
        extra = np.zeros((0, scaled.shape[1])) if unlabelled is None else self.scaling_.inputs(unlabelled)
        kernel: Any = self.first_.kernel_
        self._all_rows = np.concatenate([scaled, extra])
        K = gram(kernel, self._all_rows, self._all_rows)
        n, f = len(codes), np.zeros(len(self._all_rows))
        guess = expit(self.first_.predict_latent(extra)[0]) if len(extra) else np.zeros(0)
        target = np.concatenate([codes.astype(float), guess])
        if self.labels == "hard":
            target[n:] = target[n:] > 0.5
        self.objective_: Any = []
        for turn in range(self.max_iter):
            self.n_iter_ = turn + 1
            self._weights, self._curvature, f = _mode(K, target, f)
            new = target.copy()
            new[n:] = f[n:] > 0 if self.labels == "hard" else expit(f[n:])
            self.objective_.append(_objective(K, self._weights, f, new, n if self.labels == "entropic" else None))
            moved, target = np.max(np.abs(new - target), initial=0.0), new
            if moved < 1e-6:
                break
        self.objective_ = np.array(self.objective_)
        self.transduction_ = self.classes_[(f[n:] > 0).astype(int)]

    @in_double_precision
    def _probabilities(self, scaled: np.ndarray) -> np.ndarray:
        kernel: Any = self.first_.kernel_
        cross = gram(kernel, scaled, self._all_rows)
        root = np.sqrt(self._curvature)
        K = gram(kernel, self._all_rows, self._all_rows)
        B = np.eye(len(K)) + root[:, None] * K * root
        half = root[:, None] * cross.T
        variance = diagonal(kernel, scaled) - np.sum(half * np.linalg.solve(B, half), axis=0)
        mean = cross @ self._weights
        return self.first_.likelihood_.class_probabilities(mean[:, None], np.maximum(variance, 0.0)[:, None, None])


def _mode(K: np.ndarray, target: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights a with f = Ka, curvature and f at the mode, by Newton's method on B = I + W½KW½."""
    a = np.zeros(len(K))
    for _ in range(NEWTON):
        p = expit(f)
        W = p * (1 - p)
        root = np.sqrt(W)
        b = W * f + target - p
        B = np.eye(len(K)) + root[:, None] * K * root
        new = b - root * np.linalg.solve(B, root * (K @ b))
        moved = np.max(np.abs(K @ new - f))
        a, f = new, K @ new
        if moved < 1e-8:
            break
    return a, expit(f) * (1 - expit(f)), f


def _objective(K: np.ndarray, a: np.ndarray, f: np.ndarray, target: np.ndarray, entropy_from: int | None) -> float:
    """Log posterior of f and, expected, of the labels; with their entropy from some row on."""
    value = float(np.sum(target * f - np.logaddexp(0.0, f)) - 0.5 * a @ f)
    if entropy_from is None:
        return value
    p = np.clip(target[entropy_from:], 1e-12, 1 - 1e-12)
    return value - float(np.sum(p * np.log(p) + (1 - p) * np.log(1 - p)))
