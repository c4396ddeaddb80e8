"""Sparse Bayesian learning, one basis function at a time: add, delete or re-estimate, whichever helps most."""

import copy

import numpy as np
import scipy.optimize

from errorband import linalg

REFRESH = 100  # rank-one updates between two computations from scratch
TOGETHER = 40  # steps of a search for all precisions at once
GONE = 1e8  # times the precision that the data give it: a basis function that takes no part
ALIGNED = 1e-9  # a basis function that the others make up but for this share cannot be added


class Columns:
    """Basis functions at the data, and Gaussian sites: what log p(y | f) is taken to be, −½ Σ wₙ(fₙ − bₙ/wₙ)².

    Parameters
    ----------
    basis : array (N, M)
        k(xₙ, c_m).
    weights : array (N,)
        Site precisions w, not negative; 1/σ² for Gaussian noise.
    shift : array (N,)
        b; (y − mean)/σ² for Gaussian noise.
    """

    def __init__(self, basis: np.ndarray, weights: np.ndarray, shift: np.ndarray):
        self.basis, self.weights, self.shift = basis, weights, shift
        self.power = weights @ basis**2  # φᵀWφ of each
        self.target = shift @ basis
        self.mean = np.divide(shift, weights, out=np.zeros_like(shift), where=weights > 0)
        self._known, self._scale = {}, 1.0  # products of columns that were asked for, with the weights of the first

    def products(self, which: np.ndarray) -> np.ndarray:
        """φᵀWφ of all basis functions with some of them, (M, m)."""
        for m in which:
            if m not in self._known:
                self._known[m] = self.basis.T @ (self.weights / self._scale * self.basis[:, m])
        columns = [self._scale * self._known[m] for m in which]
        return np.stack(columns, axis=1) if columns else np.zeros((self.basis.shape[1], 0))

    def scaled(self, by: float) -> "Columns":
        """The same with all site precisions multiplied by a number: other noise."""
        other = copy.copy(self)
        for name in ("weights", "shift", "power", "target", "_scale"):
            setattr(other, name, by * getattr(self, name))
        return other


class SequentialBayes:
    """The evidence as a function of the precisions α of M basis functions, most of them infinite.

    With A the basis functions in the model, Σ = (Φ_AᵀWΦ_A + diag α)⁻¹ and μ = ΣΦ_Aᵀb are kept, and for every basis
    function, in the model or not,

        S_m = φᵀWφ − φᵀWΦ_A Σ Φ_AᵀWφ,      Q_m = φᵀb − φᵀWΦ_A μ.

    With s = αS/(α − S), q = αQ/(α − S) of one in the model (s = S, q = Q of others) the evidence depends on its α by

        ℓ(α) = ½ [log α − log(α + s) + q²/(α + s)],                                                     (1)

    the largest at α = s²/(q² − s) if q² > s, and at infinity otherwise (Tipping & Faul 2003). So the best of all single
    changes is known, and each costs O(M m) for m basis functions in the model.

    Parameters
    ----------
    columns : Columns
    precision : array (M,)
        α to begin with; infinite for basis functions that are not in the model.
    """

    def __init__(self, columns: Columns, precision: np.ndarray):
        self.columns = columns
        self.precision = np.array(precision, float)
        self.active = np.flatnonzero(np.isfinite(self.precision))
        self.cross = columns.products(self.active)
        self._refresh()

    def _refresh(self) -> None:
        """Everything from the precisions."""
        m = len(self.active)
        A = self.cross[self.active] + np.diag(self.precision[self.active])
        self.Sigma = linalg.full_inverse(linalg.cholesky(0.5 * (A + A.T))) if m else np.zeros((0, 0))
        self.mu = self.Sigma @ self.columns.target[self.active]
        self.S = self.columns.power - np.sum((self.cross @ self.Sigma) * self.cross, axis=1)
        self.Q = self.columns.target - self.cross @ self.mu

    def run(self, max_changes: int, tolerance: float = 1e-6) -> int:
        """Change one precision after the other until no change raises the log evidence by more than ``tolerance``.

        Returns
        -------
        changes : int
            How many there were; ``max_changes`` if it did not converge.
        """
        for change in range(max_changes):
            gain, best = self.gains()
            m = int(np.argmax(gain))
            if gain[m] <= tolerance:
                return change
            self.set_precision(m, best[m])
            if (change + 1) % REFRESH == 0:
                self._refresh()
        return max_changes

    def log_evidence(self) -> float:
        """Log evidence of the precisions, but for a constant of the sites."""
        alpha = self.precision[self.active]
        A = self.cross[self.active] + np.diag(alpha)
        log_det = linalg.cholesky(0.5 * (A + A.T)).log_det if len(alpha) else 0.0
        fit = self.columns.shift @ self.columns.mean - self.columns.target[self.active] @ self.mu
        weights = self.columns.weights
        return -0.5 * float(fit + log_det - np.sum(np.log(alpha)) - np.sum(np.log(weights[weights > 0])))

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """What the best change of each α alone adds to the log evidence, and that α (infinite: not in the model)."""
        alpha, inside = self.precision, np.isfinite(self.precision)
        S, Q = self.S, self.Q
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            left = np.where(inside, alpha / (alpha - S), 1.0)
            s, q = left * S, left * Q
            best = np.where((q * q > s) & (s > 0), s * s / (q * q - s), np.inf)
            gain = _log_share(best, s, q) - _log_share(alpha, s, q)
        # What is made up of those in the model to rounding has no part of its own.
        gain[~inside & (ALIGNED * self.columns.power >= S)] = 0.0
        return np.nan_to_num(gain, nan=0.0, posinf=0.0, neginf=0.0), best

    def set_precision(self, m: int, alpha: float) -> None:
        """Add, delete or re-estimate basis function m."""
        place = np.flatnonzero(self.active == m)
        if len(place) == 0:
            self._add(m, alpha)
        else:
            self._change(int(place[0]), alpha)
        self.precision[m] = alpha

    def _add(self, m: int, alpha: float) -> None:
        variance = 1.0 / (alpha + self.S[m])
        mean = variance * self.Q[m]
        column = self.columns.products(np.array([m]))[:, 0]
        a = self.Sigma @ self.cross[m]
        e = column - self.cross @ a
        self.S -= variance * e**2
        self.Q -= mean * e
        k = len(self.active)
        Sigma = np.empty((k + 1, k + 1))
        Sigma[:k, :k] = self.Sigma + variance * np.outer(a, a)
        Sigma[:k, k] = Sigma[k, :k] = -variance * a
        Sigma[k, k] = variance
        self.Sigma, self.mu = Sigma, np.append(self.mu - mean * a, mean)
        self.active = np.append(self.active, m)
        self.cross = np.column_stack([self.cross, column])

    def _change(self, k: int, alpha: float) -> None:
        """Another precision for the basis function at place k; infinity takes it out."""
        column, mean = self.Sigma[:, k].copy(), self.mu[k]
        by = alpha - self.precision[self.active[k]]
        if by == 0.0:
            return
        kappa = 1.0 / (column[k] + 1.0 / by)
        t = self.cross @ column
        self.S += kappa * t**2
        self.Q += kappa * mean * t
        self.mu = self.mu - kappa * mean * column
        self.Sigma = self.Sigma - kappa * np.outer(column, column)
        if not np.isfinite(alpha):
            self.active, self.mu = np.delete(self.active, k), np.delete(self.mu, k)
            self.Sigma = np.delete(np.delete(self.Sigma, k, 0), k, 1)
            self.cross = np.delete(self.cross, k, 1)


