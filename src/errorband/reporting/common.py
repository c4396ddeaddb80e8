"""What reports on numbers and on classes compute alike."""

import dataclasses
import platform
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from errorband import effects
from errorband.optimise import FitResult
from errorband.reporting.checks import Finding
from errorband.reporting.content import Summary
from errorband.reporting.describe import describe, first

MAX_POINTS = 500  # in a scatter plot; more make the file large and the plot black
MAX_EFFECTS, MAX_SURPRISES, MAP_POINTS = 6, 10, 45
LEAST_RELEVANCE = 0.02  # of the largest: inputs below have no curve worth a plot


def training(
    model: Any, X: Any, y: Any, own: Callable[[], np.ndarray], read: Callable[[Any], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Training inputs and targets: as given, the targets read by ``read``; else as the model knows them, by ``own``."""
    if (X is None) != (y is None):
        raise ValueError("Pass X_train and y_train together, or neither: the model knows what it was fitted to.")
    if X is None:
        return effects.training_data(model)[0], own()
    X, y = effects.inputs(model, X), read(y)
    check_rows(X, y, "train")
    return X, y


def check_rows(X: np.ndarray, y: np.ndarray, which: str) -> None:
    """Refuse inputs and targets of different numbers, or none."""
    if len(X) != len(y) or len(y) == 0:
        raise ValueError(f"X_{which} has {len(X)} rows and y_{which} {len(y)}; pass one target for each row.")


def ranked_inputs(model: Any, X: np.ndarray, random_state: Any) -> tuple[np.ndarray, tuple[int, ...], list[int]]:
    """Relevance of the inputs, their positions with the most relevant first, and those of them worth a plot."""
    importance = effects.relevance(model, X, random_state=random_state)
    order = tuple(int(j) for j in np.argsort(-importance, kind="stable"))
    useful = [j for j in order if importance[j] >= LEAST_RELEVANCE * max(importance.max(), 1e-300)]
    return importance, order, useful


def warnings_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """In the order to be read."""
    return tuple(sorted(findings, key=lambda f: f.level != "warning"))


def grid_of_two(X: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Grid over the range of two inputs: its two axes, and its points, one after the other along the first axis."""
    axes = [np.linspace(low, high, MAP_POINTS) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    return axes, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def leave_one_out(model: Any) -> Any:
    """``model.loo()``, or None where inference has no closed form for it."""
    try:
        return model.loo()
    except NotImplementedError:
        return None


def summary(model: Any, n_train: int, n_test: int, target: str) -> Summary:
    """What was fitted, to what, and how that went."""
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
    """Positions of at most so many of n rows, drawn at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def has_labels(model: Any) -> bool:
    """Whether an input is a name in numbers, as of a node, with nothing in between."""
    return bool(np.any(first(model).kernel_.raw_columns(model.n_features_in_)))
