"""Summary of a report: the model, its data and its search."""

import dataclasses
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.estimators.candidates import Candidates
from errorband.inputs import Input
from errorband.reporting.parts.describe import describe
from errorband.training import FitResult


@dataclasses.dataclass(frozen=True)
class Summary:
    """The model, its data and its search. ``converged`` is None if nothing was searched, ``log_evidence`` NaN without.

    ``process`` says whether there is a Gaussian process inside, which knows what it does not know.

    ``input_names`` are those of the columns of the table, ``feature_names`` of what the model sees of them.
    """

    estimator: str
    process: bool
    parts: dict[str, str]
    log_evidence: float
    n_train: int
    n_test: int
    input_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    target: str
    seconds: float | None
    iterations: int
    converged: bool | None
    message: str
    starts: tuple[float, ...]
    trace: np.ndarray
    versions: str
    candidates: Candidates | None = None


def summary(
    model: Any, n_train: int, n_test: int, target: str, automatic: str = "", columns: Sequence[Input] | None = None
) -> Summary:
    """Return the summary of a fitted model; ``automatic`` as in :func:`describe`, ``columns`` the inputs."""
    import jax

    from errorband import __version__

    process = effects.process(model)
    result, trace, starts = search_of(model if process is None else process), np.zeros(0), ()
    if result is not None and process is not None:
        # The search saw standardised targets: shift to the density of the targets as given.
        shift = effects.search_log_evidence(process) - result.value
        trace, starts = np.asarray(result.trace) + shift, tuple(s + shift for s in result.starts)
    return Summary(
        estimator=type(model).__name__,
        process=process is not None,
        parts=describe(model, automatic),
        log_evidence=np.nan if process is None else float(process.log_evidence_),
        n_train=n_train,
        n_test=n_test,
        input_names=tuple(c.name for c in (effects.plain_inputs(model) if columns is None else columns)),
        feature_names=tuple(effects.input_names(model)),
        target=target,
        seconds=None if result is None else result.seconds,
        iterations=0 if result is None else result.iterations,
        converged=None if result is None else result.converged,
        message="" if result is None else result.message,
        starts=starts,
        trace=trace,
        versions=f"errorband {__version__}, JAX {jax.__version__}, Python {platform.python_version()}",
        candidates=tried if isinstance(tried := getattr(process, "candidates_", None), Candidates) else None,
    )


def search_of(model: Any) -> FitResult | None:
    """Return the search of a model, if it has one; those of a model for each class are added up."""
    result = getattr(model, "fit_result_", None)
    if not isinstance(result, list):
        return result
    worst = min(result, key=lambda r: r.converged)
    total: dict[str, Any] = {
        name: sum(getattr(r, name) for r in result) for name in ("value", "iterations", "evaluations", "seconds")
    }
    return dataclasses.replace(worst, **total, trace=(), starts=())
