"""FITC with every rule and several latents per datum: the low-rank algebra against the dense one, and gradients."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Matern, SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, Softmax
from errorband.model import PriorAtData
from errorband.numerics import double_precision
from errorband.structures import Dense

RULES = {"Laplace": Laplace(), "EP": EP(tolerance=1e-9), "KL": KL(tolerance=1e-9)}
LIKELIHOODS = {"two latents": HeteroscedasticGaussian(0.1), "three classes": Softmax(3)}


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:16], y[:16], X_test


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_as_the_dense_model_of_the_same_prior_and_gradients(likelihood, rule, data):
    """Gradients in kernel, likelihood and inducing inputs, against finite differences of re-converged runs."""
    X, y, _ = data
    targets = np.digitize(y, [-0.3, 0.4]).astype(float) if likelihood == "three classes" else y
    model = GPRegressor(
        SquaredExponential([0.8, 1.3], 1.44),
        likelihood=LIKELIHOODS[likelihood],
        approximation=FITC(inducing_inputs=X[::4] + 0.05),
        inference=RULES[rule],
        optimizer=None,
        normalize=False,
    )
    objective = model.objective(X, targets)
    theta = objective.theta0
    value, gradient = objective.value_and_gradient(theta)
    # KL ends where its bound no longer rises: round-off of the bound leaves the sites, and so the gradient, uncertain.
    precision = 1e-6 if rule == "KL" else 1e-7
    assert_allclose(gradient, dense.precise_differences(objective, theta), rtol=1e-6, atol=precision)
    _, prior = objective.at(theta)
    with double_precision():
        L, low_rank = prior.structure.n_latents, prior.structure.dense()
        blocks = jnp.stack([low_rank[l::L, l::L] for l in range(L)])
        whole = PriorAtData(Dense(blocks), prior.likelihood, prior.mean)
        found = RULES[rule].evaluate(whole, objective.data, objective.basis)
    assert_allclose(value, found.log_evidence, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:The search")
def test_estimators(data):
    X, y, X_test = data
    labels, rough = np.digitize(y, [-0.3, 0.4]), Matern(1.0, 1.0, nu=1.5)
    exact, sparse = (GPClassifier(rough, approximation=a, optimizer=None).fit(X, labels) for a in ("exact", FITC(50)))
    assert isinstance(sparse.inference_, Laplace)
    assert_allclose(sparse.predict_proba(X_test), exact.predict_proba(X_test), atol=1e-6)
    varying = GPRegressor(
        likelihood=HeteroscedasticGaussian(), approximation=FITC(6), optimizer=errorband.LBFGS(max_iter=3)
    ).fit(X, y)
    assert varying.inference_status_.converged
    assert np.all(np.isfinite(varying.predict(X_test, return_std=True)))
