"""Where inducing inputs start, and which rows a subset has. On the host, once, before the search."""

from typing import Any

import jax
import numpy as np
from sklearn.utils import check_random_state

from errorband.kernels import Kernel
from errorband.numerics import in_double_precision
from errorband.parameters import plain

PLACEMENTS = ("kmeans", "random", "pivoted")

# Places are chosen from a random sample of the rows: at least this many, and this many for each inducing input.
SAMPLE, SAMPLE_EACH = 5000, 20


def place(
    init: str,
    n_inducing: int,
    kernel: Kernel,
    X: np.ndarray,
    classes: np.ndarray | None = None,
    random_state: Any = None,
) -> np.ndarray:
    """Starting places of at most ``n_inducing`` inducing inputs: all distinct rows if there are no more than that."""
    rng = check_random_state(random_state)
    size = max(SAMPLE, SAMPLE_EACH * n_inducing)
    chosen = np.arange(len(X)) if len(X) <= size else np.sort(rng.choice(len(X), size, replace=False))
    sample = X[chosen]
    rows = np.unique(sample, axis=0)
    if len(rows) <= n_inducing and len(sample) < len(X):
        rows = np.unique(X, axis=0)
    if len(rows) <= n_inducing:
        return rows
    if init == "pivoted":
        return rows[_pivots(rows, n_inducing, kernel)]
    # Means of labels are not labels.
    if init == "kmeans" and not np.any(kernel.raw_columns(X.shape[1])):
        if classes is None:
            return cluster_centres(sample, n_inducing, rng)
        return _centres_of_each_class(sample, classes[chosen], n_inducing, rng)
    return rows[rng.choice(len(rows), n_inducing, replace=False)]


def choose_rows(how: str, n_rows: int, kernel: Kernel, X: np.ndarray, random_state: Any = None) -> np.ndarray:
    """Positions of ``n_rows`` rows, in order: at random, nearest to cluster centres, or pivots.

    Where the last two find no more that differ, the rest is drawn at random.
    """
    rng = check_random_state(random_state)
    order = rng.permutation(len(X))
    if len(X) <= n_rows:
        return np.arange(len(X))
    chosen = np.zeros(0, int)
    if how == "kmeans" and not np.any(kernel.raw_columns(X.shape[1])):
        from sklearn.metrics import pairwise_distances_argmin

        sample = order[: max(SAMPLE, SAMPLE_EACH * n_rows)]
        centres = cluster_centres(X[sample], min(n_rows, len(np.unique(X[sample], axis=0))), rng)
        chosen = np.unique(pairwise_distances_argmin(centres, X))
    elif how == "pivoted":
        sample = order[: max(SAMPLE, SAMPLE_EACH * n_rows)]
        chosen = sample[_pivots(X[sample], n_rows, kernel)]
    rest = order[~np.isin(order, chosen)][: n_rows - len(chosen)]
    return np.sort(np.concatenate([chosen, rest]))


def cluster_centres(X: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Centres by k-means."""
    from sklearn.cluster import KMeans  # takes a while to import

    return KMeans(n_clusters, n_init=1, max_iter=30, random_state=rng).fit(X).cluster_centers_  # pyright: ignore[reportArgumentType]


def _centres_of_each_class(X: np.ndarray, classes: np.ndarray, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Clusters within each class, about as many as its share of the rows, and at least one if there are enough."""
    found, sizes = np.unique(classes, return_counts=True)
    if n < len(found):
        return cluster_centres(X, n, rng)
    numbers = 1 + np.floor((n - len(found)) * sizes / len(X)).astype(int)
    numbers[np.argsort(-sizes)[: n - numbers.sum()]] += 1
    groups = [X[classes == value] for value in found]
    numbers = [min(k, len(np.unique(rows, axis=0))) for k, rows in zip(numbers, groups, strict=True)]
    return np.concatenate([cluster_centres(rows, k, rng) for k, rows in zip(numbers, groups, strict=True)])


@in_double_precision
def _pivots(X: np.ndarray, n_inducing: int, kernel: Kernel) -> list[int]:
    """Rows of largest variance given those before: the pivots of the Cholesky factorisation of k(X, X), O(N·M²).

    Ends early when nothing is left to explain.
    """
    kernel = plain(kernel)
    left = np.array(_diagonal(kernel, X))
    enough = 1e-10 * left.max()
    columns, pivots = np.zeros((n_inducing, len(X))), []
    for m in range(n_inducing):
        i = int(np.argmax(left))
        if left[i] <= enough:
            break
        column = np.asarray(_column(kernel, X, X[i : i + 1])) - columns[:m, i] @ columns[:m]
        columns[m] = column / np.sqrt(left[i])
        left = np.maximum(left - columns[m] ** 2, 0.0)
        left[i] = 0.0
        pivots.append(i)
    return pivots


@jax.jit
def _diagonal(kernel: Kernel, X: Any) -> Any:
    return kernel.gram_diag(X)


@jax.jit
def _column(kernel: Kernel, X: Any, x: Any) -> Any:
    return kernel.gram(X, x)[:, 0]
