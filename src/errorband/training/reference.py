"""Evidence of models that anybody would try first: a search that ends below them was trapped."""

import numpy as np
import scipy.optimize

from errorband.data import TrainingData
from errorband.rows import slices
from errorband.special import LOG_2PI

CHUNK = 2**18  # rows that are read at once


def linear_log_evidence(data: TrainingData) -> float:
    r"""Largest log evidence of Bayesian linear regression, y ~ N(0, a(XXᵀ + 11ᵀ) + s²I), over a and s².

    With Φ = (X, 1) and the eigenvalues λ of ΦᵀΦ it is a function of two numbers that costs O(D) after O(ND²):

        yᵀA⁻¹y = (yᵀy − Σ_d a c_d²/(s² + aλ_d))/s²,   log |A| = Σ_d log(s² + aλ_d) + (N − D − 1) log s²,   c = Uᵀ Φᵀy.

    A model of constants alone is the limit a → 0 of it, up to the intercept. Several targets share a and s².
    """
    n, p = len(data.y), data.X.shape[1] + 1
    K, y = data.n_targets, data.y.reshape(n, -1)
    G, h = np.zeros((p, p)), np.zeros((p, K))
    for part in slices(n, CHUNK):
        rows = np.asarray(data.X[part])
        basis = np.column_stack([rows, np.ones(len(rows))])
        G += basis.T @ basis
        h += basis.T @ y[part]
    size, axes = np.linalg.eigh(G)
    size, c2, yy = np.maximum(size, 0.0), np.sum((axes.T @ h) ** 2, axis=1), float(np.vdot(y, y))

    def negative(log_values: np.ndarray) -> float:
        a, s2 = np.exp(log_values)
        each = s2 + a * size
        quadratic = (yy - np.sum(a * c2 / each)) / s2
        return 0.5 * (quadratic + K * (np.sum(np.log(each)) + (n - p) * np.log(s2) + n * LOG_2PI))

    scale = yy / (n * K) or 1.0
    start = np.log([scale / p, 0.5 * scale])
    limits = [(s - 15.0, s + 15.0) for s in start]
    return -float(scipy.optimize.minimize(negative, start, method="L-BFGS-B", bounds=limits).fun)
