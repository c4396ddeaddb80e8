"""Predictive distributions in the shape of leave-one-out errors."""

import numpy as np
import pytest
from scipy import stats

import errorband
from errorband import GPRegressor
from errorband.estimators.bands import Bands, errors_of_rows_left_out, learned_bands, shaped
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.predictive import GaussianPredictive
from errorband.training import LBFGS


@pytest.fixture(scope="module")
def heavy():
    """A curve with heavy-tailed noise: model, inputs and targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_t(3, size=60)
    return GPRegressor(random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def uneven():
    """A curve whose errors grow along an input, and are larger upwards: model, inputs and targets."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 2))
    error = rng.gamma(1.5, size=300)
    y = np.sin(2 * X[:, 0]) + 0.1 * np.exp(X[:, 1]) * (error - 1.5)
    return GPRegressor(random_state=0).fit(X, y), X, y


def found_in(z):
    return shaped(z).bands


def test_normal_errors_leave_normal_bands_almost_alone():
    found = found_in(stats.norm.ppf((np.arange(400) + 0.5) / 400))
    assert found.df > 30
    assert found.width == pytest.approx(1.0, abs=0.03)


def test_errors_twice_as_large_make_bands_twice_as_wide():
    found = found_in(2 * stats.norm.ppf((np.arange(400) + 0.5) / 400))
    assert found.width == pytest.approx(2.0, abs=0.1)  # ten prior rows of size one hold back a little


def test_students_errors_are_recognised():
    found = found_in(stats.t.ppf((np.arange(1000) + 0.5) / 1000, 4))
    assert found.df == pytest.approx(4, abs=1)
    assert found.width == pytest.approx(stats.t.ppf(0.975, 4) / 1.96, abs=0.08)


def test_bands_hold_what_was_left_out_where_no_student_distribution_fits():
    """Nine tenths small and one tenth of one large size: the ends of the bands are there, if enough rows say so."""

    def end(n):
        return 1.96 * found_in(np.r_[np.linspace(-0.5, 0.5, 18 * n), np.full(n, -3.0), np.full(n, 3.0)]).width

    assert end(500) == pytest.approx(3.0, rel=0.02)
    assert end(5) < end(50) < end(500)


def test_few_rows_are_not_followed():
    assert found_in(np.full(3, 0.01)).stretch > 0.8


