"""Metrics: identities, properties, errors, and the scorers inside scikit-learn."""

import functools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from errorband import metrics

reals = st.floats(-1e3, 1e3)
scales = st.floats(1e-3, 1e3)
gaussians = st.lists(st.tuples(reals, reals, scales), min_size=1, max_size=8).map(lambda rows: np.array(rows).T)
bands = st.lists(st.tuples(reals, reals, st.floats(0, 1e3)), min_size=1, max_size=8).map(lambda rows: np.array(rows).T)


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


# Accuracy and density


def test_rmse_and_nmse_by_hand():
    y, mean = [1.0, 2.0, 6.0], [1.0, 4.0, 5.0]
    assert metrics.rmse(y, mean) == pytest.approx(np.sqrt(5 / 3))
    assert metrics.nmse(y, mean) == pytest.approx(5 / 14)  # about the mean of y, which is 3
    assert metrics.nmse(y, mean, y_train_mean=0.0) == pytest.approx(5 / 41)


def test_nmse_of_the_training_mean_is_one(rng):
    y = rng.normal(3, 2, 20)
    assert metrics.nmse(y, np.full(20, 1.7), y_train_mean=1.7) == pytest.approx(1)


def test_gaussian_nlpd_agrees_with_scipy_and_with_nlpd(rng):
    y, mean, std = rng.normal(size=30), rng.normal(size=30), rng.gamma(2, size=30)
    log_density = stats.norm(mean, std).logpdf(y)
    assert metrics.gaussian_nlpd(y, mean, std) == pytest.approx(-log_density.mean())
    assert metrics.nlpd(log_density) == pytest.approx(-log_density.mean())


def test_msll_is_zero_for_the_trivial_predictor_and_negative_for_a_better_one(rng):
    x = rng.normal(size=200)
    y = x + rng.normal(0, 0.1, 200)
    centre, var = 0.3, 1.9
    assert metrics.msll(y, np.full(200, centre), np.full(200, np.sqrt(var)), centre, var) == pytest.approx(0, abs=1e-12)
    expected = -stats.norm(x, 0.1).logpdf(y).mean() + stats.norm(centre, np.sqrt(var)).logpdf(y).mean()
    assert metrics.msll(y, x, np.full(200, 0.1), centre, var) == pytest.approx(expected)
    assert expected < -1


# Bands


def test_interval_score_by_hand():
    # inside: width 2; below by 1: 2 + 2/0.2; above by 0.5: 2 + 1/0.2
    score = metrics.interval_score([0.0, -2.0, 1.5], [-1.0] * 3, [1.0] * 3, level=0.8)
    assert score == pytest.approx((2 + 12 + 7) / 3)


def test_interval_score_is_least_at_the_true_quantiles(rng):
    y = rng.normal(size=20_000)

    def score(half):
        return metrics.interval_score(y, np.full(y.size, -half), np.full(y.size, half), level=0.9)

    assert score(1.645) < min(score(1.2), score(2.2))


def test_coverage_counts_the_ends_as_inside():
    lower, upper = np.zeros(5), np.ones(5)
    assert metrics.coverage([0.0, 1.0, 0.5, 1.0001, -1.0], lower, upper) == pytest.approx(0.6)
    assert metrics.width([0.0, -1.0], [1.0, 4.0]) == pytest.approx(3)


@given(bands)
def test_coverage_is_a_share_and_widening_never_lowers_it(band):
    y, lower, width = band
    narrow, wide = metrics.coverage(y, lower, lower + width), metrics.coverage(y, lower - 1, lower + width + 1)
    assert 0 <= narrow <= wide <= 1
    assert metrics.coverage(lower, lower, lower + width) == 1
    assert metrics.coverage(lower - 1, lower, lower + width) == 0


@given(bands, st.floats(0.01, 0.99), scales)
def test_interval_score_is_at_least_the_width_and_scales(band, level, scale):
    y, lower, width = band
    score = metrics.interval_score(y, lower, lower + width, level)
    assert score >= metrics.width(lower, lower + width)
    scaled = metrics.interval_score(scale * y, scale * lower, scale * (lower + width), level)
    assert scaled == pytest.approx(scale * score, rel=1e-6, abs=1e-6 * scale)


