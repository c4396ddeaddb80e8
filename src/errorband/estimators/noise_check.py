"""Do the residuals ask for another noise? Leave-one-out errors in units of their standard deviation know, cheaply.

With z ~ N(0, 1) for every row Gaussian noise is right. What other distributions of z gain in log likelihood, less
½ log n for each of their numbers, is about what the log density of new targets would gain.
"""

from typing import Any

import numpy as np
import scipy.optimize

from errorband.predictive import StudentPredictive

# A gain in nats that is worth a word: at least so much, and so much for each row.
NATS, PER_ROW = 10.0, 0.05

# Degrees of freedom above two that are not told from two.
LEAST_LOG_DF = -20.0

# What the names mean to people.
SAID = {
    "student-t": "heavy tails (StudentT)",
    "outlier-mixture": "outliers (OutlierMixture)",
    "heteroscedastic": "a spread that depends on the inputs (HeteroscedasticGaussian)",
}


def gains(z: np.ndarray, X: np.ndarray, mean: np.ndarray) -> dict[str, float]:
    """What other noises gain over the Gaussian one, in nats, by the name of the likelihood.

    Parameters
    ----------
    z : array (n,)
        Leave-one-out errors in units of their standard deviation.
    X : array (n, D)
        Standardised inputs.
    mean : array (n,)
        Predictions.
    """
    gaussian = -0.5 * len(z) * (np.log(np.mean(z**2)) + 1 + np.log(2 * np.pi))
    found = {
        "student-t": _student(z),
        "outlier-mixture": _mixture(z),
        "heteroscedastic": _heteroscedastic(z, X, mean),
    }
    return {name: float(value - gaussian) for name, value in found.items()}


def advice(found: dict[str, float], n: int) -> str | None:
    """A sentence about the noise that gains most, if it is worth one."""
    best = max(found, key=lambda name: found[name])
    if not found[best] > max(NATS, PER_ROW * n):
        return None
    return (
        f"The targets ask for another noise: {SAID[best]} would raise the leave-one-out log density by about "
        f'{found[best]:.0f}. Try likelihood="auto".'
    )


def _maximum(log_likelihood: Any, start: Any, n_numbers: int, n: int) -> float:
    best = scipy.optimize.minimize(lambda v: -log_likelihood(v), start, method="Nelder-Mead")
    return -float(best.fun) - 0.5 * n_numbers * np.log(n)


def _student(z: np.ndarray) -> float:
    def log_likelihood(v: np.ndarray) -> float:
        df = 2 + np.exp(max(v[0], LEAST_LOG_DF))
        return float(np.sum(StudentPredictive(np.zeros(len(z)), np.exp(v[1]), df).log_density(z)))

    return _maximum(log_likelihood, [1.0, -0.3], 1, len(z))


def _mixture(z: np.ndarray) -> float:
    def log_likelihood(v: np.ndarray) -> float:
        fraction, small, large = 0.5 / (1 + np.exp(-v[0])), np.exp(v[1]), np.exp(v[1]) + np.exp(v[2])
        within, beyond = (-0.5 * (z / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi) for s in (small, large))
        return float(np.sum(np.logaddexp(np.log1p(-fraction) + within, np.log(fraction) + beyond)))

    return _maximum(log_likelihood, [-2.0, np.log(np.median(np.abs(z)) / 0.67 + 1e-12), 1.0], 2, len(z))


def _heteroscedastic(z: np.ndarray, X: np.ndarray, mean: np.ndarray) -> float:
    """Variance exp(wᵀφ), φ the inputs, the prediction and their squares; w by Fisher scoring, a little shrunk."""
    columns = np.column_stack([X, mean])
    columns = (columns - columns.mean(axis=0)) / (columns.std(axis=0) + 1e-12)
    varied = columns[:, columns.std(axis=0) > 0.5]
    basis = np.column_stack([np.ones(len(z)), varied, varied**2 - 1])
    w = np.zeros(basis.shape[1])
    w[0] = np.log(np.mean(z**2))
    penalty = np.full(len(w), 1.0)
    penalty[0] = 0.0
    for _ in range(30):
        ratio = z**2 * np.exp(-np.clip(basis @ w, -30, 30))
        gradient = 0.5 * basis.T @ (ratio - 1) - penalty * w
        step = np.linalg.solve(0.5 * basis.T @ basis + np.diag(penalty + 1e-9), gradient)
        w += step * min(1.0, 1.0 / (np.max(np.abs(step)) + 1e-12))
    log_variance = basis @ w
    value = -0.5 * np.sum(z**2 * np.exp(-log_variance) + log_variance + np.log(2 * np.pi))
    return float(value) - 0.5 * (len(w) - 1) * np.log(len(z))