def _log_share(alpha: np.ndarray, s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(1); zero where α is infinite."""
    share = -0.5 * np.log1p(s / alpha) + 0.5 * q * q / (alpha + s)
    return np.where(np.isfinite(alpha), share, 0.0)


def together(columns: Columns, precision: np.ndarray, learns_noise: bool) -> tuple[Columns, np.ndarray, float]:
    """The precisions of all basis functions in the model at their best together, and the noise if it is to be learned.

    With G = Φ_AᵀWΦ_A, t = Φ_Aᵀb and r = α^−½ the whitened weights have the posterior covariance C = (I + rGr)⁻¹ and
    mean v = Crt, and the evidence has the slopes ½(1 − C_mm − v_m²) in log α_m. Everything is of the size m × m.

    Returns
    -------
    columns : Columns
        With the noise that was found.
    precision : array (M,)
        Infinite for basis functions that take no part any more.
    log_evidence : float
        As that of :class:`SequentialBayes`.
    """
    active = np.flatnonzero(np.isfinite(precision))
    G, t = columns.products(active)[active], columns.target[active]
    fit = float(columns.shift @ columns.mean)
    seen = columns.weights > 0
    constant, n = 0.5 * float(np.sum(np.log(columns.weights[seen]))), int(np.sum(seen))

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        r, by = np.exp(-0.5 * theta[:-1]), np.exp(theta[-1])  # the noise variance is divided by the second
        try:
            chol = linalg.cholesky(np.eye(len(r)) + by * r[:, None] * G * r)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(theta)
        v = linalg.solve_cholesky(chol.factor, by * r * t)
        log_det = chol.log_det
        left = np.diagonal(linalg.full_inverse(chol))
        w = r * v
        value = constant - 0.5 * (by * (fit - t @ w) + log_det - n * theta[-1])
        slope = 0.5 * (n - by * (fit - 2 * t @ w + w @ G @ w) - np.sum(1 - left))
        return -value, -np.append(0.5 * (1 - left - v**2), slope if learns_noise else 0.0)

    most = np.log(GONE * columns.power[active]) + 1.0
    start = np.append(np.minimum(np.log(precision[active]), most), 0.0)
    limit = 0.0  # the log of what the noise variance is divided by, at most
    if learns_noise:
        limit = max(np.log(1e6 / max(np.var(columns.mean) * columns.weights[0], 1e-300)), 0.0)
    bounds = [*((None, m) for m in most), (-10.0 if learns_noise else 0.0, limit)]
    options = {"maxiter": TOGETHER, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-6}
    found = scipy.optimize.minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    columns = columns.scaled(float(np.exp(found.x[-1])))
    new, alpha = np.full(len(precision), np.inf), np.exp(found.x[:-1])
    new[active] = np.where(alpha < GONE * columns.power[active], alpha, np.inf)
    return columns, new, -float(found.fun)
