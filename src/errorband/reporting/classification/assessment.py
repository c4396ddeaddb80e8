"""How good a fitted classifier is on held-out rows: metrics beside those of baselines, reliability, and a verdict."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.reporting.classification.baselines import FREQUENCIES, class_baseline_scores
from errorband.reporting.classification.scores import class_score
from errorband.reporting.parts.comparison import Comparison, Scores, paired
from errorband.reporting.parts.coverage import FEW_ROWS, coverage_range
from errorband.reporting.parts.data import check_rows, training
from errorband.reporting.text import count, listing, percent


@dataclasses.dataclass(frozen=True)
class Reliability:
    """How often the predicted class is right in bins of its probability; ``low`` and ``high`` as chance allows."""

    confidence: np.ndarray
    frequency: np.ndarray
    count: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclasses.dataclass(frozen=True)
class ClassificationAssessment:
    """What held-out rows say about a classifier.

    Attributes
    ----------
    codes : array (n,)
        Positions of the held-out labels in ``classes_``.
    probabilities : array (n, C)
        Predicted probabilities of the classes.
    scores : tuple of Scores
        Metrics of the model, then of the baselines.
    comparisons : tuple of Comparison
        The model against each baseline.
    reliability : Reliability
        How often the predicted class is right, by its probability.
    verdict : tuple of str
        The model in a few sentences.
    """

    codes: np.ndarray
    probabilities: np.ndarray
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    reliability: Reliability
    verdict: tuple[str, ...]


def assess_classification(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    baselines: bool = True,
    target: str = "target",
) -> ClassificationAssessment:
    """Predict held-out rows, train the baselines and compare; arguments as in :func:`errorband.reporting.report`."""
    train_X, train = training(model, X_train, y_train, lambda y: class_codes(model, y, "y_train"))
    test_X, codes = effects.inputs(model, X_test), class_codes(model, y_test, "y_test")
    check_rows(test_X, codes, "test")
    n = len(model.classes_)
    share = quiet(model.predict_proba, X_test)
    frequency = np.bincount(train, minlength=n) / len(train)
    own = class_score(type(model).__name__, "this model", codes, share, frequency)
    others = class_baseline_scores(train_X, train, test_X, codes, n) if baselines else []
    comparisons = tuple(paired(own, other) for other in others)
    sentences = class_verdict([own, *others], comparisons, target, len(codes))
    return ClassificationAssessment(
        codes, share, (own, *others), comparisons, reliability_of(codes, share), tuple(sentences)
    )


def class_codes(model: Any, y: Any, name: str) -> np.ndarray:
    """Return labels as positions in ``classes_``."""
    labels = np.asarray(y).ravel()
    known = np.isin(labels, model.classes_)
    if not known.all():
        strange = ", ".join(map(repr, np.unique(labels[~known]).tolist()[:3]))
        raise ValueError(f"{name} has labels the model was not fitted to: {strange}. Leave those rows out.")
    return np.searchsorted(model.classes_, labels)


def reliability_of(codes: np.ndarray, share: np.ndarray) -> Reliability:
    """Return the reliability curve, and the range chance allows a calibrated model."""
    confidence, frequency, number = metrics.reliability_curve(codes, share, np.arange(share.shape[1]))
    low, high = coverage_range(number, confidence, 0.95)
    return Reliability(confidence, frequency, number, low, high)


def class_verdict(scores: Sequence[Scores], comparisons: Sequence[Comparison], target: str, n_test: int) -> list[str]:
    """Return the model in a few sentences: accuracy, and its probabilities against those of the baselines."""
    own = scores[0].values
    trivial = next((s.values for s in scores[1:] if s.name == FREQUENCIES), None)
    first = f"it gets {percent(1 - own['error_rate'])} of {count(n_test, 'held-out row')} of {target} right"
    if trivial is not None:
        first += f", where the most frequent class would get {percent(1 - trivial['error_rate'])}"
    rivals = [c for c in comparisons if c.baseline != FREQUENCIES]
    phrases = {
        "better": "sharper than those of {}",
        "even": "about as sharp as those of {} (the difference could be chance)",
        "worse": "less sharp than those of {}",
    }
    named = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in phrases}
    parts = [phrases[v].format(listing(names)) for v, names in named.items() if names]
    second = f"its probabilities are {listing(parts)}" if parts else ""
    third = "these rows are too few to judge it closely" if n_test < FEW_ROWS else ""
    return [f"{s[0].upper()}{s[1:]}." for s in (first, second, third) if s]
