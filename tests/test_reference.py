"""The evidence of a linear model, which searches are compared with."""

import numpy as np
import scipy.optimize
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from errorband.data import TrainingData
from errorband.training.reference import linear_log_evidence


def test_the_evidence_is_the_largest_of_the_dense_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -0.5, 0.0] + 0.3 + 0.4 * rng.normal(size=30)
    basis = np.column_stack([X, np.ones(30)])

    def negative(log_values):
        a, s2 = np.exp(log_values)
        return -multivariate_normal(np.zeros(30), a * basis @ basis.T + s2 * np.eye(30)).logpdf(y)

    best = scipy.optimize.minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert_allclose(linear_log_evidence(TrainingData(X, y)), -best.fun, rtol=1e-7)


def test_targets_without_any_spread_and_wide_tables_have_one():
    X = np.random.default_rng(0).normal(size=(5, 8))
    assert np.isfinite(linear_log_evidence(TrainingData(X, np.zeros(5))))
    assert np.isfinite(linear_log_evidence(TrainingData(X, X[:, 0])))
