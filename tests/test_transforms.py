"""Transforms of targets: each is increasing and undone exactly, and predictions are distributions of the targets."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import errorband
from errorband import LBFGS, GPRegressor
from errorband.approximations import FITC, PITC, VFE
from errorband.estimators.spec import TRANSFORM_NAMES
from errorband.likelihoods import StudentT
from errorband.predictive import GaussianPredictive, RescaledPredictive
from errorband.training import FullBayes
from errorband.training.warp import Warped
from errorband.transforms import TRANSFORMS, BoxCox, Log, Logit, TransformedPredictive, Warp, YeoJohnson

POSITIVE = np.geomspace(1e-3, 50.0, 23)
EXAMPLES = {
    "Log": [(Log(), POSITIVE), (Log(1.0), np.append(0.0, POSITIVE))],
    "Logit": [(Logit(), np.linspace(0.01, 0.99, 23)), (Logit(-5.0, 20.0), np.linspace(-4.9, 19.9, 23))],
    "BoxCox": [(BoxCox(p), POSITIVE) for p in (-0.5, 0.0, 0.3, 2.0)],
    "YeoJohnson": [(YeoJohnson(p), np.linspace(-20, 20, 23)) for p in (-0.5, 0.0, 0.7, 2.0, 2.5)],
    "Warp": [
        (Warp(steps=[(2.0, 1.0, 0.0)]), np.linspace(-9, 9, 23)),
        (Warp(steps=[(9.9, 4.9, -1.0), (0.5, 2.0, 3.0)], centre=5.0, scale=3.0), np.linspace(-20, 20, 23)),
    ],
}
CASES = [pytest.param(*case, id=repr(case[0])) for name in TRANSFORMS for case in EXAMPLES[name]]


@pytest.mark.parametrize(("transform", "y"), CASES)
def test_it_is_increasing_undone_and_has_the_slope_it_says(transform, y):
    z = transform.forward(y)
    assert np.all(np.diff(z) > 0)
    assert_allclose(transform.inverse(z), y, rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.maximum(np.abs(y), 1e-3)
    inner = transform.contains(y - step) & transform.contains(y + step)
    slope = (transform.forward(y[inner] + step[inner]) - transform.forward(y[inner] - step[inner])) / (2 * step[inner])
    assert_allclose(np.exp(transform.log_slope(y[inner])), slope, rtol=1e-5)
    transform.check(y)
    assert TRANSFORM_NAMES(f"{type(transform).__name__}()") is not None


@pytest.mark.parametrize(("transform", "y"), CASES)
def test_density_and_cdf_belong_together(transform, y):
    """The density integrates to the cdf, and quantiles undo it."""
    middle = y[11]
    spread = 0.1 * max(abs(middle), 0.2) * np.exp(transform.log_slope(middle))
    made = TransformedPredictive(GaussianPredictive([float(transform.forward(y)[11])], [spread]), transform)
    low, high = (float(made.quantile(q)[0]) for q in (0.2, 0.8))
    mass = integrate.quad(lambda t: np.exp(made.log_density(t)[0]), low, high)[0]
    assert mass == pytest.approx(0.6, abs=1e-7)
    assert_allclose(made.cdf(made.quantile(0.3)), 0.3, atol=1e-12)
    draws = made.sample(20_000, 0)
    assert_allclose(made.mean, draws.mean(axis=0), atol=5 * float(made.std[0]) / np.sqrt(20_000))
    assert_allclose(made.std, draws.std(axis=0), rtol=0.1)


def test_moments_of_the_log_normal():
    made = TransformedPredictive(GaussianPredictive([1.0, -2.0], [0.5, 1.5]), Log())
    mean = np.exp([1.0 + 0.125, -2.0 + 1.125])
    assert_allclose(made.mean, mean, rtol=1e-10)
    assert_allclose(made.variance, mean**2 * np.expm1([0.25, 2.25]), rtol=1e-8)


def test_outside_the_domain_there_is_no_probability():
    share = TransformedPredictive(GaussianPredictive([0.0, 0.0], [1.0, 1.0]), Logit())
    assert_allclose(share.cdf([-0.1, 1.2]), [0.0, 1.0])
    assert_allclose(share.log_density([0.0, 1.0]), [-np.inf, -np.inf])


def test_other_distributions_are_integrated_over_their_quantiles():
    base = RescaledPredictive(GaussianPredictive([1.0], [0.5]), 1.0, 0.0)
    made = TransformedPredictive(base, Log())
    assert_allclose(made.mean, np.exp(1.125), rtol=1e-5)


def test_powers_are_found():
    y = np.random.default_rng(0).gamma(2.0, 3.0, 500)
    assert BoxCox().fitted(y).power == pytest.approx(stats.boxcox_normmax(y, method="mle"), abs=2e-3)
    assert YeoJohnson().fitted(y - 4).power == pytest.approx(stats.yeojohnson_normmax(y - 4), abs=2e-3)
    assert BoxCox(0.5).fitted(y) == BoxCox(0.5)
    assert BoxCox().fitted(np.ones(5)).power == 1.0


@pytest.fixture(scope="module")
def sales():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, (60, 1)), axis=0)
    return X, np.exp(1.5 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=60))


@pytest.fixture(scope="module")
def fitted(sales):
    return GPRegressor(target_transform="log").fit(*sales)


def test_the_same_model_as_by_hand(sales, fitted, tmp_path):
    X, y = sales
    by_hand = GPRegressor().fit(X, np.log(y))
    q = [0.025, 0.5, 0.975]
    assert_allclose(fitted.predict_quantiles(X, q), np.exp(by_hand.predict_quantiles(X, q)), rtol=1e-8)
    normal = GPRegressor(target_transform="log", calibrate=False).fit(X, y)
    mean, std = GPRegressor(calibrate=False).fit(X, np.log(y)).predict(X, return_std=True)
    assert_allclose(normal.predict(X), np.exp(mean + std**2 / 2), rtol=1e-8)
    assert fitted.log_evidence_ == pytest.approx(by_hand.log_evidence_ - np.log(y).sum())
    assert_allclose(fitted.predict(X, return_std=True)[0], fitted.predict(X), rtol=1e-12)
    assert_allclose(fitted.loo().log_density, by_hand.loo().log_density - np.log(y), rtol=1e-7)
    assert_allclose(fitted.training_data()[1], y)
    assert_allclose(fitted.sample_posterior(X, 2, 0), np.exp(by_hand.sample_posterior(X, 2, 0)), rtol=1e-6)
    assert_allclose(fitted.condition_on(X[::2], y[::2]).predict(X[::2]), fitted.predict(X[::2]), rtol=0.3)
    fitted.save(tmp_path / "m.eb")
    assert_allclose(errorband.load(tmp_path / "m.eb").predict_interval(X), fitted.predict_interval(X))


def test_bands_are_positive_and_the_evidence_prefers_the_logarithm(sales, fitted):
    X, y = sales
    plain = GPRegressor().fit(X, y)
    assert fitted.log_evidence_ > plain.log_evidence_ + 20
    assert fitted.predict_interval(X, 0.999)[0].min() > 0
    assert plain.predict_interval(X, 0.999)[0].min() < 0


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        ({"target_transform": "boxcocks"}, {}, ValueError, "closest: 'box-cox'.*choose from log, logit, box-cox, yeo"),
        ({"target_transform": 3}, {}, TypeError, "the name of one"),
        ({"target_transform": "warp(n_steps=0)"}, {}, ValueError, "n_steps"),
        ({"target_transform": "warp", "normalize": False}, {}, ValueError, "learned by a search with Gaussian noise"),
        ({"target_transform": "warp", "likelihood": "student-t"}, {}, ValueError, "learned by a search"),
        ({"target_transform": "warp", "optimizer": None}, {}, ValueError, "learned by a search"),
        ({"target_transform": "warp", "inference": "laplace"}, {}, ValueError, "learned by a search"),
        ({"target_transform": "warp", "optimizer": FullBayes()}, {}, ValueError, "learned by a search"),
        ({"target_transform": "logit"}, {}, ValueError, "between 0 and 1; .* are not, the first"),
        ({"target_transform": "log", "likelihood": "poisson"}, {}, ValueError, "Poisson is for targets as they are"),
        ({"target_transform": "log"}, {"noise_variance": np.ones(60)}, ValueError, "units of the targets"),
    ],
)
def test_what_makes_no_sense_is_refused(sales, options, arguments, error, message):
    with pytest.raises(error, match=message):
        GPRegressor(**options).fit(*sales, **arguments)


def test_several_targets_share_no_learned_transform(sales):
    X, y = sales
    with pytest.raises(ValueError, match="'warp' is learned for one"):
        GPRegressor(target_transform="warp").fit(X, np.column_stack([y, y]))


def test_a_power_is_not_learned_by_sites(sales):
    """Which have no derivatives in the targets: it stays the one that makes them most like a normal distribution."""
    options = {"target_transform": "box-cox", "optimizer": LBFGS(max_iter=3)}
    model = GPRegressor("se", inference="laplace", **options).fit(*sales)
    assert model.scaling_.transform == BoxCox().fitted(sales[1])


def test_joint_covariance_from_draws(sales, fitted):
    X = sales[0][::6]
    mean, cov = fitted.predict(X, return_cov=True)
    alone, std = fitted.predict(X, return_std=True)
    assert_allclose(mean, alone, atol=6 * std.max() / np.sqrt(2000))
    assert_allclose(np.sqrt(np.diag(cov)), std, rtol=0.2)
    near = fitted.predict(X[0] + np.array([[0.0], [0.01]]), return_cov=True, latent=True)[1]
    assert near[0, 1] / near[0, 0] > 0.9


def test_bounds_in_the_wrong_order():
    with pytest.raises(ValueError, match="lower bound must be below"):
        Logit(1, 0)


def test_with_heavy_tails(sales):
    X, y = sales[0][:32], sales[1][:32]
    rule = {"inference": "laplace", "optimizer": None}
    model = GPRegressor(likelihood=StudentT(df=4.0, scale=0.3), target_transform=Log(), **rule).fit(X, y)
    (low, high), mean = model.predict_interval(X[:4]), model.predict(X[:4])
    assert np.all((low > 0) & (low < mean) & (mean < high))


def test_steps_beyond_the_most_are_refused():
    with pytest.raises(ValueError, match="give \\(a, b, c\\) of each step"):
        Warp(steps=[(2.0, 8.0, 0.0)])
    with pytest.raises(ValueError, match="give \\(a, b, c\\) of each step"):
        Warp(steps=[(2.0, 1.0)])


def test_infinite_quantiles_stay_infinite():
    assert_allclose(Warp(steps=[(2.0, 1.0, 0.0)]).inverse(np.array([-np.inf, np.inf])), [-np.inf, np.inf])


@pytest.fixture(scope="module")
def cubes():
    """Targets of which the third power is a function with equal noise, after Snelson et al. (2004)."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-np.pi, np.pi, (60, 1)), axis=0)
    return X, np.cbrt(5 * (np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)))


