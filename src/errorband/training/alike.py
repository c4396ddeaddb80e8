"""Length-scales that may differ, and are not far from each other unless the data say so."""

import dataclasses
from typing import Any

import numpy as np

# Standard deviation of the logarithms of length-scales: a factor of three either way is nothing special.
SPREAD = 1.0

# What length-scales that differ must gain for each row beside what they cost: models are wrong in more than these, and
# evidence is no judge of less.
NATS_EACH = 0.01

STEP = 0.05  # of differences of gradients, in the logarithm of a length-scale


@dataclasses.dataclass(frozen=True)
class Alike:
    r"""A prior of length-scales: log ℓ_d = m + δ_d, δ_d ~ N(0, τ²), and any m as likely as any other.

    Equal ones are its limit τ = 0, one free number each is τ = ∞. Which of two models with as many inputs is the better
    one their evidences say, averaged over the length-scales; by Laplace's approximation that is

        log p(y | θ̂) − ½ δ̂ᵀδ̂/τ² − ½ log |I + τ² C H C|,

    θ̂ where the first two are highest, H the curvature of −log p(y | θ) in the logarithms there and C = I − 11ᵀ/k for
    each group of k, as m has no prior. With equal ones it is the first term.

    Parameters
    ----------
    groups : array of int
        For each entry of a vector of hyperparameters the number of the group it belongs to.
    offset : array
        Entries less these are what is alike.
    """

    groups: np.ndarray
    offset: np.ndarray

    @property
    def members(self) -> np.ndarray:
        """Positions of entries that are not alone in their group."""
        return np.flatnonzero(np.bincount(self.groups)[self.groups] > 1)

    def log_prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Its logarithm, which is 0 where length-scales are equal, and the gradient."""
        apart = self._centred(theta - self.offset)
        return -0.5 * float(apart @ apart) / SPREAD**2, -apart / SPREAD**2

    def strengths(self, objective: Any, theta: np.ndarray, warm: Any = None) -> np.ndarray:
        """Eigenvalues of τ² C H C at a vector: how much more the data say of length-scales than the prior does.

        By differences of gradients, one evaluation for each length-scale; what is not concave counts as zero.
        """

        def slope(at: np.ndarray) -> np.ndarray:
            point = objective.evaluate(at, warm)
            return point.gradient - self.log_prior(at)[1]

        which, here = self.members, slope(theta)
        rows = []
        for d in which:
            moved = theta.copy()
            moved[d] += STEP
            rows.append(self._centred((here - slope(moved)) / STEP)[which])
        H = self._centred_columns(np.array(rows))
        return np.maximum(np.linalg.eigvalsh(0.5 * SPREAD**2 * (H + H.T)), 0.0)

    def _centred(self, vector: np.ndarray) -> np.ndarray:
        """An entry less the mean of its group: zero for one that is alone."""
        return vector - (np.bincount(self.groups, vector) / np.bincount(self.groups))[self.groups]

    def _centred_columns(self, rows: np.ndarray) -> np.ndarray:
        """Each column of a matrix that has a row for each member, less the means of the groups."""
        groups = np.unique(self.groups[self.members], return_inverse=True)[1]
        means = np.stack([np.bincount(groups, column) / np.bincount(groups) for column in rows.T], axis=1)
        return rows - means[groups]


def cost(strengths: np.ndarray) -> float:
    """½ log |I + τ² C H C|, in nats."""
    return 0.5 * float(np.sum(np.log1p(strengths)))


def learned(strengths: np.ndarray) -> float:
    """How many of the numbers the data determine, and not the prior."""
    return float(np.sum(strengths / (1 + strengths)))


def worth(gain: float, strengths: np.ndarray, n: int, times: float = 1.0) -> bool:
    """Whether length-scales that may differ gain more than they cost, on n rows, with so many times those of the gain.

    With more rows the curvature grows like their number, and so does the gain, but for what it is by chance where
    length-scales are equal in truth: half of the numbers that the data determine. What models are wrong in grows too.
    """
    by_chance, more = 0.5 * learned(strengths), times * strengths
    return times * (gain - by_chance) + 0.5 * learned(more) > cost(more) + NATS_EACH * n
