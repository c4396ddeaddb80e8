"""Kernels as sinusoids: by Bochner's theorem a stationary kernel is variance · E cos ωᵀ(x − z).

ω is drawn from its spectral density. A sum has the frequencies of its terms, each with the variance of its term; a
product the sums of frequencies of its factors; a projection those of its kernel, turned into the space of the inputs; a
constant the frequency zero. Standard frequencies are drawn once, at unit length-scale, and scaled by the length-scales,
which may then be learned.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import Kernel, Product, Scaled, Sum
from errorband.kernels.dot_product import Constant
from errorband.kernels.projection import Projection
from errorband.kernels.stationary import Stationary
from errorband.parameters import entries, plain


class Factor(NamedTuple):
    """A stationary kernel of d inputs, and where its frequencies (n, d) lie among all inputs (n, D)."""

    kernel: Stationary
    n_inputs: int
    place: Callable[[Any], Any]


class Term(NamedTuple):
    """A product of stationary kernels, with its variance."""

    variance: Any
    factors: tuple[Factor, ...]

    @property
    def n_columns(self) -> int:
        """Numbers that a standard frequency of this term has."""
        return sum(factor.n_inputs for factor in self.factors)


def terms(kernel: Kernel, n_features: int) -> list[Term]:
    """The products of stationary kernels that a kernel is a sum of; ValueError if it is not one."""
    columns = None if kernel.active_dims is None else np.asarray(kernel.active_dims)
    d = n_features if columns is None else len(columns)
    if isinstance(kernel, Sum):
        found = terms(kernel.left, d) + terms(kernel.right, d)
    elif isinstance(kernel, Product):
        pairs = ((a, b) for a in terms(kernel.left, d) for b in terms(kernel.right, d))
        found = [Term(a.variance * b.variance, a.factors + b.factors) for a, b in pairs]
    elif isinstance(kernel, Scaled):
        found = [Term(kernel.factor * t.variance, t.factors) for t in terms(kernel.kernel, d)]
    elif isinstance(kernel, Projection):
        matrix = kernel.matrix
        found = [_placed(t, lambda omega: omega @ matrix.T) for t in terms(kernel.kernel, kernel.rank)]
    elif isinstance(kernel, Constant):
        found = [Term(kernel.variance, ())]
    elif isinstance(kernel, Stationary) and type(kernel).standard_spectrum is not Stationary.standard_spectrum:
        found = [Term(kernel.variance, (Factor(kernel, d, lambda omega: omega),))]
    else:
        raise ValueError(f"{type(kernel).__name__} has no spectral density to draw frequencies from.")
    if columns is None:
        return found
    return [_placed(t, functools.partial(embedded, columns=columns, n_features=n_features)) for t in found]


def _placed(term: Term, outer: Callable[[Any], Any]) -> Term:
    """The term seen from outside: its frequencies are placed once more."""
    moved = (f._replace(place=lambda omega, inner=f.place: outer(inner(omega))) for f in term.factors)
    return Term(term.variance, tuple(moved))


def embedded(values: Any, columns: np.ndarray, n_features: int) -> Any:
    """An array (n, d) as columns of one (n, D) that is zero elsewhere. Traced."""
    return jnp.zeros((values.shape[0], n_features)).at[:, columns].add(values)


def check_spectrum(kernel: Kernel, name: str, known: dict[str, type[Kernel]]) -> None:
    """Refuse, on behalf of ``name``, a kernel without a spectral density or with a learned shape of it."""
    drawn = [n for n, cls in known.items() if _has_spectrum(cls)]
    for leaf in _leaves(kernel):
        if not _has_spectrum(type(leaf)) and not isinstance(leaf, Constant):
            raise ValueError(
                f"{name} needs a kernel with a spectral density to draw from: one of {', '.join(drawn)}, or sums, "
                f"products and projections of them; got {type(leaf).__name__}."
            )
        for entry in entries(leaf):
            if not entry.fixed and entry.path[-1] not in getattr(leaf, "spectrum_scales", ("variance",)):
                raise ValueError(
                    f"{name} draws frequencies once, so {entry.name} of {type(leaf).__name__} cannot be learned: fix "
                    f"it, {entry.name}=Parameter(..., fixed=True)."
                )


def _has_spectrum(cls: type[Kernel]) -> bool:
    return issubclass(cls, Stationary) and cls.standard_spectrum is not Stationary.standard_spectrum


def _leaves(kernel: Kernel) -> list[Kernel]:
    children = kernel.children().values()
    return [leaf for child in children for leaf in _leaves(child)] if children else [kernel]


def n_columns(kernel: Kernel, n_features: int) -> int:
    """Numbers that a standard frequency has: as many as the term with most needs."""
    return max(t.n_columns for t in terms(plain(kernel), n_features))


def draw(kernel: Kernel, n_features: int, rng: np.random.Generator, n: int) -> np.ndarray:
    """Standard frequencies (n, C): an equal share of the rows for each term, a column for each input of its factors.

    Columns that a term does not need hold zeros.
    """
    found = terms(plain(kernel), n_features)
    if n < len(found):
        raise ValueError(f"The kernel is a sum of {len(found)} terms: give at least as many frequencies; got {n}.")
    drawn = np.zeros((n, n_columns(kernel, n_features)))
    for term, rows in zip(found, _shares(n, len(found)), strict=True):
        parts = [f.kernel.standard_spectrum(rng, len(rows), f.n_inputs) for f in term.factors]
        if parts:
            drawn[rows, : term.n_columns] = np.hstack(parts)
    return drawn


def frequencies(kernel: Kernel, n_features: int, standard: Any) -> tuple[Any, Any]:
    """Angular frequencies (n, D) and the share (n,) of the prior variance that each has. Traced."""
    omegas, shares = [], []
    found = terms(kernel, n_features)
    for term, rows in zip(found, _shares(len(standard), len(found)), strict=True):
        total, start = jnp.zeros((len(rows), n_features)), 0
        for factor in term.factors:
            part = standard[rows[0] : rows[-1] + 1, start : start + factor.n_inputs]
            total = total + factor.place(factor.kernel.scaled_spectrum(part))
            start += factor.n_inputs
        omegas.append(total)
        shares.append(jnp.full(len(rows), term.variance / len(rows)))
    return jnp.concatenate(omegas), jnp.concatenate(shares)


def _shares(n: int, parts: int) -> list[np.ndarray]:
    return np.array_split(np.arange(n), parts)
