"""Every inducing-point model with likelihoods of several latents; models of some rows with every kind of target."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import DTC, FITC, IVM, VFE, PowerEP, SoR, SubsetOfData
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Projection, SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, Poisson, StudentT

KERNEL = SquaredExponential(0.7, 1.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-2, 2, (24, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + (0.1 + 0.3 * (X[:, 0] > 0)) * rng.normal(size=24)
    return X, y, np.digitize(y, [-0.4, 0.4])


@pytest.mark.filterwarnings("ignore:KL did not converge")  # to the last digit, with two latents
@pytest.mark.parametrize("targets", ["two latents", "three classes"])
@pytest.mark.parametrize(
    ("approximation", "rule"),
    [(SoR, Laplace()), (DTC, Laplace()), (VFE, KL()), (PowerEP, EP(power=0.5))],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_inducing_inputs_at_the_data_give_the_exact_model(approximation, rule, targets, data):
    X, y, classes = data
    two = targets == "two latents"
    make = GPRegressor if two else GPClassifier
    settings = {"likelihood": HeteroscedasticGaussian()} if two else {}
    settings |= {"inference": rule, "optimizer": None, "normalize": False}
    exact = make(KERNEL, approximation="exact", **settings).fit(X, y if two else classes)
    sparse = make(KERNEL, approximation=approximation(inducing_inputs=X), **settings).fit(X, y if two else classes)
    # 1e-8 of the variance is added to K_uu.
    assert_allclose(sparse.log_evidence_, exact.log_evidence_, rtol=1e-5)
    new = np.linspace(-2, 2, 9)[:, None]
    if two:
        for found, wanted in zip(
            sparse.predict(new, return_std=True), exact.predict(new, return_std=True), strict=True
        ):
            assert_allclose(found, wanted, atol=1e-3)
    else:
        assert_allclose(sparse.predict_proba(new), exact.predict_proba(new), atol=1e-3)


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


@pytest.mark.parametrize("approximation", [IVM(12), SubsetOfData(12)])
@pytest.mark.parametrize("likelihood", [HeteroscedasticGaussian(), StudentT()])
def test_models_of_some_rows_with_other_noise(approximation, likelihood, data):
    X, y, _ = data
    model = GPRegressor(KERNEL, likelihood=likelihood, approximation=approximation, optimizer=None, random_state=0)
    model.fit(X, y)
    assert len(model.active_rows_) == 12
    fitted = {"likelihood": model.likelihood_, "inference": model.inference_, "optimizer": None}
    rows = GPRegressor(model.kernel_, approximation="exact", **fitted)
    rows.set_params(normalize=False).fit(
        *(a[model.active_rows_] for a in (model.scaling_.inputs(X), model.scaling_.targets(y)))
    )
    assert_allclose(
        model.predict(X),
        model.scaling_.y_scale * rows.predict(model.scaling_.inputs(X)) + model.scaling_.y_shift,
        atol=1e-6,
    )


def test_models_of_some_rows_with_three_classes(data):
    X, _, classes = data
    for approximation in (IVM(12), SubsetOfData(12)):
        model = GPClassifier(KERNEL, approximation=approximation, optimizer=None, random_state=0).fit(X, classes)
        rows = GPClassifier(model.kernel_, approximation="exact", inference=model.inference_, optimizer=None)
        scaled, chosen = model.scaling_.inputs(X), model.active_rows_
        rows.set_params(normalize=False).fit(scaled[chosen], classes[chosen])
        assert_allclose(model.predict_proba(X), rows.predict_proba(scaled), atol=1e-8)


@pytest.mark.parametrize("approximation", [SubsetOfData(3), IVM(3)])
def test_rows_chosen_may_be_of_one_class(approximation):
    """The others are then known to be there by the prior alone."""
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.arange(40) == 17
    model = GPClassifier(KERNEL, approximation=approximation, optimizer=None, random_state=0).fit(X, y)
    assert not np.any(y[model.active_rows_]) or isinstance(approximation, IVM)
    p = model.predict_proba(X)[:, 1]
    assert np.all((p > 0) & (p < (0.9 if np.any(y[model.active_rows_]) else 0.5)))


def test_rows_of_each_class_have_no_leave_one_out_in_common(data):
    X, _, classes = data
    model = GPClassifier(KERNEL, approximation=IVM(12), multi_class="one_vs_rest", optimizer=None).fit(X, classes)
    with pytest.raises(ValueError, match="estimators_"):
        model.loo()
    assert len(model.estimators_[0].loo().log_density) == 12
