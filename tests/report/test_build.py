"""The numbers and words of a report, without its page."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from errorband import LBFGS, GPRegressor, Parameter, metrics
from errorband.kernels import Constant, Linear, Matern, Periodic, SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.means import Linear as LinearMean
from errorband.report import report
from errorband.report.build import MAX_POINTS, build_regression
from errorband.report.checks import CoverageAt, coverage_range, verdict
from errorband.report.hyperparameters import hyperparameters
from errorband.report.scores import Scores, baseline_scores, compare, mean_crps, score


@pytest.fixture(scope="module")
def content(frame):
    return build_regression(
        frame.model, frame.X_test, frame.y_test, X_train=frame.X_train, y_train=frame.y_train, target="yield"
    )


# --------------------------------------------------------------------------------------------------------- scores
def test_scores_are_those_of_the_metrics_module(content, frame):
    y, p = frame.y_test.to_numpy(), frame.model.predictive(frame.X_test)
    found = content.scores[0].values
    lower, upper = p.interval(0.95)
    centre, variance = frame.y_train.mean(), frame.y_train.var(ddof=0)
    assert found["rmse"] == metrics.rmse(y, p.mean)
    assert found["r2"] == pytest.approx(r2_score(y, p.mean))
    assert found["nlpd"] == pytest.approx(metrics.gaussian_nlpd(y, p.mean, p.std))
    assert found["crps"] == pytest.approx(metrics.crps_gaussian(y, p.mean, p.std).mean())
    assert found["coverage"] == metrics.coverage(y, lower, upper)
    assert found["width"] == metrics.width(lower, upper)
    assert found["msll"] == pytest.approx(metrics.msll(y, p.mean, p.std, centre, variance))


def test_crps_of_any_distribution_by_quadrature(frame):
    class NotGaussian:
        def __init__(self, p):
            self.quantile = p.quantile

    y, p = frame.y_test.to_numpy(), frame.model.predictive(frame.X_test)
    assert mean_crps(y, NotGaussian(p)) == pytest.approx(mean_crps(y, p), rel=1e-3)  # pyright: ignore


def test_baselines(content, frame):
    mean, linear, boosting = content.scores[1:]
    assert [s.name for s in content.scores] == [
        "GPRegressor",
        "Training mean",
        "Linear regression",
        "Gradient boosting",
    ]
    assert mean.values["msll"] == pytest.approx(0.0)
    ols = LinearRegression().fit(frame.X_train, frame.y_train).predict(frame.X_test)
    assert linear.values["rmse"] == pytest.approx(metrics.rmse(frame.y_test, ols))
    assert boosting.values["r2"] > 0.5


def test_interval_of_linear_regression_is_calibrated():
    # Few training rows: the leverage and the uncertainty of the residual variance count.
    covered = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(62, 3))
        y = X @ [1.0, -2.0, 0.0] + rng.normal(size=62)
        covered.append(baseline_scores(X[:12], y[:12], X[12:], y[12:])[1].values["coverage"])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_baselines_that_cannot_be_fitted_are_left_out():
    X, y = np.zeros((10, 2)), np.zeros(10)
    assert baseline_scores(X, y, X, y + 1) == []


def test_comparison_knows_chance():
    def scored(errors):
        return Scores("m", "", {}, np.asarray(errors, dtype=float))

    rng = np.random.default_rng(0)
    noise = rng.normal(size=200) ** 2
    assert compare(scored(noise), scored(noise + 1 + 0.1 * rng.normal(size=200))).verdict == "better"
    assert compare(scored(noise + 1 + 0.1 * rng.normal(size=200)), scored(noise)).verdict == "worse"
    assert compare(scored(noise), scored(rng.permutation(noise))).verdict == "even"
    assert compare(scored([1.0]), scored([2.0])).verdict == "even"


# ---------------------------------------------------------------------------------------------------- calibration
def test_coverage_is_that_of_the_metrics_module(content, frame):
    y, p = frame.y_test.to_numpy(), frame.model.predictive(frame.X_test)
    for at in content.calibration.at:
        lower, upper = p.interval(at.level)
        assert at.observed == metrics.coverage(y, lower, upper)
        assert at.width == metrics.width(lower, upper)
        assert at.surely_low <= at.low <= at.level <= at.high <= at.surely_high
    levels, observed = metrics.calibration_curve(metrics.pit(y, p))
    np.testing.assert_array_equal(content.calibration.observed, observed)
    np.testing.assert_array_equal(content.calibration.levels, levels)


def test_chance_is_binomial():
    rng = np.random.default_rng(0)
    shares = rng.binomial(50, 0.8, 100_000) / 50
    low, high = coverage_range(50, 0.8, 0.95)
    assert 0.95 <= np.mean((shares >= low) & (shares <= high)) <= 0.98


# -------------------------------------------------------------------------------------------------- words, verdicts
def _at(level, observed, n=400):
    limits = (*coverage_range(n, level, 0.95), *coverage_range(n, level, 0.99))
    return CoverageAt(level, observed, 1.0, *map(float, limits))


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        ((0.5, 0.8, 0.95), "as calibrated bands would"),
        ((0.3, 0.5, 0.7), "overconfident"),
        ((0.8, 0.95, 0.999), "more cautious than it need be"),
        ((0.7, 0.8, 0.80), "too wide at one level and too narrow at another"),
    ],
)
def test_verdict_on_calibration(observed, words):
    at = [_at(level, o) for level, o in zip((0.5, 0.8, 0.95), observed, strict=True)]
    scores = Scores("m", "", {"r2": 0.5}, np.ones(400))
    assert words in verdict(scores, [], at, "t", 400)[-1]


def test_verdict_on_accuracy(content):
    first, second, third = content.verdict
    assert (
        first
        == f"It explains {100 * content.scores[0].values['r2']:.0f} % of the variation of yield in 50 held-out rows."
    )
    assert "linear regression" in second
    assert "gradient boosting" in second
    assert third.startswith("Its 95 % bands hold")
    poor = verdict(Scores("m", "", {"r2": -0.1}, np.ones(9)), [], [_at(0.95, 1.0, 9)], "t", 9)
    assert "no better than a constant" in poor[0]
    assert "too few to judge" in poor[-1]


# ------------------------------------------------------------------------------------------------------ the parts
def test_inputs_are_ordered_by_relevance(content, frame):
    names = content.summary.input_names
    assert names == tuple(frame.X_train.columns)
    assert list(np.diff(content.relevance[list(content.order)]) <= 0) == [True] * 3
    assert names[content.order[0]] == "<script>alert(1)</script>"
    assert names[content.order[-1]] == "idle"
    assert "idle" not in [e.name for e in content.effects]
    assert {e.name: e.discrete for e in content.effects}["level"]


def test_surprises_are_the_largest_leave_one_out_scores(content, frame):
    left_out = frame.model.loo()
    order = np.argsort(-np.abs(left_out.z_score))[:10]
    assert [s.row for s in content.surprises] == [f"r{i}" for i in order]
    np.testing.assert_allclose([s.z_score for s in content.surprises], left_out.z_score[order])
    np.testing.assert_allclose([s.observed for s in content.surprises], frame.y_train.to_numpy()[order])
    name, value = content.surprises[0].inputs[0]
    assert value == pytest.approx(frame.X_train[name].iloc[order[0]])


def test_held_out_rows_and_bands(content, frame):
    held, p = content.held_out, frame.model.predictive(frame.X_test)
    lower, upper = p.interval(0.95)
    np.testing.assert_allclose(held.lower, lower)
    np.testing.assert_allclose(held.upper, upper)
    np.testing.assert_allclose(held.z_score, (frame.y_test - p.mean) / p.std)


def test_many_rows_are_thinned_the_same_way_each_time(sinc):
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (2000, 1))
    y = np.sin(X[:, 0])
    first, second = (build_regression(sinc.model, X, y, baselines=False) for _ in range(2))
    assert (first.held_out.total, len(first.held_out.shown)) == (2000, MAX_POINTS)
    np.testing.assert_array_equal(first.held_out.shown, second.held_out.shown)
    np.testing.assert_array_equal(first.held_out.actual, y[first.held_out.shown])
    assert first.scores[0].values["rmse"] == metrics.rmse(y, sinc.model.predict(X))


def test_curve_of_one_input(sinc):
    c = build_regression(sinc.model, sinc.X_test, sinc.y_test)
    assert c.curve is not None
    assert c.map is None
    assert c.effects == ()
    p = sinc.model.predictive(c.curve.grid[:, None])
    for level, (lower, upper) in c.curve.bands.items():
        np.testing.assert_allclose(lower, p.quantile(0.5 - level / 2))
        np.testing.assert_allclose(upper, p.quantile(0.5 + level / 2))
    inside = [np.mean((draw > c.curve.bands[0.95][0]) & (draw < c.curve.bands[0.95][1])) for draw in c.curve.draws]
    assert min(inside) > 0.9


def test_map_of_two_inputs(bump):
    c = build_regression(bump.model, bump.X_test, bump.y_test)
    assert c.map is not None
    assert c.curve is None
    i, j = 7, 30
    mean, std = bump.model.predict([[c.map.x[j], c.map.y[i]]], return_std=True, latent=True)
    assert c.map.mean[i, j] == pytest.approx(mean[0])
    assert c.map.std[i, j] == pytest.approx(std[0])


def test_trace_ends_at_the_evidence(content, frame):
    assert content.summary.trace[-1] == pytest.approx(frame.model.log_evidence_)
    assert np.all(np.diff(content.summary.trace) >= 0)


# ------------------------------------------------------------------------------------------------ hyperparameters
def test_hyperparameters_in_data_units_make_the_same_model(frame):
    """A model built by hand from the values of the table, without standardising, predicts the same."""
    rows = hyperparameters(frame.model, "yield")
    scales = [r.value for r in rows if r.kind == "lengthscale"]
    (spread,), (noise,) = ([r.value for r in rows if r.kind == kind] for kind in ("variance", "noise_variance"))
    by_hand = GPRegressor(
        SquaredExponential(scales, spread**2), likelihood=Gaussian(noise**2), normalize=False, optimizer=None
    )
    centre = frame.y_train.mean()
    by_hand.fit(frame.X_train, frame.y_train - centre)
    mean, std = frame.model.predict(frame.X_test, return_std=True)
    again, std_again = by_hand.predict(frame.X_test, return_std=True)
    np.testing.assert_allclose(again + centre, mean, rtol=1e-6)
    np.testing.assert_allclose(std_again, std, rtol=1e-6)


def test_hyperparameters_of_composite_kernels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(0, [1.0, 10.0], (30, 2)), rng.normal(0, 5.0, 30)
    kernel = (
        SquaredExponential(2.0, 1.0, active_dims=[1])
        + Matern(1.0, 0.5, active_dims=[0]) * Periodic(0.7, 1.0, period=3.0, active_dims=[1])
        + Linear(0.25)
        + Constant(1.0)
    )
    model = GPRegressor(kernel, mean=LinearMean([0.5, 1.0, 2.0]), optimizer=None).fit(X, y)
    x_scale, y_scale = X.std(axis=0), y.std()
    found = {(r.part, r.name): (r.value, r.unit) for r in hyperparameters(model, "y")}
    assert found["SquaredExponential", "length-scale of x1"] == (pytest.approx(2 * x_scale[1]), "x1")
    assert found["SquaredExponential", "prior standard deviation"] == (pytest.approx(y_scale), "y")
    assert found["Matern", "length-scale of x0"] == (pytest.approx(x_scale[0]), "x0")
    assert found["Matern", "variance"] == (0.5, "standardised units")
    assert found["Periodic", "roughness of x1"] == (0.7, "")
    assert found["Periodic", "period of x1"] == (pytest.approx(3 * x_scale[1]), "x1")
    slope = (pytest.approx(0.5 * y_scale / x_scale[1]), "y per x1")
    assert found["Linear", "prior spread of the slope of x1"] == slope
    assert found["Linear mean", "slope of x1"] == (pytest.approx(2 * y_scale / x_scale[1]), "y per x1")
    # The mean function is that of the table, at the origin of the data.
    at_origin = y_scale * (0.5 - (X.mean(axis=0) / x_scale) @ [1.0, 2.0]) + y.mean()
    assert found["Linear mean", "level"] == (pytest.approx(at_origin), "y")


# ------------------------------------------------------------------------------------------------------- findings
def _titles(content):
    return [f.title for f in content.findings]


def test_quiet_when_nothing_is_wrong(sinc):
    assert _titles(build_regression(sinc.model, sinc.X_test, sinc.y_test)) == []


def test_findings_about_the_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    with pytest.warns(match="did not converge"):
        model = GPRegressor(
            SquaredExponential(variance=Parameter(0.01, bounds=(0.01, 0.1))), optimizer=LBFGS(max_iter=2)
        ).fit(X, y)
    model.jitter_ = 1e-8
    content = build_regression(model, X[:20], y[:20], baselines=False)
    titles = _titles(content)
    assert "The search for hyperparameters did not converge" in titles
    assert "Jitter was added" in titles
    assert "The search ended on a bound of variance;" in next(f.text for f in content.findings if "bounds" in f.title)
    assert "Few held-out rows" in titles
    assert "Training rows among the held-out rows" in titles
    assert titles.index("Jitter was added") < titles.index("Few held-out rows")  # warnings before notes


def test_findings_about_noise():
    x = np.linspace(0, 6, 40)[:, None]
    exact = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(1e-8), optimizer=None).fit(x, np.sin(x[:, 0]))
    assert "Almost no noise was found" in _titles(build_regression(exact, x + 0.05, np.sin(x[:, 0] + 0.05)))
    y = np.random.default_rng(0).normal(size=40)
    noisy = GPRegressor(SquaredExponential(1.0, 1e-4), likelihood=Gaussian(0.999), optimizer=None).fit(x, y)
    content = build_regression(noisy, x + 0.05, y)
    assert "Almost everything is noise" in _titles(content)
    assert "Hyperparameters were not learned" in _titles(content)
    floor = GPRegressor(likelihood=Gaussian(0.2001, min_noise_variance=0.2), optimizer=None).fit(x, y)
    assert "Noise at its bound" in _titles(build_regression(floor, x, y))


def test_findings_about_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    X[10] = X[11]
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    y[0] += 50
    model = GPRegressor(SquaredExponential([1.0, 500.0], 1.0), likelihood=Gaussian(0.05), optimizer=None).fit(X, y)
    found = {f.title: f.text for f in build_regression(model, X + 3, y, baselines=False).findings}
    assert "2 training rows" in found["Duplicate inputs"]
    assert "Along x1" in found["Length-scale beyond the data"]
    assert "outside the range" in found["Extrapolation"]
    assert found["Outliers"].startswith("1 training row ")
    X[10] = X[11] + 1e-9
    near = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(0.05), optimizer=None).fit(X, y)
    assert "Near-duplicate inputs" in _titles(build_regression(near, X, y, baselines=False))


def test_bands_that_do_not_hold_are_reported(frame):
    y = frame.y_test + 10 * np.random.default_rng(0).normal(size=len(frame.y_test))
    content = build_regression(frame.model, frame.X_test, y, baselines=False)
    assert "Bands too narrow" in _titles(content)
    assert "overconfident" in content.verdict[-1]


# ----------------------------------------------------------------------------------------------------- odd arguments
def test_one_held_out_row_is_enough(frame):
    content = build_regression(frame.model, frame.X_test.iloc[:1], frame.y_test.iloc[:1])
    assert np.isnan(content.scores[0].values["r2"])
    assert content.comparisons[0].verdict == "even"


def test_wrong_arguments_are_refused(frame, sinc):
    with pytest.raises(ValueError, match="50 rows and y_test 3"):
        report(frame.model, frame.X_test, frame.y_test[:3])
    with pytest.raises(ValueError, match="together, or neither"):
        report(frame.model, frame.X_test, frame.y_test, X_train=frame.X_train)
    with pytest.raises(TypeError, match="got LinearRegression"):
        report(LinearRegression(), frame.X_test, frame.y_test)
    with pytest.raises(ValueError, match="X must have 1 columns"):
        report(sinc.model, frame.X_test, frame.y_test)


def test_score_of_a_constant_training_target_has_no_msll(frame):
    p = frame.model.predictive(frame.X_test)
    values = score("m", "", frame.y_test.to_numpy(), p, np.ones(5)).values
    assert np.isnan(values["msll"])
    assert np.isfinite(values["nlpd"])
