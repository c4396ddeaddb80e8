"""The content of a report on a classifier, as numbers: nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.reporting import checks
from errorband.reporting.checks import Finding
from errorband.reporting.class_content import ClassCurve, ClassificationContent, ClassMap, ClassSurprise, Reliability
from errorband.reporting.class_scores import class_baselines, class_score, class_verdict
from errorband.reporting.common import (
    MAP_POINTS,
    MAX_EFFECTS,
    MAX_POINTS,
    MAX_SURPRISES,
    check_rows,
    grid_of_two,
    has_labels,
    leave_one_out,
    ranked_inputs,
    row_names,
    subset,
    summary,
    training,
    warnings_first,
)
from errorband.reporting.hyperparameters import hyperparameters
from errorband.reporting.scores import paired
from errorband.reporting.sparse import inducing, inducing_of_each
from errorband.reporting.text import count, percent

UNLIKELY = 0.01  # a training row of a smaller leave-one-out probability is worth a warning


def build_classification(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str = "Classification report",
    data_notes: Sequence[str] = (),
    baselines: bool = True,
    target: str = "target",
    random_state: int = 0,
    class_names: Sequence[str] | None = None,
) -> ClassificationContent:
    """Compute a report on a fitted classifier; see :func:`errorband.reporting.report` for the arguments."""
    train_X, train = training(model, X_train, y_train, model._training_codes, lambda y: _codes(model, y, "y_train"))
    test_X, codes = effects.inputs(model, X_test), _codes(model, y_test, "y_test")
    check_rows(test_X, codes, "test")
    classes = tuple(map(str, model.classes_ if class_names is None else class_names))
    n = len(classes)
    rng = np.random.default_rng(random_state)
    share = quiet(model.predict_proba, X_test)
    frequency = np.bincount(train, minlength=n) / len(train)
    own = class_score(type(model).__name__, "this model", codes, share, frequency)
    others = class_baselines(train_X, train, test_X, codes, n) if baselines else []
    comparisons = tuple(paired(own, other) for other in others)
    reliability = reliable(codes, share)
    left_out = leave_one_out(model)
    rows = hyperparameters(model, target)
    importance, order, useful = ranked_inputs(model, train_X, random_state)
    findings = [
        *checks.fit_findings(model, rows, train_X, train),
        *checks.data_findings(train_X, test_X, np.asarray(model.scaling_.x_scale)),
        *_findings(reliability, codes, train, classes, left_out),
    ]
    shown = subset(len(train), MAX_POINTS, rng)
    return ClassificationContent(
        title=title,
        summary=summary(model, len(train), len(codes), target),
        verdict=tuple(class_verdict([own, *others], list(comparisons), target, len(codes))),
        data_notes=tuple(data_notes),
        classes=classes,
        train_counts=np.bincount(train, minlength=n),
        findings=warnings_first(findings),
        scores=(own, *others),
        comparisons=comparisons,
        confusion=np.bincount(n * codes + share.argmax(axis=1), minlength=n * n).reshape(n, n),
        reliability=reliability,
        error_reject=metrics.error_reject_curve(codes, share, np.arange(n)),
        relevance=importance,
        order=order,
        effects=tuple(_curve(model, train_X, train, j, shown) for j in useful[:MAX_EFFECTS]),
        surprises=None if left_out is None else _surprises(left_out, X_train, train_X, order, model, classes),
        hyperparameters=tuple(rows),
        map=_map(model, train_X, train, shown) if train_X.shape[1] == 2 else None,
        inducing=inducing(model),
        inducing_of_each=inducing_of_each(model),
    )


def reliable(codes: np.ndarray, share: np.ndarray) -> Reliability:
    """The reliability curve, and what chance would do to that of a calibrated model."""
    confidence, frequency, number = metrics.reliability_curve(codes, share, np.arange(share.shape[1]))
    low, high = checks.coverage_range(number, confidence, 0.95)
    return Reliability(confidence, frequency, number, low, high)


# ------------------------------------------------------------------------------------------------------- the parts
def _codes(model: Any, y: Any, name: str) -> np.ndarray:
    """Labels as positions in ``classes_``."""
    labels = np.asarray(y).ravel()
    known = np.isin(labels, model.classes_)
    if not known.all():
        strange = ", ".join(map(repr, np.unique(labels[~known]).tolist()[:3]))
        raise ValueError(f"{name} has labels the model was not fitted to: {strange}. Leave those rows out.")
    return np.searchsorted(model.classes_, labels)


def _findings(
    reliability: Reliability, codes: np.ndarray, train: np.ndarray, classes: Sequence[str], left_out: Any
) -> list[Finding]:
    found: list[Finding] = []
    if len(codes) < checks.FEW_ROWS:
        text = f"With {count(len(codes), 'held-out row')} the metrics and the reliability are rough."
        found.append(Finding("note", "Few held-out rows", text))
    said, right = (np.average(v, weights=reliability.count) for v in (reliability.confidence, reliability.frequency))
    low, high = checks.coverage_range(len(codes), float(said), 0.99)
    if not low <= right <= high:
        kind = "Overconfident" if right < said else "Underconfident"
        text = f"The predicted class is right for {percent(right)} of the rows, where {percent(said)} were promised."
        found.append(Finding("warning", kind, text))
    rare = [name for name, k in zip(classes, np.bincount(train, minlength=len(classes)), strict=True) if k < 5]
    if rare:
        text = f"Fewer than five training rows of {', '.join(rare[:5])}: little can be learned about such classes."
        found.append(Finding("note", "Rare classes", text))
    wild = 0 if left_out is None else int(np.sum(left_out.log_density < np.log(UNLIKELY)))
    if wild:
        text = (
            f"{count(wild, 'training row')} have a class that the other rows give a probability below "
            f"{percent(UNLIKELY)}. Look for wrong labels in them, or use a likelihood with label noise."
        )
        found.append(Finding("warning", "Labels hard to believe", text))
    return found


def _surprises(
    left_out: Any, X_given: Any, X: np.ndarray, order: Sequence[int], model: Any, classes: Sequence[str]
) -> tuple[ClassSurprise, ...]:
    names, labels = effects.input_names(model), row_names(X_given, len(X))
    worst = np.argsort(left_out.log_density, kind="stable")[:MAX_SURPRISES]
    observed, expected = model._training_codes(), left_out.probabilities.argmax(axis=1)
    return tuple(
        ClassSurprise(
            labels[i],
            str(classes[int(observed[i])]),
            float(np.exp(left_out.log_density[i])),
            str(classes[int(expected[i])]),
            float(left_out.probabilities[i].max()),
            tuple((names[j], float(X[i, j])) for j in order[:4]),
        )
        for i in worst
    )


def _curve(model: Any, X: np.ndarray, codes: np.ndarray, j: int, shown: np.ndarray) -> ClassCurve:
    grid, share, discrete, n_rows = effects.average_probabilities(model, X, j)
    name = effects.input_names(model)[j]
    return ClassCurve(name, grid, share, discrete, n_rows, X[shown, j], codes[shown])


def _map(model: Any, X: np.ndarray, codes: np.ndarray, shown: np.ndarray) -> ClassMap | None:
    if has_labels(model):
        return None
    axes, at = grid_of_two(X)
    share = quiet(model.predict_proba, at).reshape(MAP_POINTS, MAP_POINTS, -1)
    return ClassMap(axes[0], axes[1], share, X[shown], codes[shown], len(X))
