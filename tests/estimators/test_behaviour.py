"""What users do and what goes wrong: frames, pipelines, odd data, messages."""

import copy
import pickle
import warnings

import jax
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from errorband import LBFGS, GPClassifier, GPRegressor, Parameter, means
from errorband.approximations import FITC
from errorband.kernels import Constant, Linear, Matern, SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Poisson, Softmax, StudentT
from errorband.predictive import GaussianPredictive
from errorband.rows import padded_size


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)


@pytest.fixture(scope="module")
def fitted(data):
    return GPRegressor().fit(*data)


# --------------------------------------------------------------------------------------------------- scikit-learn
def test_pipeline_grid_search_and_clone(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), PolynomialFeatures(1, include_bias=False), GPRegressor())
    assert cross_val_score(pipe, X, y, cv=2).min() > 0.5
    grid = {"kernel": [SquaredExponential(), Linear() + Constant()], "normalize": [True, False]}
    search = GridSearchCV(GPRegressor(calibrate=False), grid, cv=2).fit(X, y)
    assert isinstance(search.best_params_["kernel"], SquaredExponential)
    original = GPRegressor(Matern(2.0, nu=2.5), n_restarts=3)
    assert repr(clone(original)) == repr(original)


PROGRAMS = "_small_covariance", "_pull_small"


def test_folds_of_unequal_size_compile_once(caplog):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(103, 3)), rng.normal(size=103)
    sizes = {len(train) for train, _ in KFold(5).split(X)}
    assert len(sizes) > 1
    assert len({padded_size(size) for size in sizes}) == 1
    model = GPRegressor(optimizer=LBFGS(max_iter=2), calibrate=False)
    with jax.log_compiles():
        cross_val_score(model, X, y, cv=5, error_score="raise")
    told = [record.getMessage() for record in caplog.records]
    compiled = {name: sum(f"Compiling jit({name})" in t for t in told) for name in PROGRAMS}
    assert compiled == dict.fromkeys(PROGRAMS, 1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_keep_and_check_feature_names(frame, data):
    X, y = data
    table = frame({"depth": X[:, 0], "age": X[:, 1]})
    kernel = SquaredExponential(active_dims=["depth"]) + Linear(active_dims="age")
    model = GPRegressor(kernel, optimizer=None).fit(table, y)
    assert list(model.feature_names_in_) == ["depth", "age"]
    kernel = SquaredExponential(active_dims=[0]) + Linear(active_dims=1)
    assert_allclose(model.predict(table), GPRegressor(kernel, optimizer=None).fit(X, y).predict(X), rtol=1e-10)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"age": X[:, 1], "depth": X[:, 0]}))
    with pytest.raises(ValueError, match="'height'; X has 'depth', 'age'"):
        GPRegressor(SquaredExponential(active_dims=["height"])).fit(table, y)
    with pytest.raises(ValueError, match="no column names"):
        GPRegressor(SquaredExponential(active_dims=["depth"])).fit(X, y)


def test_set_output_of_a_transformer_before_it(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), GPRegressor()).set_output(transform="pandas")
    pipe.fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert list(pipe[-1].feature_names_in_) == ["a", "b"]


def test_same_seed_same_result(data):
    X, y = data
    one, two = (GPRegressor(n_restarts=2, random_state=5).fit(X, y) for _ in range(2))
    assert np.array_equal(one.predict(X), two.predict(X))
    assert one.fit_result_.starts == two.fit_result_.starts


