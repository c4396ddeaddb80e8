"""From too many basis functions in a model to those that are needed: a fixed point that takes the others out."""

import numpy as np

from errorband.training.columns import Products
from errorband.training.together import inverse

SWEEPS = 10
GOING = 100.0  # times the precision that the data give it: a basis function that is on its way out


def thinned(columns: Products, precision: np.ndarray, learns_noise: bool, less: float) -> tuple[Products, np.ndarray]:
    """Some sweeps of MacKay's fixed point, without the basis functions whose precisions it drives up.

    In the whitened weights of :class:`~errorband.training.together.Point`, with C and v their covariance and mean,

        α ← α(1 − C_mm)/v_m²,     c ← (N − Σ(1 − C_mm))·c/‖residuals‖²,

    and ``less`` divides the noise that comes out (or that was given, if it is not learned): then more is kept.
    Each sweep is one inverse, however many basis functions come and go.
    """
    sites, c = columns.sites, 1.0 if learns_noise else less
    inside = np.flatnonzero(np.isfinite(precision))
    alpha = precision[inside]
    G = columns.products(inside)[:, inside]
    for _ in range(SWEEPS):
        r, t = 1.0 / np.sqrt(alpha), columns.target[inside]
        A, each = c * r[:, None] * G * r, np.arange(len(inside))
        A[each, each] += 1.0
        found = inverse(A) if len(inside) else None
        if found is None:  # none is left, or numbers overflow
            break
        u = c * r * t
        v, known = found[0] @ u, 1.0 - np.diagonal(found[0])
        alpha = alpha * known / np.maximum(v * v, np.finfo(float).tiny)
        if learns_noise:
            left = max(c * sites.fit - u @ v - v @ v, 1e-6 * c * sites.fit)
            c = float(less * c * max(sites.size - np.sum(known), 1.0) / left)
        kept = alpha < GOING * c * columns.power[inside]
        if not np.all(kept):
            inside, alpha, G = inside[kept], alpha[kept], G[np.ix_(kept, kept)]
    new = np.full(len(precision), np.inf)
    new[inside] = alpha
    return columns.scaled(c), new
