"""The content of a report on a classifier, as numbers: nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import poisson

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.estimators.hyperparameters import hyperparameters
from errorband.inputs import Input
from errorband.missing import Donors
from errorband.reporting.classification.assessment import (
    ClassificationAssessment,
    assess_classification,
    class_codes,
)
from errorband.reporting.classification.content import (
    Choices,
    ClassCurve,
    ClassificationContent,
    ClassMap,
    ClassSurprise,
)
from errorband.reporting.classification.decisions import curves, decisions
from errorband.reporting.parts.basis.content import basis
from errorband.reporting.parts.coverage import FEW_ROWS, coverage_range
from errorband.reporting.parts.data import (
    MAP_POINTS,
    MAX_EFFECTS,
    MAX_POINTS,
    MAX_SURPRISES,
    RowNames,
    described,
    grid_of_two,
    leave_one_out,
    ranked_inputs,
    subset,
    training,
)
from errorband.reporting.parts.data_findings import input_findings, leak_findings, missing_findings, row_findings
from errorband.reporting.parts.findings import Finding, Level, fit_findings, warnings_first
from errorband.reporting.parts.inducing.content import inducing, inducing_of_each
from errorband.reporting.parts.relevance_vectors import relevance_vectors
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
    columns: Sequence[Input] | None = None,
    donors: Donors | None = None,
    incomplete: Sequence[object] = (),
) -> ClassificationContent:
    """Compute the content of a report on a fitted classifier; arguments as in :func:`errorband.reporting.report`."""
    columns = effects.plain_inputs(model) if columns is None else tuple(columns)
    if assessment is None:
        assessment = assess_classification(
            model, X_test, y_test, X_train=X_train, y_train=y_train, baselines=baselines, target=target, donors=donors,
            class_names=class_names,
        )  # fmt: skip
    a, process = assessment, effects.process(model)
    train_X, train = training(model, X_train, y_train, lambda y: class_codes(model, y, "y_train"))
    test_X = effects.inputs(model, X_test)
    classes = tuple(map(str, model.classes_ if class_names is None else class_names))
    n = len(classes)
    rng = np.random.default_rng(random_state)
    left_out = leave_one_out(model)
    rows = () if process is None else hyperparameters(process, target, classes=classes)
    importance, order, useful = ranked_inputs(model, train_X, columns, random_state)
    names = RowNames.of(X_train, len(train))
    kept_names = (
        names if left_out is None else RowNames.of(X_train, len(left_out.y), getattr(process, "active_rows_", None))
    )
    findings = [
        *fit_findings(model, rows, train),
        *input_findings(columns, importance),
        *row_findings(train_X, train, test_X, names, incomplete),
        *leak_findings(train_X, train, columns, classes=True),
        *missing_findings(incomplete, test_X, names.told),
        *_findings(a, train, classes, left_out, kept_names),
    ]
    shown, marked = subset(len(train), MAX_POINTS, rng), kept_names.marked(incomplete)
    return ClassificationContent(
        title=title,
        summary=summary(model, len(train), len(a.codes), target, automatic, columns),
        verdict=a.verdict,
        data_notes=tuple(data_notes),
        classes=classes,
        train_counts=np.bincount(train, minlength=n),
        findings=warnings_first(findings),
        scores=a.scores,
        comparisons=a.comparisons,
        confusion=np.bincount(n * a.codes + a.probabilities.argmax(axis=1), minlength=n * n).reshape(n, n),
        reliability=a.reliability,
        class_reliability=a.class_reliability,
        choices=_choices(a, train) if n == 2 else None,
        error_reject=metrics.error_reject_curve(a.codes, a.probabilities, np.arange(n)),
        columns=columns,
        relevance=importance,
        order=order,
        effects=tuple(_curve(model, train_X, train, columns[j], shown) for j in useful[:MAX_EFFECTS]),
        surprises=None if left_out is None else _surprises(left_out, marked, columns, order, process, classes),
        rows_told=marked.told,
        hyperparameters=tuple(rows),
        map=_map(model, train_X, train, shown) if len(columns) == 2 and all(c.plain for c in columns) else None,
        inducing=inducing(process, train_X, automatic),
        relevance_vectors=relevance_vectors(process, len(train), classes),
        basis=basis(process, test_X),
        inducing_of_each=inducing_of_each(process, train_X),
    )


def _findings(
    a: ClassificationAssessment, train: np.ndarray, classes: Sequence[str], left_out: Any, names: RowNames
) -> list[Finding]:
    reliability, codes = a.reliability, a.codes
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
    return found + ([] if left_out is None else _unlikely_labels(left_out, names))


def _unlikely_labels(left_out: Any, names: RowNames) -> list[Finding]:
    """Labels to which the other rows give hardly any probability, where there are more than these promise."""
    wild = np.flatnonzero(left_out.log_density < np.log(UNLIKELY))
    promised = float(np.sum(np.where(left_out.probabilities < UNLIKELY, left_out.probabilities, 0.0)))
    if len(wild) <= poisson.ppf(0.9, promised):
        return []
    wild = wild[np.argsort(left_out.log_density[wild], kind="stable")]
    have = "has" if len(wild) == 1 else "have"
    text = (
        f"{count(len(wild), 'training row')} {have} a class that the other rows give a probability below "
        f"{percent(UNLIKELY)}: {names.listed(wild)}. Look for wrong labels in them, or use a likelihood with "
        "label noise."
    )
    return [Finding("warning", "Labels hard to believe", text, tuple(names.names[wild]))]


def _choices(a: ClassificationAssessment, train: np.ndarray) -> Choices:
    positive = int(np.mean(train == 1) <= 0.5)
    of_class, probability = a.codes == positive, a.probabilities[:, positive]
    return Choices(positive, curves(of_class, probability), decisions(of_class, probability), of_class, probability)


def _surprises(
    left_out: Any, names: RowNames, columns: Sequence[Input], order: Sequence[int], model: Any, classes: Sequence[str]
) -> tuple[ClassSurprise, ...]:
    X = model.training_data()[0]
    worst = np.argsort(left_out.log_density, kind="stable")[:MAX_SURPRISES]
    observed = np.searchsorted(model.classes_, left_out.y)
    expected = left_out.probabilities.argmax(axis=1)
    return tuple(
        ClassSurprise(
            str(names.names[i]),
            str(classes[int(observed[i])]),
            float(np.exp(left_out.log_density[i])),
            str(classes[int(expected[i])]),
            float(left_out.probabilities[i].max()),
            described(columns, order[:4], X[i]),
        )
        for i in worst
    )


def _curve(model: Any, X: np.ndarray, codes: np.ndarray, column: Input, shown: np.ndarray) -> ClassCurve:
    return ClassCurve(effects.class_dependence(model, X, column), column.values(X[shown]), codes[shown])


def _map(model: Any, X: np.ndarray, codes: np.ndarray, shown: np.ndarray) -> ClassMap | None:
    if effects.label_columns(model).any():
        return None
    axes, at = grid_of_two(X)
    share = quiet(model.predict_proba, at).reshape(MAP_POINTS, MAP_POINTS, -1)
    return ClassMap(axes[0], axes[1], share, X[shown], codes[shown], len(X))
