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
        k(xₙ, c_m). Columns are taken one by one, which is quick if each lies in one piece (Fortran's order).
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
        """φᵀWφ of some basis functions with all of them, (m, M)."""
        new = [m for m in which if m not in self._known]
        if new:
            some = self.basis.T[new] * (self.weights / self.sites.scale)
            self._known.update(zip(new, some @ self.basis, strict=True))
        rows = [self._known[m] for m in which]
        return self.sites.scale * np.stack(rows) if rows else np.zeros((0, self.basis.shape[1]))

    def among(self, which: np.ndarray) -> "Products":
        """What there is to know of some of the basis functions."""
        some = self.basis.T if len(which) == self.basis.shape[1] else self.basis.T[which]
        if np.ptp(self.weights) == 0:  # then no weighted copy is needed
            return Products(some @ some.T, self.target[which], self.sites, self.weights[0])
        some = some * np.sqrt(self.weights)
        return Products(some @ some.T, self.target[which], self.sites)

    def scaled(self, by: float) -> "Columns":
        """The same with other noise."""
        other = copy.copy(self)
        other.sites = self.sites.scaled(by)
        for name in ("weights", "shift", "power", "target"):
            setattr(other, name, by * getattr(self, name))
        return other


class Products:
    """The products of some basis functions and their target Φᵀb: columns without the rows.

    Parameters
    ----------
    G : array (M, M)
        ΦᵀWΦ but for a factor.
    target : array (M,)
    sites : Sites
    factor : float
        By what G is to be multiplied: other noise needs no other array.
    """

    def __init__(self, G: np.ndarray, target: np.ndarray, sites: Sites, factor: float = 1.0):
        self.G, self.target, self.sites, self.factor = G, target, sites, factor
        self.power = factor * np.diagonal(G)

    def products(self, which: np.ndarray) -> np.ndarray:
        """φᵀWφ of some basis functions with all of them, (m, M)."""
        return self.factor * self.G[which]

    def among(self, which: np.ndarray) -> "Products":
        """What there is to know of some of the basis functions."""
        return Products(self.G[np.ix_(which, which)], self.target[which], self.sites, self.factor)

    def scaled(self, by: float) -> "Products":
        """The same with other noise."""
        return Products(self.G, by * self.target, self.sites.scaled(by), by * self.factor)