# Calibration


def test_pit_is_the_cdf_of_each_target(rng):
    y, mean, std = rng.normal(size=12), rng.normal(size=12), rng.gamma(2, size=12)
    expected = stats.norm(mean, std).cdf(y)
    np.testing.assert_allclose(metrics.gaussian_pit(y, mean, std), expected)
    np.testing.assert_allclose(metrics.pit(y, stats.norm(mean, std)), expected)


def test_calibration_curve_by_hand():
    levels, observed = metrics.calibration_curve([0.5, 0.3, 0.05, 0.99], [0.0, 0.2, 0.5, 0.95, 1.0])
    np.testing.assert_array_equal(levels, [0.0, 0.2, 0.5, 0.95, 1.0])
    np.testing.assert_array_equal(observed, [0.25, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize("std", [0.5, 1.0, 2.0])
def test_calibration_curve_follows_the_known_coverage(rng, std):
    # targets are N(0, 1): a prediction N(0, std^2) covers 2 Phi(std z) - 1, which is the diagonal for std = 1
    y = rng.normal(size=20_000)
    levels, observed = metrics.calibration_curve(metrics.gaussian_pit(y, np.zeros_like(y), np.full(y.size, std)))
    np.testing.assert_allclose(levels, np.linspace(0.05, 0.95, 19))
    truth = 2 * stats.norm.cdf(std * stats.norm.ppf((1 + levels) / 2)) - 1
    np.testing.assert_allclose(observed, truth, atol=0.015)
    if std == 1:
        np.testing.assert_allclose(observed, levels, atol=0.015)


def test_calibration_curve_agrees_with_coverage_of_quantile_bands(rng):
    y, predictive = rng.standard_t(3, size=300), stats.norm(np.zeros(300), np.ones(300))
    levels, observed = metrics.calibration_curve(metrics.pit(y, predictive))
    direct = [metrics.coverage(y, predictive.ppf((1 - p) / 2), predictive.ppf((1 + p) / 2)) for p in levels]
    np.testing.assert_allclose(observed, direct)


# CRPS


@pytest.mark.parametrize(("y", "mean", "std"), [(0.0, 0.0, 1.0), (2.5, -1.0, 0.7), (-4.0, 1.0, 3.0)])
def test_crps_gaussian_is_the_integral_of_the_squared_cdf_error(y, mean, std):
    cdf = stats.norm(mean, std).cdf
    below, _ = integrate.quad(lambda x: cdf(x) ** 2, y - 40 * std, y, limit=200)
    above, _ = integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, y + 40 * std, limit=200)
    np.testing.assert_allclose(metrics.crps_gaussian([y], [mean], [std]), [below + above], rtol=1e-7)


def test_crps_sample_approaches_the_gaussian_closed_form(rng):
    y, mean, std = np.array([0.0, 2.0, -5.0]), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.3, 4.0])
    samples = rng.normal(mean, std, size=(100_000, 3))
    np.testing.assert_allclose(metrics.crps_sample(y, samples), metrics.crps_gaussian(y, mean, std), rtol=0.02)


def test_crps_sample_is_unbiased_with_few_draws(rng):
    y = np.full(100_000, 0.4)
    estimate = metrics.crps_sample(y, rng.normal(size=(2, y.size))).mean()
    assert estimate == pytest.approx(metrics.crps_gaussian([0.4], [0.0], [1.0])[0], abs=0.01)


@given(st.lists(reals, min_size=2, max_size=12), reals)
def test_crps_sample_is_the_double_sum(draws, y):
    x, n = np.array(draws), len(draws)
    pairs = np.abs(x[:, None] - x).sum() / (2 * n * (n - 1))
    expected = np.abs(x - y).mean() - pairs
    np.testing.assert_allclose(metrics.crps_sample([y], x[:, None]), [expected], rtol=1e-9, atol=1e-8)