@pytest.mark.parametrize(
    "approximation",
    [
        "exact",
        VFE(inducing_inputs=np.linspace(-3, 3, 7)[:, None]),
        FITC(inducing_inputs=np.linspace(-3, 3, 7)[:, None]),
        PITC(inducing_inputs=np.linspace(-3, 3, 7)[:, None], block_size=20),
    ],
    ids=["exact", "VFE", "FITC", "PITC"],
)
def test_derivatives_in_targets_and_in_the_numbers_of_a_transform(cubes, approximation):
    X, y = cubes
    model = GPRegressor(target_transform=Warp(2), approximation=approximation, random_state=0)
    objective, scaling = model.objective(X, y), model._training(X, y, None, None)[2]
    weights = np.linspace(0.5, 2.0, len(y))
    whole = Warped(
        objective=objective,
        theta=objective.theta0,
        transform=scaling.transform,
        scaled=functools.partial(scaling.with_transform, y=y, weights=weights),
        y=y,
    )
    rng = np.random.default_rng(1)
    at = whole.theta0 + 0.1 * rng.normal(size=len(whole.theta0))
    along = rng.normal(size=len(at)) * (np.arange(len(at)) >= len(objective.theta0))  # the others have tests
    found = whole.evaluate(at)
    ahead, behind = (whole.evaluate(at + sign * 1e-5 * along).value for sign in (1, -1))
    assert found.gradient @ along == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)
    t, step = objective.data.y, 1e-5 * rng.normal(size=len(y))
    ahead, behind = (objective.with_targets(t + sign * step).evaluate(objective.theta0).value for sign in (1, -1))
    assert objective.evaluate(objective.theta0).targets @ step == pytest.approx((ahead - behind) / 2, rel=1e-5)


