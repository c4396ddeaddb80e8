"""Judging a classifier on held-out rows, against class frequencies, logistic regression and boosting."""

from typing import Any

import numpy as np
import pandas as pd

from errorband.reporting.class_scores import class_baselines, class_score, class_verdict, probabilities
from errorband.reporting.scores import paired


def judge_classes(
    model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, target: str
) -> tuple[list[tuple[str, dict[str, float]]], str]:
    """Held-out metrics of a fitted classifier and of baselines with the same training rows, and a verdict."""
    n_classes = int(y.max()) + 1
    frequency = np.bincount(y[train], minlength=n_classes) / len(train)
    share = probabilities(model, X.iloc[test], n_classes)
    own = class_score(f"errorband {type(model).__name__}", "", y[test], share, frequency)
    rows = X.to_numpy()
    others = class_baselines(rows[train], y[train], rows[test], y[test], n_classes)
    sentences = class_verdict([own, *others], [paired(own, other) for other in others], target, len(test))
    return [(s.name, s.values) for s in (own, *others)], " ".join(sentences)
