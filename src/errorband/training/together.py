"""The precisions of all basis functions in a model, and the noise, at their best together: Newton's method."""

import dataclasses
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from errorband.linalg import NotPositiveDefinite

_potrf, _potrs, _potri = get_lapack_funcs(("potrf", "potrs", "potri"), dtype=np.float64)
STEPS = 30  # of Newton's method, at most
LONGEST = 3.0  # step of a log precision
FLAT = 1e-9  # slope of the log evidence that counts as none
GONE = 1e8  # times the precision that the data give it: a basis function that takes no part
HELD = 1e12  # curvature of what is at a limit
ROUNDING = 1e-12  # share of the log evidence
QUIETER = 10.0  # the noise becomes at most exp(this) times larger


@dataclasses.dataclass(frozen=True)
class Point:
    """The log evidence as a function of θ = (log α, log of what the noise variance is divided by), and derivatives."""

    value: float
    slope: np.ndarray
    curvature: np.ndarray

    @staticmethod
    def at(theta: np.ndarray, G: np.ndarray, target: np.ndarray, fit: float, size: float) -> "Point | None":
        r"""The value and its derivatives; None where there is no Cholesky factor.

        With r = α^−½ and c the factor of the site precisions, the whitened weights have the posterior covariance and
        mean

            C = A⁻¹,  A = I + c·rGr,      v = Cu,  u = c·r·t,

        and the log evidence is, but for a constant, −½[c·fit − uᵀv + log|A| − N log c]. From ∂A/∂log α_k =
        −½[E_k(A − I) + (A − I)E_k] its slopes are ½(1 − C_mm − v_m²), and its curvature

            C_mk(½C_mk + v_m v_k) − ½δ_mk(C_mm + v_m²).
        """
        r, c = np.exp(-0.5 * theta[:-1]), np.exp(theta[-1])
        A, each = c * r[:, None] * G * r, np.arange(len(r))
        A[each, each] += 1.0
        found = inverse(A)
        if found is None:
            return None
        C, log_det = found
        u = c * r * target
        v, own = C @ u, np.diagonal(C)
        Cv, of_C = C @ v, np.sum(C * C, axis=1)
        explained, left = u @ v, c * fit - u @ v - v @ v  # the second is c times the squares of the residuals
        value = -0.5 * float(c * fit - explained - size * theta[-1] + log_det)
        slope = np.append(0.5 * (1.0 - own - v * v), 0.5 * (size - left - np.sum(1.0 - own)))
        curvature = np.empty((len(theta), len(theta)))
        curvature[:-1, :-1] = C * (0.5 * C + np.outer(v, v))
        curvature[each, each] -= 0.5 * (own + v * v)
        curvature[:-1, -1] = curvature[-1, :-1] = 0.5 * (own - of_C) - v * Cv
        curvature[-1, -1] = v @ Cv - 0.5 * left - 0.5 * np.sum(own - of_C)
        return Point(value, slope, curvature)


def inverse(A: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Inverse and log determinant of a small matrix; None unless it is positive definite.

    LAPACK without the care that :mod:`errorband.linalg` takes, which costs more than the work does at this size.
    """
    L, failed = _potrf(A, lower=1)
    if failed:
        return None
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(L))))
    lower = _potri(L, lower=1)[0]  # with zeros above
    C, each = lower + lower.T, np.arange(len(A))
    C[each, each] *= 0.5
    return C, log_det


def together(
    columns: Any, precision: np.ndarray, learns_noise: bool, tolerance: float = 0.0, steps: int = STEPS
) -> tuple[Any, np.ndarray, float, float]:
    """The precisions of all basis functions in the model at their best together, and the noise if it is to be learned.

    Everything is of the size m × m. Where the evidence is not concave, or a step would lower it, the curvature is
    damped until the step is one that raises it. The last step is one that brings less than ``tolerance`` nats, or
    the last of ``steps``.

    Returns
    -------
    columns : Columns or Products
        With the noise that was found.
    precision : array (M,)
        Infinite for basis functions that take no part any more.
    log_evidence : float
        As that of :class:`~errorband.training.sequential.SequentialBayes`.
    slope : float
        The largest that it still has, in the log of a precision or of the noise.
    """
    active, sites = np.flatnonzero(np.isfinite(precision)), columns.sites
    given = columns.products(active)[:, active], columns.target[active], sites.fit, sites.size
    # The noise variance stays above a millionth of the mean square of the targets.
    limit = max(np.log(1e6 * sites.size / max(sites.fit, 1e-300)), 0.0) if learns_noise else 0.0
    most = np.append(np.log(GONE * columns.power[active]) + 1.0, limit)
    least = np.append(np.full(len(active), -np.inf), -QUIETER if learns_noise else 0.0)
    theta = np.append(np.minimum(np.log(precision[active]), most[:-1]), 0.0)
    here, damping, each = Point.at(theta, *given), 0.0, np.arange(len(theta))
    if here is None:
        raise NotPositiveDefinite(
            "Basis functions in the model repeat one another to rounding, so that their weights have no precision of "
            "their own. Check the scale of the data and of the kernel's values, or use a shorter length-scale."
        )
    for _ in range(steps):
        slope, H = _free_slope(here, theta, least, most), -here.curvature
        if np.max(np.abs(slope)) < FLAT:
            break
        own = np.where(slope == 0.0, np.inf, damping * np.abs(np.diagonal(H)))
        H[each, each] += np.minimum(own, HELD)
        L, failed = _potrf(H, lower=1)
        new = None
        if not failed:
            step = np.clip(_potrs(L, slope, lower=1)[0], -LONGEST, LONGEST)
            moved = np.minimum(np.maximum(theta + step, least), most)
            new = Point.at(moved, *given)
        if new is None or new.value < here.value - ROUNDING * (1 + abs(here.value)):
            damping = max(4 * damping, 0.1)
            continue
        gained = new.value - here.value
        theta, here, damping = moved, new, damping / 4 if damping > 0.1 else 0.0
        if gained < tolerance:
            break
    columns = columns.scaled(float(np.exp(theta[-1])))
    new, alpha = np.full(len(precision), np.inf), np.exp(theta[:-1])
    new[active] = np.where(alpha < GONE * columns.power[active], alpha, np.inf)
    steepest = float(np.max(np.abs(_free_slope(here, theta, least, most))))
    return columns, new, sites.constant + here.value, steepest


def _free_slope(here: Point, theta: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The slope, zero where it points out of the limits."""
    held = ((theta >= most) & (here.slope > 0)) | ((theta <= least) & (here.slope < 0))
    return np.where(held, 0.0, here.slope)
