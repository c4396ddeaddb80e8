"""Sparse Bayesian learning, one basis function at a time: add, delete or re-estimate, whichever helps most."""

import dataclasses

import numpy as np

from errorband import linalg

REFRESH = 100  # rank-one updates between two computations from scratch
ALIGNED = 1e-9  # a basis function that the others make up but for this share cannot be added


@dataclasses.dataclass
class Columns:
    """Basis functions at the data, and Gaussian sites: what log p(y | f) is taken to be, −½ Σ wₙ(fₙ − bₙ/wₙ)².

    Attributes
    ----------
    basis : array (N, M)
        k(xₙ, c_m).
    weights : array (N,)
        Site precisions w, not negative; 1/σ² for Gaussian noise.
    shift : array (N,)
        b; (y − mean)/σ² for Gaussian noise.
    """

    basis: np.ndarray
    weights: np.ndarray
    shift: np.ndarray

    def __post_init__(self):
        self.power = self.weights @ self.basis**2  # φᵀWφ of each
        self.target = self.shift @ self.basis
        self.mean = np.divide(self.shift, self.weights, out=np.zeros_like(self.shift), where=self.weights > 0)

    def products(self, which: np.ndarray) -> np.ndarray:
        """φᵀWφ of all basis functions with some of them, (M, m)."""
        return self.basis.T @ (self.weights[:, None] * self.basis[:, which])


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

    def with_noise(self) -> "Columns":
        """The same targets with the noise variance of its fixed point, ‖y − Φμ‖²/(N − Σγ), for Gaussian noise."""
        y = self.columns.mean
        residual = y - self.columns.basis[:, self.active] @ self.mu
        known = len(self.active) - self.precision[self.active] @ np.diagonal(self.Sigma)
        noise = max(float(residual @ residual) / max(len(y) - known, 1.0), 1e-6 * float(np.var(y)), 1e-12)
        return Columns(self.columns.basis, np.full(len(y), 1.0 / noise), y / noise)

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
