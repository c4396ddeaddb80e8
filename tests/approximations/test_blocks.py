"""PITC and PIC: against the dense GP under the effective prior, and in their limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband.approximations import FITC, PIC, PITC, Exact
from errorband.inference import SparseBlocks
from errorband.kernels import Linear, Matern
from errorband.likelihoods import Gaussian
from sparse_reference import KERNEL, NOISE, fixed, q_matrix

CENTRES = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [50.0, 50.0]])  # the last has no rows


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], np.concatenate([X_test, [[49.0, 49.0]]])  # and one test input in the empty block


def nearest(X):
    return np.argmin(np.sum((X[:, None] - CENTRES) ** 2, axis=2), axis=1)


@pytest.mark.parametrize("cls", [PITC, PIC])
def test_agrees_with_the_dense_gp_under_the_effective_prior(cls, data, tmp_path):
    X, y, X_test = data
    Z, known = X[::5], 0.1 * np.abs(np.sin(np.arange(len(y))))
    together = nearest(X)[:, None] == nearest(X)
    K = np.where(together, KERNEL(X), q_matrix(KERNEL, Z, X, X))
    cross, new = q_matrix(KERNEL, Z, X, X_test), KERNEL(X_test)
    if cls is PIC:
        cross = np.where(nearest(X)[:, None] == nearest(X_test), KERNEL(X, X_test), cross)
        new = np.where(nearest(X_test)[:, None] == nearest(X_test), new, q_matrix(KERNEL, Z, X_test, X_test))
    mean, cov = dense.predict(K, cross, new, NOISE + known, y)

    model = fixed(cls(inducing_inputs=Z, centres=CENTRES)).fit(X, y, known)
    assert isinstance(model.inference_, SparseBlocks)
    assert_allclose(model.log_evidence_, dense.evidence(K, NOISE + known, y), rtol=1e-8)
    assert_allclose(model.predict(X_test), mean, rtol=1e-6, atol=1e-8)
    got_mean, got_std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(got_mean, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got_std**2, np.diagonal(cov), rtol=1e-6, atol=1e-8)
    assert_allclose(model.predict(X_test, return_cov=True, latent=True)[1], cov, rtol=1e-6, atol=1e-8)
    if cls is PIC:  # of PITC, which predicts a row left out as it does a new one, see tests/inference/test_blocks.py
        loo_mean, loo_variance = dense.leave_one_out(K, NOISE + known, y)
        assert_allclose(model.loo().predictive.mean, loo_mean, rtol=1e-6, atol=1e-8)
        assert_allclose(model.loo().predictive.variance, loo_variance, rtol=1e-6)
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert_allclose(again.predict(X_test, return_std=True), model.predict(X_test, return_std=True), rtol=1e-14)


@pytest.mark.parametrize("kernel", [KERNEL, Matern(0.9, 1.2, nu=2.5) + Linear(0.4, active_dims=[0])], ids=["SE", "sum"])
def test_gradient_against_finite_differences(kernel, data):
    X, y, _ = data
    objective = fixed(PIC(inducing_inputs=X[::7], centres=CENTRES), kernel, mean="linear").objective(X, y)
    theta = objective.theta0 + 0.05 * np.sin(np.arange(len(objective.theta0)))
    _, gradient = objective.value_and_gradient(theta)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-5), rtol=1e-6, atol=1e-6)


def test_blocks_of_one_row_are_fitc(data):
    X, y, X_test = data
    blocks = fixed(PITC(inducing_inputs=X[::5], centres=X)).fit(X, y)
    fitc = fixed(FITC(inducing_inputs=X[::5])).fit(X, y)
    assert_allclose(blocks.log_evidence_, fitc.log_evidence_, rtol=1e-9)
    assert_allclose(blocks.predict(X_test), fitc.predict(X_test), rtol=1e-7, atol=1e-9)


def test_one_block_is_the_exact_model(data):
    X, y, X_test = data
    exact = fixed(Exact()).fit(X, y)
    for cls in (PITC, PIC):
        model = fixed(cls(inducing_inputs=X[::5], block_size=40)).fit(X, y)
        assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-9)
    got, expected = (m.predict(X_test, return_std=True) for m in (model, exact))
    assert_allclose(got, expected, rtol=1e-7, atol=1e-9)


def test_inducing_inputs_at_the_data_give_the_exact_model(data):
    X, y, X_test = data
    rough = Matern([0.8, 1.3], 1.44, nu=1.5)
    exact = fixed(Exact(), rough).fit(X, y)
    model = fixed(PIC(inducing_inputs=X, block_size=10), rough, random_state=0).fit(X, y)
    assert len(model.posterior_.X) == 4
    assert_allclose(model.log_evidence_, exact.log_evidence_, rtol=1e-6)
    got, expected = (m.predict(X_test, return_std=True) for m in (model, exact))
    assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PIC(block_size=0), "whole number"),
        (lambda: PIC(centres=np.zeros((3, 5))), "shape \\(B, 2\\)"),
    ],
)
def test_mistakes_are_explained(make, sentence, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=sentence):
        fixed(make()).fit(X, y)


def test_the_rule_for_blocks_refuses_other_approximations(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="PITC or PIC"):
        fixed(FITC(5), inference="sparseblocks").fit(X, y)


def test_large_clusters_are_split_where_rows_differ():
    """Of 500 rows 400 are crowded and 60 are equal: no block but that of the equal ones is above twice its size."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.01 * rng.normal(size=(400, 2)), np.full((60, 2), 5.0), rng.uniform(-20, 20, (40, 2))])
    approximation = PITC(inducing_inputs=X[::100], block_size=25).initialised(KERNEL, X, random_state=0)
    labels = approximation.labels(X)
    sizes = np.bincount(labels)
    assert np.all(np.delete(sizes, labels[400]) <= 50)
    assert sizes[labels[400]] >= 60
    given = PITC(inducing_inputs=X[::100], block_size=25, centres=X[:1]).initialised(KERNEL, X, random_state=0)
    assert len(given.centres) == 1


def test_layout_has_each_row_once_and_padding_at_the_first(data):
    X, _, _ = data
    padded = np.concatenate([X, np.broadcast_to(X[:1], (8, 2))])
    rows, there, place = PITC(inducing_inputs=X[::5], centres=CENTRES).at_rows(padded, len(X)).layout
    assert sorted(rows[there]) == list(range(len(X)))
    assert_allclose(rows.ravel()[place[: len(X)].astype(int)], np.arange(len(X)))
    assert np.all(place[len(X) :] == place[0])
    for block, filled in zip(rows, there, strict=True):
        assert len(set(nearest(X)[block[filled]])) <= 1


def test_jitter_of_a_block_is_reported(data):
    """Equal rows without noise: their block is singular."""
    X, y, _ = data
    twice, targets = np.concatenate([X, X[:8]]), np.concatenate([y, y[:8]])
    with pytest.warns(RuntimeWarning, match="jitter_"):
        model = fixed(PIC(inducing_inputs=X[::5], centres=CENTRES), likelihood=Gaussian(1e-18)).fit(twice, targets)
    assert model.jitter_ > 0


def test_means_alone_need_no_variances(data, monkeypatch):
    X, y, X_test = data
    model = fixed(PIC(inducing_inputs=X[::5], centres=CENTRES)).fit(X, y)
    want = model.predict(X_test)
    monkeypatch.setattr(type(model.posterior_), "_covariances", None)
    assert_allclose(model.predict(X_test), want)
