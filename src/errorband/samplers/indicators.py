"""Gibbs sampling of the indicators of a twinned Gaussian process, with the function integrated out."""

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from scipy.special import log_ndtr

from errorband import interrupts
from errorband.samplers.chains import Chains

SLICES = 5  # elliptical slices of the gate for each sweep over the indicators


def gibbs_indicators(
    roots: Sequence[np.ndarray],
    r: np.ndarray,
    gate_mean: np.ndarray,
    variances: tuple[float, float],
    *,
    chains: int,
    warmup: int,
    draws: int,
    seed: int = 0,
) -> Chains:
    """Draws of (f, u) of p(y | f, u) = Φ(u) N(y; f, v₁) + Φ(−u) N(y; f, v₂).

    Each row has an indicator c = ±1, P(c | u) = Φ(cu), and given all of them y ~ N(m, A), A = K + diag(v_c). A sweep
    proposes to flip each. With V = A⁻¹ and δ the change of the row's variance,

        log p(y | flipped) − log p(y) = ½ δ (Vr)ₙ²/(1 + δVₙₙ) − ½ log(1 + δVₙₙ),

    so that a proposal costs O(1), and O(N²) only if it is taken: V ← V − δ VₙVₙᵀ/(1 + δVₙₙ). Flips are overrelaxed:
    with π the probability of the other state, it is taken with min(1, π/(1 − π)), which leaves the distribution as it
    is and moves more often than Gibbs' π. Then u given c moves by elliptical slices, and f given c is drawn.

    Parameters
    ----------
    roots : two arrays (N, N)
        Cholesky factors of the prior covariances of f and u.
    r : array (N,)
        y − m.
    gate_mean : array (N,)
        Prior mean of the gate.
    variances : (float, float)
        v₁ and v₂.
    chains, warmup, draws, seed : int
    """
    K = roots[0] @ roots[0].T
    found, interrupted = [[] for _ in range(chains)], False
    with interrupts.deferred():
        try:
            states = [_State(K, r, gate_mean, variances, np.random.default_rng([seed, c])) for c in range(chains)]
            for i in range(warmup + draws):
                for state, kept in zip(states, found, strict=True):
                    state.flip()
                    state.move_gate(roots[1])
                    if i >= warmup:
                        kept.append(np.stack([state.draw_function(K, roots[0]), state.u], axis=1).ravel())
        except KeyboardInterrupt:
            interrupted = True
            if not min(map(len, found)):
                raise
    shortest = min(map(len, found))
    return Chains(np.stack([np.stack(kept[:shortest]) for kept in found]), interrupted=interrupted)


class _State:
    """One chain: indicators, the gate without its mean, and V with V r."""

    def __init__(self, K: np.ndarray, r: np.ndarray, gate_mean: np.ndarray, variances: tuple[float, float], rng):
        self.r, self.gate_mean, self.v, self.rng = r, gate_mean, np.asarray(variances), rng
        self.c = np.where(rng.random(len(r)) < 0.9, 1, -1)
        self.u = np.zeros(len(r))
        self.refresh(K)

    def noise(self) -> np.ndarray:
        return np.where(self.c > 0, self.v[0], self.v[1])

    def refresh(self, K: np.ndarray) -> None:
        """V from scratch, against rounding."""
        factor = scipy.linalg.cho_factor(K + np.diag(self.noise()), lower=True)
        self.V = scipy.linalg.cho_solve(factor, np.eye(len(K)))
        self.Vr = self.V @ self.r

    def flip(self) -> None:
        """Propose to flip each indicator, in a random order."""
        gate = self.gate_mean + self.u
        for n in self.rng.permutation(len(self.r)):
            change = (self.v[1] - self.v[0]) * self.c[n]
            grown = 1 + change * self.V[n, n]
            log_odds = 0.5 * change * self.Vr[n] ** 2 / grown - 0.5 * np.log(grown)
            log_odds += log_ndtr(-self.c[n] * gate[n]) - log_ndtr(self.c[n] * gate[n])
            if np.log(self.rng.random()) < log_odds:  # π/(1 − π) are the odds
                row = self.V[n].copy()
                self.V -= np.outer(row, row * (change / grown))
                self.Vr -= row * (change * self.Vr[n] / grown)
                self.c[n] = -self.c[n]

    def move_gate(self, root: np.ndarray) -> None:
        """Elliptical slices of u given c."""
        for _ in range(SLICES):
            other = root @ self.rng.standard_normal(len(self.u))
            floor = self._log_gate(self.u) + np.log(self.rng.random())
            angle = self.rng.uniform(0, 2 * np.pi)
            low, high = angle - 2 * np.pi, angle
            while self._log_gate(proposal := self.u * np.cos(angle) + other * np.sin(angle)) < floor:
                low, high = (angle, high) if angle < 0 else (low, angle)
                angle = self.rng.uniform(low, high)
            self.u = proposal

    def _log_gate(self, u: np.ndarray) -> float:
        return float(np.sum(log_ndtr(self.c * (self.gate_mean + u))))

    def draw_function(self, K: np.ndarray, root: np.ndarray) -> np.ndarray:
        """F given the indicators and the targets (Matheron's rule), without its mean; V is made afresh."""
        self.refresh(K)
        prior = root @ self.rng.standard_normal(len(K))
        noisy = prior + np.sqrt(self.noise()) * self.rng.standard_normal(len(K))
        return prior + K @ (self.V @ (self.r - noisy))
