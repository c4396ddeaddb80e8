"""Held-out metrics of a classifier and of simple baselines that had the same training rows, and a verdict in words."""

from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from errorband import metrics
from errorband.reporting.checks import FEW_ROWS
from errorband.reporting.scores import EXACT_BOOSTING_ROWS, MAX_BOOSTING_ROWS, Comparison, Metric, Scores
from errorband.reporting.text import count, listing, percent

SMALLEST = 1e-15  # a probability of zero for what happened would make every average infinite
FREQUENCIES = "Class frequencies"

CLASS_METRICS: tuple[Metric, ...] = (
    Metric("error_rate", "Errors", "Share of the rows whose most probable class is not the true one.", "low"),
    Metric("log_loss", "Log loss", "How surprised the model is by the truth, on average: minus the log of the "
           "probability it gave to the true class. It punishes errors and probabilities that are too bold or too shy.",
           "low", decimals=3),
    Metric("information", "Information", "What the inputs tell about {target}, in bits per row: 0 is no more than the "
           "class frequencies of the training rows tell, below 0 misleads.", "high", decimals=3),
    Metric("calibration_error", "Calibration error", "How far, on average, the probability of the predicted class is "
           "from how often it is right, in ten bins. Few rows make it larger by chance; the same probabilities for all "
           "rows make it small.", ""),
)  # fmt: skip
SHARES = {"error_rate", "calibration_error"}  # shown as percentages


def class_score(name: str, note: str, codes: np.ndarray, share: np.ndarray, frequency: np.ndarray) -> Scores:
    """All metrics of probabilities (n, C), given the true classes by position.

    ``frequency`` (C,) are the shares of the classes in the training rows, or (n, C) if they differ from row to row.
    """
    rows = np.arange(len(codes))
    frequent = np.broadcast_to(frequency, share.shape)[rows, codes]
    true = np.clip(share[rows, codes], SMALLEST, 1.0)
    values = {
        "error_rate": float(np.mean(share.argmax(axis=1) != codes)),
        "log_loss": float(-np.mean(np.log(true))),
        "information": metrics.information_bits(true, np.clip(frequent, SMALLEST, 1.0)),
        "calibration_error": metrics.expected_calibration_error(codes, share, np.arange(share.shape[1])),
    }
    return Scores(name, note, values, -np.log(true))


def class_baselines(X_train: np.ndarray, codes_train: np.ndarray, X: np.ndarray, codes: np.ndarray, n_classes: int):
    """Scores of the class frequencies, logistic regression and gradient boosting, without those that cannot be fitted.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> [s.name for s in class_baselines(x, (x[:, 0] > 0).astype(int), x, (x[:, 0] > 0).astype(int), 2)]
    ['Class frequencies', 'Logistic regression', 'Gradient boosting']
    """
    frequency = np.bincount(codes_train, minlength=n_classes) / len(codes_train)
    note = "the shares of the classes among the training rows, whatever the inputs"
    found = [class_score(FREQUENCIES, note, codes, np.tile(frequency, (len(codes), 1)), frequency)]
    n = len(codes_train)
    for name, note, baseline in (
        ("Logistic regression", "linear in the standardised inputs", _logistic()),
        ("Gradient boosting", "scikit-learn's trees", _boosting(n)),
    ):
        if baseline is not None and len(np.unique(codes_train)) > 1:
            baseline.fit(X_train, codes_train)
            share = probabilities(baseline, X, n_classes)
            found.append(class_score(name, note, codes, share, frequency))
    return found


def probabilities(model: Any, X: Any, n_classes: int) -> np.ndarray:
    """Probability of every class 0 … C − 1, also of those that the training rows lacked."""
    full = np.zeros((len(X), n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    return full


def class_verdict(scores: list[Scores], comparisons: list[Comparison], target: str, n_test: int) -> list[str]:
    """The model in a few sentences."""
    own = scores[0].values
    trivial = next((s.values for s in scores[1:] if s.name == FREQUENCIES), None)
    first = f"it gets {percent(1 - own['error_rate'])} of {count(n_test, 'held-out row')} of {target} right"
    if trivial is not None:
        first += f", where the most frequent class would get {percent(1 - trivial['error_rate'])}"
    rivals = [c for c in comparisons if c.baseline != FREQUENCIES]
    phrases = {
        "better": "its probabilities are sharper than those of {}",
        "even": "they are about as sharp as those of {} (the difference could be chance)",
        "worse": "they are less sharp than those of {}",
    }
    named = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in phrases}
    parts = [phrases[v].format(listing(names)) for v, names in named.items() if names]
    if parts:
        parts[0] = parts[0].replace("they are", "its probabilities are")
    second = listing(parts) if parts else ""
    third = "these rows are too few to judge it closely" if n_test < FEW_ROWS else ""
    return [f"{s[0].upper()}{s[1:]}." for s in (first, second, third) if s]


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _boosting(n: int) -> Any:
    if not 20 <= n <= MAX_BOOSTING_ROWS:
        return None
    if n <= EXACT_BOOSTING_ROWS:
        return GradientBoostingClassifier(subsample=0.8, random_state=0)
    return HistGradientBoostingClassifier(random_state=0)
