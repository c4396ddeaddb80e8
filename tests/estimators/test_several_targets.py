"""Several targets at once: one search and one factorisation, predictions and bands of each."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import errorband
from errorband import GPRegressor
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.means import Linear


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    f = np.stack([np.sin(2 * X[:, 0]), 30 * np.cos(2 * X[:, 0]) * X[:, 1], 5 + 0.01 * np.sin(X[:, 1])], axis=1)
    return X, f + f.std(axis=0) * 0.1 * rng.normal(size=f.shape)


@pytest.fixture(scope="module")
def fitted(table):
    return GPRegressor(SquaredExponential()).fit(*table)


def test_evidence_is_the_sum_and_its_gradient_is_right(table):
    """Against dense normal densities, in the engine's own units."""
    X, Y = table
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    kernel, noise = SquaredExponential(0.7, 1.3), 0.2
    settings = dict(likelihood=Gaussian(noise), optimizer=None, normalize=False)
    model = GPRegressor(kernel, **settings).fit(X, Y)
    normal = multivariate_normal(cov=kernel(X) + noise * np.eye(len(X)))
    each = [normal.logpdf(y) for y in Y.T]
    np.testing.assert_allclose([m.log_evidence_ for m in model.estimators_], each, rtol=1e-10)
    assert model.log_evidence_ == pytest.approx(sum(each), rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient(table, weighted, monkeypatch):
    from errorband.approximations import Exact
    from errorband.data import TrainingData
    from errorband.inference import Conjugate
    from errorband.latents import Latent
    from errorband.means import Zero
    from errorband.model import Model
    from errorband.training import Objective

    monkeypatch.setattr(errorband.conjugate.dense, "_rounding", lambda n: 1e-3)  # so that its derivative is seen
    X, Y = table
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    model = Model((Latent(SquaredExponential([0.7, 1.1], 1.3), Zero(np.zeros(0))),), Gaussian(0.2), Exact())
    weights = np.linspace(0.5, 2.0, len(X)) if weighted else None
    together = Objective(model, Conjugate(), TrainingData(X, Y, weights=weights))
    each = [Objective(model, Conjugate(), TrainingData(X, y, weights=weights)) for y in Y.T]
    theta = together.theta0
    found, one = together.evaluate(theta), [o.evaluate(theta) for o in each]
    assert found.value == pytest.approx(sum(p.value for p in one), rel=1e-10)
    np.testing.assert_allclose(found.gradient, sum(p.gradient for p in one), rtol=1e-9)
    loo = together.leave_one_out(theta)
    np.testing.assert_allclose(loo.mean, np.stack([o.leave_one_out(theta).mean for o in each], axis=1), rtol=1e-9)
    np.testing.assert_allclose(loo.std, np.stack([o.leave_one_out(theta).std for o in each], axis=1), rtol=1e-9)


def test_marginalised_mean(table):
    X, Y = table
    settings = dict(mean=Linear(marginalize=True), likelihood=Gaussian(0.2), optimizer=None, normalize=False)
    together = GPRegressor(SquaredExponential(0.7, 1.3), **settings).fit(X, Y)
    for k, y in enumerate(Y.T):
        alone = GPRegressor(SquaredExponential(0.7, 1.3), **settings).fit(X, y)
        np.testing.assert_allclose(together.predict(X[:5])[:, k], alone.predict(X[:5]), rtol=1e-8)
        assert together.estimators_[k].log_evidence_ == pytest.approx(alone.log_evidence_, rel=1e-8)


def test_predictions_have_a_column_for_each(table, fitted):
    X, Y = table
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert np.all(np.sqrt(np.mean((mean - Y) ** 2, axis=0)) < 0.15 * Y.std(axis=0))
    np.testing.assert_array_equal(fitted.predict(X), mean)
    lower, upper = fitted.predict_interval(X)
    assert np.mean((lower < Y) & (upper > Y)) > 0.9
    assert fitted.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (60, 3, 3)
    assert fitted.predict(X[:4], return_cov=True)[1].shape == (4, 4, 3)
    assert fitted.score(X, Y) > 0.97


def test_kernel_and_noise_are_shared_in_units_of_each(table, fitted):
    Y = table[1]
    scale = Y.std(axis=0)
    noise = [m.likelihood_.noise_variance for m in fitted.estimators_]
    np.testing.assert_allclose(np.sqrt(noise) / scale, np.sqrt(noise[0]) / scale[0], rtol=1e-10)
    assert len({tuple(m.kernel_.lengthscale) for m in fitted.estimators_}) == 1
    assert fitted.estimators_[0].posterior_.factor is fitted.estimators_[2].posterior_.factor
    assert len(fitted.hyperparameters()) == 3 * len(fitted.estimators_[0].hyperparameters())


def test_each_is_an_ordinary_model(table, fitted, tmp_path):
    X, Y = table
    one = fitted.estimators_[1]
    alone = GPRegressor(one.kernel_, likelihood=one.likelihood_, optimizer=None).fit(X, Y[:, 1])
    np.testing.assert_allclose(one.predict(X[:5]), alone.predict(X[:5]), rtol=1e-6)
    assert one.log_evidence_ == pytest.approx(alone.log_evidence_, rel=1e-8)
    assert np.isfinite(one.loo().log_density).all()
    fitted.save(tmp_path / "model.eb")
    np.testing.assert_array_equal(errorband.load(tmp_path / "model.eb").predict(X[:5]), fitted.predict(X[:5]))


def test_what_belongs_to_one_target_is_refused(table, fitted):
    X, Y = table
    for ask in (lambda: fitted.predictive(X), fitted.loo, fitted.training_data, lambda: fitted.condition_on(X, Y)):
        with pytest.raises(ValueError, match=r"3 targets; ask the one of a target, estimators_\[0\]"):
            ask()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (dict(likelihood="poisson"), "not Poisson"),
        (dict(approximation="fitc(10)"), "whole covariance only"),
        (dict(kernel="auto"), "name kernel and likelihood"),
        (dict(mean="linear"), "marginalize=True"),
    ],
)
def test_refusals_name_a_way_out(table, arguments, told):
    X, Y = table
    with pytest.raises(ValueError, match=f"3 columns.*{told}.*MultiOutputRegressor"):
        GPRegressor(**arguments).fit(X, np.abs(np.round(Y)))


def test_a_later_fit_forgets(table):
    X, Y = table
    model = GPRegressor(SquaredExponential(), optimizer=None).fit(X, Y[:, 0])
    assert not hasattr(model.fit(X, Y), "posterior_")
    assert model.fit(X, Y[:, 0]).predict(X[:2]).shape == (2,)
    assert not hasattr(model, "estimators_")


def test_targets_that_say_nothing_have_bands_of_their_size_and_a_warning(table):
    """As with one target, where all rows are the same or there is one."""
    X = table[0]
    kernel = SquaredExponential([1.0, 1.0])
    for rows, Y, told in ((60, [[1.0, 5.0]], "same in all 60 rows"), (1, [[1.0, 5.0]], "One row says")):
        with pytest.warns(UserWarning, match=told):
            both = GPRegressor(kernel).fit(X[:rows], np.tile(Y, (rows, 1)))
        with pytest.warns(UserWarning, match="nothing of how far"):
            one = GPRegressor(kernel).fit(X[:rows], np.full(rows, 5.0))
        mean, std = both.predict(X[:3], return_std=True)
        np.testing.assert_allclose(mean, np.tile(Y, (3, 1)))
        np.testing.assert_allclose(std[:, 1], one.predict(X[:3], return_std=True)[1])
