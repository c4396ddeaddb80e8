"""Basis functions at the data and Gaussian sites: all that the evidence of their precisions depends on."""

import copy
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sites:
    """What the evidence needs to know of the sites alone, −½ Σ wₙ(fₙ − bₙ/wₙ)².

    Attributes
    ----------
    fit : float
        Σ bₙ²/wₙ.
    constant : float
        ½ Σ log wₙ.
    size : float
        How many rows count: by so much the constant grows with the log of a factor of all precisions, twice.
    scale : float
        By what the precisions that were given were multiplied.
    """

    fit: float
    constant: float
    size: float
    scale: float = 1.0

    def scaled(self, by: float) -> "Sites":
        """All site precisions multiplied by a number: other noise."""
        return Sites(by * self.fit, self.constant + 0.5 * self.size * float(np.log(by)), self.size, by * self.scale)


class Columns:
    """Basis functions Φ at the data, with sites.

    Parameters
    ----------
    basis : array (N, M)
        k(xₙ, c_m).
    weights : array (N,)
        Site precisions w, not negative; 1/σ² for Gaussian noise.
    shift : array (N,)
        b; (y − mean)/σ² for Gaussian noise.
    size : float or None
        How many rows count; None for all of positive precision.
    """

    def __init__(self, basis: np.ndarray, weights: np.ndarray, shift: np.ndarray, size: float | None = None):
        self.basis, self.weights, self.shift = basis, weights, shift
        seen = weights > 0
        fit, constant = np.sum(shift[seen] ** 2 / weights[seen]), 0.5 * np.sum(np.log(weights[seen]))
        self.sites = Sites(float(fit), float(constant), float(np.sum(seen)) if size is None else size)
        equal = np.ptp(weights) == 0  # then the squares need no N × M array
        self.power = weights[0] * np.einsum("nm,nm->m", basis, basis) if equal else weights @ basis**2  # φᵀWφ
        self.target = shift @ basis
        self._known = {}  # products of columns that were asked for, with the weights that were given

    def products(self, which: np.ndarray) -> np.ndarray:
        """φᵀWφ of all basis functions with some of them, (M, m)."""
        new = [m for m in which if m not in self._known]
        if new:
            some = (self.weights / self.sites.scale)[:, None] * self.basis[:, new]
            self._known.update(zip(new, some.T @ self.basis, strict=True))
        columns = [self.sites.scale * self._known[m] for m in which]
        return np.stack(columns, axis=1) if columns else np.zeros((self.basis.shape[1], 0))

    def among(self, which: np.ndarray) -> "Products":
        """What there is to know of some of the basis functions."""
        some = np.sqrt(self.weights)[:, None] * self.basis[:, which]
        return Products(some.T @ some, self.target[which], self.sites)

    def scaled(self, by: float) -> "Columns":
        """The same with other noise."""
        other = copy.copy(self)
        other.sites = self.sites.scaled(by)
        for name in ("weights", "shift", "power", "target"):
            setattr(other, name, by * getattr(self, name))
        return other


class Products:
    """The products G = ΦᵀWΦ of a few basis functions and their target Φᵀb: columns without the rows."""

    def __init__(self, G: np.ndarray, target: np.ndarray, sites: Sites):
        self.G, self.power, self.target, self.sites = G, np.diagonal(G), target, sites

    def products(self, which: np.ndarray) -> np.ndarray:
        """φᵀWφ of all of them with some."""
        return self.G[:, which]

    def scaled(self, by: float) -> "Products":
        """The same with other noise."""
        return Products(by * self.G, by * self.target, self.sites.scaled(by))
