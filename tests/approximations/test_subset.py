"""A subset of the data: the exact model of the rows that were chosen."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import dense_reference as dense
import errorband
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import FITC, IVM, VFE, SubsetOfData
from errorband.features.placement import choose_rows
from errorband.kernels import Matern, SquaredExponential
from errorband.likelihoods import Gaussian, StudentT

KERNEL = SquaredExponential([0.8, 1.3], 1.44)


@pytest.mark.parametrize("select", ["random", "kmeans", "pivoted", "entropy", "information"])
def test_it_is_the_exact_model_of_the_rows_chosen(select, tmp_path):
    X, y, X_test = dense.formula_data()
    noise = 0.01 + 0.01 * np.cos(np.arange(60)) ** 2
    options = {"optimizer": None, "normalize": False, "random_state": 0}
    options["likelihood"] = Gaussian(0.04)
    rows = choose_rows(select, 15, KERNEL, X, 0, y, 0.04 + noise)
    assert len(np.unique(rows)) == 15
    assert np.array_equal(rows, choose_rows(select, 15, KERNEL, X, 0, y, 0.04 + noise))
    model = GPRegressor(KERNEL, approximation=SubsetOfData(15, select=select), **options).fit(X, y, noise)
    exact = GPRegressor(KERNEL, **options).fit(X[rows], y[rows], noise[rows])
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-12)
    assert_allclose(model.predict(X_test), exact.predict(X_test), rtol=1e-12)
    assert np.array_equal(model.loo().y, y[rows])
    model.save(tmp_path / "model.eb")
    assert np.array_equal(errorband.load(tmp_path / "model.eb").predict(X_test), model.predict(X_test))


def test_units_of_the_evidence():
    """The density of the targets that were kept, in the units of the data."""
    X, y, _ = dense.formula_data()
    small, large = (
        GPRegressor(approximation=SubsetOfData(20), optimizer=None, random_state=0).fit(X, scale * y).log_evidence_
        for scale in (1.0, 10.0)
    )
    assert_allclose(large, small - 20 * np.log(10.0), rtol=1e-8)


def test_no_more_rows_than_asked_for_are_all_kept():
    X, _, _ = dense.formula_data()
    for select in ("random", "kmeans", "pivoted"):
        assert np.array_equal(choose_rows(select, 60, KERNEL, X), np.arange(60))


def test_rows_that_repeat_fill_up_at_random():
    X = np.repeat(dense.formula_data()[0][:4], 10, axis=0)
    for select in ("kmeans", "pivoted"):
        rows = choose_rows(select, 9, KERNEL, X, 0)
        assert len(np.unique(rows)) == 9
        assert len(np.unique(X[rows], axis=0)) == 4


def posterior(K, t, noise, rows):
    """Mean and covariance of f at all rows given the targets of some."""
    A = K[np.ix_(rows, rows)] + np.diag(noise[rows])
    gain = np.linalg.solve(A, K[rows]).T
    return gain @ t[rows], K - gain @ K[rows]


def entropy_lost(old, new):
    return 0.5 * (np.linalg.slogdet(old[1])[1] - np.linalg.slogdet(new[1])[1])


def divergence(old, new):
    """KL(new ‖ old) of two Gaussians."""
    inverse, shift = np.linalg.inv(old[1]), new[0] - old[0]
    return entropy_lost(old, new) + 0.5 * (np.trace(inverse @ new[1]) - len(shift) + shift @ inverse @ shift)


@pytest.mark.parametrize(("select", "score"), [("entropy", entropy_lost), ("information", divergence)])
def test_scores_against_dense_posteriors(select, score):
    """Each row is the one that changes the posterior of the function at all rows most, in the sense of the score."""
    X, y, _ = dense.formula_data()
    X, y = X[:20], y[:20] + 2.0 * (np.arange(20) == 7)  # one that surprises
    kernel, noise = Matern(0.7, 1.2, nu=0.5), 0.05 + 0.4 * np.cos(np.arange(20)) ** 2
    K, expected = kernel(X), []
    for _ in range(6):
        old = posterior(K, y, noise, expected)
        gains = [-np.inf if n in expected else score(old, posterior(K, y, noise, [*expected, n])) for n in range(20)]
        expected.append(int(np.argmax(gains)))
    rows = choose_rows(select, 6, kernel, X, 0, y, noise)
    assert np.array_equal(rows, np.sort(expected))
    assert (7 in rows) == (select == "information")


def test_scores_see_the_noise():
    X, y, _ = dense.formula_data()
    noise = np.where(np.arange(60) % 2 == 0, 0.01, 100.0)
    for select in ("entropy", "information"):
        assert np.all(choose_rows(select, 10, KERNEL, X, 0, y, noise) % 2 == 0)
    model = GPRegressor(KERNEL, likelihood=StudentT(4.0, 0.2), approximation=SubsetOfData(10, select="entropy"))
    with pytest.raises(ValueError, match="for a Gaussian likelihood; choose one of"):
        model.fit(X, y)


@pytest.mark.parametrize(("options", "sentence"), [({"n_rows": 0}, "whole number"), ({"select": "best"}, "'random'")])
def test_mistakes_are_explained(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SubsetOfData(**options)


@pytest.mark.parametrize("optimizer", [None, LBFGS(max_iter=4)])
def test_inducing_inputs_at_the_rows_of_an_informative_vector_machine(optimizer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] * X[:, 1] > 0
    settings = {"optimizer": optimizer, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = GPClassifier(approximation=IVM(12), **settings).fit(X, y)
        hybrid = GPClassifier(approximation=FITC(12, init="ivm", optimize_inputs=False), **settings).fit(X, y)
        start = GPClassifier(approximation=FITC(12, init="ivm"), **settings).objective(X, y).model
    chosen = machine.scaling_.inputs(X[machine.active_rows_])
    np.testing.assert_allclose(hybrid.scaling_.inputs(hybrid.approximation_.inducing_inputs), chosen)
    np.testing.assert_array_equal(start.latent.features.inducing_inputs, chosen)
    np.testing.assert_allclose(start.latent.kernel.lengthscale, machine._model.latent.kernel.lengthscale)
    assert not hasattr(hybrid, "active_rows_")


def test_regression_from_informative_rows_and_given_ones():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (40, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    model = GPRegressor(approximation=VFE(6, init="ivm", optimize_inputs=False), optimizer=None).fit(X, y)
    assert np.abs(model.approximation_.inducing_inputs - X[:, 0]).min(axis=1).max() < 1e-12  # rows of the data
    given = GPRegressor(approximation=VFE(inducing_inputs=X[:3], init="ivm"), optimizer=None).fit(X, y)
    np.testing.assert_allclose(given.approximation_.inducing_inputs, X[:3])
    with pytest.raises(ValueError, match="number of rows"):
        FITC("auto", init="ivm")
