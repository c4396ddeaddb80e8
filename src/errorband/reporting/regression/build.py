"""The content of a report on a regression, as numbers: nothing here knows about HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.effects import quiet
from errorband.predictive import Predictive
from errorband.reporting.parts.coverage import FEW_ROWS, RIGHT, TOO_NARROW, TOO_WIDE, CoverageAt
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
from errorband.reporting.parts.findings import Finding, data_findings, fit_findings, warnings_first
from errorband.reporting.parts.hyperparameters import hyperparameters
from errorband.reporting.parts.inducing.content import inducing
from errorband.reporting.parts.summary import summary
from errorband.reporting.regression.assessment import LEVELS, RegressionAssessment, as_numbers, assess_regression
from errorband.reporting.regression.content import Curve, HeldOut, Map, RegressionContent, Surprise
from errorband.reporting.text import count, listing, percent

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
) -> RegressionContent:
    """Compute the content of a report on a fitted regressor; arguments as in :func:`errorband.reporting.report`."""
    if assessment is None:
        assessment = assess_regression(
            model, X_test, y_test, X_train=X_train, y_train=y_train, baselines=baselines, target=target
        )
    a = assessment
    train_X, train_y = training(model, X_train, y_train, as_numbers)
    test_X = effects.inputs(model, X_test)
    rng = np.random.default_rng(random_state)
    left_out = leave_one_out(model)
    rows = hyperparameters(model, target)
    importance, order, useful = ranked_inputs(model, train_X, random_state)
    d = train_X.shape[1]
    findings = [
        *fit_findings(model, rows, train_X, train_y),
        *data_findings(train_X, test_X, np.asarray(model.scaling_.x_scale)),
        *prediction_findings(a.calibration.at, len(a.y), None if left_out is None else left_out.z_score),
    ]
    return RegressionContent(
        title=title,
        summary=summary(model, len(train_y), len(a.y), target, automatic),
        verdict=a.verdict,
        data_notes=tuple(data_notes),
        target_range=(train_y.min(), float(np.median(train_y)), train_y.max(), train_y.std()),
        findings=warnings_first(findings),
        scores=a.scores,
        comparisons=a.comparisons,
        held_out=_held_out(test_X, a.y, a.predictive, rng),
        calibration=a.calibration,
        relevance=importance,
        order=order,
        effects=_effects(model, train_X, useful[:MAX_EFFECTS]) if d > 1 else (),
        surprises=None if left_out is None else _surprises(left_out, X_train, order, model),
        hyperparameters=tuple(rows),
        curve=_curve(model, train_X, train_y, test_X, rng) if d == 1 else None,
        map=_map(model, train_X, rng) if d == 2 else None,
        inducing=inducing(model, automatic),
    )


def prediction_findings(coverages: Sequence[CoverageAt], n_test: int, z_scores: np.ndarray | None) -> list[Finding]:
    """Return findings about bands that do not hold, and about training rows far from what the others predict."""
    found: list[Finding] = []
    if n_test < FEW_ROWS:
        text = f"With {count(n_test, 'held-out row')} the metrics and the coverage are rough."
        found.append(Finding("note", "Few held-out rows", text))
    wrong = [c for c in coverages if c.verdict in (TOO_NARROW, TOO_WIDE)]
    doubtful = [c for c in coverages if c.verdict != RIGHT and c not in wrong]
    if wrong:
        parts = [f"the {percent(c.level)} band holds {percent(c.observed)} of the targets" for c in wrong]
        found.append(Finding("warning", f"Bands {wrong[-1].verdict}", listing(parts).capitalize() + "."))
    if doubtful:
        parts = [
            f"the {percent(c.level)} band holds {percent(c.observed)} of the targets, where chance allows a calibrated "
            f"one {percent(c.low)} to {percent(c.high)}"
            for c in doubtful
        ]
        found.append(Finding("note", f"Bands {doubtful[-1].verdict}", listing(parts).capitalize() + "."))
    wild = 0 if z_scores is None else int(np.sum(np.abs(z_scores) > 4))
    if wild:
        text = (
            f"{count(wild, 'training row')} lie more than four standard deviations from what the other rows predict. "
            "Look for errors in them, or use a likelihood with heavier tails."
        )
        found.append(Finding("warning", "Outliers", text))
    return found


def _held_out(X: np.ndarray, y: np.ndarray, predictive: Predictive, rng: np.random.Generator) -> HeldOut:
    shown = subset(len(y), MAX_POINTS, rng)
    lower, upper = predictive.interval(0.95)
    z = (y - predictive.mean) / predictive.std
    return HeldOut(
        len(y), shown, X[shown], y[shown], predictive.mean[shown], lower[shown], upper[shown], z[shown]
    )  # fmt: skip


def _surprises(left_out: Any, X_given: Any, order: Sequence[int], model: Any) -> tuple[Surprise, ...]:
    names = effects.input_names(model)
    data = model.training_data()[0]
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
    if effects.main_latent(model) is None:
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
    if effects.additive(model) and effects.main_latent(model) is not None:
        draws = effects.posterior_draws(model, grid[:, None], N_DRAWS, rng)
    shown = subset(len(y), MAX_POINTS, rng)
    bands = {level: predictive.interval(level) for level in LEVELS}
    return Curve(grid, predictive.mean, bands, draws, (X[shown, 0], y[shown]), len(y))


def _map(model: Any, X: np.ndarray, rng: np.random.Generator) -> Map | None:
    if has_labels(model):
        return None
    axes, at = grid_of_two(X)
    latent = effects.additive(model)
    mean, std = quiet(model.predict, at, return_std=True, latent=effects.main_latent(model) if latent else False)
    shape = (MAP_POINTS, MAP_POINTS)
    shown = subset(len(X), MAX_POINTS, rng)
    return Map(axes[0], axes[1], mean.reshape(shape), std.reshape(shape), X[shown], len(X), latent)
