"""What thresholds and costs do to the decisions of a classifier: curves and a table for two classes."""

import dataclasses

import numpy as np

# Cost of missing a row of the class, relative to that of a false alarm.
COST_RATIOS = (1 / 10, 1 / 3, 1.0, 3.0, 10.0, 30.0)


@dataclasses.dataclass(frozen=True)
class Decision:
    """Held-out decisions where missing a row of the class costs ``ratio`` times as much as a false alarm."""

    ratio: float
    threshold: float
    found: int
    missed: int
    false_alarms: int
    cost: float
    cost_of_one_answer: float


@dataclasses.dataclass(frozen=True)
class Curves:
    """Precision and recall (of the class), and false alarms, at every threshold from the highest down."""

    threshold: np.ndarray
    recall: np.ndarray
    precision: np.ndarray
    false_positive: np.ndarray
    share: float


def curves(of_class: np.ndarray, probability: np.ndarray) -> Curves:
    """Return recall, precision and false-positive rate as the threshold falls; rows of one probability go together.

    Examples
    --------
    >>> c = curves(np.array([1, 0, 1, 0]), np.array([0.9, 0.6, 0.6, 0.1]))
    >>> c.recall, c.precision.round(2), c.false_positive
    (array([0.5, 1. , 1. ]), array([1.  , 0.67, 0.5 ]), array([0. , 0.5, 1. ]))
    """
    of_class = np.asarray(of_class, dtype=float)
    order = np.argsort(-probability, kind="stable")
    last = np.append(np.diff(probability[order]) != 0, True)
    hits, taken = np.cumsum(of_class[order])[last], np.flatnonzero(last) + 1
    positives = max(float(of_class.sum()), 1.0)
    negatives = max(len(of_class) - float(of_class.sum()), 1.0)
    return Curves(
        probability[order][last], hits / positives, hits / taken, (taken - hits) / negatives, float(of_class.mean())
    )


def decisions(of_class: np.ndarray, probability: np.ndarray) -> tuple[Decision, ...]:
    """Return the decisions that cost least in expectation, for several ratios r of the costs.

    With an honest probability p, saying yes costs 1 − p in expectation and saying no costs r p: so yes above
    1/(1 + r). ``cost`` is per row, in units of a false alarm; ``cost_of_one_answer`` that of the better of always yes
    and always no.

    Examples
    --------
    >>> [round(d.threshold, 2) for d in decisions(np.array([1, 0]), np.array([0.8, 0.3]))]
    [0.91, 0.75, 0.5, 0.25, 0.09, 0.03]
    """
    of_class, n = np.asarray(of_class, dtype=bool), len(of_class)
    found = []
    for ratio in COST_RATIOS:
        yes = probability > 1 / (1 + ratio)
        hit, missed, alarms = (int(np.sum(v)) for v in (yes & of_class, ~yes & of_class, yes & ~of_class))
        one = min(ratio * int(of_class.sum()), int(np.sum(~of_class))) / n
        found.append(Decision(ratio, 1 / (1 + ratio), hit, missed, alarms, (ratio * missed + alarms) / n, one))
    return tuple(found)
