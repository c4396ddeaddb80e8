"""The Nyström approximation: against dense algebra, in its limit, and where it is no Gaussian process."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband.approximations import DTC, Exact, Nystrom
from errorband.inference import SparseNystrom
from errorband.kernels import Matern
from errorband.likelihoods import StudentT
from sparse_reference import KERNEL, NOISE, fixed, q_matrix


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


@pytest.mark.filterwarnings("ignore:.*below zero")
@pytest.mark.parametrize("noise_per_row", [False, True], ids=["one noise", "noise per row"])
def test_agrees_with_dense_algebra(noise_per_row, data, tmp_path):
    X, y, X_test = data
    known = 0.1 * np.abs(np.sin(np.arange(len(y)))) if noise_per_row else None
    noise = np.full(len(y), NOISE) + (0.0 if known is None else known)
    Q = q_matrix(KERNEL, X[::3], X, X)
    mean, cov = dense.predict(Q, KERNEL(X, X_test), KERNEL(X_test), noise, y)
    model = fixed(Nystrom(inducing_inputs=X[::3])).fit(X, y, known)
    assert isinstance(model.inference_, SparseNystrom)
    assert_allclose(model.log_evidence_, dense.evidence(Q, noise, y), rtol=1e-8)
    assert_allclose(model.predict(X_test), mean, rtol=1e-6, atol=1e-8)
    got, std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(got, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(std**2, np.maximum(np.diagonal(cov), 0.0), rtol=1e-6, atol=1e-8)
    assert_allclose(model.predict(X_test, return_cov=True, latent=True)[1], cov, rtol=1e-6, atol=1e-7)
    loo = model.loo().predictive
    for n in (0, 7, 39):
        rest = np.arange(len(y)) != n
        mean, cov = dense.predict(Q[np.ix_(rest, rest)], KERNEL(X[rest], X[[n]]), KERNEL(X[[n]]), noise[rest], y[rest])
        assert_allclose(loo.mean[n], mean[0], rtol=1e-6, atol=1e-8)
        assert_allclose(loo.variance[n], max(cov[0, 0], 0.0) + noise[n], rtol=1e-6)
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert_allclose(again.predict(X_test, return_std=True), model.predict(X_test, return_std=True), rtol=1e-14)


def test_gradient_is_that_of_dtc(data):
    X, y, _ = data
    objectives = [fixed(a(inducing_inputs=X[::7])).objective(X, y) for a in (Nystrom, DTC)]
    (value, gradient), (other, expected) = (o.value_and_gradient(o.theta0) for o in objectives)
    assert value == other
    assert np.array_equal(gradient, expected)


def test_inducing_inputs_at_the_data_give_the_exact_model(data):
    X, y, X_test = data
    rough = Matern([0.8, 1.3], 1.44, nu=1.5)
    exact, model = fixed(Exact(), rough).fit(X, y), fixed(Nystrom(inducing_inputs=X), rough).fit(X, y)
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6)
    got, expected = (m.predict(X_test, return_std=True) for m in (model, exact))
    assert_allclose(got, expected, atol=1e-5)
    assert_allclose(model.loo().log_density, exact.loo().log_density, atol=1e-4)


def test_variances_below_zero_are_set_to_zero_with_a_warning(data):
    X, y, _ = data
    model = fixed(Nystrom(inducing_inputs=X[:2])).fit(X, y)
    with pytest.warns(RuntimeWarning, match="of 40 variances of the Nyström approximation came out below zero"):
        std = model.predict(X, return_std=True, latent=True)[1]
    assert np.any(std == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)  # means have no such trouble


def test_combinations_that_make_no_sense_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="FITC goes with every likelihood"):
        fixed(Nystrom(5), likelihood=StudentT(4.0, 0.2)).fit(X, y)
    with pytest.raises(ValueError, match="such as FITC or VFE, not Gaussian with Nystrom"):
        fixed(Nystrom(5), inference="sparse").fit(X, y)
    with pytest.raises(ValueError, match="such as Nystrom, not Gaussian with DTC"):
        fixed(DTC(5), inference="sparsenystrom").fit(X, y)
