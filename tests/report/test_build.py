"""The numbers and words of a report, without its page."""

import copy

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from errorband import metrics
from errorband.likelihoods import Gaussian
from errorband.predictive import StudentPredictive
from errorband.reporting import assess, report
from errorband.reporting.parts.comparison import Scores, paired
from errorband.reporting.parts.coverage import coverage_range, judged
from errorband.reporting.parts.data import MAX_POINTS
from errorband.reporting.parts.summary import summary
from errorband.reporting.regression.baselines import baseline_scores
from errorband.reporting.regression.build import build_regression
from errorband.reporting.regression.diagnostics import band_findings
from errorband.reporting.regression.scores import crps, score
from errorband.reporting.regression.sections import regression_sections
from errorband.reporting.regression.verdict import verdict


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
    assert found["nlpd"] == pytest.approx(-p.log_density(y).mean())
    assert found["crps"] == pytest.approx(-metrics.neg_crps_scorer(frame.model, frame.X_test, y))
    assert found["coverage"] == metrics.coverage(y, lower, upper)
    assert found["width"] == metrics.width(lower, upper)
    assert found["msll"] == pytest.approx(found["nlpd"] + norm.logpdf(y, centre, np.sqrt(variance)).mean())


def test_a_pipeline_is_judged_by_the_model_at_its_end(frame):
    whole = Pipeline([("same", FunctionTransformer().fit(frame.X_train)), ("model", frame.model)])
    inner, outer = (assess(m, frame.X_test, frame.y_test, baselines=False).scores[0] for m in (frame.model, whole))
    assert outer.name == "GPRegressor"
    assert outer.values == inner.values


def test_crps_of_any_distribution_by_quadrature(frame):
    class NotGaussian:
        def __init__(self, p):
            self.quantile = p.quantile

    y, p = frame.y_test.to_numpy(), frame.model.predictive(frame.X_test)
    np.testing.assert_allclose(crps(y, NotGaussian(p)).mean(), crps(y, p).mean(), rtol=1e-3)  # pyright: ignore
    others = score("", "", y, StudentPredictive(p.mean, p.std, 5.0), y)
    assert set(others.errors) == set(others.values) - {"width"}
    assert all(np.isfinite(e) for e in others.errors.values())  # of every metric, whatever the distribution


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
        return Scores("m", "", {}, {}, {"rmse": np.asarray(errors, dtype=float)})

    def compared(model, baseline):
        return paired(scored(model), scored(baseline), "rmse").verdict

    rng = np.random.default_rng(0)
    noise = rng.normal(size=200) ** 2
    assert compared(noise, noise + 1 + 0.1 * rng.normal(size=200)) == "better"
    assert compared(noise + 1 + 0.1 * rng.normal(size=200), noise) == "worse"
    assert compared(noise, rng.permutation(noise)) == "even"
    assert compared([1.0], [2.0]) == "even"


# ---------------------------------------------------------------------------------------------------- calibration
def test_coverage_is_that_of_the_metrics_module(content, frame):
    y, p = frame.y_test.to_numpy(), frame.model.predictive(frame.X_test)
    for at in content.calibration.at:
        lower, upper = p.interval(at.level)
        assert at.observed == pytest.approx(metrics.coverage(y, lower, upper))
        assert at.width == metrics.width(lower, upper)
        assert at.surely_low <= at.low <= at.level <= at.high <= at.surely_high
    levels, observed = metrics.calibration_curve(metrics.pit(y, p))
    np.testing.assert_allclose(content.calibration.observed, observed)
    np.testing.assert_allclose(content.calibration.levels, levels)


def test_chance_is_binomial():
    rng = np.random.default_rng(0)
    shares = rng.binomial(50, 0.8, 100_000) / 50
    low, high = coverage_range(50, 0.8, 0.95)
    assert 0.95 <= np.mean((shares >= low) & (shares <= high)) <= 0.98


# -------------------------------------------------------------------------------------------------- words, verdicts
def _at(level, observed, n=400):
    return judged(level, observed, 1.0, n, looks=3)


def _said(at, n, r2=0.5):
    return verdict(Scores("m", "", {"r2": r2}, {"r2": 0.01}, {"mae": np.ones(n)}), [], [], at, "t", np.arange(n))


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        ((0.5, 0.8, 0.95), "as calibrated bands would"),
        ((0.3, 0.5, 0.7), "overconfident"),
        ((0.8, 0.95, 0.999), "more cautious than it need be"),
        ((0.7, 0.85, 0.94), "and its 50 % bands 70 %: errors have heavy tails"),
        ((0.35, 0.75, 0.97), "light tails"),
        ((0.6, 0.88, 0.98), "its 50 % bands 60 %: too wide, it is more cautious than it need be"),
    ],
)
def test_verdict_on_calibration(observed, words):
    at = [_at(level, o) for level, o in zip((0.5, 0.8, 0.95), observed, strict=True)]
    assert words in _said(at, 400)[-1]