def test_crps_sample_keeps_its_digits_far_from_zero(rng):
    y, samples = rng.normal(size=4), rng.normal(size=(50, 4))
    offset = 2.0**30
    shifted = metrics.crps_sample(y + offset, samples + offset)
    np.testing.assert_allclose(shifted, metrics.crps_sample(y, samples), atol=1e-5)


@given(gaussians)
def test_crps_gaussian_is_positive_and_below_the_absolute_error_plus_the_spread(rows):
    y, mean, std = rows
    crps = metrics.crps_gaussian(y, mean, std)
    assert (crps > 0).all()
    # sharpening the band to a point at the mean leaves |y - m|; the spread is worth at most std / sqrt(pi)
    error = np.abs(y - mean)
    slack = 1e-9 * (1 + error + std)
    assert (crps >= error - std / np.sqrt(np.pi) - slack).all()
    assert (crps <= error + std * (np.sqrt(2) - 1) / np.sqrt(np.pi) + slack).all()


@given(gaussians, scales, reals)
def test_crps_gaussian_scales_and_ignores_shifts(rows, scale, shift):
    y, mean, std = rows
    crps = metrics.crps_gaussian(y, mean, std)
    moved = metrics.crps_gaussian(scale * y + shift, scale * mean + shift, scale * std)
    np.testing.assert_allclose(moved, scale * crps, rtol=1e-5, atol=1e-8)


@given(gaussians, scales)
def test_nlpd_gains_the_log_of_the_scale(rows, scale):
    y, mean, std = rows
    before, after = metrics.gaussian_nlpd(y, mean, std), metrics.gaussian_nlpd(scale * y, scale * mean, scale * std)
    assert after == pytest.approx(before + np.log(scale), rel=1e-6, abs=1e-6)


# Classification


def test_information_bits_by_hand():
    assert metrics.information_bits([0.5, 0.25], [0.5, 0.25]) == pytest.approx(0)
    assert metrics.information_bits([1.0, 1.0], [0.25, 0.25]) == pytest.approx(2)
    assert metrics.information_bits([0.125, 0.5], [0.5, 0.5]) == pytest.approx(-1)


