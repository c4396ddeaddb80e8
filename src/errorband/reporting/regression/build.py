"""The content of a report on a regression, as numbers: nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.effects import quiet
from errorband.estimators.hyperparameters import hyperparameters
from errorband.inputs import Input
from errorband.missing import Donors
from errorband.reporting.parts.basis.content import basis, basis_findings
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
from errorband.reporting.parts.data_findings import (
    input_findings,
    leak_findings,
    missing_findings,
    row_findings,
    straight_findings,
)
from errorband.reporting.parts.findings import Finding, fit_findings, warnings_first
from errorband.reporting.parts.inducing.content import inducing
from errorband.reporting.parts.outliers import SUSPECTED, outlier_findings
from errorband.reporting.parts.relevance_vectors import relevance_vectors
from errorband.reporting.parts.summary import summary
from errorband.reporting.regression.assessment import RegressionAssessment, as_numbers, assess_regression
from errorband.reporting.regression.calibration import LEVELS, inside, normal_scores, own_scores, pit_bounds
from errorband.reporting.regression.content import Curve, HeldOut, Map, RegressionContent, Surprise, Suspects
from errorband.reporting.regression.diagnostics import (
    OUTLIERS,
    TOGETHER,
    band_findings,
    conditional_coverage,
    error_findings,
    spread_findings,
)

TELLING = 0.1  # of the largest relevance: what inputs do that have less is not spoken of
MAX_GROUPED_INPUTS = 3  # the most relevant, along which coverage and errors are looked at
MAX_RESIDUAL_INPUTS, CURVE_POINTS, N_DRAWS = 4, 200, 4


def build_regression(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str = "Regression report",
    data_notes: Sequence[str] = (),
    baselines: bool = True,
    target: str = "target",
    random_state: int = 0,
    assessment: RegressionAssessment | None = None,
    automatic: str = "",
    columns: Sequence[Input] | None = None,
    donors: Donors | None = None,
    incomplete: Sequence[object] = (),
) -> RegressionContent:
    """Compute the content of a report on a fitted regressor; arguments as in :func:`errorband.reporting.report`."""
    columns = effects.plain_inputs(model) if columns is None else tuple(columns)
    if assessment is None:
        assessment = assess_regression(
            model, X_test, y_test, X_train=X_train, y_train=y_train, baselines=baselines, target=target, donors=donors
        )
    a, process = assessment, effects.process(model)
    train_X, train_y = training(model, X_train, y_train, as_numbers)
    test_X = effects.inputs(model, X_test)
    names, test_names = RowNames.of(X_train, len(train_y)), RowNames.of(X_test, len(a.y))
    rng = np.random.default_rng(random_state)
    rows = () if process is None else hyperparameters(process, target)
    importance, order, useful = ranked_inputs(model, train_X, columns, random_state)
    ranked = [columns[j] for j in order]
    several = train_X.shape[1] > 1
    curves = _effects(model, train_X, [columns[j] for j in useful[:MAX_EFFECTS]]) if several else ()
    held = inside(pit_bounds(a.y, a.predictive), 0.95)
    groups = conditional_coverage(held, a.predictive.mean, test_X, ranked[:MAX_GROUPED_INPUTS], target)
    of_inputs = input_findings(columns, importance, effects.significance(model, train_X, columns=columns))
    idle = [name for finding in of_inputs for name in finding.about]
    findings = [
        *fit_findings(model, rows, train_y),
        *of_inputs,
        *straight_findings(
            [e for j, e in zip(useful, curves, strict=False) if importance[j] >= TELLING * importance.max()], idle
        ),
        *row_findings(train_X, train_y, test_X, names, incomplete),
        *leak_findings(train_X, train_y, columns, classes=False),
        *missing_findings(incomplete, test_X, test_names.told),
        *band_findings(a.calibration.at, groups, len(a.y)),
        *spread_findings(a.predictive.std),
        *basis_findings(process, a.calibration.at, a.y, a.predictive),
    ]
    left_out, surprises = leave_one_out(model), None
    if process is not None and left_out is not None:
        kept, kept_names = process.training_data()[0], RowNames.of(X_train, len(left_out.y), _kept(process))
        z = normal_scores(left_out.y, left_out.predictive)
        findings += error_findings(
            z,
            left_out.predictive.mean,
            kept,
            ranked[:MAX_GROUPED_INPUTS],
            target,
            kept_names,
            gaussian=process.likelihood_.conjugate,
            own=own_scores(z, process),
        )
        findings += outlier_findings(process, kept, kept_names)
        surprises = _surprises(left_out, z, kept, kept_names.marked(incomplete), columns, order)
    return RegressionContent(
        title=title,
        summary=summary(model, len(train_y), len(a.y), target, automatic, columns),
        verdict=a.verdict,
        data_notes=tuple(data_notes),
        target_range=(train_y.min(), float(np.median(train_y)), train_y.max(), train_y.std()),
        findings=warnings_first(findings),
        scores=a.scores,
        comparisons=a.comparisons,
        densities=a.densities,
        held_out=_held_out(test_X, a, rng, test_names),
        calibration=a.calibration,
        groups=groups,
        columns=columns,
        relevance=importance,
        order=order,
        effects=curves,
        surprises=surprises,
        suspects=_suspects(findings, train_X, train_y, names),
        rows_told=names.marked(incomplete).told,
        hyperparameters=tuple(rows),
        curve=None if several else _curve(model, train_X, train_y, test_X, rng),
        map=_map(model, train_X, rng) if len(columns) == 2 and all(c.plain for c in columns) else None,
        inducing=inducing(process, train_X, automatic),
        relevance_vectors=relevance_vectors(process, len(train_y)),
        basis=basis(process, test_X),
    )


def _kept(model: Any) -> np.ndarray | None:
    """Positions, among the training rows, of those the model has kept; None if it has all."""
    return getattr(model, "active_rows_", None)


def _held_out(X: np.ndarray, a: RegressionAssessment, rng: np.random.Generator, names: RowNames) -> HeldOut:
    shown = subset(len(a.y), MAX_POINTS, rng)
    lower, upper = a.predictive.interval(0.95)
    z = a.calibration.scores
    return HeldOut(
        len(a.y), shown, names.names[shown], X[shown], a.y[shown], a.predictive.mean[shown], lower[shown],
        upper[shown], z[shown],
    )  # fmt: skip


def _surprises(
    left_out: Any, z: np.ndarray, X: np.ndarray, names: RowNames, columns: Sequence[Input], order: Sequence[int]
) -> tuple[Surprise, ...]:
    lower, upper = left_out.predictive.interval(0.95)
    worst = np.argsort(-np.abs(z), kind="stable")[:MAX_SURPRISES]
    return tuple(
        Surprise(
            str(names.names[i]),
            float(left_out.y[i]),
            float(left_out.predictive.mean[i]),
            float(lower[i]),
            float(upper[i]),
            float(z[i]),
            described(columns, order[:4], X[i]),
        )
        for i in worst
    )


def _suspects(findings: Sequence[Finding], X: np.ndarray, y: np.ndarray, names: RowNames) -> Suspects:
    """The rows that findings about errors name, and what each says of them."""
    said = {OUTLIERS: "far off", SUSPECTED: "probably an outlier", TOGETHER: "errs with the rows around it"}
    own = [(said[f.title], names.among(f.about)) for f in findings if f.title in said]
    rows = np.flatnonzero(np.any([among for _, among in own], axis=0)) if own else np.zeros(0, int)
    why = tuple(", ".join(word for word, among in own if among[i]) for i in rows)
    return Suspects(names.names[rows], X[rows], y[rows], why)


def _effects(model: Any, X: np.ndarray, chosen: Sequence[Input]) -> tuple[effects.PartialDependence, ...]:
    if effects.process(model) is not None and effects.main_latent(model) is None:
        return ()
    return tuple(effects.partial_dependence(model, X, column) for column in chosen)


def _curve(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, rng: np.random.Generator) -> Curve | None:
    if effects.label_columns(model).any():
        return None
    both = np.concatenate([X[:, 0], X_test[:, 0]])
    margin = 0.06 * (np.ptp(both) or 1.0)
    grid = np.linspace(both.min() - margin, both.max() + margin, CURVE_POINTS)
    predictive = quiet(model.predictive, grid[:, None])
    draws = np.zeros((0, CURVE_POINTS))
    if effects.additive(model) and effects.main_latent(model) is not None:
        draws = effects.posterior_draws(model, grid[:, None], N_DRAWS, rng)
    shown = subset(len(y), MAX_POINTS, rng)
    bands = {level: predictive.interval(level) for level in LEVELS}
    return Curve(grid, predictive.mean, bands, draws, (X[shown, 0], y[shown]), len(y))


def _map(model: Any, X: np.ndarray, rng: np.random.Generator) -> Map | None:
    if effects.label_columns(model).any():
        return None
    axes, at = grid_of_two(X)
    if latent := effects.additive(model):
        mean, std = quiet(effects.process(model).predict, at, return_std=True, latent=effects.main_latent(model))
    else:
        there = quiet(model.predictive, at)
        mean, std = there.mean, there.std
    shape = (MAP_POINTS, MAP_POINTS)
    shown = subset(len(X), MAX_POINTS, rng)
    return Map(axes[0], axes[1], mean.reshape(shape), std.reshape(shape), X[shown], len(X), latent)
