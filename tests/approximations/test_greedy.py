"""Sparse greedy approximation: both certificates hold, and the result is the projected process of the chosen rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit

import errorband
from errorband import GPClassifier, GPRegressor
from errorband.approximations import DTC, SparseGreedy
from errorband.approximations.greedy import SELECTIONS
from errorband.data import TrainingData
from errorband.kernels import SquaredExponential
from errorband.latents import Latent
from errorband.likelihoods import Bernoulli, Gaussian, Softmax
from errorband.means import Zero
from errorband.model import Model
from errorband.training.greedy import chosen_rows, variance_bounds

KERNEL = SquaredExponential(1.0, 1.0)
X = np.random.default_rng(0).uniform(0, 6, (60, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=60)


def chosen(x, y, likelihood, seed=0, **settings):
    approximation = SparseGreedy(**settings)
    model = Model((Latent(KERNEL, Zero()),), likelihood, approximation)
    return chosen_rows(model, TrainingData(x, y), approximation, np.random.RandomState(seed))


def lost(x, y, noise, rows):
    """Nats that the log posterior at the best expansion in these rows is below that of the exact mode."""
    K = KERNEL(x)

    def value(a):
        f = K @ a
        return -0.5 * np.sum((y - f) ** 2) / noise - 0.5 * a @ f

    a = np.zeros(len(y))
    P = K[:, rows]
    a[rows] = np.linalg.lstsq(noise * K[np.ix_(rows, rows)] + P.T @ P, P.T @ y, rcond=1e-13)[0]
    return value(np.linalg.solve(K + noise * np.eye(len(y)), y)) - value(a)


def test_primal_and_dual_meet():
    K, noise = KERNEL(X), 0.01
    a = np.linalg.solve(K + noise * np.eye(60), Y)
    Q = -Y @ K @ a + 0.5 * a @ (noise * K + K @ K) @ a
    dual = -Y @ a + 0.5 * a @ (K + noise * np.eye(60)) @ a
    assert_allclose(Q + noise * dual, -0.5 * Y @ Y, rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from(SELECTIONS), st.sampled_from([0.01, 0.1, 1.0]))
def test_the_gap_bounds_what_is_lost(seed, selection, noise):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (30, 1))
    y = np.sin(2 * x[:, 0]) + np.sqrt(noise) * rng.normal(size=30)
    found = chosen(x, y, Gaussian(noise), seed=seed % 1000, n_inducing=int(rng.integers(1, 15)), selection=selection)
    assert -1e-6 <= lost(x, y, noise, found.rows) <= found.gap + 1e-6 * (1 + found.gap)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_with_more_rows_the_gap_closes(selection):
    found = chosen(X, Y, Gaussian(0.05), selection=selection, tolerance=1e-3, n_inducing=60)
    assert found.converged
    assert found.trace[-1] < 1e-2 * found.trace[0]
    assert lost(X, Y, 0.05, found.rows) <= found.gap


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_gradient_lemma_bounds_what_is_lost(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (30, 1))
    y = np.where(np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=30) > 0, 1.0, -1.0)
    found = chosen(x, y, Bernoulli("logit"), seed=seed % 1000, n_inducing=int(rng.integers(1, 9)))
    values = [objective(x, y, rows) for rows in (np.arange(30), found.rows)]
    assert -1e-6 <= values[1] - values[0] <= found.gap + 1e-6


def objective(x, y, rows):
    """The smallest −log p(y | f) + ½ aᵀKa over f = k(·, rows) a, by Newton's method on dense matrices."""
    size, axes = np.linalg.eigh(KERNEL(x[rows]))
    keep = size > 1e-10
    Phi = KERNEL(x, x[rows]) @ axes[:, keep] / np.sqrt(size[keep])
    b = np.zeros(Phi.shape[1])
    for _ in range(100):
        p = expit(y * (Phi @ b))
        b = b - np.linalg.solve(Phi.T @ ((p * (1 - p))[:, None] * Phi) + np.eye(len(b)), b - Phi.T @ (y * (1 - p)))
    return -np.sum(np.log(expit(y * (Phi @ b)))) + 0.5 * b @ b


def test_bounds_of_the_error_bars():
    new = np.linspace(-1, 7, 9)[:, None]
    K, cross, noise = KERNEL(X), KERNEL(X, new), 0.05
    exact = 1 - np.sum(cross * np.linalg.solve(K + noise * np.eye(60), cross), axis=0)
    rows = chosen(X, Y, Gaussian(noise), tolerance=1e-3).rows
    few, many = (variance_bounds(KERNEL, X, r, noise, new) for r in (rows[:5], rows))
    for low, high in (few, many):
        assert np.all(low <= exact + 1e-9)
        assert np.all(exact <= high + 1e-9)
    assert np.sum(many[1] - many[0]) < np.sum(few[1] - few[0])


def test_59_candidates():
    assert round(1 - 0.95**59, 4) == 0.9515
    best = [np.min(np.random.default_rng(seed).permutation(1000)[:59]) < 50 for seed in range(2000)]
    assert_allclose(np.mean(best), 0.9515, atol=0.015)


@pytest.fixture(scope="module")
def model():
    settings = {"likelihood": Gaussian(0.01), "optimizer": None, "normalize": False}
    return GPRegressor(KERNEL, approximation=SparseGreedy(tolerance=1e-3), random_state=0, **settings).fit(X, Y)


def test_it_is_the_projected_process_of_the_chosen_rows(model):
    rows = model.certificate_.rows
    same = GPRegressor(
        KERNEL, approximation=DTC(inducing_inputs=X[rows]), likelihood=Gaussian(0.01), optimizer=None, normalize=False
    ).fit(X, Y)
    assert_allclose(model.log_evidence_, same.log_evidence_, rtol=1e-6)
    assert_allclose(model.predict(X, return_std=True), same.predict(X, return_std=True), atol=1e-6)
    exact = GPRegressor(KERNEL, likelihood=Gaussian(0.01), optimizer=None, normalize=False).fit(X, Y)
    assert_allclose(model.predict(X), exact.predict(X), atol=0.02)
    assert "nats of the exact posterior mode" in str(model.certificate_)


def test_files(model, tmp_path):
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert np.array_equal(model.predict(X, return_std=True), again.predict(X, return_std=True))
    assert again.certificate_.gap == model.certificate_.gap


@pytest.mark.slow
def test_classes():
    y = np.sin(2 * X[:, 0]) > 0
    model = GPClassifier(approximation=SparseGreedy(30), likelihood="logit", inference="laplace", random_state=0)
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.certificate_.gap >= 0


def test_refusals():
    with pytest.raises(ValueError, match="choose one of 'greedy'"):
        SparseGreedy(selection="best")
    with pytest.raises(ValueError, match="give a whole number, one or more, or None"):
        SparseGreedy(candidates=0)
    three = GPClassifier(approximation=SparseGreedy(30), likelihood=Softmax(3))
    with pytest.raises(ValueError, match="one latent function; use FITC or VFE, or multi_class='one_vs_rest'"):
        three.fit(X, np.arange(len(X)) % 3)
