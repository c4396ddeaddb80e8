"""The content of a report, as numbers: everything is computed here, and nothing here knows about HTML."""

import dataclasses
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects, metrics
from errorband.effects import quiet
from errorband.optimise import FitResult
from errorband.predictive import Predictive
from errorband.reporting import checks
from errorband.reporting.checks import CoverageAt
from errorband.reporting.content import Calibration, Curve, HeldOut, Map, RegressionContent, Summary, Surprise
from errorband.reporting.describe import describe, first
from errorband.reporting.hyperparameters import hyperparameters
from errorband.reporting.scores import baseline_scores, paired, score
from errorband.reporting.sparse import inducing

LEVELS = (0.5, 0.8, 0.95)
MAX_POINTS = 500  # in a scatter plot; more make the file large and the plot black
MAX_RESIDUAL_INPUTS, MAX_EFFECTS, MAX_SURPRISES = 4, 6, 10
LEAST_RELEVANCE = 0.02  # of the largest: inputs below have no curve worth a plot
CURVE_POINTS, MAP_POINTS, N_DRAWS = 200, 45, 4


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
    train_X, train_y = _training(model, X_train, y_train)
    test_X, y = effects.inputs(model, X_test), np.asarray(y_test, dtype=np.float64).ravel()
    if len(y) != len(test_X) or len(y) == 0:
        raise ValueError(f"X_test has {len(test_X)} rows and y_test {len(y)}; pass one target for each row.")
    rng = np.random.default_rng(random_state)
    predictive: Predictive = model.predictive(X_test)
    own = score(type(model).__name__, "this model", y, predictive, train_y)
    others = baseline_scores(train_X, train_y, test_X, y) if baselines else []
    comparisons = tuple(paired(own, other) for other in others)
    calibration = calibrate(y, predictive)
    left_out = leave_one_out(model)
    rows = hyperparameters(model, target)
    importance = effects.relevance(model, train_X, random_state=random_state)
    order = tuple(int(j) for j in np.argsort(-importance, kind="stable"))
    useful = [j for j in order if importance[j] >= LEAST_RELEVANCE * max(importance.max(), 1e-300)]
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
        findings=tuple(sorted(findings, key=lambda f: f.level != "warning")),
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


def leave_one_out(model: Any) -> Any:
    """``model.loo()``, or None where inference has no closed form for it."""
    if not (hasattr(model, "loo") and hasattr(model.inference_, "leave_one_out")):
        return None
    try:
        return model.loo()
    except NotImplementedError:
        return None


# ------------------------------------------------------------------------------------------------------- the parts
def _training(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    if (X is None) != (y is None):
        raise ValueError("Pass X_train and y_train together, or neither: the model knows what it was fitted to.")
    if X is None:
        return effects.training_data(model)
    X, y = effects.inputs(model, X), np.asarray(y, dtype=np.float64).ravel()
    if len(X) != len(y):
        raise ValueError(f"X_train has {len(X)} rows and y_train {len(y)}; pass one target for each row.")
    return X, y


def summary(model: Any, n_train: int, n_test: int, target: str) -> Summary:
    import jax

    from errorband import __version__

    result = search_of(model)
    trace = np.zeros(0)
    if result is not None:  # the search saw standardised targets: shift to the density of the targets as given
        trace = np.asarray(result.trace) + (model.log_evidence_ - result.value)
    return Summary(
        estimator=type(model).__name__,
        parts=describe(model),
        log_evidence=float(model.log_evidence_),
        n_train=n_train,
        n_test=n_test,
        input_names=tuple(effects.input_names(model)),
        target=target,
        seconds=None if result is None else result.seconds,
        iterations=0 if result is None else result.iterations,
        converged=None if result is None else result.converged,
        message="" if result is None else result.message,
        starts=() if result is None else tuple(s + model.log_evidence_ - result.value for s in result.starts),
        trace=trace,
        versions=f"errorband {__version__}, JAX {jax.__version__}, Python {platform.python_version()}",
    )


def search_of(model: Any) -> FitResult | None:
    """How the search went; of several models, one for each class, their searches as one."""
    result = model.fit_result_
    if not isinstance(result, list):
        return result
    worst = min(result, key=lambda r: r.converged)
    total: dict[str, Any] = {
        name: sum(getattr(r, name) for r in result) for name in ("value", "iterations", "evaluations", "seconds")
    }
    return dataclasses.replace(worst, **total, trace=(), starts=())


def row_names(X: Any, n: int) -> list[str]:
    """What the rows are called: by the index of a table, or by their position."""
    labels = getattr(X, "index", None)
    return [str(i) for i in (labels if labels is not None and len(labels) == n else range(n))]


def subset(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


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


def has_labels(model: Any) -> bool:
    """Whether an input is a name in numbers, as of a node, with nothing in between."""
    return bool(np.any(first(model).kernel_.raw_columns(model.n_features_in_)))


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
    axes = [np.linspace(low, high, MAP_POINTS) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    at = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    latent = effects.additive(model)
    mean, std = quiet(model.predict, at, return_std=True, latent=latent)
    shape = (MAP_POINTS, MAP_POINTS)
    shown = subset(len(X), MAX_POINTS, rng)
    return Map(axes[0], axes[1], mean.reshape(shape), std.reshape(shape), X[shown], len(X), latent)
