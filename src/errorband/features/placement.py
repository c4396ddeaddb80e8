"""Where inducing inputs start, and which rows a subset has. On the host, once, before the search."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from errorband import linalg
from errorband.kernels import Kernel
from errorband.kernels.base import compiled_gram
from errorband.kernels.padded import diagonal, gram
from errorband.parameters import plain
from errorband.precision import in_double_precision
from errorband.rows import pad_rows, padded_size

# Rows for "ivm" are chosen by the estimator, which knows the likelihood; until then they are at random.
PLACEMENTS = ("kmeans", "random", "pivoted", "ivm")

# Scores of rows that look at the noise, and the second at the targets too.
SCORES = ("entropy", "information")

# Places are chosen from a random sample of the rows: at least this many, and this many for each inducing input.
SAMPLE, SAMPLE_EACH = 5000, 20

# An inducing input is dead if all of them that are can be taken away without changing the prior variance at any row by
# more than this share of the largest. It is moved to a row of which at least so much of the variance is left out.
DEAD, WORTH_MOVING = 1e-4, 1e-2


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
        chosen = _pivots(rows, n_inducing, kernel)
        return rows[_filled_up(chosen, rng.permutation(len(rows)), n_inducing)]
    # Means of labels are not labels.
    if init == "kmeans" and not np.any(kernel.raw_columns(X.shape[1])):
        if classes is None:
            return cluster_centres(sample, n_inducing, rng)
        return _centres_of_each_class(sample, classes[chosen], n_inducing, rng)
    return rows[rng.choice(len(rows), n_inducing, replace=False)]


def choose_rows(
    how: str,
    n_rows: int,
    kernel: Kernel,
    X: np.ndarray,
    random_state: Any = None,
    residual: np.ndarray | None = None,
    noise: np.ndarray | None = None,
) -> np.ndarray:
    """Positions of ``n_rows`` rows, in order: at random, nearest to cluster centres, pivots, or those of best score.

    Where clusters and pivots find no more that differ, the rest is drawn at random. Scores need the targets less the
    prior mean, and the noise variance of each.
    """
    rng = check_random_state(random_state)
    order = rng.permutation(len(X))
    if len(X) <= n_rows:
        return np.arange(len(X))
    chosen: Any = []
    if how == "kmeans" and not np.any(kernel.raw_columns(X.shape[1])):
        from sklearn.metrics import pairwise_distances_argmin

        sample = order[: max(SAMPLE, SAMPLE_EACH * n_rows)]
        centres = cluster_centres(X[sample], min(n_rows, len(np.unique(X[sample], axis=0))), rng)
        chosen = np.unique(pairwise_distances_argmin(centres, X))
    elif how == "pivoted":
        sample = order[: max(SAMPLE, SAMPLE_EACH * n_rows)]
        chosen = sample[_pivots(X[sample], n_rows, kernel)]
    elif how in SCORES and residual is not None and noise is not None:
        sample = order[: max(SAMPLE, SAMPLE_EACH * n_rows)]
        chosen = sample[_best_scores(how, X[sample], residual[sample], noise[sample], n_rows, kernel)]
    return np.sort(_filled_up(chosen, order, n_rows))


def _filled_up(chosen: Any, order: np.ndarray, n: int) -> np.ndarray:
    """The positions chosen, and others in this order until there are n."""
    rest = order[~np.isin(order, chosen)]
    return np.concatenate([chosen, rest[: n - len(chosen)]]).astype(int)


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
def dead(kernel: Kernel, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Which inducing inputs have no part in the model at the rows X: near-duplicates, and those far from all rows.

    Without u_m the variance that the others explain at row n is less by cov(f_n, u_m | others)² / var(u_m | others), or
    (P K_uf)²_mn / P_mm with P = K_uu⁻¹. Those where this is next to nothing at all rows are put back one after the
    other, the one that explains most first, until the rest explains nothing: of two duplicates one stays.
    """
    kernel = plain(kernel)
    few = DEAD * float(np.max(diagonal(kernel, X)))
    K_uu, K_uf = linalg.regularised(gram(kernel, Z, Z)), gram(kernel, Z, X)
    factor = linalg.cholesky(K_uu).factor
    precision = np.diagonal(linalg.inverse_from_cholesky(factor))
    doubtful = np.max(linalg.solve_cholesky(factor, K_uf) ** 2, axis=1) / precision < few
    rest = np.flatnonzero(doubtful)
    C, R = K_uu[np.ix_(rest, rest)], K_uf[rest]
    if 0 < len(rest) < len(Z):  # given the others
        factor = linalg.cholesky(K_uu[np.ix_(~doubtful, ~doubtful)]).factor
        known_u, known_f = (linalg.solve_lower(factor, K[~doubtful]) for K in (K_uu[:, rest], K_uf))
        C, R = C - known_u.T @ known_u, R - known_u.T @ known_f
    for _ in rest:
        variance = np.maximum(np.diagonal(C), np.finfo(float).tiny)
        explains = np.where(doubtful[rest], np.max(R**2, axis=1) / variance, 0.0)
        i = int(np.argmax(explains))
        if explains[i] < few:
            break
        doubtful[rest[i]] = False
        R, C = R - np.outer(C[:, i] / C[i, i], R[i]), C - np.outer(C[:, i] / C[i, i], C[i])
    return doubtful


