"""What a reader should be warned of, and the verdict on a model in words."""

import dataclasses
from typing import Any, Literal

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from errorband.effects import input_names
from errorband.parameters import Interval, entries
from errorband.reporting.describe import first
from errorband.reporting.hyperparameters import Hyperparameter
from errorband.reporting.scores import Comparison, Scores
from errorband.reporting.text import count, listing, number, percent

Level = Literal["warning", "note"]
MAX_NEIGHBOUR_ROWS = 20_000
FAR_LENGTHSCALE = 10.0  # in ranges of the data: the function is then a straight, nearly level line along that input
FEW_ROWS = 30
RIGHT = "right"


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something to know before trusting the model: ``warning`` or, if it is harmless, ``note``."""

    level: Level
    title: str
    text: str


@dataclasses.dataclass(frozen=True)
class CoverageAt:
    """Observed coverage of the central band of a nominal level.

    ``low`` and ``high`` enclose, with probability 95 %, what a calibrated model would show on so many rows;
    ``surely_low`` and ``surely_high`` with 99 %.
    """

    level: float
    observed: float
    width: float
    low: float
    high: float
    surely_low: float
    surely_high: float

    @property
    def verdict(self) -> str:
        """In words, with the benefit of the doubt."""
        if self.observed < self.surely_low:
            return "too narrow"
        return "too wide" if self.observed > self.surely_high else RIGHT


def coverage_range(n: int | np.ndarray, level: float | np.ndarray, confidence: float) -> tuple[Any, Any]:
    """Between which shares of n rows a calibrated band of this level covers, with this probability."""
    tail = (1 - confidence) / 2
    return binom.ppf(tail, n, level) / n, binom.ppf(1 - tail, n, level) / n


# ------------------------------------------------------------------------------------------------------- findings
def fit_findings(model: Any, rows: list[Hyperparameter], X: np.ndarray, y: np.ndarray) -> list[Finding]:
    """What the fit itself tells."""
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
    return found + _noise(model, rows, y) + _bounds(first(model)) + _lengthscales(model, rows, X)


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
    for asked, fitted in ((model._kernel(), model.kernel_), (model._likelihood(), model.likelihood_)):
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


def prediction_findings(coverages: list[CoverageAt], n_test: int, z_scores: np.ndarray | None) -> list[Finding]:
    """Bands that do not hold, and training rows the model cannot believe."""
    found: list[Finding] = []
    if n_test < FEW_ROWS:
        text = f"With {count(n_test, 'held-out row')} the metrics and the coverage are rough."
        found.append(Finding("note", "Few held-out rows", text))
    wrong = [c for c in coverages if c.verdict != RIGHT]
    if wrong:
        parts = [f"the {percent(c.level)} band holds {percent(c.observed)} of the targets" for c in wrong]
        found.append(Finding("warning", f"Bands {wrong[-1].verdict}", listing(parts).capitalize() + "."))
    wild = 0 if z_scores is None else int(np.sum(np.abs(z_scores) > 4))
    if wild:
        text = (
            f"{count(wild, 'training row')} lie more than four standard deviations from what the other rows predict. "
            "Look for errors in them, or use a likelihood with heavier tails."
        )
        found.append(Finding("warning", "Outliers", text))
    return found


# -------------------------------------------------------------------------------------------------------- verdict
def verdict(
    scores: Scores, comparisons: list[Comparison], coverages: list[CoverageAt], target: str, n_test: int
) -> list[str]:
    """The model in two or three sentences."""
    r2 = scores.values["r2"]
    if not np.isfinite(r2):
        first = f"The held-out values of {target} are all the same."
    elif r2 <= 0:
        first = f"On held-out rows it predicts {target} no better than a constant would."
    else:
        first = f"It explains {percent(r2)} of the variation of {target} in {count(n_test, 'held-out row')}."
    rivals = [c for c in comparisons if c.baseline != "Training mean"]
    by_verdict = {v: [c.baseline.lower() for c in rivals if c.verdict == v] for v in ("better", "even", "worse")}
    phrases = {
        "better": "it is more accurate than {}",
        "even": "about as accurate as {} (the difference could be chance)",
        "worse": "less accurate than {}",
    }
    parts = [phrases[v].format(listing(names)) for v, names in by_verdict.items() if names]
    if parts and not parts[0].startswith("it is"):
        parts[0] = "it is " + parts[0]
    second = listing(parts) + "." if parts else ""
    outer = coverages[-1]
    held = f"its {percent(outer.level)} bands hold {percent(outer.observed)} of the targets"
    wrong = [c.verdict for c in coverages if c.verdict != RIGHT]
    if n_test < FEW_ROWS:
        third = f"{held}, on rows too few to judge them closely."
    elif not wrong:
        third = f"{held}, as calibrated bands would on so many rows, give or take chance."
    elif len(set(wrong)) > 1:
        third = f"{held}, but its bands are too wide at one level and too narrow at another."
    else:
        third = f"{held}, but its bands are {wrong[-1]}: it is " + (
            "overconfident." if wrong[-1] == "too narrow" else "more cautious than it need be."
        )
    return [s[0].upper() + s[1:] for s in (first, second, third) if s]