def test_hyperparameters_are_those_of_the_other_rows():
    """The errors are those of fits without each row: closer than errors at the hyperparameters of all rows."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (24, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=24)
    model = GPRegressor(SquaredExponential([1.0, 1.0], 1.0), calibrate=False, normalize=False).fit(X, y)
    objective, theta = model.objective(X, y), model.fit_result_.theta
    plain = errors_of_rows_left_out(objective, theta, np.eye(len(theta))[:0])[0][:, 0]
    moved = errors_of_rows_left_out(objective, theta, np.eye(len(theta)))[0][:, 0]
    truth = []
    for i in range(24):
        others = np.arange(24) != i
        start = GPRegressor(model.kernel_, likelihood=model.likelihood_, calibrate=False, normalize=False)
        mean, std = start.fit(X[others], y[others]).predict(X[i : i + 1], return_std=True)
        truth.append((y[i] - mean[0]) / std[0])
    assert np.allclose(plain, model.loo().z_score)
    assert np.std(moved - truth) < 0.6 * np.std(plain - truth)
    assert np.mean(moved**2) > np.mean(plain**2)


def test_known_noise_that_is_too_large_does_not_narrow_the_bands_of_other_rows(heavy):
    """As of rows with cells that were filled in: their errors say as much of what is known of them."""
    _, X, y = heavy
    known = np.where(np.arange(60) < 30, 0.0, 4.0)  # in truth all rows have the same
    settings = {"likelihood": errorband.likelihoods.Gaussian(0.04), "optimizer": LBFGS(max_iter=1)}
    model = GPRegressor(SquaredExponential(1.0, 1.0), **settings).fit(X, y, noise_variance=known)
    error = np.abs(model.loo().z_score)
    assert np.std(error[30:]) < 0.3  # for all rows together bands would be narrower than those of the model
    assert model.bands_.width > 1


def test_predictions_have_the_shape_that_was_learned(heavy):
    model, X, y = heavy
    bands = model.bands_
    assert bands.df < 10
    own = GPRegressor(random_state=0, calibrate=False).fit(X, y)
    assert not hasattr(own, "bands_")
    mean, std = model.predict(X, return_std=True)
    own_mean, own_std = own.predict(X, return_std=True)
    assert np.array_equal(mean, own_mean)
    assert np.allclose(std, bands.stretch * own_std * np.sqrt(bands.df / (bands.df - 2)))
    assert np.allclose(model.predict_quantiles(X, 0.9), stats.t.ppf(0.9, bands.df, mean, bands.stretch * own_std))
    assert np.allclose(model.predictive(X).log_density(y), stats.t.logpdf(y, bands.df, mean, bands.stretch * own_std))
    assert model.loo().log_density.mean() > own.loo().log_density.mean() + 0.03
    latent = (m.predict(X, return_std=True, latent=True)[1] for m in (model, own))
    assert np.array_equal(*latent)


@pytest.mark.parametrize("bands", [Bands(0.8, 5.0), Bands(1.2, 6.0, 1.5), Bands(1.0, np.inf, 0.7)])
def test_draws_have_the_covariance_that_is_said(bands):
    normal = np.array([[1.0, 0.6], [0.6, 2.0]])
    rng, X, nothing = np.random.default_rng(0), np.zeros((2, 1)), np.zeros(2)
    normal_errors = rng.multivariate_normal([0, 0], normal, size=200_000)
    errors = bands.draws(normal_errors, np.sqrt(np.diagonal(normal)), X, nothing, rng)
    assert np.allclose(np.cov(errors.T), bands.covariance(normal, X, nothing), rtol=0.03)
    assert np.allclose(errors.mean(axis=0), 0, atol=0.02)


def test_joint_predictions_and_draws_have_the_same_spread(heavy, uneven):
    for model, X, _ in (heavy, uneven):
        X = np.vstack([X[:1], X[:1] + 0.05])
        std, cov = model.predict(X, return_std=True)[1], model.predict(X, return_cov=True)[1]
        assert np.allclose(np.diagonal(cov), std**2)
        draws = model.sample_posterior(X, 20_000, random_state=0, latent=False)
        assert np.allclose(np.quantile(draws, 0.9, axis=0), model.predict_quantiles(X, 0.9), atol=0.06 * std.max())


def test_bands_are_wide_where_errors_are_and_longer_upwards(uneven):
    model, X, y = uneven
    bands = model.bands_
    assert bands.skew > 1.1
    assert bands.spread.usual[1] > 2 * bands.spread.usual[0]
    std = model.predict([[0.0, -1.5], [0.0, 1.5]], return_std=True)[1]
    assert 8 < std[1] / std[0] < 40  # exp(3) is 20
    rng = np.random.default_rng(2)
    X_new = rng.uniform(-2, 2, (2000, 2))
    y_new = np.sin(2 * X_new[:, 0]) + 0.1 * np.exp(X_new[:, 1]) * (rng.gamma(1.5, size=2000) - 1.5)
    lower, upper = model.predict_interval(X_new)
    for part in (X_new[:, 1] < -1, X_new[:, 1] > 1):  # bands of one width hold all of the first and too few of the last
        assert 0.90 < np.mean((lower <= y_new) & (y_new <= upper), where=part) < 0.99
    plain = GPRegressor(random_state=0, calibrate=False).fit(X, y)
    assert np.array_equal(model.predict(X_new), plain.predict(X_new))
    gain = model.predictive(X_new).log_density(y_new) - plain.predictive(X_new).log_density(y_new)
    assert gain.mean() > 0.5


def test_errors_that_are_alike_have_no_spread():
    rng = np.random.default_rng(0)
    found = [shaped(rng.normal(size=200), rng.normal(size=(200, 5)), rng.normal(size=200)).bands for _ in range(20)]
    assert sum(bands.spread is not None for bands in found) <= 1
    assert sum(bands.skew != 1 for bands in found) <= 2


def test_a_spread_says_nothing_new_beyond_the_data(uneven):
    model, _, _ = uneven
    far, edge = np.array([[0.0, 50.0]]), np.array([[0.0, 5.0]])  # more than three standard deviations out
    spread, X = model.bands_.spread, model.scaling_.inputs
    assert np.array_equal(spread(X(far), np.zeros(1)), spread(X(edge), np.zeros(1)))


def test_constant_columns_and_many_columns_have_a_spread_all_the_same():
    rng = np.random.default_rng(0)
    X, mean = np.column_stack([rng.normal(size=(150, 200)), np.ones(150)]), rng.normal(size=150)
    z = np.exp(mean) * rng.normal(size=150)
    for inputs in (X, X[:, -2:]):
        bands = shaped(z, inputs, mean).bands
        assert np.all(np.isfinite(bands.factors(inputs, mean)))
        assert np.corrcoef(np.log(bands.factors(inputs, mean)), mean)[0, 1] > 0.9
    assert shaped(np.zeros(30), X[:30], mean[:30]).bands.spread is None


@pytest.mark.parametrize("which", ["heavy", "uneven"])
def test_bands_survive_files_and_other_data(which, request, tmp_path):
    model, X, y = request.getfixturevalue(which)
    model.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert again.bands_ == model.bands_
    assert np.array_equal(again.predict_quantiles(X, [0.1, 0.9]), model.predict_quantiles(X, [0.1, 0.9]))
    assert model.condition_on(X[:30], y[:30]).bands_ == model.bands_
    model = GPRegressor(random_state=0).fit(X, y)
    assert not hasattr(model.set_params(calibrate=False).fit(X, y), "bands_")


def test_what_is_not_learned_has_no_bands(heavy):
    _, X, y = heavy
    for model in (
        GPRegressor(optimizer=None),
        GPRegressor("se", approximation="fitc(10)", optimizer=LBFGS(max_iter=2), random_state=0),
    ):
        assert not hasattr(model.fit(X, y), "bands_")
    with pytest.warns(UserWarning, match="Two rows say"):
        assert not hasattr(GPRegressor().fit(X[:2], y[:2]), "bands_")


def test_bands_of_few_rows_hold_what_they_should():
    """Twenty rows, four hyperparameters or more: the spread of the hyperparameters is in the bands."""
    inside, density = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (220, 3))
        y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=220)
        predictive = GPRegressor(random_state=0).fit(X[:20], y[:20]).predictive(X[20:])
        lower, upper = predictive.interval(0.95)
        inside.append(np.mean((lower <= y[20:]) & (y[20:] <= upper)))
        density.append(np.mean(predictive.log_density(y[20:])))
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(density) > -0.45  # of the true model: -0.22


def test_degrees_of_freedom_of_few_errors_are_few():
    z = stats.norm.ppf((np.arange(20) + 0.5) / 20)
    assert shaped(z, freedom=16).bands.df <= 16
    assert shaped(z, freedom=-3).bands.df == 2.5  # more numbers than rows
    assert shaped(z).bands.df > 16


def test_bands_of_transformed_targets_are_positive(heavy):
    _, X, y = heavy
    model = GPRegressor(random_state=0, target_transform="log").fit(X, np.exp(y))
    lower, upper = model.predict_interval(X)
    assert model.bands_.df < 10
    assert np.all((lower > 0) & (lower < upper) & np.isfinite(upper))


def test_nonsense_is_refused():
    for stretch, df in ((0.0, 5.0), (1.0, 2.0), (np.nan, 5.0)):
        with pytest.raises(ValueError, match="positive"):
            Bands(stretch, df)
    with pytest.raises(ValueError, match="skew"):
        Bands(1.0, 5.0, -1.0)
    assert isinstance(Bands(2.0).reshaped(GaussianPredictive([0.0], [1.0]), np.zeros((1, 1))), GaussianPredictive)


def test_errors_are_not_told_by_themselves_where_nothing_is_predicted():
    """A mean without a target is the lower the higher the target is: errors would depend on it, and bands be absurd."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.exponential(size=300)
    nothing = GPRegressor(SquaredExponential(30.0, 1e-6), likelihood=Gaussian(float(np.var(y))))
    objective = nothing.objective(X, y)
    (found,) = learned_bands(objective, objective.theta0, None)
    assert found.spread is None
    truth = np.ptp(stats.expon.ppf([0.025, 0.975])) / np.ptp(stats.norm.ppf([0.025, 0.975]))
    assert found.width == pytest.approx(truth, abs=0.1)