def test_error_reject_curve_by_hand_with_ties():
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8], [0.05, 0.95]])
    y = np.array(["no", "no", "no", "no", "yes"])  # wrong: the third (0.6) and the fourth (0.8)
    rejection_rate, error_rate = metrics.error_reject_curve(y, proba, ["no", "yes"])
    np.testing.assert_allclose(rejection_rate, [0, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(error_rate, [2 / 5, 1 / 3, 0, 0])


def test_error_reject_curve_agrees_with_a_threshold_loop(rng):
    proba = rng.dirichlet(np.ones(3), size=40).round(1)
    proba /= proba.sum(axis=1, keepdims=True)
    classes = np.array([7, 3, 5])  # columns in no particular order
    y = rng.choice(classes, 40)
    confidence, wrong = proba.max(axis=1), classes[proba.argmax(axis=1)] != y
    thresholds = sorted(set(confidence))
    rejection_rate, error_rate = metrics.error_reject_curve(y, proba, classes)
    np.testing.assert_allclose(rejection_rate, [(confidence < t).mean() for t in thresholds])
    np.testing.assert_allclose(error_rate, [wrong[confidence >= t].mean() for t in thresholds])


def test_reliability_curve_and_its_error_by_hand():
    proba = np.array([[0.55, 0.45], [0.35, 0.65], [0.9, 0.1], [0.0, 1.0], [1.0, 0.0]])
    y = [0, 0, 0, 1, 1]  # right, wrong, right, right, wrong
    confidence, frequency, count = metrics.reliability_curve(y, proba, [0, 1], n_bins=4)
    np.testing.assert_allclose(confidence, [0.6, 2.9 / 3])
    np.testing.assert_allclose(frequency, [0.5, 2 / 3])
    np.testing.assert_array_equal(count, [2, 3])
    assert metrics.expected_calibration_error(y, proba, [0, 1], n_bins=4) == pytest.approx(0.4 * 0.1 + 0.6 * 0.3)


def test_labels_drawn_from_the_probabilities_are_calibrated_and_sharper_claims_are_not(rng):
    p = rng.uniform(size=20_000)
    y = (rng.uniform(size=p.size) < p).astype(int)
    assert metrics.expected_calibration_error(y, np.column_stack([1 - p, p]), [0, 1]) < 0.02
    bold = p**4 / (p**4 + (1 - p) ** 4)
    assert metrics.expected_calibration_error(y, np.column_stack([1 - bold, bold]), [0, 1]) > 0.1


# Errors

ok = np.array([0.0, 1.0])
even = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: metrics.rmse(ok, ok[:, None]), r"same shape; got y \(2,\), mean \(2, 1\).*ravel"),
        (lambda: metrics.rmse(ok, 0.0), r"same shape; got y \(2,\), mean \(\)"),
        (lambda: metrics.rmse([np.nan, 1.0], ok), "y must be finite; got 1 NaN or infinite of 2"),
        (lambda: metrics.rmse(["a", "b"], ok), "y must be an array of numbers; got list"),
        (lambda: metrics.rmse([], []), "y must hold at least one value"),
        (lambda: metrics.nmse([2.0, 2.0], ok), "must vary about the training mean.*rmse"),
        (lambda: metrics.nmse(ok, ok, y_train_mean=ok), "y_train_mean must be a single number"),
        (lambda: metrics.nlpd([-np.inf, 0.0]), "log_density must be finite"),
        (lambda: metrics.gaussian_nlpd(ok, ok, [1.0, 0.0]), "std must be positive; got a smallest value of 0"),
        (lambda: metrics.gaussian_pit(ok, ok, [1.0, -2.0]), "std must be positive; got a smallest value of -2"),
        (lambda: metrics.crps_gaussian(ok, ok, [1.0, 0.0]), "std must be positive"),
        (lambda: metrics.msll(ok, ok, ok + 1, 0.0, 0.0), "y_train_var must be positive"),
        (lambda: metrics.coverage(ok, ok + 1, ok), "lower must not exceed upper; got 2 of 2"),
        (lambda: metrics.width(ok + 1, ok), "lower must not exceed upper"),
        (lambda: metrics.interval_score(ok, ok, ok, level=95), "level must lie strictly between 0 and 1; got 95"),
        (lambda: metrics.coverage_scorer(None, ok, ok, level=1.0), "level must lie strictly between 0 and 1; got 1"),
        (lambda: metrics.calibration_curve([0.5, 1.2]), r"pit must lie in \[0, 1\]; got values from 0.5 to 1.2"),
        (lambda: metrics.calibration_curve([0.5], [50, 95]), r"levels must lie in \[0, 1\].*percentages"),
        (lambda: metrics.crps_sample(ok, np.zeros((2, 3))), r"samples must have shape .*got \(2, 3\)"),
        (lambda: metrics.crps_sample(ok, np.zeros((1, 2))), "n_draws >= 2"),
        (lambda: metrics.crps_sample(ok, ok), "samples must have shape"),
        (lambda: metrics.information_bits([0.0, 1.0], [0.5, 0.5]), "proba_of_true_class must be positive"),
        (lambda: metrics.information_bits([0.5, 1.0], [0.5, 50]), r"frequencies_of_true_class must lie in \[0, 1\]"),
        (lambda: metrics.error_reject_curve([0, 2], even, [0, 1]), r"only labels in classes \[0, 1\]; got also \[2\]"),
        (lambda: metrics.error_reject_curve([0, 1], even * 0.9, [0, 1]), "row of proba must sum to 1; got sums .* 0.9"),
        (lambda: metrics.error_reject_curve([0, 1, 1], even, [0, 1]), r"got y \(3,\) and proba \(2, 2\)"),
        (lambda: metrics.error_reject_curve([0, 1], even, [1, 1]), r"list each class once; got \[1, 1\]"),
        (lambda: metrics.reliability_curve([0, 1], even, [0, 1], n_bins=0), "n_bins must be a positive integer; got 0"),
        (lambda: metrics.get_scorer("neg_nldp"), "got 'neg_nldp'. Did you mean 'neg_nlpd'?"),
        (lambda: metrics.get_scorer("zzz"), "one of neg_nlpd, neg_rmse, neg_crps.*got 'zzz'. Pick one"),
    ],
)
def test_bad_input_is_explained(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_probabilities_may_round_just_past_one():
    _, observed = metrics.calibration_curve([1 + 1e-15, 0.5], [0.5, 1.0])
    np.testing.assert_array_equal(observed, [0.5, 1.0])


# Scorers


@dataclass
class GaussianPredictive:
    mean: np.ndarray
    std: np.ndarray

    def quantile(self, q):
        return stats.norm(self.mean, self.std).ppf(q)

    def log_density(self, y):
        return stats.norm(self.mean, self.std).logpdf(y)

    def cdf(self, y):
        return stats.norm(self.mean, self.std).cdf(y)


class BandedLine(RegressorMixin, BaseEstimator):
    """A least-squares line with a band of its residual spread times ``stretch``."""

    def __init__(self, stretch=1.0):
        self.stretch = stretch

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(X, y)
        self.std_ = self.stretch * np.std(y - self.line_.predict(X))
        return self

    def predictive(self, X):
        mean = self.line_.predict(X)
        return GaussianPredictive(mean, np.full_like(mean, self.std_))


@pytest.fixture
def data(rng):
    X = rng.normal(5, 3, size=(120, 1))
    return X, 2 * X[:, 0] + rng.normal(0, 0.5, 120)


def test_scorers_equal_the_metrics_they_name(data):
    X, y = data
    model = BandedLine(stretch=1.3).fit(X, y)
    p = model.predictive(X)
    assert metrics.get_scorer("neg_nlpd")(model, X, y) == pytest.approx(-metrics.gaussian_nlpd(y, p.mean, p.std))
    assert metrics.get_scorer("neg_rmse")(model, X, y) == pytest.approx(-metrics.rmse(y, p.mean))
    crps = metrics.crps_gaussian(y, p.mean, p.std).mean()
    assert metrics.get_scorer("neg_crps")(model, X, y) == pytest.approx(-crps, rel=1e-3)
    for name, z in {"coverage_50": 0.6745, "coverage_90": 1.6449, "coverage_95": 1.96}.items():
        share = metrics.coverage(y, p.mean - z * p.std, p.mean + z * p.std)
        assert metrics.get_scorer(name)(model, X, y) == pytest.approx(share)


def test_crps_scorer_holds_for_a_skewed_predictive_and_targets_in_its_tails(rng):
    y, skewed = np.array([0.01, 1.0, 12.0]), stats.gamma(2.0)

    class Skewed:
        def predictive(self, X):
            return type("Predictive", (), {"quantile": lambda self, q: np.full(3, skewed.ppf(q))})()

    reference = [
        integrate.quad(lambda x: skewed.cdf(x) ** 2, 0, t)[0] + integrate.quad(lambda x: skewed.sf(x) ** 2, t, 60)[0]
        for t in y
    ]
    assert metrics.neg_crps_scorer(Skewed(), np.zeros((3, 1)), y) == pytest.approx(-np.mean(reference), rel=1e-3)


def test_cross_val_score_matches_folds_scored_by_hand(data):
    X, y = data
    scores = cross_val_score(BandedLine(), X, y, scoring=metrics.neg_nlpd_scorer, cv=3, error_score="raise")
    folds = np.array_split(np.arange(len(y)), 3)
    expected = []
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(y)), fold)
        p = BandedLine().fit(X[rest], y[rest]).predictive(X[fold])
        expected.append(-metrics.gaussian_nlpd(y[fold], p.mean, p.std))
    np.testing.assert_allclose(scores, expected)


