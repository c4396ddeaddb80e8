"""Warnings and notes for the reader of a report: findings about the fit and about the data."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from errorband import effects
from errorband.estimators.hyperparameters import Hyperparameter
from errorband.parameters import Interval, entries
from errorband.reporting.text import listing, number, percent

Level = Literal["warning", "note"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something to know before trusting the model: ``warning`` or, if it is harmless, ``note``.

    ``about`` are the names of the inputs or rows that it is about, where it is about some.
    """

    level: Level
    title: str
    text: str
    about: tuple[str, ...] = ()


def warnings_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with warnings before notes."""
    return tuple(sorted(findings, key=lambda f: f.level != "warning"))


def fit_findings(model: Any, rows: Sequence[Hyperparameter], y: np.ndarray) -> list[Finding]:
    """Return findings about the search; and about inference, jitter, noise and bounds of a Gaussian process."""
    process = effects.process(model)
    if process is None:
        return _search(model)
    return _search(process) + _posterior(process) + _noise(process, rows, y) + _bounds(process.members_[0])


def _search(model: Any) -> list[Finding]:
    if not hasattr(model, "fit_result_"):  # nothing to search for
        return []
    searches = model.fit_result_ if isinstance(model.fit_result_, list) else [model.fit_result_]
    result = next((r for r in searches if r is not None and not r.settled), searches[0])
    if result is None:
        given = "as given (optimizer=None)" if model.optimizer is None else "where the search would have started"
        return [Finding("note", "Hyperparameters were not learned", f"They were kept {given}.")]
    if result.settled:
        return []
    text = f"{result.message} Largest entry of the gradient: {number(result.gradient_norm, 2)}."
    return [Finding("warning", "The search for hyperparameters did not converge", text)]


def _posterior(model: Any) -> list[Finding]:
    found: list[Finding] = []
    if not model.inference_status_.converged:
        found.append(Finding("warning", "The posterior was not found exactly", model.inference_status_.message))
    if model.jitter_ > 0:
        text = (
            f"{number(model.jitter_, 2)} was added to the diagonal of the covariance to factorise it. Duplicate rows "
            "without noise are a common cause."
        )
        found.append(Finding("warning", "Jitter was added", text))
    return found


def _noise(model: Any, rows: Sequence[Hyperparameter], y: np.ndarray) -> list[Finding]:
    noise = next((r for r in rows if r.kind == "noise_variance"), None)
    transform = getattr(model.scaling_, "transform", None)
    spread = float(np.std(y if transform is None else transform.forward(y)))
    if noise is None or spread == 0:
        return []
    smallest = float(getattr(model.likelihood_, "min_noise_variance", 0.0))
    fitted = float(model.likelihood_.noise_variance)
    shown = f"{number(noise.value)} ({percent(noise.value / spread)} of the spread of {noise.unit})"
    if smallest > 0 and fitted <= 1.01 * smallest:
        text = f"The noise, {shown}, is the smallest that min_noise_variance allows."
        return [Finding("warning", "Noise at its bound", text)]
    if noise.value < 1e-3 * spread:
        text = (
            f"Its standard deviation is {shown}, so the function passes through every training row. That is right for "
            "a computation, and suspicious for a measurement."
        )
        return [Finding("note", "Almost no noise was found", text)]
    if noise.value > 0.97 * spread:
        text = f"Its standard deviation is {shown}: the inputs, seen through this kernel, say little about the target."
        return [Finding("warning", "Almost everything is noise", text)]
    return []


def _bounds(model: Any) -> list[Finding]:
    """Hyperparameters that ended on an upper or lower bound the user gave."""
    stuck = []
    kernels = model.kernel if isinstance(model.kernel, dict) else dict.fromkeys(model.latents_, model.kernel)
    pairs = [(asked, model.latents_[name].kernel) for name, asked in kernels.items()]
    for asked, fitted in [*pairs, (model.likelihood, model.likelihood_)]:
        if asked is None or isinstance(asked, str):  # the default, or a name: no bounds were given
            continue
        values = {entry.path: np.asarray(entry.value, dtype=float) for entry in entries(fitted)}
        for entry in entries(asked):
            if entry.fixed or not isinstance(entry.constraint, Interval) or entry.path not in values:
                continue
            low, high = entry.constraint.lower, entry.constraint.upper
            value = values[entry.path]
            if np.any(np.minimum(value - low, high - value) < 1e-3 * (high - low)):
                stuck.append(entry.name)
    text = f"The search ended on a bound of {listing(stuck)}; the evidence would go further." if stuck else ""
    return [Finding("warning", "At the bounds", text)] if stuck else []
