"""The content of a report on a regression: numbers and words, computed in ``build.py``."""

import dataclasses

import numpy as np

from errorband.effects import PartialDependence
from errorband.estimators.hyperparameters import Hyperparameter
from errorband.inputs import Input
from errorband.reporting.parts.basis.content import BasisContent
from errorband.reporting.parts.comparison import Comparison, Scores
from errorband.reporting.parts.findings import Finding
from errorband.reporting.parts.inducing.content import InducingContent
from errorband.reporting.parts.relevance_vectors import RelevanceContent
from errorband.reporting.parts.summary import Summary
from errorband.reporting.regression.calibration import Calibration
from errorband.reporting.regression.diagnostics import Group


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Held-out rows that are drawn: ``shown`` are their positions among ``total``, ``names`` what they are called."""

    total: int
    shown: np.ndarray
    names: np.ndarray
    X: np.ndarray
    actual: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    z_score: np.ndarray


@dataclasses.dataclass(frozen=True)
class Surprise:
    """A training row the other rows did not expect."""

    row: str
    observed: float
    expected: float
    lower: float
    upper: float
    z_score: float
    inputs: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Suspects:
    """Training rows that findings take for outliers, alone or in bursts: names, inputs, targets, and how they erred."""

    names: np.ndarray
    X: np.ndarray
    y: np.ndarray
    why: tuple[str, ...]


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
    densities: tuple[Comparison, ...]
    held_out: HeldOut
    calibration: Calibration
    groups: tuple[Group, ...]
    columns: tuple[Input, ...]
    relevance: np.ndarray
    order: tuple[int, ...]
    effects: tuple[PartialDependence, ...]
    surprises: tuple[Surprise, ...] | None
    suspects: Suspects
    rows_told: str
    hyperparameters: tuple[Hyperparameter, ...]
    curve: Curve | None
    map: Map | None
    inducing: InducingContent | None = None
    relevance_vectors: tuple[RelevanceContent, ...] = ()
    basis: BasisContent | None = None
