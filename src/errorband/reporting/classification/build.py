"""The content of a report on a classifier, as numbers: nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.reporting.classification.assessment import (
    ClassificationAssessment,
    Reliability,
    assess_classification,
    class_codes,
)
from errorband.reporting.classification.content import ClassCurve, ClassificationContent, ClassMap, ClassSurprise
from errorband.reporting.parts.coverage import FEW_ROWS, coverage_range
from errorband.reporting.parts.data import (
    MAP_POINTS,
    MAX_EFFECTS,
    MAX_POINTS,
    MAX_SURPRISES,
    grid_of_two,
    has_labels,
    leave_one_out,
    ranked_inputs,
    row_names,
    subset,
    training,
)
from errorband.reporting.parts.findings import Finding, Level, data_findings, fit_findings, warnings_first
from errorband.reporting.parts.hyperparameters import hyperparameters
from errorband.reporting.parts.inducing.content import inducing, inducing_of_each
from errorband.reporting.parts.summary import summary
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
    assessment: ClassificationAssessment | None = None,
    automatic: str = "",
) -> ClassificationContent:
    """Compute the content of a report on a fitted classifier; arguments as in :func:`errorband.reporting.report`."""
    if assessment is None:
        assessment = assess_classification(
            model, X_test, y_test, X_train=X_train, y_train=y_train, baselines=baselines, target=target
        )
    a = assessment
    train_X, train = training(model, X_train, y_train, lambda y: class_codes(model, y, "y_train"))
    test_X = effects.inputs(model, X_test)
    classes = tuple(map(str, model.classes_ if class_names is None else class_names))
    n = len(classes)
    rng = np.random.default_rng(random_state)
    left_out = leave_one_out(model)
    rows = hyperparameters(model, target)
    importance, order, useful = ranked_inputs(model, train_X, random_state)
    findings = [
        *fit_findings(model, rows, train_X, train),
        *data_findings(train_X, test_X, np.asarray(model.scaling_.x_scale)),
        *_findings(a.reliability, a.codes, train, classes, left_out),
    ]
    shown = subset(len(train), MAX_POINTS, rng)
    return ClassificationContent(
        title=title,
        summary=summary(model, len(train), len(a.codes), target, automatic),
        verdict=a.verdict,
        data_notes=tuple(data_notes),
        classes=classes,
        train_counts=np.bincount(train, minlength=n),
        findings=warnings_first(findings),
        scores=a.scores,
        comparisons=a.comparisons,
        confusion=np.bincount(n * a.codes + a.probabilities.argmax(axis=1), minlength=n * n).reshape(n, n),
        reliability=a.reliability,
        error_reject=metrics.error_reject_curve(a.codes, a.probabilities, np.arange(n)),
        relevance=importance,
        order=order,
        effects=tuple(_curve(model, train_X, train, j, shown) for j in useful[:MAX_EFFECTS]),
        surprises=None if left_out is None else _surprises(left_out, X_train, train_X, order, model, classes),
        hyperparameters=tuple(rows),
        map=_map(model, train_X, train, shown) if train_X.shape[1] == 2 else None,
        inducing=inducing(model, automatic),
        inducing_of_each=inducing_of_each(model),
    )


def _findings(
    reliability: Reliability, codes: np.ndarray, train: np.ndarray, classes: Sequence[str], left_out: Any
) -> list[Finding]:
    found: list[Finding] = []
    if len(codes) < FEW_ROWS:
        text = f"With {count(len(codes), 'held-out row')} the metrics and the reliability are rough."
        found.append(Finding("note", "Few held-out rows", text))
    said, right = (np.average(v, weights=reliability.count) for v in (reliability.confidence, reliability.frequency))
    doubts: tuple[tuple[float, Level, str], ...] = ((0.99, "warning", ""), (0.95, "note", "perhaps "))
    for confidence, level, perhaps in doubts:
        low, high = coverage_range(len(codes), float(said), confidence)
        if not low <= right <= high:
            kind = f"{perhaps}{'over' if right < said else 'under'}confident".capitalize()
            text = (
                f"The predicted class is right for {percent(right)} of the rows, where {percent(said)} were promised."
            )
            found.append(Finding(level, kind, text))
            break
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
    observed = np.searchsorted(model.classes_, left_out.y)
    expected = left_out.probabilities.argmax(axis=1)
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
