"""Held-out metrics of class probabilities."""

import numpy as np

from errorband import metrics
from errorband.reporting.parts.comparison import Metric, Scores

SMALLEST = 1e-15  # a probability of zero for what happened would make every average infinite

CLASS_METRICS: tuple[Metric, ...] = (
    Metric("error_rate", "Errors", "Share of the rows whose most probable class is not the true one.", "low"),
    Metric("log_loss", "Log loss", "How surprised the model is by the truth, on average: minus the log of the "
           "probability it gave to the true class. It punishes errors and probabilities that are too bold or too shy.",
           "low", decimals=3),
    Metric("information", "Information", "What the inputs tell about {target}, in bits per row: 0 is no more than the "
           "class frequencies of the training rows tell, below 0 misleads.", "high", decimals=3),
    Metric("calibration_error", "Calibration error", "How far, on average, the probability of the predicted class is "
           "from how often it is right, in ten bins. Few rows make it larger by chance; the same probabilities for all "
           "rows make it small.", ""),
)  # fmt: skip
SHARES = {"error_rate", "calibration_error"}  # shown as percentages


def class_score(name: str, note: str, codes: np.ndarray, share: np.ndarray, frequency: np.ndarray) -> Scores:
    """All metrics of probabilities (n, C), given the true classes by position.

    ``frequency`` (C,) are the shares of the classes in the training rows, or (n, C) if they differ from row to row.
    """
    rows = np.arange(len(codes))
    frequent = np.broadcast_to(frequency, share.shape)[rows, codes]
    true = np.clip(share[rows, codes], SMALLEST, 1.0)
    values = {
        "error_rate": float(np.mean(share.argmax(axis=1) != codes)),
        "log_loss": float(-np.mean(np.log(true))),
        "information": metrics.information_bits(true, np.clip(frequent, SMALLEST, 1.0)),
        "calibration_error": metrics.expected_calibration_error(codes, share, np.arange(share.shape[1])),
    }
    return Scores(name, note, values, -np.log(true))
