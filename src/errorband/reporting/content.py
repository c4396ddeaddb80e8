"""The content of a report on a regression: numbers and words, computed by :mod:`errorband.reporting.build`."""

import dataclasses

import numpy as np

from errorband.effects import PartialDependence
from errorband.estimators.certificate import InducingSweep
from errorband.reporting.checks import CoverageAt, Finding
from errorband.reporting.hyperparameters import Hyperparameter
from errorband.reporting.scores import Comparison, Scores


@dataclasses.dataclass(frozen=True)
class Summary:
    """What was fitted, to what, and how that went. ``converged`` is None if nothing was searched."""

    estimator: str
    parts: dict[str, str]
    log_evidence: float
    n_train: int
    n_test: int
    input_names: tuple[str, ...]
    target: str
    seconds: float | None
    iterations: int
    converged: bool | None
    message: str
    starts: tuple[float, ...]
    trace: np.ndarray
    versions: str


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Held-out rows that are drawn: ``shown`` are their positions among ``total``."""

    total: int
    shown: np.ndarray
    X: np.ndarray
    actual: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    z_score: np.ndarray


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Observed against nominal coverage; ``low`` and ``high`` as in :class:`CoverageAt`."""

    levels: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    at: tuple[CoverageAt, ...]


@dataclasses.dataclass(frozen=True)
class Surprise:
    """A training row the other rows did not expect."""

    row: str
    observed: float
    expected: float
    lower: float
    upper: float
    z_score: float
    inputs: tuple[tuple[str, float], ...]


@dataclasses.dataclass(frozen=True)
class Curve:
    """A function of one input: bands of new targets by level, draws of the function, and the rows."""

    grid: np.ndarray
    mean: np.ndarray
    bands: dict[float, tuple[np.ndarray, np.ndarray]]
    draws: np.ndarray
    train: tuple[np.ndarray, np.ndarray]
    n_train: int


@dataclasses.dataclass(frozen=True)
class Map:
    """A function of two inputs on a grid: mean and standard deviation (rows, columns).

    Noise is left out if ``latent``; where that means nothing, as with counts, both are those of the target.
    """

    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    train: np.ndarray
    n_train: int
    latent: bool = True


@dataclasses.dataclass(frozen=True)
class InducingContent:
    """Inducing inputs (M, D) of a fitted model in the units of the data, some of its rows (n, D), and the sweep."""

    method: str
    places: np.ndarray
    rows: np.ndarray
    moved: int
    reason: str
    fate: str  # learned, or not
    sweep: InducingSweep | None


@dataclasses.dataclass(frozen=True)
class RegressionContent:
    """Everything a report on a regression says."""

    title: str
    summary: Summary
    verdict: tuple[str, ...]
    data_notes: tuple[str, ...]
    target_range: tuple[float, float, float, float]
    findings: tuple[Finding, ...]
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    held_out: HeldOut
    calibration: Calibration
    relevance: np.ndarray
    order: tuple[int, ...]
    effects: tuple[PartialDependence, ...]
    surprises: tuple[Surprise, ...] | None
    hyperparameters: tuple[Hyperparameter, ...]
    curve: Curve | None
    map: Map | None
    inducing: InducingContent | None = None
