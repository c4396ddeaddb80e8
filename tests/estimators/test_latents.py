"""Several latent functions: a prior for each, and everything about each by name."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
from errorband import GPClassifier, GPRegressor, effects, plots
from errorband.approximations import FITC
from errorband.inference import Laplace
from errorband.kernels import Matern, SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, Softmax
from errorband.means import Constant

mpl.use("Agg")
DATA_X, DATA_Y, X_NEW = dense.formula_data()
X, Y = DATA_X[:30], DATA_Y[:30]
KERNELS = {"mean": SquaredExponential([0.8, 1.3], 1.44), "log_noise": Matern(2.0, 0.3, nu=2.5)}
GIVEN = {"likelihood": HeteroscedasticGaussian(0.1), "optimizer": None, "normalize": False}


@pytest.fixture(scope="module")
def fitted():
    return GPRegressor(KERNELS, mean={"mean": "linear", "log_noise": Constant([0.2])}, **GIVEN).fit(X, Y)


def dense_posterior(model):
    """Mean and covariance of all latent values at X_NEW, latent-major, from the sites and N × N matrices."""
    n, s, sites = len(X), len(X_NEW), model._state
    means = [model.mean_["mean"], model.mean_["log_noise"]]
    K, cross, new = (
        np.kron(np.diag([1, 0]), KERNELS["mean"](A, B)) + np.kron(np.diag([0, 1]), KERNELS["log_noise"](A, B))
        for A, B in ((X, X), (X_NEW, X), (X_NEW, X_NEW))
    )
    precision, shift = np.asarray(sites.precision)[:n], np.asarray(sites.shift)[:n]
    site_precision = np.block([[np.diag(precision[:, i, j]) for j in range(2)] for i in range(2)])
    W = site_precision @ np.linalg.inv(np.eye(2 * n) + K @ site_precision)
    g = np.linalg.solve(np.eye(2 * n) + site_precision @ K, shift.T.ravel())
    prior = np.concatenate([np.asarray(m.evaluate(X_NEW)) for m in means])
    return (prior + cross @ g).reshape(2, s), (new - cross @ W @ cross.T).reshape(2, s, 2, s)


def test_each_latent_by_name(fitted):
    mean, cov = dense_posterior(fitted)
    for l, name in enumerate(("mean", "log_noise")):
        got, got_cov = fitted.predict(X_NEW, return_cov=True, latent=name)
        assert_allclose(got, mean[l], rtol=1e-6, atol=1e-7)
        assert_allclose(got_cov, cov[l, :, l], rtol=1e-6, atol=1e-7)
        assert_allclose(fitted.predict(X_NEW, latent=name), mean[l], rtol=1e-6, atol=1e-7)
        _, std = fitted.predict(X_NEW, return_std=True, latent=name)
        assert_allclose(std, np.sqrt(np.diag(cov[l, :, l])), rtol=1e-6)
        draws = fitted.sample_posterior(X_NEW[:4], n_samples=4000, random_state=0, latent=name)
        assert_allclose(draws.mean(axis=0), mean[l, :4], atol=5 * np.sqrt(cov[l, :4, l, :4].diagonal().max() / 4000))
        assert fitted.sample_prior(X_NEW[:4], n_samples=3, random_state=0, latent=name).shape == (3, 4)


def test_nothing_is_silently_the_first(fitted):
    for ask in (fitted.predict, fitted.predictive, fitted.sample_posterior):
        with pytest.raises(ValueError, match="2 latent functions; say which: latent= one of 'mean', 'log_noise'"):
            ask(X_NEW, latent=True)
    with pytest.raises(ValueError, match="latent='noise': this model has 'mean', 'log_noise'"):
        fitted.predict(X_NEW, latent="noise")


def test_joint_covariance_of_targets_adds_the_noise_of_each(fitted):
    mean, cov = fitted.predict(X_NEW, return_cov=True)
    assert_allclose(mean, fitted.predict(X_NEW, latent="mean"), rtol=1e-9)
    assert_allclose(np.diag(cov), fitted.predictive(X_NEW).variance, rtol=1e-9)


def test_units_of_the_data(fitted):
    """A log noise has none: scaled targets change the mean and leave it alone."""
    plain = GPRegressor(KERNELS, likelihood=HeteroscedasticGaussian(0.1), optimizer=None).fit(X, Y)
    wider = KERNELS | {"mean": KERNELS["mean"].set_params(variance=1.44e4)}
    scaled = GPRegressor(wider, likelihood=HeteroscedasticGaussian(0.1e4), optimizer=None).fit(X, 100 * Y + 7)
    for name, scale, shift in (("mean", 100.0, 7.0), ("log_noise", 1.0, 0.0)):
        want = scale * plain.predict(X_NEW, latent=name) + shift
        assert_allclose(scaled.predict(X_NEW, latent=name), want, rtol=1e-6, atol=1e-7)


def test_a_kernel_for_each_kind():
    one = GPRegressor(SquaredExponential(1.0, 2.0), **GIVEN).objective(X, Y)
    assert len(one.theta0) == 2 * 2 + 1  # each latent has values of its own, from the same start
    both = GPRegressor("se", likelihood=HeteroscedasticGaussian(), normalize=False).objective(X, Y).model.latents
    variances = [float(latent.kernel.variance) for latent in both]
    assert_allclose(variances, [np.var(Y), 0.25])  # a log noise is less variable than the target
    classes = GPRegressor(KERNELS["mean"], likelihood=Softmax(3), inference=Laplace(), optimizer=None)
    assert len(classes.objective(X, np.digitize(Y, [-0.3, 0.4]).astype(float)).model.latents) == 1  # of one kind


def test_gradients_in_both_priors():
    given = GIVEN | {"mean": {"log_noise": Constant([0.2])}}
    for approximation in ("exact", FITC(inducing_inputs=X[::6])):
        objective = GPRegressor(KERNELS, approximation=approximation, **given).objective(X, Y)
        _, gradient = objective.value_and_gradient(objective.theta0)
        expected = dense.finite_differences(objective, objective.theta0, 1e-5)
        assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_names_that_do_not_fit():
    with pytest.raises(ValueError, match="HeteroscedasticGaussian has no latent function 'noise'; it has 'mean', 'log"):
        GPRegressor({"noise": SquaredExponential()}, likelihood=HeteroscedasticGaussian()).fit(X, Y)
    with pytest.raises(ValueError, match="3 latent functions of Softmax share one kernel"):
        GPClassifier({"class_0": SquaredExponential()}).fit(X, np.digitize(Y, [-0.3, 0.4]))
    with pytest.raises(TypeError, match="dictionary of them by latent function"):
        GPRegressor(3.0).fit(X, Y)


def test_files_and_other_data(fitted, tmp_path):
    fitted.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert set(again.kernel_) == set(again.latents_) == {"mean", "log_noise"}
    assert np.array_equal(again.predict(X_NEW, latent="log_noise"), fitted.predict(X_NEW, latent="log_noise"))
    other = fitted.condition_on(X[:20], Y[:20])
    assert float(other.kernel_["log_noise"].variance) == 0.3
    assert not np.allclose(other.predict(X_NEW), fitted.predict(X_NEW))


def test_effects_plots_and_report(fitted, tmp_path):
    curves = {name: effects.partial_dependence(fitted, X, 0, grid=[0.0, 1.0], latent=name) for name in KERNELS}
    assert curves["mean"].in_target_units
    assert not curves["log_noise"].in_target_units
    default = effects.partial_dependence(fitted, X, 0, grid=[0.0, 1.0])
    assert_allclose(default.curve.mean, curves["mean"].curve.mean)
    assert not np.allclose(default.curve.mean, curves["log_noise"].curve.mean)
    assert plots.plot_partial_dependence(fitted, X, latent="log_noise").get_ylabel() == "average log_noise"
    left, _ = plots.plot_map(fitted, n_grid=5, latent="log_noise")
    assert left.get_title() == "mean"
    errorband.report(fitted, X[:10], Y[:10]).save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Kernel of mean" in text
    assert "of log_noise" in text