def test_all_scorers_together_in_cross_validate(data):
    result = cross_validate(BandedLine(), *data, scoring=metrics.SCORERS, cv=3, error_score="raise")
    assert result["test_coverage_50"].mean() == pytest.approx(0.5, abs=0.15)
    assert result["test_coverage_95"].mean() == pytest.approx(0.95, abs=0.05)
    assert result["test_neg_rmse"].mean() == pytest.approx(-0.5, abs=0.1)
    assert result["test_neg_crps"].mean() == pytest.approx(-0.5 / np.sqrt(np.pi), abs=0.06)


@pytest.mark.parametrize("scorer", [metrics.neg_nlpd_scorer, metrics.neg_crps_scorer])
def test_grid_search_picks_the_calibrated_band(data, scorer):
    grid = {"stretch": [0.3, 1.0, 4.0]}
    search = GridSearchCV(BandedLine(), grid, scoring=scorer, cv=3, error_score="raise").fit(*data)
    assert search.best_params_ == {"stretch": 1.0}


def test_scorers_see_through_pipelines_and_searches(data):
    X, y = data
    plain = BandedLine().fit(X, y)
    pipeline = make_pipeline(StandardScaler(), BandedLine()).fit(X, y)  # a line does not mind rescaled inputs
    alone = make_pipeline(BandedLine()).fit(X, y)
    search = GridSearchCV(pipeline, {"bandedline__stretch": [1.0]}, scoring=metrics.neg_nlpd_scorer, cv=2).fit(X, y)
    for model in (pipeline, alone, search):
        assert metrics.neg_nlpd_scorer(model, X, y) == pytest.approx(metrics.neg_nlpd_scorer(plain, X, y))