def test_a_transform_is_learned_by_the_evidence(cubes, tmp_path):
    """A warp finds what no power does; the power that was found is better than the one of the targets alone."""
    X, y = cubes
    plain, warped = GPRegressor().fit(X, y), GPRegressor(target_transform="warp").fit(X, y)
    assert warped.log_evidence_ > plain.log_evidence_ + 20
    by_hand = GPRegressor(target_transform=warped.scaling_.transform, optimizer=None, kernel=warped.kernel_)
    by_hand = by_hand.set_params(likelihood=warped.likelihood_).fit(X, y)
    assert by_hand.log_evidence_ == pytest.approx(warped.log_evidence_, abs=1e-6)  # the slopes are counted
    warped.save(tmp_path / "m.eb")
    assert_allclose(errorband.load(tmp_path / "m.eb").predict_interval(X), warped.predict_interval(X))
    assert np.all(np.abs(warped.condition_on(X, y).predict(X) - warped.predict(X)) < 1e-8)


def test_powers_are_learned_with_the_hyperparameters(sales):
    X, y = sales
    first = BoxCox().fitted(y).power
    learned = GPRegressor(target_transform="box-cox").fit(X, y)
    assert learned.log_evidence_ > GPRegressor(target_transform=BoxCox(first)).fit(X, y).log_evidence_ - 1e-6
    assert abs(learned.scaling_.transform.power) < 0.2  # the logarithm made them