def test_a_coverage_outside_the_range_of_chance_is_not_called_calibrated():
    """75 of 84 targets in a 95 % band: fewer than 97.5 of 100 calibrated models would show."""
    n, inside = 84, (42, 67, 75)
    at = [_at(level, k / n, n) for level, k in zip((0.5, 0.8, 0.95), inside, strict=True)]
    assert at[-1].surely_low <= at[-1].observed < at[-1].low
    assert [a.verdict for a in at] == ["right", "right", "perhaps too narrow"]
    assert _said(at, n)[-1] == (
        "Its 95 % bands hold 89 % of the targets, where chance would leave calibrated 95 % bands at 90 % to 99 %: "
        "perhaps too narrow."
    )
    (finding,) = band_findings(at, [], n)
    assert (finding.level, finding.title) == ("note", "Bands perhaps too narrow")
    inner = [_at(0.5, 52 / n, n), *[_at(level, k / n, n) for level, k in ((0.8, 67), (0.95, 80))]]
    said = _said(inner, n)[-1]
    assert "and its 50 % bands 62 %" in said
    assert said.endswith("perhaps too wide.")


def test_what_is_assessed_already_is_not_computed_again(frame, flags, monkeypatch):
    from errorband.reporting import assess
    from errorband.reporting.classification.baselines import CLASS_BASELINES
    from errorband.reporting.regression.baselines import BASELINES

    trained = []
    for registry in (BASELINES, CLASS_BASELINES):
        for name, (note, fit) in registry.items():
            counted = lambda *args, name=name, fit=fit: trained.append(name) or fit(*args)  # noqa: E731
            monkeypatch.setitem(registry, name, (note, counted))
    for case in (frame, flags):
        trained.clear()
        found = assess(case.model, case.X_test, case.y_test)
        content = report(case.model, case.X_test, case.y_test, assessment=found).content
        assert len(trained) == len(set(trained)) == 3
        assert (content.scores, content.verdict) == (found.scores, found.verdict)


def test_verdict_on_accuracy(content):
    first, second, third = content.verdict
    assert (
        first
        == f"It explains {100 * content.scores[0].values['r2']:.0f} % of the variation of yield in 50 held-out rows."
    )
    assert "linear regression" in second
    assert "gradient boosting" in second
    assert third.startswith("Its 95 % bands hold")
    poor = _said([_at(0.95, 1.0, 9)], 9, r2=-0.1)
    assert "no better than a constant" in poor[0]
    assert "too few to judge" in poor[-1]


# ------------------------------------------------------------------------------------------------------ the parts
def test_inputs_are_ordered_by_relevance(content, frame):
    names = content.summary.input_names
    assert names == tuple(frame.X_train.columns)
    assert list(np.diff(content.relevance[list(content.order)]) <= 0) == [True] * 3
    assert names[content.order[0]] == "<script>alert(1)</script>"
    assert names[content.order[-1]] == "idle"
    assert "idle" not in [e.input.name for e in content.effects]
    assert {e.input.name: e.discrete for e in content.effects}["level"]


def test_surprises_are_the_largest_leave_one_out_scores(content, frame):
    left_out = frame.model.loo()
    z_score = norm.ppf(left_out.predictive.cdf(left_out.y))
    order = np.argsort(-np.abs(z_score))[:10]
    assert [s.row for s in content.surprises] == [f"r{i}" for i in order]
    np.testing.assert_allclose([s.z_score for s in content.surprises], z_score[order])
    np.testing.assert_allclose([s.observed for s in content.surprises], frame.y_train.to_numpy()[order])
    name, value = content.surprises[0].inputs[0]
    assert float(value) == pytest.approx(frame.X_train[name].iloc[order[0]], rel=1e-3)


def test_held_out_rows_and_bands(content, frame):
    held, p = content.held_out, frame.model.predictive(frame.X_test)
    lower, upper = p.interval(0.95)
    np.testing.assert_allclose(held.lower, lower)
    np.testing.assert_allclose(held.upper, upper)
    np.testing.assert_allclose(held.z_score, norm.ppf(p.cdf(frame.y_test)))


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
    half = frame.model.condition_on(frame.X_train[:50], frame.y_train[:50])
    np.testing.assert_array_equal(summary(half, 50, 50, "yield").trace, content.summary.trace)
    assert np.all(np.diff(content.summary.trace) >= 0)


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


# -------------------------------------------------------------------------------------------- targets linked by a curve
class _Linked(Gaussian):
    """Stands for counts and the like, whose latent function is not in the units of the target."""

    location_scale = False


def _linked(case):
    model = copy.copy(case.model)
    model.likelihood_ = _Linked(case.model.likelihood_.noise_variance)
    return build_regression(model, case.X_test, case.y_test, baselines=False, target="count")


def test_latent_functions_are_not_shown_as_targets(sinc, frame):
    assert len(_linked(sinc).curve.draws) == 0
    content = _linked(frame)
    assert not any(e.in_target_units for e in content.effects)
    units = [h.unit for h in content.hyperparameters if h.kind == "variance"]
    assert units[0] == "latent function"
    assert all(unit.startswith("latent function per ") for unit in units[1:])  # slopes
    sections = {s.anchor: s for s in regression_sections(content)}
    titles = [p.figure.layout["yaxis"]["title"]["text"] for p in sections["effects"].blocks[0]]
    assert set(titles) == {"latent function"}
