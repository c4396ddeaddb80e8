"""The content of a report on a classifier: numbers and words, computed in ``build.py``."""

import dataclasses

import numpy as np

from errorband.effects import ClassDependence
from errorband.estimators.hyperparameters import Hyperparameter
from errorband.inputs import Input
from errorband.reporting.classification.assessment import Reliability
from errorband.reporting.classification.decisions import Curves, Decision
from errorband.reporting.parts.basis.content import BasisContent
from errorband.reporting.parts.comparison import Comparison, Scores
from errorband.reporting.parts.findings import Finding
from errorband.reporting.parts.inducing.content import InducingContent
from errorband.reporting.parts.relevance_vectors import RelevanceContent
from errorband.reporting.parts.summary import Summary


@dataclasses.dataclass(frozen=True)
class ClassSurprise:
    """A training row whose class the other rows did not expect."""

    row: str
    observed: str
    probability: float
    expected: str
    expected_probability: float
    inputs: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class ClassCurve:
    """Average probability of each class along one input; ``rows`` and ``codes`` are training rows to draw."""

    effect: ClassDependence
    rows: np.ndarray
    codes: np.ndarray


@dataclasses.dataclass(frozen=True)
class Choices:
    """Decisions between two classes: ``positive`` is the class to be found, the rarer one in the training rows."""

    positive: int
    curves: Curves
    decisions: tuple[Decision, ...]
    of_class: np.ndarray
    probability: np.ndarray


@dataclasses.dataclass(frozen=True)
class ClassMap:
    """Probability of each class (rows, columns, C) over two inputs, and the training rows that are drawn."""

    x: np.ndarray
    y: np.ndarray
    share: np.ndarray
    train: np.ndarray
    codes: np.ndarray
    n_train: int


@dataclasses.dataclass(frozen=True)
class ClassificationContent:
    """Everything a report on a classifier says. ``confusion[i, j]`` counts rows of class i predicted as j.

    ``inducing_of_each`` has an entry for each class where each has a model of its own.
    """

    title: str
    summary: Summary
    verdict: tuple[str, ...]
    data_notes: tuple[str, ...]
    classes: tuple[str, ...]
    train_counts: np.ndarray
    findings: tuple[Finding, ...]
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    confusion: np.ndarray
    reliability: Reliability
    class_reliability: tuple[Reliability, ...]
    choices: Choices | None
    error_reject: tuple[np.ndarray, np.ndarray]
    columns: tuple[Input, ...]
    relevance: np.ndarray
    order: tuple[int, ...]
    effects: tuple[ClassCurve, ...]
    surprises: tuple[ClassSurprise, ...] | None
    rows_told: str
    hyperparameters: tuple[Hyperparameter, ...]
    map: ClassMap | None
    inducing: InducingContent | None = None
    relevance_vectors: tuple[RelevanceContent, ...] = ()
    basis: BasisContent | None = None
    inducing_of_each: tuple[InducingContent, ...] = ()
