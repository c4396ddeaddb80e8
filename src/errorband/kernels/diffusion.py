"""Diffusion on the nodes of a graph."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.kernels.base import Kernel
from errorband.parameters import POSITIVE, VARIANCE, hyperparameter


class Diffusion(Kernel):
    """k = variance · [exp(time · L)]_ij on the nodes of a graph (Kondor & Lafferty 2002).

    L = C − diag(Σ_j C_ij) is the negative graph Laplacian of the connectivity C. For a random walk on the graph that
    leaves a node along each edge at rate σ, ``time`` is tσ (Smola, *Bayesian Kernel Methods*, 2002). The input is one
    column of node numbers 0 … m−1, which is never standardised.

    Parameters
    ----------
    adjacency : array (m, m)
        Symmetric, non-negative connectivity of the graph.
    time : float or None
        Time of diffusion; for time → 0 all nodes are independent.
    variance : float or None
        Overall scale.
    active_dims : int or str, optional
        The column with the node numbers, if X has others.

    Examples
    --------
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> Diffusion(path, time=1.0, variance=1.0)([[0], [1], [2]]).round(3)
    array([[0.526, 0.317, 0.158],
           [0.317, 0.367, 0.317],
           [0.158, 0.317, 0.526]])
    """

    short_names: ClassVar = {}  # a graph cannot be typed

    adjacency: np.ndarray
    time: Any = hyperparameter(POSITIVE, ndim=0)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    eigenvalues: np.ndarray = eqx.field(repr=False, kw_only=True)
    eigenvectors: np.ndarray = eqx.field(repr=False, kw_only=True)

    def __init__(self, adjacency: Any, time: Any = None, variance: Any = None, *, active_dims: Any = None):
        C = np.array(adjacency, dtype=np.float64)
        if C.ndim != 2 or C.shape[0] != C.shape[1] or not np.allclose(C, C.T) or np.any(C < 0):
            raise ValueError(f"adjacency must be a symmetric, non-negative square matrix; got shape {C.shape}.")
        self.adjacency, self.time, self.variance, self.active_dims = C, time, variance, active_dims
        self.eigenvalues, self.eigenvectors = np.linalg.eigh(C - np.diag(C.sum(axis=1)))

    def evaluate(self, X, Z):
        left, right = self._rows(X), self._rows(Z)
        return self.variance * (left * jnp.exp(self.time * self.eigenvalues)) @ right.T

    def evaluate_diag(self, X):
        rows = self._rows(X)
        return self.variance * jnp.sum(rows * rows * jnp.exp(self.time * self.eigenvalues), axis=1)

    def _rows(self, X):
        return jnp.asarray(self.eigenvectors)[X[:, 0].astype(int)]

    def scale_free(self):
        return False

    def check_inputs(self, X):
        nodes = len(self.adjacency)
        if X.shape[1] != 1:
            raise ValueError(
                f"Diffusion reads one column of node numbers; it was given {X.shape[1]}. Name it with active_dims."
            )
        bad = (X[:, 0] != np.round(X[:, 0])) | (X[:, 0] < 0) | (X[:, 0] >= nodes)
        if bad.any():
            raise ValueError(f"Node numbers must be whole, from 0 to {nodes - 1}; got {X[bad, 0][0]:g}.")

    def defaults(self, X, y_variance):
        mean_degree = max(float(self.adjacency.sum()) / len(self.adjacency), 1e-12)
        return {"time": 1.0 / mean_degree, "variance": y_variance}
