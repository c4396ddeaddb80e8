"""How good a fitted classifier is on held-out rows: metrics beside those of baselines, reliability, and a verdict."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics, missing
from errorband.missing import Donors
from errorband.reporting.classification.baselines import FREQUENCIES, class_baseline_scores
from errorband.reporting.classification.scores import class_score
from errorband.reporting.parts.comparison import Comparison, Scores, paired
from errorband.reporting.parts.coverage import FEW_ROWS, coverage_range
from errorband.reporting.parts.data import check_rows, training
from errorband.reporting.text import count, listing, number, percent

RARE = 0.2  # a class of two with a smaller share: accuracy says little


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
    class_reliability : tuple of Reliability
        How often each class occurs, by its probability.
    verdict : tuple of str
        The model in a few sentences.
    """

    codes: np.ndarray
    probabilities: np.ndarray
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    reliability: Reliability
    class_reliability: tuple[Reliability, ...]
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
    donors: Donors | None = None,
    class_names: Sequence[str] | None = None,
) -> ClassificationAssessment:
    """Predict held-out rows, train the baselines and compare; arguments as in :func:`errorband.reporting.report`."""
    train_X, train = training(model, X_train, y_train, lambda y: class_codes(model, y, "y_train"))
    test_X, codes = effects.inputs(model, X_test), class_codes(model, y_test, "y_test")
    check_rows(test_X, codes, "test")
    n = len(model.classes_)
    share = missing.probabilities(model, test_X, donors)
    frequency = np.bincount(train, minlength=n) / len(train)
    own = class_score(type(model).__name__, "this model", codes, share, frequency)
    filled = test_X if donors is None else donors.filled(test_X)
    others = class_baseline_scores(train_X, train, filled, codes, n) if baselines else []
    comparisons = tuple(paired(own, other, "log_loss") for other in others)
    names = [str(c) for c in (model.classes_ if class_names is None else class_names)]
    sentences = class_verdict([own, *others], comparisons, target, codes, share, names)
    each = tuple(reliability_of_class(codes == c, share[:, c]) for c in range(n))
    return ClassificationAssessment(
        codes, share, (own, *others), comparisons, reliability_of(codes, share), each, tuple(sentences)
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


def reliability_of_class(is_it: np.ndarray, share: np.ndarray) -> Reliability:
    """Return how often a class occurs in bins of its probability, with about as many rows each."""
    order = np.argsort(share, kind="stable")
    parts = [part for part in np.array_split(order, min(8, max(1, len(order) // 15))) if len(part)]
    said, found = (np.array([float(np.mean(v[part])) for part in parts]) for v in (share, is_it))
    number = np.array([len(part) for part in parts])
    low, high = coverage_range(number, said, 0.95)
    return Reliability(said, found, number, low, high)


def class_verdict(
    scores: Sequence[Scores],
    comparisons: Sequence[Comparison],
    target: str,
    codes: np.ndarray,
    share: np.ndarray,
    names: Sequence[str],
) -> list[str]:
    """Return the model in a few sentences: how well it tells the classes apart, and its probabilities beside others'.

    Where one of two classes is rare, always naming the other is right nearly always: accuracy says nothing then, and
    the sentence is about how well rows of the rare class are found.
    """
    rare = rare_class(codes, share.shape[1])
    first = (
        _accuracy(scores, target, len(codes)) if rare is None else _finding(scores, codes, share, rare, names, target)
    )
    rivals = [c for c in comparisons if c.baseline != FREQUENCIES]
    phrases = {
        "better": "sharper than those of {}",
        "even": "about as sharp as those of {} (the difference could be chance)",
        "worse": "less sharp than those of {}",
    }
    named = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in phrases}
    parts = [phrases[v].format(listing(names)) for v, names in named.items() if names]
    second = f"its probabilities are {listing(parts)}" if parts else ""
    third = "these rows are too few to judge it closely" if len(codes) < FEW_ROWS else ""
    return [f"{s[0].upper()}{s[1:]}." for s in (first, second, third) if s]


def rare_class(codes: np.ndarray, n_classes: int) -> int | None:
    """Return the position of the rarer of two classes, if it is rare among the held-out rows."""
    if n_classes != 2:
        return None
    share = float(np.mean(codes == 1))
    return None if RARE < share < 1 - RARE or share in (0.0, 1.0) else int(share <= RARE)


def _accuracy(scores: Sequence[Scores], target: str, n: int) -> str:
    own = scores[0].values
    trivial = next((s.values for s in scores[1:] if s.name == FREQUENCIES), None)
    text = f"it gets {percent(1 - own['error_rate'])} of {count(n, 'held-out row')} of {target} right"
    if trivial is not None:
        text += f", where the most frequent class would get {percent(1 - trivial['error_rate'])}"
    return text


def _finding(
    scores: Sequence[Scores], codes: np.ndarray, share: np.ndarray, rare: int, names: Sequence[str], target: str
) -> str:
    of_class = codes == rare
    n = int(of_class.sum())
    top = np.argsort(-share[:, rare], kind="stable")[:n]
    auc, error = scores[0].values["auc"], scores[0].errors["auc"]
    few = f", give or take {number(error, decimals=2)}" if np.isfinite(error) else ""
    return (
        f"{percent(n / len(codes))} of {count(len(codes), 'held-out row')} of {target} are {names[rare]}; it ranks "
        f"them above the others with probability {number(auc, decimals=3)} (AUC{few}), and of the {count(n, 'row')} it "
        f"finds most likely {names[rare]}, {percent(float(np.mean(of_class[top])))} are"
    )
