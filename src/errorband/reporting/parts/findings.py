"""Warnings and notes for the reader of a report: findings about the fit and about the data."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from sklearn.neighbors import NearestNeighbors

from errorband.effects import input_names
from errorband.parameters import Interval, entries
from errorband.reporting.parts.hyperparameters import Hyperparameter
from errorband.reporting.text import count, listing, number, percent

Level = Literal["warning", "note"]
MAX_NEIGHBOUR_ROWS = 20_000
FAR_LENGTHSCALE = 10.0  # in ranges of the data: the function is then a straight, nearly level line along that input


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something to know before trusting the model: ``warning`` or, if it is harmless, ``note``."""

    level: Level
    title: str
    text: str


def warnings_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with warnings before notes."""
    return tuple(sorted(findings, key=lambda f: f.level != "warning"))


def fit_findings(model: Any, rows: list[Hyperparameter], X: np.ndarray, y: np.ndarray) -> list[Finding]:
    """Return findings about the search, jitter, noise, bounds and length-scales."""
    found: list[Finding] = []
    searches = model.fit_result_ if isinstance(model.fit_result_, list) else [model.fit_result_]
    result = next((r for r in searches if r is not None and not r.converged), searches[0])
    if result is None:
        found.append(Finding("note", "Hyperparameters were not learned", "They were kept as given (optimizer=None)."))
    elif not result.converged:
        text = f"{result.message} Largest entry of the gradient: {number(result.gradient_norm, 2)}."
        found.append(Finding("warning", "The search for hyperparameters did not converge", text))
    if model.jitter_ > 0:
        text = (
            f"{number(model.jitter_, 2)} was added to the diagonal of the covariance to factorise it. Duplicate rows "
            "without noise are a common cause."
        )
        found.append(Finding("warning", "Jitter was added", text))
    return found + _noise(model, rows, y) + _bounds(model.members_[0]) + _lengthscales(model, rows, X)


def _noise(model: Any, rows: list[Hyperparameter], y: np.ndarray) -> list[Finding]:
    noise = next((r for r in rows if r.kind == "noise_variance"), None)
    spread = float(np.std(y))
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


def _lengthscales(model: Any, rows: list[Hyperparameter], X: np.ndarray) -> list[Finding]:
    names, span = input_names(model), np.ptp(X, axis=0)
    near = {
        r.column for r in rows if r.kind == "lengthscale" and r.column is not None
        and r.value <= FAR_LENGTHSCALE * span[r.column]
    }  # fmt: skip
    of_input = [r.column for r in rows if r.kind == "lengthscale" and r.column is not None]
    far = [names[j] for j in dict.fromkeys(of_input) if j not in near and span[j] > 0]
    if not far:
        return []
    it = "it" if len(far) == 1 else "them"
    text = (
        f"Along {listing(far)} the length-scale is more than {FAR_LENGTHSCALE:.0f} times the range of the data: as far "
        f"as this kernel sees, the target hardly depends on {it}. Leaving {it} out may do no harm."
    )
    return [Finding("note", "Length-scale beyond the data", text)]


def data_findings(X: np.ndarray, X_test: np.ndarray, scale: np.ndarray) -> list[Finding]:
    """Repeated rows, rows in both parts, and held-out rows beyond the training data."""
    found: list[Finding] = []
    _, times = np.unique(X, axis=0, return_counts=True)
    repeated = int(times[times > 1].sum())
    if repeated:
        text = f"{count(repeated, 'training row')} share all their inputs with another. With noise that is harmless."
        found.append(Finding("note", "Duplicate inputs", text))
    elif 2 <= len(X) <= MAX_NEIGHBOUR_ROWS:
        nearest = NearestNeighbors(n_neighbors=2).fit(X / scale).kneighbors()[0][:, 0]
        close = int(np.sum(nearest < 1e-6))
        if close:
            text = f"{count(close, 'training row')} differ from another by less than a millionth of the inputs' spread."
            found.append(Finding("note", "Near-duplicate inputs", text))
    training = set(_keys(X, scale))
    shared = sum(key in training for key in _keys(X_test, scale))
    if shared:
        text = (
            f"{count(shared, 'held-out row')} have exactly the inputs of a training row; the held-out metrics may be "
            "better than they would be on new data."
        )
        found.append(Finding("warning", "Training rows among the held-out rows", text))
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    beyond = float(np.mean(np.any((X_test < low - margin) | (X_test > high + margin), axis=1)))
    if beyond > 0.05:
        text = f"{percent(beyond)} of the held-out rows have an input outside the range of the training data."
        found.append(Finding("note", "Extrapolation", text))
    return found


def _keys(X: np.ndarray, scale: np.ndarray) -> list[bytes]:
    """The rows as keys that survive rounding: a model gives its training inputs back only to the last digits."""
    return [row.tobytes() for row in np.ascontiguousarray(np.round(X / scale, 9) + 0.0)]
