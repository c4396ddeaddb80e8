"""Gauss–Hermite rules for expectations under a normal distribution, one- and many-dimensional."""

import functools
import itertools

import numpy as np


@functools.cache
def gauss_hermite(order: int, n_latents: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (points, L) and log weights (points,) such that E g(ε) ≈ Σ exp(log w) g(node), ε ~ N(0, I_L).

    Examples
    --------
    >>> nodes, log_weights = gauss_hermite(20)
    >>> float((np.exp(log_weights) * nodes[:, 0] ** 4).sum().round(10))
    3.0
    """
    x, w = np.polynomial.hermite_e.hermegauss(order)
    log_w = np.log(w) - np.log(w.sum())
    nodes = np.array(list(itertools.product(x, repeat=n_latents)))
    return nodes, np.array([sum(c) for c in itertools.product(log_w, repeat=n_latents)])