# ------------------------------------------------------------------------------------------------------ predictions
def test_ways_to_ask_agree(fitted, data):
    X = data[0][:7]
    mean, std = fitted.predict(X, return_std=True)
    _, cov = fitted.predict(X, return_cov=True)
    predictive = fitted.predictive(X)
    assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-6)
    assert_allclose(fitted.predict(X), mean)
    lower, upper = fitted.predict_interval(X, 0.8)
    assert_allclose(fitted.predict_quantiles(X, [0.1, 0.9]), np.column_stack([lower, upper]))
    assert_allclose(predictive.cdf(upper), 0.9)
    assert_allclose(fitted.predict_quantiles(X, 0.5), mean)
    latent = fitted.predict(X, return_std=True, latent=True)[1]
    noise = float(fitted.likelihood_.noise_variance)
    own = GaussianPredictive((mean - fitted.scaling_.y_shift) / fitted.scaling_.y_scale, np.sqrt(latent**2 + noise))
    assert_allclose(std, fitted.bands_.reshaped(own, fitted.scaling_.inputs(X)).std)
    with pytest.raises(ValueError, match="not both"):
        fitted.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fitted.predict_interval(X, 95)


def test_prediction_in_chunks_equals_prediction_at_once(fitted, monkeypatch):
    X = np.random.default_rng(1).uniform(-3, 3, (1000, 2))
    whole = fitted.predict(X, return_std=True)
    monkeypatch.setattr("errorband.rows.MEMORY_BUDGET", 40_000)
    chunked = fitted.predict(X, return_std=True)
    assert_allclose(chunked, whole, rtol=1e-12, atol=1e-13)  # a mean near zero is a sum of terms of order one


def test_draws_have_the_moments_they_should(fitted):
    X = np.array([[0.0, 0.0], [0.1, 0.0], [3.0, 3.0]])
    mean, cov = fitted.predict(X, return_cov=True, latent=True)
    draws = fitted.sample_posterior(X, 20_000, random_state=0)
    assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    assert_allclose(np.cov(draws.T), cov, atol=0.02)
    noisy = fitted.sample_posterior(X, 20_000, random_state=0, latent=False)
    assert_allclose(noisy.var(axis=0), fitted.predict(X, return_std=True)[1] ** 2, rtol=0.05)
    prior = fitted.sample_prior(X, 20_000, random_state=1)
    assert_allclose(np.cov(prior.T), fitted.kernel_(X), rtol=0.05, atol=0.05)
    assert np.array_equal(fitted.sample_prior(X, 2, 7), fitted.sample_prior(X, 2, 7))


def test_too_large_a_joint_covariance_is_refused(fitted, monkeypatch):
    from errorband.estimators import drawing

    monkeypatch.setattr(drawing, "MAX_JOINT_ROWS", 10)
    with pytest.raises(ValueError, match="Use return_std"):
        fitted.predict(np.zeros((11, 2)), return_cov=True)


def test_the_joint_covariance_is_of_additive_noise(data, monkeypatch):
    from errorband.estimators import predicting_numbers

    X, _ = data
    counts = GPRegressor(likelihood=Poisson(), optimizer=None).fit(X, np.arange(len(X)) % 4)
    assert counts.predict(X[:3], return_cov=True, latent=True)[1].shape == (3, 3)
    monkeypatch.setattr(predicting_numbers, "joint", lambda *_: pytest.fail("computed before it is refused"))
    with pytest.raises(ValueError, match=r"additive noise, not for Poisson; ask with latent=True"):
        counts.predict(X[:3], return_cov=True)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        GPRegressor().predict([[0.0]])


# --------------------------------------------------------------------------------------------------------- odd data
def test_nan_and_infinity_are_refused(data):
    X, y = data
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            GPRegressor().fit(broken, y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            GPRegressor().fit(X, np.where(np.arange(40) == 2, bad, y))


def test_wrong_shapes(data, fitted):
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GPRegressor().fit(X, y[:-1])
    with pytest.raises(ValueError, match="Reshape your data"):
        GPRegressor().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="y has 2 columns"):
        GPRegressor(approximation=FITC(5)).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="expecting 2 features"):
        fitted.predict(X[:, :1])


def test_text_columns_name_what_to_do(data):
    _, y = data
    for dtype in ("str", object):  # what pandas 3 and pandas 2 make of words
        words = pd.Series(["red", "blue"] * 20, dtype=dtype)
        with pytest.raises(ValueError, match=r"'colour'.*encode"):
            GPRegressor().fit(pd.DataFrame({"a": np.arange(40.0), "colour": words}), y)


