"""Sparse Bayesian learning, one basis function at a time: add, delete or re-estimate, whichever helps most."""

import numpy as np

from errorband import linalg
from errorband.training.columns import Columns, Products
from errorband.training.together import inverse

REFRESH = 100  # rank-one updates between two computations from scratch
ALIGNED = 1e-9  # a basis function that the others make up but for this share cannot be added
LEAST = np.finfo(float).tiny  # precision of a weight: the best one may underflow to zero, which has no logarithm


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
    columns : Columns or Products
    precision : array (M,)
        α to begin with; infinite for basis functions that are not in the model.
    """

    def __init__(self, columns: Columns | Products, precision: np.ndarray):
        self.columns = columns
        self.precision = np.array(precision, float)
        self.active = np.flatnonzero(np.isfinite(self.precision))
        self.cross = columns.products(self.active)
        self._refresh()

    def _refresh(self) -> None:
        """Everything from the precisions."""
        self.Sigma = self._inverse()[0]
        self.mu = self.Sigma @ self.columns.target[self.active]
        self.S = self.columns.power - np.einsum("km,km->m", self.Sigma @ self.cross, self.cross)
        self.Q = self.columns.target - self.mu @ self.cross

    def _inverse(self) -> tuple[np.ndarray, float]:
        """Σ, and log |Σ⁻¹|."""
        if len(self.active) == 0:
            return np.zeros((0, 0)), 0.0
        A = self.cross[:, self.active] + np.diag(self.precision[self.active])
        A = 0.5 * (A + A.T)
        found = inverse(A)
        if found is None:  # basis functions that are alike but for rounding
            chol = linalg.cholesky(A)
            found = linalg.full_inverse(chol), chol.log_det
        return found

    @np.errstate(over="ignore", invalid="ignore")  # what overflows has no Cholesky factor, which is said in a sentence
    def run(self, max_changes: int, tolerance: float = 1e-6) -> int:
        """Change one precision after the other until no change raises the log evidence by more than ``tolerance``.

        Where none does, one basis function may still take the place of another, as its neighbour.

        Returns
        -------
        changes : int
            How many there were; ``max_changes`` if it did not converge.
        """
        for change in range(max_changes):
            gain, best = self.gains()
            m = int(np.argmax(gain))
            if gain[m] > tolerance:
                self.set_precision(m, best[m])
            else:
                gain, best = self.exchanges()
                if np.max(gain, initial=0.0) <= tolerance:
                    return change
                m, k = np.unravel_index(np.argmax(gain), gain.shape)
                self.set_precision(self.active[k], np.inf)
                self.set_precision(int(m), best[m, k])
            if (change + 1) % REFRESH == 0:
                self._refresh()
        return max_changes

    def drop(self, loss: float) -> None:
        """Take basis functions out as long as one costs no more than this: two that are alike do the work of one."""
        while len(self.active) > 1:
            alpha, S, Q = self.precision[self.active], self.S[self.active], self.Q[self.active]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                left = alpha / (alpha - S)
                cost = _log_share(alpha, left * S, left * Q)
            k = int(np.argmin(np.where(np.isfinite(cost), cost, np.inf)))
            if not cost[k] <= loss:
                return
            self.set_precision(int(self.active[k]), np.inf)

    def log_evidence(self) -> float:
        """Log evidence of the precisions, but for a constant of the sites."""
        alpha = self.precision[self.active]
        log_det = self._inverse()[1]
        fit = self.columns.sites.fit - self.columns.target[self.active] @ self.mu
        return self.columns.sites.constant - 0.5 * float(fit + log_det - np.sum(np.log(alpha)))

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
        gain[~np.isfinite(gain)] = 0.0
        return gain, best

    def exchanges(self) -> tuple[np.ndarray, np.ndarray]:
        """What each basis function adds in the place of each of the model, (M, m), and its α there."""
        # S and Q of all without one of the model, as in _change.
        T, kappa = self.cross.T @ self.Sigma, 1.0 / np.diagonal(self.Sigma)
        s, q = self.S[:, None] + kappa * T**2, self.Q[:, None] + kappa * self.mu * T
        each = np.arange(len(self.active))
        q2 = q * q
        possible = ~np.isfinite(self.precision)[:, None] & (ALIGNED * self.columns.power[:, None] < s) & (q2 > s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lost = _log_share(self.precision[self.active], s[self.active, each], q[self.active, each])
            ratio = q2 / s
            gain = 0.5 * (ratio - 1.0 - np.log(ratio)) - lost
            return np.where(possible & np.isfinite(gain), gain, -np.inf), s * s / (q2 - s)

    def set_precision(self, m: int, alpha: float) -> None:
        """Add, delete or re-estimate basis function m."""
        alpha = max(alpha, LEAST)
        place = np.flatnonzero(self.active == m)
        if len(place) == 0:
            self._add(m, alpha)
        else:
            self._change(int(place[0]), alpha)
        self.precision[m] = alpha

    def _add(self, m: int, alpha: float) -> None:
        variance = 1.0 / (alpha + self.S[m])
        mean = variance * self.Q[m]
        row = self.columns.products(np.array([m]))
        a = self.Sigma @ self.cross[:, m]
        e = row[0] - a @ self.cross
        self.S -= variance * e**2
        self.Q -= mean * e
        k = len(self.active)
        Sigma = np.empty((k + 1, k + 1))
        Sigma[:k, :k] = self.Sigma + variance * np.outer(a, a)
        Sigma[:k, k] = Sigma[k, :k] = -variance * a
        Sigma[k, k] = variance
        self.Sigma, self.mu = Sigma, np.append(self.mu - mean * a, mean)
        self.active = np.append(self.active, m)
        self.cross = np.concatenate([self.cross, row])

    def _change(self, k: int, alpha: float) -> None:
        """Another precision for the basis function at place k; infinity takes it out."""
        column, mean = self.Sigma[:, k].copy(), self.mu[k]
        by = alpha - self.precision[self.active[k]]
        if by == 0.0:
            return
        kappa = 1.0 / (column[k] + 1.0 / by)
        t = column @ self.cross
        self.S += kappa * t**2
        self.Q += kappa * mean * t
        self.mu = self.mu - kappa * mean * column
        self.Sigma = self.Sigma - kappa * np.outer(column, column)
        if not np.isfinite(alpha):
            self.active, self.mu = np.delete(self.active, k), np.delete(self.mu, k)
            self.Sigma = np.delete(np.delete(self.Sigma, k, 0), k, 1)
            self.cross = np.delete(self.cross, k, 0)


def _log_share(alpha: np.ndarray, s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(1); zero where α is infinite."""
    share = -0.5 * np.log1p(s / alpha) + 0.5 * q * q / (alpha + s)
    return np.where(np.isfinite(alpha), share, 0.0)