def move_dead(kernel: Kernel, Z: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, int]:
    """The inducing inputs with the dead ones at the rows of which the others leave out most, and how many were moved.

    Where nothing is left out that would be worth it, they stay.
    """
    gone = np.flatnonzero(dead(kernel, Z, X))
    rows = _pivots(X, len(gone), kernel, np.delete(Z, gone, axis=0), WORTH_MOVING)
    Z = Z.copy()
    Z[gone[: len(rows)]] = X[rows]
    return Z, len(rows)


def add_places(kernel: Kernel, Z: np.ndarray, X: np.ndarray, n: int, random_state: Any = None) -> np.ndarray:
    """The inducing inputs and n more, each at the row of largest variance given all before; at random once none is."""
    rng = check_random_state(random_state)
    order = rng.permutation(len(X))[: max(SAMPLE, 4 * (len(Z) + n))]
    chosen = order[_pivots(X[order], n, kernel, Z)]
    return np.concatenate([Z, X[_filled_up(chosen, order, n)]])


@in_double_precision
def _best_scores(how: str, X: np.ndarray, t: np.ndarray, noise: np.ndarray, n: int, kernel: Kernel) -> list[int]:
    r"""One row after the other: that of the best score given the targets of those before. O(N·n²).

    With h and v the posterior mean and variance of f at a row, t its target and σ² its noise, taking it in lowers the
    entropy of the posterior by ½ log(1 + v/σ²) ("entropy"; Lawrence, Seeger & Herbrich 2003), and the new posterior has
    from the old the Kullback-Leibler divergence ("information"; Seeger 2003)

        ½ [log(1 + v/σ²) − v/(v + σ²) + v(t − h)²/(v + σ²)²].
    """
    kernel, chosen = plain(kernel), []
    v, h, columns = diagonal(kernel, X), np.zeros(len(X)), np.zeros((n, len(X)))
    padded = pad_rows(X, padded_size(len(X)))
    for m in range(n):
        score = np.log1p(v / noise)
        if how == "information":
            score += v / (v + noise) * ((t - h) ** 2 / (v + noise) - 1.0)
        score[chosen] = -np.inf
        i = int(np.argmax(score))
        column = np.asarray(compiled_gram(kernel, padded, X[i : i + 1]))[: len(X), 0] - columns[:m, i] @ columns[:m]
        columns[m] = column / np.sqrt(v[i] + noise[i])
        h = h + column * (t[i] - h[i]) / (v[i] + noise[i])
        v = np.maximum(v - columns[m] ** 2, 0.0)
        chosen.append(i)
    return chosen


@in_double_precision
def _pivots(
    X: np.ndarray, n_inducing: int, kernel: Kernel, given: np.ndarray | None = None, least: float = 1e-10
) -> list[int]:
    """Rows of largest variance given those before: the pivots of the Cholesky factorisation of k(X, X), O(N·M²).

    Given the function at the inputs ``given`` as well, if there are any. Ends early when no more than ``least`` of the
    largest prior variance is left to explain.
    """
    kernel = plain(kernel)
    left = diagonal(kernel, X)
    enough = least * left.max()
    first = 0 if given is None else len(given)
    columns, pivots = np.zeros((first + n_inducing, len(X))), []
    if given is not None and first:
        factor = linalg.cholesky(linalg.regularised(gram(kernel, given, given))).factor
        columns[:first] = linalg.solve_lower(factor, gram(kernel, given, X))
        left = np.maximum(left - np.sum(columns[:first] ** 2, axis=0), 0.0)
    padded = pad_rows(X, padded_size(len(X)))
    for m in range(first, first + n_inducing):
        i = int(np.argmax(left))
        if left[i] <= enough:
            break
        column = np.asarray(compiled_gram(kernel, padded, X[i : i + 1]))[: len(X), 0] - columns[:m, i] @ columns[:m]
        columns[m] = column / np.sqrt(left[i])
        left = np.maximum(left - columns[m] ** 2, 0.0)
        left[i] = 0.0
        pivots.append(i)
    return pivots