def test_class_scorers_equal_the_metrics_they_name(data):
    X, y = data[0], np.where(data[1] > np.median(data[1]), "high", "low")
    y[:3] = "high"
    model = GaussianNB().fit(X, y)
    share, at = model.predict_proba(X), (y == "low").astype(int)
    bits = metrics.information_bits(share[np.arange(len(y)), at], model.class_prior_[at])
    pipeline = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    for each in (model, pipeline):
        assert metrics.get_scorer("information")(each, X, y) == pytest.approx(bits, abs=1e-6)
    error = metrics.expected_calibration_error(y, share, model.classes_)
    assert metrics.get_scorer("neg_calibration_error")(model, X, y) == pytest.approx(-error)
    scores = cross_validate(GaussianNB(), X, y, scoring=metrics.CLASS_SCORERS, cv=3, error_score="raise")
    assert np.all(np.isfinite(scores["test_information"]))
    with pytest.raises(TypeError, match="class_prior_; got LogisticRegression"):
        metrics.information_scorer(LogisticRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="got also"):
        metrics.information_scorer(model, X, np.full(len(y), "other"))


def test_every_scorer_works_as_passed(data):
    """Not only in dictionaries: each name of the module that ends in _scorer, but the one that looks them up."""
    names = [n for n in metrics.__all__ if n.endswith("_scorer") and n != "get_scorer"]
    assert len(names) == 6
    X, y = data
    for name in names:
        classes = getattr(metrics, name) in metrics.CLASS_SCORERS.values()
        model, target = (GaussianNB(), y > np.median(y)) if classes else (BandedLine(), y)
        scores = cross_val_score(model, X, target, scoring=getattr(metrics, name), cv=3, error_score="raise")
        assert np.all(np.isfinite(scores))


def test_coverage_scorer_survives_pickling(data):
    X, y = data
    model, scorer = BandedLine().fit(X, y), functools.partial(metrics.coverage_scorer, level=0.7)
    assert 0.5 < scorer(model, X, y) < 0.9
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)


def test_scorer_names_the_estimator_without_a_predictive(data):
    with pytest.raises(TypeError, match=r"must have a predictive\(X\) method; got LinearRegression"):
        metrics.neg_nlpd_scorer(LinearRegression().fit(*data), *data)
