"""Held-out metrics of class probabilities."""

import numpy as np

from errorband import metrics
from errorband.reporting.parts.comparison import Metric, Scores, standard_error

SMALLEST = 1e-15  # a probability of zero for what happened would make every average infinite

CLASS_METRICS: tuple[Metric, ...] = (
    Metric("error_rate", "Errors", "Share of the rows whose most probable class is not the true one.", "low"),
    Metric("log_loss", "Log loss", "How surprised the model is by the truth, on average: minus the log of the "
           "probability it gave to the true class. It punishes errors and probabilities that are too bold or too shy.",
           "low", decimals=3),
    Metric("information", "Information", "What the inputs tell about {target}, in bits per row: 0 is no more than the "
           "class frequencies of the training rows tell, below 0 misleads.", "high", decimals=3),
    Metric("auc", "AUC", "Probability that a row of a class is ranked above a row of another by the probability of "
           "that class: 1 is perfect, 0.5 is no ranking at all. Rare classes count as much as frequent ones.", "high",
           decimals=3),
    Metric("calibration_error", "Calibration error", "How far, on average, the probability of the predicted class is "
           "from how often it is right, in ten bins. Few rows make it larger by chance; the same probabilities for all "
           "rows make it small.", ""),
)  # fmt: skip
SHARES = {"error_rate", "calibration_error"}  # shown as percentages


def class_score(name: str, note: str, codes: np.ndarray, share: np.ndarray, frequency: np.ndarray) -> Scores:
    """All metrics of probabilities (n, C), given the true classes by position, with standard errors.

    ``frequency`` (C,) are the shares of the classes in the training rows, or (n, C) if they differ from row to row.
    """
    rows = np.arange(len(codes))
    frequent = np.broadcast_to(frequency, share.shape)[rows, codes]
    true = np.clip(share[rows, codes], SMALLEST, 1.0)
    wrong, loss = (share.argmax(axis=1) != codes).astype(float), -np.log(true)
    area, area_error = ranking(codes, share)
    values = {
        "error_rate": float(np.mean(wrong)),
        "log_loss": float(np.mean(loss)),
        "information": metrics.information_bits(true, np.clip(frequent, SMALLEST, 1.0)),
        "auc": area,
        "calibration_error": metrics.expected_calibration_error(codes, share, np.arange(share.shape[1])),
    }
    errors = {
        "error_rate": standard_error(wrong),
        "log_loss": standard_error(loss),
        "information": standard_error((np.log(np.clip(frequent, SMALLEST, 1.0)) + loss) / np.log(2)),
        "auc": area_error,
    }
    return Scores(name, note, values, errors, {"log_loss": loss})


def ranking(codes: np.ndarray, share: np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve and its standard error; for several classes the mean of each against the others.

    The area is the probability that a row of the class gets a higher probability of it than a row of another. Its
    standard error follows from the placements of the rows among those of the other side (DeLong et al. 1988).
    """
    found = [
        _area(share[codes == c, c], share[codes != c, c])
        for c in range(1 if share.shape[1] == 2 else 0, share.shape[1])
    ]
    found = [pair for pair in found if np.isfinite(pair[0])]
    if not found:
        return float("nan"), float("nan")
    areas, errors = np.array(found).T
    return float(areas.mean()), float(np.sqrt(np.mean(errors**2)))


def _area(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    if not len(own) or not len(other):
        return float("nan"), float("nan")
    below = _placements(own, other)
    above = 1 - _placements(other, own)
    variance = sum(np.var(v, ddof=1) / len(v) for v in (below, above) if len(v) > 1)
    area = float(below.mean())
    return area, float(np.sqrt(variance)) if 0 < area < 1 else float("nan")  # two rows in order prove no perfect order


def _placements(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Share of ``among`` below each value; ties count half."""
    ordered = np.sort(among)
    left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return (left + right) / (2 * len(ordered))
