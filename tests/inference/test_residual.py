"""VFE and PowerEP with any likelihood: the likelihood sees the variance that the inducing points leave out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE, Nystrom, PowerEP
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Matern, SquaredExponential
from errorband.likelihoods import (
    Bernoulli,
    DoubleExponential,
    Gaussian,
    HeteroscedasticGaussian,
    OutlierMixture,
    StudentT,
)

KERNEL = SquaredExponential([0.8, 1.3], 1.44)
ROUGH = Matern([0.8, 1.3], 1.44, nu=1.5)


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


def fixed(approximation, likelihood, inference="auto", kernel=KERNEL):
    return GPRegressor(
        kernel, likelihood=likelihood, approximation=approximation, inference=inference, optimizer=None, normalize=False
    )


def evidence_and_gradient(model, X, y):
    objective = model.objective(X, y)
    return objective.value_and_gradient(objective.theta0)


BOUND, HALF = KL(tolerance=1e-9), EP(power=0.5, tolerance=1e-9)
PAIRS = {
    "VFE": (lambda Z: VFE(inducing_inputs=Z), BOUND),
    "PowerEP": (lambda Z: PowerEP(power=0.5, inducing_inputs=Z), HALF),
    "PowerEP sequential": (
        lambda Z: PowerEP(power=0.5, inducing_inputs=Z),
        EP(mode="sequential", power=0.5, tolerance=1e-9),
    ),
    "PowerEP double loop": (
        lambda Z: PowerEP(power=0.5, inducing_inputs=Z),
        EP(mode="double_loop", power=0.5, tolerance=1e-9),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_gaussian_likelihood_gives_the_closed_form(name, data):
    X, y, X_test = data
    make, rule = PAIRS[name]
    closed, sites = (fixed(make(X[::5]), Gaussian(0.0625), inference) for inference in ("auto", rule))
    value, gradient = evidence_and_gradient(sites, X, y)
    expected, expected_gradient = evidence_and_gradient(closed, X, y)
    assert_allclose(value, expected, rtol=1e-8)
    assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-7)
    for model in (closed, sites):
        model.fit(X, y)
    assert_allclose(*(m.predict(X_test, return_std=True) for m in (sites, closed)), rtol=1e-6, atol=1e-8)
    got, expected = (m.loo().predictive for m in (sites, closed))
    assert_allclose(got.mean, expected.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got.std, expected.std, rtol=1e-6)


@pytest.mark.parametrize("name", ["VFE", "PowerEP"])
def test_inducing_inputs_at_the_data_give_the_dense_model(name, data):
    X, y, X_test = data
    labels = np.where(y > 0.1, 1.0, -1.0)
    make, rule = PAIRS[name]
    sparse, whole = (fixed(a, Bernoulli(), rule, ROUGH).fit(X, labels) for a in (make(X), "exact"))
    assert_allclose(sparse.log_evidence_, whole.log_evidence_, rtol=1e-6)
    assert_allclose(*(m.predict(X_test, return_std=True, latent=True) for m in (sparse, whole)), atol=1e-6)


def test_vfe_is_a_bound_of_the_dense_bound_that_rises_with_every_point(data):
    X, y, _ = data
    y = y + 3.0 * (np.arange(40) % 10 == 9)
    likelihood = StudentT(4.0, 0.2)
    whole = fixed("exact", likelihood, BOUND).fit(X, y).log_evidence_
    fewer, more = (fixed(VFE(inducing_inputs=X[::k]), likelihood, BOUND).fit(X, y).log_evidence_ for k in (5, 1))
    few = fixed(VFE(inducing_inputs=np.tile(X[::20], (4, 1))), likelihood, BOUND).fit(X, y).log_evidence_
    assert few < fewer < more < whole + 1e-6
    assert fewer < whole - 10  # so that there is something to gain


def test_power_one_is_fitc(data):
    """Sites on u with the residual in the likelihood, and sites on f with it in the prior: one fixed point."""
    X, y, X_test = data
    labels, rule = np.where(y > 0.1, 1.0, -1.0), EP(tolerance=1e-9)
    powered, fitc = (
        fixed(a, Bernoulli(), rule) for a in (PowerEP(power=1.0, inducing_inputs=X[::5]), FITC(inducing_inputs=X[::5]))
    )
    got, expected = (evidence_and_gradient(m, X, labels) for m in (powered, fitc))
    assert_allclose(got[0], expected[0], rtol=1e-8)
    assert_allclose(got[1], expected[1], rtol=1e-6, atol=1e-7)
    for model in (powered, fitc):
        model.fit(X, labels)
    assert_allclose(*(m.predict(X_test, return_std=True, latent=True) for m in (powered, fitc)), rtol=1e-6)
    assert_allclose(powered.loo().log_density, fitc.loo().log_density, rtol=1e-6)


GRADIENTS = {
    "VFE, Student": (VFE, BOUND, StudentT(4.0, 0.2)),
    "VFE, two latents": (VFE, BOUND, HeteroscedasticGaussian(0.1)),
    "VFE, kink": (VFE, BOUND, DoubleExponential(0.3)),
    "PowerEP, bias": (PowerEP, HALF, Bernoulli("probit", bias=0.2)),
    "PowerEP, mixture": (PowerEP, HALF, OutlierMixture(0.09, 20.0, 0.1)),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradient_against_reconverged_finite_differences(case, data):
    """In kernel, likelihood and inducing inputs."""
    X, y, _ = data
    kind, rule, likelihood = GRADIENTS[case]
    targets = np.where(y > 0.1, 1.0, -1.0) if isinstance(likelihood, Bernoulli) else y
    objective = fixed(kind(inducing_inputs=X[::5]), likelihood, rule).objective(X, targets)
    _, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(gradient, dense.precise_differences(objective, objective.theta0), rtol=1e-6, atol=1e-7)


def test_inducing_inputs_far_from_the_data_leave_the_prior(data):
    """The sites then know nothing of the data, and their marginals have no variance at all."""
    X, y, X_test = data
    labels = np.where(y > 0.1, 1.0, -1.0)
    likelihood = Bernoulli("probit")
    for approximation in (PowerEP(power=0.5, inducing_inputs=X[::5] + 100), VFE(inducing_inputs=X[::5] + 100)):
        model = fixed(approximation, likelihood).fit(X, labels)
        if isinstance(approximation, VFE):  # the same for both labels
            each = float(likelihood.expected_log_prob(1.0, 0.0, 1.44))
        else:
            each = float(likelihood.log_tilted_power(1.0, 0.0, 1.44, 0.5)) / 0.5
        assert_allclose(model.log_evidence_, len(labels) * each, rtol=1e-6)
        assert_allclose(model.predict(X_test, return_std=True, latent=True)[1], 1.2, rtol=1e-6)


def test_three_classes(data):
    X, y, X_test = data
    labels = np.digitize(y, [-0.3, 0.4])
    model = GPClassifier(Matern(1.0, 1.0, nu=1.5), approximation=VFE(50), optimizer=None).fit(X, labels)
    assert isinstance(model.inference_, KL)
    whole = GPClassifier(Matern(1.0, 1.0, nu=1.5), inference=KL(), optimizer=None).fit(X, labels)
    assert_allclose(model.predict_proba(X_test), whole.predict_proba(X_test), atol=1e-5)


def test_what_auto_takes_and_what_is_refused(data):
    X, y, _ = data
    assert fixed(PowerEP(4, power=0.3), StudentT()).objective(X, y).inference == EP(power=0.3)
    assert fixed(PowerEP(4, power=0.0), StudentT()).objective(X, y).inference == KL()
    with pytest.raises(ValueError, match=r"VFE goes with inference=KL\(\), .*FITC goes with every rule"):
        fixed(VFE(4), StudentT(), Laplace()).fit(X, y)
    with pytest.raises(ValueError, match=r"PowerEP goes with inference=EP\(power=0.5\)"):
        fixed(PowerEP(4), StudentT(), EP()).fit(X, y)
    with pytest.raises(ValueError, match="FITC goes with every likelihood"):
        fixed(Nystrom(4), StudentT(), EP()).fit(X, y)
