"""Training rows that a robust model takes for outliers, alone or in bursts."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from errorband.reporting.parts.data import RowNames
from errorband.reporting.parts.findings import Finding
from errorband.reporting.text import listing

SUSPECTED = "Suspected outliers"
SUSPECT = 0.5  # probability of being an outlier
NEIGHBOURS, BURST = 5, 3  # suspects among so many nearest rows of each other belong together; a burst has so many
SHOWN, DRAWS = 20, 200


def outlier_findings(model: Any, X: np.ndarray, names: RowNames) -> list[Finding]:
    """Return a note that names the suspected outliers and their bursts, if the likelihood expects outliers."""
    if not hasattr(model.likelihood_, "outlier_probability"):
        return []
    p = model.outlier_probability_
    suspects = np.flatnonzero(p > SUSPECT)
    if len(suspects) == 0:
        return []
    likeliest = suspects[np.argsort(-p[suspects], kind="stable")]
    text = f"Outliers with more than even odds: {names.listed(likeliest, SHOWN)}."
    if groups := bursts(X / model.scaling_.x_scale, suspects):
        together = listing([names.listed(group, SHOWN) for group in groups])
        text += f" Some are neighbours, as in a burst of wrong targets: {together}."
    return [Finding("note", SUSPECTED, f"{text} {names.told}", tuple(names.names[suspects]))]


def bursts(X: np.ndarray, suspects: np.ndarray) -> list[np.ndarray]:
    """Return groups of suspects that are neighbours, the largest first.

    Some of many suspects are neighbours by chance: a burst is larger than the largest group in 99 of 100 draws of as
    many rows.

    Examples
    --------
    >>> X = np.arange(100.0)[:, None]
    >>> [group.tolist() for group in bursts(X, np.array([2, 50, 51, 52, 53]))]
    [[50, 51, 52, 53]]
    """
    if len(suspects) < BURST:
        return []
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(X))).fit(X).kneighbors(X, return_distance=False)
    rng = np.random.default_rng(0)
    draws = [_groups(near, rng.choice(len(X), len(suspects), replace=False)) for _ in range(DRAWS)]
    least = max(BURST, 1 + int(np.quantile([max(map(len, groups)) for groups in draws], 0.99, method="higher")))
    found = [group for group in _groups(near, suspects) if len(group) >= least]
    return sorted(found, key=len, reverse=True)


def _groups(near: np.ndarray, chosen: np.ndarray) -> list[np.ndarray]:
    """Chosen rows that are among each other's nearest, given those of every row (n, k), in groups."""
    place = np.full(len(near), -1)
    place[chosen] = np.arange(len(chosen))
    to = place[near[chosen]]
    row, _ = np.nonzero(to >= 0)
    links = csr_matrix((np.ones(len(row)), (row, to[to >= 0])), shape=(len(chosen), len(chosen)))
    _, group = connected_components(links, directed=False)
    return [chosen[group == g] for g in np.unique(group)]
