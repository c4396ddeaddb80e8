"""Judging a classifier on held-out rows, against class frequencies, logistic regression and boosting."""

from typing import Any

import numpy as np
import pandas as pd

from errorband import metrics
from errorband.reporting.text import percent

SMALLEST = 1e-15  # a probability of zero for what happened would make every average infinite


def judge_classes(
    model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, target: str
) -> tuple[list[tuple[str, dict[str, float]]], str]:
    """Held-out metrics of a fitted classifier and of baselines with the same training rows, and a verdict."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n_classes = int(y.max()) + 1
    frequency = np.bincount(y[train], minlength=n_classes) / len(train)
    found = [
        (
            f"errorband {type(model).__name__}",
            _score(_probabilities(model, X.iloc[test], n_classes), y[test], frequency),
        )
    ]
    found.append(("Class frequencies", _score(np.tile(frequency, (len(test), 1)), y[test], frequency)))
    baselines: dict[str, Any] = {
        "Logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "Gradient boosting": HistGradientBoostingClassifier(random_state=0),
    }
    for name, baseline in baselines.items():
        baseline.fit(X.iloc[train], y[train])
        found.append((name, _score(_probabilities(baseline, X.iloc[test], n_classes), y[test], frequency)))
    own, trivial = found[0][1], found[1][1]
    best = min(found[1:], key=lambda pair: pair[1]["log_loss"])
    words = "sharper" if own["log_loss"] < best[1]["log_loss"] else "no sharper"
    verdict = (
        f"It gets {percent(1 - own['error_rate'])} of {len(test):,} held-out rows of {target} right, where the most "
        f"frequent class would get {percent(1 - trivial['error_rate'])}; its probabilities are {words} than those of "
        f"the best baseline ({best[0].lower()})."
    )
    return found, verdict


def _probabilities(model: Any, X: pd.DataFrame, n_classes: int) -> np.ndarray:
    """Probability of every class, also of those that the training rows lacked."""
    full = np.zeros((len(X), n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
    return full


def _score(share: np.ndarray, y: np.ndarray, frequency: np.ndarray) -> dict[str, float]:
    true = np.clip(share[np.arange(len(y)), y], SMALLEST, 1.0)
    return {
        "error_rate": float(np.mean(share.argmax(axis=1) != y)),
        "log_loss": float(-np.mean(np.log(true))),
        "information": metrics.information_bits(true, np.clip(frequency[y], SMALLEST, 1.0)),
    }