def test_constant_column_and_constant_target(data):
    X, y = data
    with_constant = np.column_stack([X, np.full(40, 7.0)])
    without = GPRegressor().fit(X, y).predict(X)
    assert_allclose(GPRegressor().fit(with_constant, y).predict(with_constant), without, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"kernel": "auto", "likelihood": "auto"}])
@pytest.mark.parametrize("size", [-0.1, 3.5, 0.0])
def test_constant_targets_have_bands_of_their_size(data, size, options):
    """Nobody knows how far others may lie from them: not by nothing."""
    X, _ = data
    with pytest.warns(UserWarning, match=f"All 40 targets are {size:g}, which says nothing of how far"):
        model = GPRegressor(**options).fit(X, np.full(40, size))
    mean, std = model.predict(X, return_std=True)
    unit = abs(size) or 1.0
    assert np.all(np.abs(mean - size) < std)
    assert np.all((std > 0.05 * unit) & (std < 0.5 * unit))
    assert model.fit_result_ is None


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X, y = np.arange(n, dtype=float)[:, None], np.array([3.0, 4.0, 3.5])[:n]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = GPRegressor().fit(X, y)
    assert (n < 3) == any("nothing of how far" in str(w.message) for w in told)
    if n < 3:
        assert np.all(model.predict([[0.0], [100.0]], return_std=True)[1] > 0.1)
    mean, std = model.predict([[0.0], [100.0]], return_std=True)
    assert np.all(np.isfinite(mean))
    assert std[1] > 0
    assert abs(mean[0] - 3.5) < 1


def test_duplicate_rows_without_noise_are_passed_through(data):
    """Without noise their covariance is singular; what stands for rounding errors is enough to factorise it."""
    X, y = data
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    silent = GPRegressor(likelihood=Gaussian(Parameter(1e-18, fixed=True)), optimizer=None).fit(X, y)
    assert silent.jitter_ == 0.0
    assert_allclose(silent.predict(X), y, atol=1e-8)
    assert GPRegressor().fit(X, y).jitter_ == 0.0


def test_contradicting_duplicates_are_noise():
    X, y = np.zeros((20, 1)), np.tile([-1.0, 1.0], 10)
    mean, std = GPRegressor().fit(X, y).predict([[0.0]], return_std=True)
    assert abs(mean[0]) < 1e-6
    assert std[0] > 0.8


def test_too_large_numbers_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="rescale it"):
        GPRegressor().fit(X, y * 1e150)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": "cubic"}, "choose one of 'zero', 'constant', 'linear'"),
        ({"approximation": "magic"}, "choose from auto, exact, subset-of-data"),
        ({"inference": "magic"}, "choose from auto, conjugate, laplace"),
        ({"optimizer": "adam"}, "choose 'lbfgs'"),
        ({"kernel": SquaredExponential(-1.0)}, "lengthscale=-1.*must be greater than 0"),
        ({"kernel": SquaredExponential([1.0, 2.0, 3.0])}, "3 entries for 2 inputs"),
        ({"kernel": SquaredExponential(active_dims=[5])}, "asks for input 5, but X has 2 columns"),
        ({"n_restarts": -1}, "n_restarts"),
    ],
)
def test_bad_options_say_what_to_choose(options, message, data):
    with pytest.raises(ValueError, match=message):
        GPRegressor(**options).fit(*data)


def test_wrong_types_are_named(data):
    with pytest.raises(TypeError, match=r"kernel must be an errorband kernel, .*matern52.* or None; got int"):
        GPRegressor(kernel=3).fit(*data)
    with pytest.raises(TypeError, match=r"likelihood must be an errorband likelihood .*student-t.*; got int"):
        GPRegressor(likelihood=3).fit(*data)
    with pytest.raises(TypeError, match=r"approximation must be one of .*subset-of-data.*; got 200"):
        GPRegressor(approximation=200).fit(*data)
    with pytest.raises(TypeError, match=r"inference must be .*laplace.*; got None"):
        GPRegressor(inference=None).fit(*data)


