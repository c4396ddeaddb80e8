"""The data, the parameters and the dense NumPy reference that the harness and every worker share.

Only NumPy is used, since this module is imported in each peer's own environment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SPARSE_ITERATIONS = 100  # of the peers' L-BFGS in whole fits with inducing inputs


def data(n: int, d: int, seed: int = 0, n_test: int = 0) -> tuple[Array, Array, Array, Array]:
    """Training and test sets of one smooth function of `d` inputs, later ones mattering less, plus noise."""

    def draw(size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        X = rng.uniform(-1.7, 1.7, size=(size, d))
        index = np.arange(d)
        y = np.sin((2.0 - index / d) * X + index) @ (1.0 / (1.0 + index)) + 0.5 * X[:, 0] * X[:, -1]
        return X, y + 0.2 * rng.standard_normal(size)

    return *draw(n, np.random.default_rng([seed, 0])), *draw(n_test, np.random.default_rng([seed, 1]))


def table(file: str) -> tuple[Array, Array, Array, Array]:
    """Training and test sets of an .npz file with X_train, y_train, X_test, y_test."""
    with np.load(file) as arrays:
        X, y, X_test, y_test = (np.asarray(arrays[f"{a}_{b}"], float) for b in ("train", "test") for a in "Xy")
    return X, y, X_test, y_test


def parameters(d: int) -> Array:
    """The logarithms of `d` length-scales, the variance and the noise variance at which evidences are compared."""
    return np.log(np.concatenate([np.linspace(0.8, 2.2, d), [1.2, 0.05]]))


def with_inducing_inputs(theta: Array, X: Array, m: int) -> Array:
    """The vector of a sparse model: the parameters, and then the inducing inputs, which are the first rows of X."""
    return np.concatenate([theta, X[:m].ravel()])


def split_inducing_inputs(theta: Array, d: int) -> tuple[Array, Array]:
    """The parameters, and the inducing inputs (M, d)."""
    return theta[: d + 2], theta[d + 2 :].reshape(-1, d)


def labels(y: Array) -> Array:
    """Two classes, -1 and 1, of equal size."""
    return np.where(y > np.median(y), 1.0, -1.0)


def start(d: int) -> Array:
    """Where every optimiser begins: unit length-scales and variance, noise variance 0.1."""
    return np.log(np.concatenate([np.ones(d), [1.0, 0.1]]))


def perturbed(theta: Array, i: int) -> Array:
    """A neighbour of `theta`, different for every `i`, so that no library can answer from a cache."""
    return theta + 1e-3 * np.sin((i + 1.0) * np.arange(1, theta.size + 1))


def split(theta: Array) -> tuple[Array, float, float]:
    """Length-scales, variance and noise variance from the vector of their logarithms."""
    values = np.exp(theta)
    return values[:-2], float(values[-2]), float(values[-1])


def reference(X: Array, y: Array, theta: Array, gradient: bool = True) -> tuple[float, Array]:
    """Log evidence of exact ARD-SE regression and its gradient in log parameters, written for clarity, not speed."""
    lengthscale, variance, noise = split(theta)
    Z = X / lengthscale
    sq = np.sum(Z**2, axis=1)
    K = variance * np.exp(-0.5 * np.maximum(sq[:, None] + sq[None, :] - 2.0 * Z @ Z.T, 0.0))
    L = np.linalg.cholesky(K + noise * np.eye(y.size))
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    value = -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - 0.5 * y.size * np.log(2.0 * np.pi)
    if not gradient:
        return float(value), np.empty(0)
    L_inv = np.linalg.inv(L)
    M = np.outer(alpha, alpha) - L_inv.T @ L_inv  # dL/dA = ½ M with A = K + noise·I
    W = M * K
    # Σ_ij W_ij (z_i − z_j)² = 2 (Σ_i r_i z_i² − zᵀ W z) for symmetric W with row sums r
    by_lengthscale = W.sum(axis=1) @ Z**2 - np.sum(Z * (W @ Z), axis=0)
    return float(value), np.concatenate([by_lengthscale, [0.5 * W.sum(), 0.5 * noise * np.trace(M)]])


def sparse_reference(X: Array, y: Array, theta: Array, kind: str, jitter: float = 0.0) -> float:
    """Log evidence of "fitc", or the bound of "vfe", with inducing inputs; the jitter is in units of the variance."""
    own, Z = split_inducing_inputs(theta, X.shape[1])
    lengthscale, variance, noise = split(own)

    def kernel(A: Array, B: Array) -> Array:
        A, B = A / lengthscale, B / lengthscale
        r2 = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1)[None, :] - 2.0 * A @ B.T
        return variance * np.exp(-0.5 * np.maximum(r2, 0.0))

    V = np.linalg.solve(np.linalg.cholesky(kernel(Z, Z) + jitter * variance * np.eye(len(Z))), kernel(Z, X))
    left = variance - np.sum(V**2, axis=0)
    S = noise + left if kind == "fitc" else np.full(y.size, noise)
    L = np.linalg.cholesky(np.eye(len(Z)) + (V / S) @ V.T)
    c = np.linalg.solve(L, V @ (y / S))
    value = -0.5 * (y @ (y / S) - c @ c + np.sum(np.log(2.0 * np.pi * S))) - np.sum(np.log(np.diag(L)))
    return float(value - (0.5 * np.sum(left) / noise if kind == "vfe" else 0.0))


def direction(size: int) -> Array:
    """A direction in which derivatives of a sparse evidence are compared, all numbers taking part."""
    return np.sin(np.arange(1.0, size + 1.0)) / np.sqrt(size)
