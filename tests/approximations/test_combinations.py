"""What the contract does not say of approximations with other likelihoods: warnings, refusals, odd classes."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import dense_reference as dense
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import DTC, FITC, IVM, PIC, VFE, Nystrom, SubsetOfData
from errorband.inference import EP, Laplace
from errorband.kernels import Projection, SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, Poisson
from sparse_reference import KERNEL as PLANE
from sparse_reference import fixed

KERNEL = SquaredExponential(0.7, 1.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-2, 2, (24, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + (0.1 + 0.3 * (X[:, 0] > 0)) * rng.normal(size=24)
    return X, y, np.digitize(y, [-0.4, 0.4])


@pytest.fixture(scope="module")
def groups():
    """Two classes far apart, and one row of a third."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), 8 + rng.normal(size=(20, 2)), [[20.0, 20.0]]])
    return X, np.repeat(["a", "b", "c"], [20, 20, 1])


@pytest.mark.slow
def test_marginals_without_variance_are_too_much_for_ep_of_two_latents(data):
    """No row is near an inducing input: under DTC all are known to be zero. Laplace can deal with it, and is named."""
    X, y, _ = data
    far = {"approximation": DTC(inducing_inputs=[[60.0], [61.0]]), "likelihood": HeteroscedasticGaussian()}
    model = GPRegressor(KERNEL, inference=EP(mode="parallel"), optimizer=None, normalize=False, **far)
    with pytest.raises(np.linalg.LinAlgError, match=r"no proper posterior"):
        model.fit(X, y)
    assert_allclose(model.set_params(inference=Laplace()).fit(X, y).predict(X), 0.0, atol=1e-8)


@pytest.mark.parametrize("approximation", [FITC(5), VFE(5)])
def test_projections_in_sparse_models_of_counts(approximation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = rng.poisson(np.exp(np.sin(X @ [1.0, -0.5, 0.3, 0.0])))
    kernel = Projection(SquaredExponential(1.0, 1.0, ard=False), rank=1)
    model = GPRegressor(kernel, likelihood=Poisson(), approximation=approximation, random_state=0)
    objective = model.objective(X, y)
    theta = objective.theta0
    _, gradient = objective.value_and_gradient(theta)
    for i in (0, 3, len(theta) - 1):
        step = 1e-4 * np.eye(len(theta))[i]
        up, down = (objective.value_and_gradient(theta + s)[0] for s in (step, -step))
        assert_allclose(gradient[i], (up - down) / 2e-4, rtol=1e-4, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(optimizer=LBFGS(max_iter=5)).fit(X, y)
    assert np.all(model.predict(X) > 0)


@pytest.mark.parametrize(("approximation", "seen"), [(SubsetOfData(3), False), (IVM(3), True)])
def test_rows_chosen_may_be_of_one_class(approximation, seen):
    """Of forty rows one is of the second class: three at random miss it, and it is there by the prior alone."""
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.arange(40) == 17
    model = GPClassifier(KERNEL, approximation=approximation, optimizer=None, random_state=0).fit(X, y)
    assert np.any(y[model.active_rows_]) == seen
    p = model.predict_proba(X)[:, 1]
    assert np.all((p > 0) & (p < (0.9 if seen else 0.5)))


def test_rows_of_each_class_have_no_leave_one_out_in_common(data):
    X, _, classes = data
    model = GPClassifier(KERNEL, approximation=IVM(12), multi_class="one_vs_rest", optimizer=None).fit(X, classes)
    with pytest.raises(ValueError, match="estimators_"):
        model.loo()
    assert len(model.estimators_[0].loo().log_density) == 12


def test_inducing_inputs_of_one_class_and_a_class_of_one_row(groups):
    X, labels = groups
    options = {"optimizer": None, "random_state": 0}
    one_side = GPClassifier(PLANE, approximation=FITC(inducing_inputs=X[:4]), normalize=False, **options)
    share = one_side.fit(X[:40], labels[:40]).predict_proba(X[:40])
    assert np.all(share[:20, 0] > 0.5)
    assert_allclose(share[20:, 0], 0.5, atol=0.1)  # where no inducing input is, nothing is known
    alone = GPClassifier(PLANE, approximation=FITC(4), **options).fit(X[1:], labels[1:] == "c")
    assert alone.predict(X[-1:])
    with pytest.raises(ValueError, match="two classes or more"):
        GPClassifier(PLANE, approximation=FITC(4), **options).fit(X[:20], labels[:20])


@pytest.mark.slow
def test_blocks_of_one_class_and_a_class_of_one_row(groups):
    X, labels = groups
    model = GPClassifier(PLANE, approximation=PIC(5, block_size=14), optimizer=None, random_state=0)
    share = model.fit(X, labels).predict_proba(X)
    assert np.all(share[np.arange(41), np.repeat([0, 1, 2], [20, 20, 1])] > 1 / 3)
    for one in model.approximation_:  # of each class against the rest
        block = np.argmin(np.sum((X[:, None] - one.centres) ** 2, axis=2), axis=1)
        assert any(len(set(labels[block == k])) == 1 for k in set(block))


def test_variances_of_nystrom_below_zero_are_set_to_zero_with_a_warning():
    X, y, _ = dense.formula_data()
    X, y = X[:40], y[:40]
    model = fixed(Nystrom(inducing_inputs=X[:2])).fit(X, y)
    with pytest.warns(RuntimeWarning, match="of 40 variances of the Nyström approximation came out below zero"):
        std = model.predict(X, return_std=True, latent=True)[1]
    assert np.any(std == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)  # means have no such trouble