# ------------------------------------------------------------------------------------------------------- the search
def test_not_converged_is_said(data):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = GPRegressor(SquaredExponential(50.0, 1.0), optimizer=LBFGS(max_iter=1)).fit(*data)
    assert not model.fit_result_.converged
    assert "max_iter" in model.fit_result_.message


def test_optimizer_none_keeps_the_values(data):
    kernel = SquaredExponential([0.5, 2.0], 1.5)
    model = GPRegressor(kernel, likelihood=Gaussian(0.2), optimizer=None).fit(*data)
    assert_allclose(model.kernel_.lengthscale, [0.5, 2.0])
    assert model.likelihood_.noise_variance == pytest.approx(0.2)
    assert model.fit_result_ is None


def test_restarts_escape_a_bad_start(data):
    X, y = data
    bad = SquaredExponential([50.0, 50.0], 1e-3)
    stuck = GPRegressor(bad, likelihood=Gaussian(5.0)).fit(X, y)
    freed = GPRegressor(bad, likelihood=Gaussian(5.0), n_restarts=5, random_state=0).fit(X, y)
    assert freed.log_evidence_ >= stuck.log_evidence_ - 1e-6
    assert len(freed.fit_result_.starts) >= 6  # more if the result is doubted


# ---------------------------------------------------------------------------------------------------------- copies
def test_pickle_joblib_deepcopy(fitted, data, tmp_path):
    X = data[0]
    joblib.dump(fitted, tmp_path / "model.joblib")
    for twin in (
        pickle.loads(pickle.dumps(fitted)),
        copy.deepcopy(fitted),
        joblib.load(tmp_path / "model.joblib"),
    ):
        assert np.array_equal(twin.predict(X, return_std=True), fitted.predict(X, return_std=True))


def test_the_users_jax_settings_are_left_alone(data):
    import jax

    before = jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir
    GPRegressor(optimizer=None).fit(*data)
    assert (jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir) == before
    assert jax.numpy.ones(2).dtype == np.float32


@pytest.mark.parametrize("approximation", ["exact", FITC(5, optimize_inputs=False)])
def test_nothing_to_search_for(approximation):
    X = np.linspace(-3, 3, 20)[:, None]
    kernel = SquaredExponential(Parameter(1.0, fixed=True), Parameter(1.0, fixed=True))
    likelihood = Gaussian(Parameter(0.1, fixed=True))
    settings = {"likelihood": likelihood, "approximation": approximation, "random_state": 0}
    model = GPRegressor(kernel, **settings).fit(X, np.sin(X[:, 0]))
    assert model.fit_result_.converged
    kept = GPRegressor(kernel, optimizer=None, **settings).fit(X, np.sin(X[:, 0]))
    assert model.log_evidence_ == kept.log_evidence_


def test_values_left_out_start_inside_their_bounds():
    X = np.linspace(-3, 3, 20)[:, None]
    likelihood = StudentT(df=Parameter(bounds=(5, 30)))
    model = GPRegressor(likelihood=likelihood, optimizer=None, inference="laplace").fit(X, np.sin(X[:, 0]))
    assert 5 < model.likelihood_.df < 30


def test_a_marginalised_mean_of_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr("errorband.estimators.base.EXACT_ROWS", 10)
    monkeypatch.setattr("errorband.estimators.spec.EXACT_ROWS_MARGINAL", 15)
    X = np.linspace(-3, 3, 20)[:, None]
    with pytest.raises(ValueError, match="marginalize=False"):
        GPRegressor(mean=means.Constant(marginalize=True)).fit(X, X[:, 0])


def test_automatic_limits_count_latents():
    classifier = GPClassifier()
    assert classifier._exact_limit(Bernoulli()) == 2000
    assert classifier._exact_limit(Softmax(8)) == 1000  # 8 of size N
    assert GPClassifier(inference="ep")._exact_limit(Softmax(8)) == 250  # one of size 8N
    assert GPRegressor()._exact_limit(HeteroscedasticGaussian()) == 1000
    assert GPRegressor()._exact_limit(Gaussian()) == 5000
