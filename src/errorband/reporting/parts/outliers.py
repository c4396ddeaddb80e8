"""Training rows that a robust model takes for outliers, alone or in bursts."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from errorband.reporting.parts.data import RowNames
from errorband.reporting.parts.findings import Finding
from errorband.reporting.text import listing

SUSPECT = 0.5  # probability of being an outlier
NEIGHBOURS, BURST = 5, 3  # suspects among so many nearest rows of each other belong together; a burst has so many
SHOWN = 20


def outlier_findings(model: Any, X: np.ndarray, names: RowNames) -> list[Finding]:
    """Return a note that names the suspected outliers and their bursts, if the likelihood expects outliers."""
    if not hasattr(model.likelihood_, "outlier_probability"):
        return []
    p = model.outlier_probability_
    suspects = np.flatnonzero(p > SUSPECT)
    if len(suspects) == 0:
        return []
    likeliest = suspects[np.argsort(-p[suspects], kind="stable")]
    text = f"Outliers with more than even odds (outlier_probability_): {names.listed(likeliest, SHOWN)}."
    if groups := bursts(X / model.scaling_.x_scale, suspects):
        together = listing([names.listed(group, SHOWN) for group in groups])
        text += f" Some are neighbours, as in a burst of wrong targets: {together}."
    return [Finding("note", "Suspected outliers", f"{text} {names.told}")]


def bursts(X: np.ndarray, suspects: np.ndarray) -> list[np.ndarray]:
    """Return groups of suspects that are neighbours, the largest first.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> [group.tolist() for group in bursts(X, np.array([2, 8, 9, 10, 11]))]
    [[8, 9, 10, 11]]
    """
    k = min(NEIGHBOURS + 1, len(X))
    near = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(X[suspects], return_distance=False)
    linked = np.array([np.isin(suspects, row) for row in near])
    _, group = connected_components(csr_matrix(linked), directed=False)
    found = [suspects[group == g] for g in np.unique(group)]
    return sorted((g for g in found if len(g) >= BURST), key=len, reverse=True)
