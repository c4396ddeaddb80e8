"""PITC and PIC with every rule and several latents per datum: against dense algebra, in their limits, gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband import GPClassifier
from errorband.approximations import FITC, PIC, PITC, Exact
from errorband.inference import EP, KL, Laplace, SparseBlocks
from errorband.likelihoods import Bernoulli, Softmax, StudentT
from errorband.numerics import double_precision
from sparse_reference import KERNEL, fixed, q_matrix

CENTRES = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [50.0, 50.0]])  # the last has no rows
SWEEPS = EP(tolerance=1e-9)


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:16], y[:16], np.concatenate([X_test, [[49.0, 49.0]]])  # and one test input in the empty block


def targets(likelihood, y):
    if isinstance(likelihood, Bernoulli):
        return np.where(y > 0.1, 1.0, -1.0)
    return np.digitize(y, [-0.3, 0.4]).astype(float) if isinstance(likelihood, Softmax) else y


def joint_prior(cls, X, X_test, Z):
    """Covariance of the latent values at old and new inputs together, in plain NumPy."""
    both = np.concatenate([X, X_test])
    nearest = np.argmin(np.sum((both[:, None] - CENTRES) ** 2, axis=2), axis=1)
    old = np.arange(len(both)) < len(X)
    together = (nearest[:, None] == nearest) & (old[:, None] & old if cls is PITC else True)
    joint = np.where(together, KERNEL(both), q_matrix(KERNEL, Z, both, both))
    np.fill_diagonal(joint, KERNEL.diag(both))
    return joint


def predicted(joint, sites, n):
    """Means and covariances at the new inputs under that prior and the sites of n rows."""
    L = sites.shift.shape[1]
    s = len(joint) - n
    Pi = np.zeros((n, L, n, L))
    Pi[np.arange(n), :, np.arange(n)] = sites.precision[:n]
    Pi, each = Pi.reshape(n * L, n * L), np.eye(L)
    K, cross = np.kron(joint[:n, :n], each), np.kron(joint[n:, :n], each)
    system = np.eye(n * L) + Pi @ K
    mean = (cross @ np.linalg.solve(system, sites.shift[:n].ravel())).reshape(s, L)
    cov = np.kron(joint[n:, n:], each) - cross @ np.linalg.solve(system, Pi) @ cross.T
    return mean, np.einsum("slsk->slk", cov.reshape(s, L, s, L))


CASES = {
    "two classes, EP": (PITC, Bernoulli(), SWEEPS),
    "heavy tails, Laplace": (PIC, StudentT(3.0, 0.3), Laplace()),
    "three classes, Laplace": (PIC, Softmax(3), Laplace()),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_predictions_under_the_joint_prior(case, data, tmp_path):
    """Gradients in kernel, likelihood and inducing inputs, against finite differences of re-converged runs; files."""
    X, y, X_test = data
    cls, likelihood, rule = CASES[case]
    Z, y = X[::4] + 0.05, targets(likelihood, y)
    model = fixed(cls(inducing_inputs=Z, centres=CENTRES), likelihood=likelihood, inference=rule)
    objective = model.objective(X, y)
    theta = objective.theta0
    value, gradient = objective.value_and_gradient(theta)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 3e-5), rtol=1e-5, atol=1e-5)
    model.fit(X, y)
    assert_allclose(model.log_evidence_, value, rtol=1e-7)
    mean, cov = predicted(joint_prior(cls, X, X_test, Z), model._state, 16)
    got_mean, got_cov = model.posterior_.marginals(X_test)
    assert_allclose(got_mean, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got_cov, cov, rtol=1e-6, atol=1e-8)
    assert_allclose(model.posterior_.marginals(X_test, variance=False)[0], got_mean, rtol=1e-10, atol=1e-12)
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb").posterior_.marginals(X_test)
    assert_allclose(again[1], got_cov, rtol=1e-12)


def test_schedules_of_ep_agree(data):
    X, y, _ = data
    approximation, labels = PITC(inducing_inputs=X[::4] + 0.05, centres=CENTRES), targets(Bernoulli(), y)
    objective = fixed(approximation, likelihood=Bernoulli(), inference=SWEEPS).objective(X, labels)
    _, prior = objective.at(objective.theta0)
    with double_precision():
        parallel, other = (
            rule.evaluate(prior, objective.data, objective.basis)
            for rule in (SWEEPS, EP(mode="sequential", tolerance=1e-9))
        )
    assert other.status.converged
    assert_allclose(other.log_evidence, parallel.log_evidence, rtol=1e-8)


@pytest.mark.parametrize("rule", [Laplace(), SWEEPS, KL(tolerance=1e-9)], ids=["Laplace", "EP", "KL"])
def test_one_block_is_the_exact_model(rule, data):
    X, y, _ = data
    values = []
    for approximation in (Exact(), PITC(inducing_inputs=X[::4], block_size=16)):
        model = fixed(approximation, likelihood=Bernoulli(), inference=rule)
        objective = model.objective(X, targets(Bernoulli(), y))
        _, prior = objective.at(objective.theta0)
        with double_precision():
            values.append(rule.evaluate(prior, objective.data, objective.basis).log_evidence)
    assert_allclose(*values, rtol=1e-7)


def test_blocks_of_one_row_are_fitc(data):
    X, y, X_test = data
    labels = targets(Bernoulli(), y)
    blocks, fitc = (
        fixed(a, likelihood=Bernoulli(), inference=SWEEPS).fit(X, labels)
        for a in (PITC(inducing_inputs=X[::5], centres=X), FITC(inducing_inputs=X[::5]))
    )
    assert_allclose(blocks.log_evidence_, fitc.log_evidence_, rtol=1e-7)
    for got, want in zip(blocks.posterior_.marginals(X_test), fitc.posterior_.marginals(X_test), strict=True):
        assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    assert_allclose(blocks.loo().predictive.probabilities, fitc.loo().predictive.probabilities, rtol=1e-6)


@pytest.mark.parametrize("cls", [PITC, PIC])
def test_gaussian_noise_by_ep_is_the_closed_form(cls, data):
    X, y, X_test = data
    approximation = cls(inducing_inputs=X[::5], centres=CENTRES)
    closed, sites = (fixed(approximation, mean="linear", inference=rule) for rule in ("auto", SWEEPS))
    exact, swept = (model.objective(X, y) for model in (closed, sites))
    value, gradient = exact.value_and_gradient(exact.theta0)
    got_value, got_gradient = swept.value_and_gradient(exact.theta0)
    assert_allclose(got_value, value, rtol=1e-8)
    assert_allclose(got_gradient, gradient, rtol=1e-6, atol=1e-7)
    assert isinstance(closed.fit(X, y).inference_, SparseBlocks)
    sites.fit(X, y)
    for predict in ("marginals", "joint"):
        got, want = (getattr(m.posterior_, predict)(X_test) for m in (sites, closed))
        assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-8)
        assert_allclose(got[1], want[1], rtol=1e-6, atol=1e-8)
    got, want = (m.loo().predictive for m in (sites, closed))
    assert_allclose(got.mean, want.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got.variance, want.variance, rtol=1e-6)
    for i in (0, 3, 11):  # which is what the model without the row predicts at it
        rest = fixed(approximation, mean=closed.mean_).fit(np.delete(X, i, 0), np.delete(y, i))
        mean, std = rest.predict(X[i : i + 1], return_std=True)
        assert_allclose([want.mean[i], want.std[i]], [mean[0], std[0]], rtol=1e-6)


def test_blocks_of_one_class_and_a_class_of_one_row():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), 8 + rng.normal(size=(20, 2)), [[20.0, 20.0]]])
    labels = np.repeat(["a", "b", "c"], [20, 20, 1])
    model = GPClassifier(KERNEL, approximation=PIC(5, block_size=14), optimizer=None, random_state=0)
    share = model.fit(X, labels).predict_proba(X)
    assert np.all(share[np.arange(41), np.repeat([0, 1, 2], [20, 20, 1])] > 1 / 3)
    centres, rows = model.approximation_.centres, model.scaling_.inputs(X)
    alone = np.argmin(np.sum((rows[:, None] - centres) ** 2, axis=2), axis=1)
    assert any(len(set(labels[alone == k])) == 1 for k in set(alone))
