"""The content of a report, as numbers: everything is computed here, and nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.predictive import Predictive
from errorband.reporting import checks
from errorband.reporting.checks import CoverageAt
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
from errorband.reporting.content import Calibration, Curve, HeldOut, Map, RegressionContent, Surprise
from errorband.reporting.hyperparameters import hyperparameters
from errorband.reporting.scores import baseline_scores, paired, score
from errorband.reporting.sparse import inducing

LEVELS = (0.5, 0.8, 0.95)
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
) -> RegressionContent:
    """Compute a report on a fitted regressor; see :func:`errorband.reporting.report` for the arguments."""
    train_X, train_y = training(model, X_train, y_train, lambda: effects.training_data(model)[1], _numbers)
    test_X, y = effects.inputs(model, X_test), _numbers(y_test)
    check_rows(test_X, y, "test")
    rng = np.random.default_rng(random_state)
    predictive: Predictive = model.predictive(X_test)
    own = score(type(model).__name__, "this model", y, predictive, train_y)
    others = baseline_scores(train_X, train_y, test_X, y) if baselines else []
    comparisons = tuple(paired(own, other) for other in others)
    calibration = calibrate(y, predictive)
    left_out = leave_one_out(model)
    rows = hyperparameters(model, target)
    importance, order, useful = ranked_inputs(model, train_X, random_state)
    d = train_X.shape[1]
    findings = [
        *checks.fit_findings(model, rows, train_X, train_y),
        *checks.data_findings(train_X, test_X, np.asarray(model.scaling_.x_scale)),
        *checks.prediction_findings(list(calibration.at), len(y), None if left_out is None else left_out.z_score),
    ]
    return RegressionContent(
        title=title,
        summary=summary(model, len(train_y), len(y), target),
        verdict=tuple(checks.verdict(own, list(comparisons), list(calibration.at), target, len(y))),
        data_notes=tuple(data_notes),
        target_range=(train_y.min(), float(np.median(train_y)), train_y.max(), train_y.std()),
        findings=warnings_first(findings),
        scores=(own, *others),
        comparisons=comparisons,
        held_out=_held_out(test_X, y, predictive, rng),
        calibration=calibration,
        relevance=importance,
        order=order,
        effects=_effects(model, train_X, useful[:MAX_EFFECTS]) if d > 1 else (),
        surprises=None if left_out is None else _surprises(left_out, X_train, order, model),
        hyperparameters=tuple(rows),
        curve=_curve(model, train_X, train_y, test_X, rng) if d == 1 else None,
        map=_map(model, train_X, rng) if d == 2 else None,
        inducing=inducing(model),
    )


def calibrate(y: np.ndarray, predictive: Predictive) -> Calibration:
    """Coverage of the central bands at all levels, and what chance would do to that of a calibrated model."""
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    low, high = checks.coverage_range(len(y), levels, 0.95)
    at = []
    for level in LEVELS:
        lower, upper = predictive.interval(level)
        limits = (*checks.coverage_range(len(y), level, 0.95), *checks.coverage_range(len(y), level, 0.99))
        covered, wide = metrics.coverage(y, lower, upper), metrics.width(lower, upper)
        at.append(CoverageAt(level, covered, wide, *map(float, limits)))
    return Calibration(levels, observed, low, high, tuple(at))


# ------------------------------------------------------------------------------------------------------- the parts
def _numbers(y: Any) -> np.ndarray:
    return np.asarray(y, dtype=np.float64).ravel()


def _held_out(X: np.ndarray, y: np.ndarray, predictive: Predictive, rng: np.random.Generator) -> HeldOut:
    shown = subset(len(y), MAX_POINTS, rng)
    lower, upper = predictive.interval(0.95)
    z = (y - predictive.mean) / predictive.std
    return HeldOut(
        len(y), shown, X[shown], y[shown], predictive.mean[shown], lower[shown], upper[shown], z[shown]
    )  # fmt: skip


def _surprises(left_out: Any, X_given: Any, order: Sequence[int], model: Any) -> tuple[Surprise, ...]:
    names = effects.input_names(model)
    data = effects.training_data(model)[0]
    labels = row_names(X_given, len(data))
    lower, upper = left_out.predictive.interval(0.95)
    worst = np.argsort(-np.abs(left_out.z_score), kind="stable")[:MAX_SURPRISES]
    return tuple(
        Surprise(
            labels[i],
            float(left_out.y[i]),
            float(left_out.predictive.mean[i]),
            float(lower[i]),
            float(upper[i]),
            float(left_out.z_score[i]),
            tuple((names[j], float(data[i, j])) for j in order[:4]),
        )
        for i in worst
    )


def _effects(model: Any, X: np.ndarray, chosen: Sequence[int]) -> tuple[effects.PartialDependence, ...]:
    if not effects.has_one_latent(model):
        return ()
    return tuple(effects.partial_dependence(model, X, j) for j in chosen)


def _curve(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, rng: np.random.Generator) -> Curve | None:
    if has_labels(model):
        return None
    both = np.concatenate([X[:, 0], X_test[:, 0]])
    margin = 0.06 * (np.ptp(both) or 1.0)
    grid = np.linspace(both.min() - margin, both.max() + margin, CURVE_POINTS)
    predictive = quiet(model.predictive, grid[:, None])
    draws = np.zeros((0, CURVE_POINTS))
    if effects.additive(model) and effects.has_one_latent(model):
        draws = effects.posterior_draws(model, grid[:, None], N_DRAWS, rng)
    shown = subset(len(y), MAX_POINTS, rng)
    bands = {level: predictive.interval(level) for level in LEVELS}
    return Curve(grid, predictive.mean, bands, draws, (X[shown, 0], y[shown]), len(y))


def _map(model: Any, X: np.ndarray, rng: np.random.Generator) -> Map | None:
    if has_labels(model):
        return None
    axes, at = grid_of_two(X)
    latent = effects.additive(model)
    mean, std = quiet(model.predict, at, return_std=True, latent=latent)
    shape = (MAP_POINTS, MAP_POINTS)
    shown = subset(len(X), MAX_POINTS, rng)
    return Map(axes[0], axes[1], mean.reshape(shape), std.reshape(shape), X[shown], len(X), latent)
