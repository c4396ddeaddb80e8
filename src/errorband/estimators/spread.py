"""Where errors are large and where they are small: their scale as a function of the inputs and of the prediction."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit

from errorband.predictive import StudentPredictive

LEAST_ROWS = 60  # the errors of fewer follow something by chance

# Precisions of the prior of the weights that are tried, from the strictest; the evidence chooses.
PRECISIONS = 300.0, 100.0, 30.0, 10.0, 3.0, 1.0
WORTH = 2.0  # nats by which errors of unequal size must be the better explanation

# Columns are cut off at so many standard deviations: beyond the data errors are as large as at their edge.
EDGE = 3.0
MOST_COLUMNS = 100  # with more inputs only the prediction counts

# 1/df of Student's distribution stays below the first (a variance exists); the second is as good as normal.
HEAVIEST, NORMAL = 0.45, 1e-4
LARGEST = 10.0  # log of a factor: nothing is learned from errors of another order

LEAST_PREDICTED = 0.1  # standard deviation of predictions, in units of that of the targets, below which they are none


@dataclasses.dataclass(frozen=True)
class Spread:
    """A factor on standard deviations for each row: exp(w₀ + Σ_c w_c u_c + v_c (u_c² − 1)).

    u are the inputs and the prediction, as the model sees them, less ``shift`` and divided by ``unit``, cut off at ±3.

    Parameters
    ----------
    shift, unit : tuples of float (C,)
        Mean and standard deviation of each column. With one of each only the prediction counts.
    weights : tuple of float (1 + 2C,)
        w₀, then w, then v.
    usual : tuple of two floats
        Between these are the factors of nine in ten rows it was learned from.
    """

    shift: tuple[float, ...]
    unit: tuple[float, ...]
    weights: tuple[float, ...]
    usual: tuple[float, float]

    def __call__(self, X: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """The factor (n,) at inputs (n, D) with predictions (n,)."""
        basis = _basis(_columns(X, mean, len(self.shift)), np.array(self.shift), np.array(self.unit))
        return np.exp(np.clip(basis @ np.array(self.weights), -LARGEST, LARGEST))


class Learned(NamedTuple):
    """A spread, and the log factor (n,) that the other rows would have given to each row it was learned from."""

    spread: Spread
    left_out: np.ndarray


def learned_spread(z: np.ndarray, X: np.ndarray, mean: np.ndarray) -> Learned | None:
    r"""The spread of errors z (n,); None if that they are all alike is about as good an explanation.

    With e = z exp(−η), η = Bw, the errors e have Student's distribution t, and the weights a normal prior of precision
    λ (but the first, w₀). w and the degrees of freedom ν have the highest posterior density for each λ; λ the highest
    evidence by Laplace's approximation, in which the information on a log scale is 2ν/(ν + 3) for each row:

        Σ log t(e) − η − ½ λ wᵀw + ½ P log λ − ½ log |H|,       H = 2ν/(ν + 3) BᵀB + λ I.                     (1)

    Without row i the weights are about w − H⁻¹ bᵢ sᵢ, sᵢ = (ν + 1)eᵢ²/(ν + eᵢ²) − 1 the derivative of its log density
    in ηᵢ. So its own say in ηᵢ is bᵢᵀH⁻¹bᵢ sᵢ.                                                                 (2)
    """
    if not np.any(z) or len(z) < LEAST_ROWS:
        return None
    columns = _columns(X, mean, 1 if X.shape[1] > MOST_COLUMNS else X.shape[1] + 1)
    shift, unit = columns.mean(axis=0), columns.std(axis=0)
    unit = np.where(unit > 1e-9, unit, 1.0)
    B = _basis(columns, shift, unit)
    alike, *fits = _fits(z, B)
    best = max(fits, key=lambda fit: fit.log_evidence)
    if best.log_evidence < alike.log_evidence + WORTH:
        return None
    eta, w = B @ best.w, best.w.copy()
    w[0] -= np.mean(eta)  # a factor for all rows is not for the spread to say
    e = z * np.exp(-np.clip(eta, -LARGEST, LARGEST))
    score = (best.df + 1) * e**2 / (best.df + e**2) - 1
    leverage = np.sum(B * np.linalg.solve(best.H, B.T).T, axis=1)
    usual = np.exp(np.quantile(B @ w, [0.05, 0.95]))
    spread = Spread(*(tuple(a.tolist()) for a in (shift, unit, w)), usual=(float(usual[0]), float(usual[1])))
    return Learned(spread, B @ w - leverage * score)


def informative(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Leave-one-out predictions (n,) as something that errors may depend on: zeros where nothing is predicted.

    There what is left of them is an image of the targets themselves: a mean without y is the lower the higher y is.
    """
    return mean if np.std(mean) > LEAST_PREDICTED * np.std(y) else np.zeros(len(mean))


def _columns(X: np.ndarray, mean: np.ndarray, number: int) -> np.ndarray:
    """The prediction, or inputs and prediction."""
    return mean[:, None] if number == 1 else np.column_stack([X, mean])


def _basis(columns: np.ndarray, shift: np.ndarray, unit: np.ndarray) -> np.ndarray:
    u = np.clip((columns - shift) / unit, -EDGE, EDGE)
    return np.column_stack([np.ones(len(u)), u, u**2 - 1])


class _Fit(NamedTuple):
    w: np.ndarray
    df: float
    log_evidence: float
    H: np.ndarray


def _fits(z: np.ndarray, B: np.ndarray) -> Iterator[_Fit]:
    """Errors that are all alike, then the fits for each precision, each from the one before."""
    start = np.array([0.0, 0.5 * np.log(np.mean(z**2))])
    for precision in (np.inf, *PRECISIONS):
        basis = B[:, :1] if np.isinf(precision) else B
        start = np.concatenate([start, np.zeros(1 + basis.shape[1] - len(start))])
        prior = np.r_[1e-6, np.full(basis.shape[1] - 1, precision)]
        found = scipy.optimize.minimize(_minus_log_posterior, start, (z, basis, prior), "L-BFGS-B", jac=True)
        start, df = found.x, _df(found.x[0])
        H = 2 * df / (df + 3) * basis.T @ basis + np.diag(prior)
        log_evidence = -found.fun + 0.5 * np.sum(np.log(prior)) - 0.5 * np.linalg.slogdet(H)[1]  # (1)
        yield _Fit(found.x[1:], df, float(log_evidence), H)


def _df(v: float) -> float:
    return float(1 / (HEAVIEST * expit(v) + NORMAL))


def _minus_log_posterior(v: np.ndarray, z: np.ndarray, B: np.ndarray, prior: np.ndarray) -> tuple[float, np.ndarray]:
    """Of the degrees of freedom, as an unbounded number, and the weights; and its gradient."""
    w, eta = v[1:], np.clip(B @ v[1:], -LARGEST, LARGEST)
    e, nothing, step = z * np.exp(-eta), np.zeros(len(z)), 1e-5

    def log_density(number: float) -> float:
        return float(np.sum(StudentPredictive(nothing, 1.0, _df(number)).log_density(e)))

    df, here = _df(v[0]), log_density(v[0])
    value = here - np.sum(eta) - 0.5 * np.sum(prior * w**2)
    of_w = B.T @ ((df + 1) * e**2 / (df + e**2) - 1) - prior * w
    return -value, -np.r_[(log_density(v[0] + step) - here) / step, of_w]
