"""What a report says, on data for which the truth is known."""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.effects import partial_dependence
from errorband.inputs import Input
from errorband.kernels import Linear, SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from errorband.reporting import report
from errorband.reporting.classification.assessment import class_verdict
from errorband.reporting.classification.scores import class_score, ranking
from errorband.reporting.parts.comparison import Metric, Scores
from errorband.reporting.parts.data import RowNames
from errorband.reporting.parts.data_findings import input_findings, leak_findings, row_findings
from errorband.reporting.parts.outliers import bursts
from errorband.reporting.parts.sections import scores_section
from errorband.reporting.regression.assessment import assess_regression
from errorband.reporting.regression.calibration import calibrate, inside, normal_scores, pit_bounds
from errorband.reporting.regression.diagnostics import conditional_coverage, error_findings
from errorband.training import FitResult
from errorband.training.lbfgs import warn_if_not_converged


def _found(content):
    return {f.title: f.text for f in content.findings}


# ------------------------------------------------------------------------------------------------------------- inputs
def test_a_steep_straight_line_is_not_called_without_effect():
    """A length-scale of forty ranges along x1, which matters most, and along x2, which does nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 3))
    y = np.sin(6 * X[:, 0]) + 5 * X[:, 1] + 0.1 * rng.normal(size=80)
    model = GPRegressor(SquaredExponential([0.3, 30.0, 3e5], 1000.0), likelihood=Gaussian(2.5e-3), optimizer=None)
    found = _found(report(model.fit(X[:60], y[:60]), X[60:], y[60:], baselines=False).content)
    assert found["Straight lines"].startswith("x1 acts as a straight line")
    assert found["Inputs without effect"].startswith("Predictions hardly change with x2:")
    assert "x1" not in found["Inputs without effect"]


def test_columns_of_words_are_one_input():
    tree = Input.words("tree", (1, 2, 3), ("ash", "elm", "oak"), np.eye(3))
    relevance = np.array([1.0, 0.001])
    (finding,) = input_findings([Input.number("age", 0), tree], relevance)
    assert "change with tree:" in finding.text


def test_an_effect_within_its_uncertainty_is_none_and_no_straight_line():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = 2 * X[:, 0] + rng.normal(size=60)
    model = GPRegressor(Linear([1.0, 0.1, 0.1]), likelihood=Gaussian(1.0), optimizer=None).fit(X[:45], y[:45])
    content = report(model, X[45:], y[45:], baselines=False).content
    assert (content.relevance[1:] > 0.03 * content.relevance[0]).all()
    found = _found(content)
    assert found["Inputs without effect"].startswith("What x1 and x2 do to predictions is within two standard")
    assert found["Straight lines"].startswith("x0 acts as a straight line")


# --------------------------------------------------------------------------------------------------------------- rows
def test_rows_are_called_as_in_the_table(flags, sinc):
    for case in (sinc, flags):
        index = pd.Index([f"CH-{i}" for i in range(len(case.X_train))], name="house")
        X_train = pd.DataFrame(np.asarray(case.X_train), index=index)
        X_test = pd.DataFrame(np.asarray(case.X_test), index=[f"T-{i}" for i in range(len(case.X_test))])
        made = report(case.model, X_test, case.y_test, X_train=X_train, y_train=case.y_train, baselines=False)
        assert all(s.row.startswith("CH-") for s in made.content.surprises)
        assert "Rows are named by house." in made.html
    assert '"T-3"' in report(sinc.model, X_test.iloc[:, :1], sinc.y_test, baselines=False).html


def test_rows_that_a_model_keeps_have_their_own_names():
    X = pd.DataFrame(np.zeros((5, 1)), index=pd.Index([2, 3, 5, 8, 9], name="line"))
    names = RowNames.of(X, 2, kept=np.array([1, 4]))
    assert (names.names.tolist(), names.told) == (["3", "9"], "Rows are lines of the file.")


# ------------------------------------------------------------------------------------------------------------- search
def test_a_model_conditioned_on_other_rows_still_says_how_the_search_went(sinc):
    far = SquaredExponential(50.0, 1.0)
    with pytest.warns(match="did not converge"):
        searched = GPRegressor(far, optimizer=LBFGS(max_iter=1)).fit(sinc.X_train[:40], sinc.y_train[:40])
    model = searched.condition_on(sinc.X_train, sinc.y_train)
    found = _found(report(model, sinc.X_test, sinc.y_test, baselines=False).content)
    assert "Hyperparameters were not learned" not in found
    assert "The search for hyperparameters did not converge" in found


def test_a_search_that_only_creeps_is_no_warning():
    result = FitResult(
        value=-5.0, theta=np.zeros(1), gradient_norm=0.01, iterations=12, evaluations=20, stop="out of time",
        limit=60.0, seconds=60.0, trace=tuple(-5 - 0.5 ** np.arange(20)), starts=(-5.0,)
    )  # fmt: skip
    assert (result.converged, result.settled) == (False, True)
    still = dataclasses.replace(result, trace=tuple(-5 - 0.1 * np.arange(20)[::-1]))
    short = dataclasses.replace(result, trace=result.trace[-5:])
    assert [r.settled for r in (still, short, result.cut_short())] == [False] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_not_converged(result)
    with pytest.warns(match="did not converge"):
        warn_if_not_converged(still)


# ------------------------------------------------------------------------------------------------------------ verdicts
def test_counts_are_calibrated_where_they_are():
    """Draws from the predictions themselves: whole numbers lie in 50 % bands more often than every second time."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (700, 1))
    y = rng.poisson(np.exp(np.sin(2 * x[:, 0])))
    model = GPRegressor(SquaredExponential(0.7, 0.5), likelihood=Poisson(), optimizer=None).fit(x[:80], y[:80])
    predictive = model.predictive(x[80:])
    drawn = predictive.sample(random_state=1)[0]
    lower, upper = predictive.interval(0.5)
    assert np.mean((lower <= drawn) & (drawn <= upper)) > 0.56
    assert [a.verdict for a in calibrate(drawn, predictive).at] == ["right"] * 3
    np.testing.assert_allclose(np.mean(inside(pit_bounds(drawn, predictive), 0.8)), 0.8, atol=0.03)
    assert abs(np.std(normal_scores(drawn, predictive)) - 1) < 0.1


def test_a_robust_model_is_not_judged_by_its_outliers():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (140, 1))
    y = np.sin(x[:, 0]) + 0.05 * rng.normal(size=140)
    y[::12] += 40 * rng.normal(size=12)
    model = GPRegressor(
        SquaredExponential(1.0, 1.0), likelihood=StudentT(1.5, 0.05), optimizer=None, normalize=False
    ).fit(x[:80], y[:80])
    found = assess_regression(model, x[80:], y[80:], target="y")
    first, second, _ = found.verdict
    assert first.startswith("Half of its predictions of y are within 0.0")
    assert {c.metric for c in found.comparisons} == {"mae"}
    assert {c.baseline for c in found.densities if c.verdict == "better"} >= {"Linear regression", "Training mean"}
    assert "its bands describe held-out rows better" in second
    content = report(model, x[80:], y[80:], assessment=found).content
    assert np.all(np.isfinite(content.held_out.z_score))  # though the standard deviation is not
    assert np.ptp(content.held_out.z_score) > 2
    assert "No standard deviation" in _found(content)


def test_a_rare_class_is_not_judged_by_accuracy():
    codes = np.r_[np.ones(10, int), np.zeros(390, int)]
    p = np.r_[np.linspace(0.1, 0.45, 10), np.linspace(0.001, 0.2, 390)]
    share = np.column_stack([1 - p, p])
    own = class_score("m", "", codes, share, np.array([0.975, 0.025]))
    first = class_verdict([own], [], "fraud", codes, share, ["no", "yes"])[0]
    assert first.startswith(
        "2.5 % of 400 held-out rows of fraud are yes; it ranks them above the others with probability"
    )
    assert "% right" not in first


def test_area_under_the_curve():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    share = rng.dirichlet(np.ones(3), 300) + np.eye(3)[codes] * 0.3
    share /= share.sum(axis=1, keepdims=True)
    area, error = ranking(codes, share)
    assert area == pytest.approx(roc_auc_score(codes, share, multi_class="ovr"))
    assert 0 < error < 0.05
    draws = [ranking(codes[i], share[i])[0] for i in rng.integers(0, 300, (200, 300))]
    assert error == pytest.approx(np.std(draws), rel=0.5)
    area, error = ranking(np.array([0, 0, 0, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]))
    assert area == 1
    assert np.isnan(error)  # no error of nought from one row of a class


# ------------------------------------------------------------------------------------------------------------- errors
X = np.random.default_rng(5).uniform(size=(300, 2))
COLUMNS = (Input.number("size", 0), Input.number("age", 1))
NAMES = RowNames.of(X, 300)


def _errors(z):
    return {f.title: f.text for f in error_findings(z, X[:, 1], X, COLUMNS, "y", NAMES)}


def test_errors_without_a_pattern_are_left_alone():
    wrong = [_errors(np.random.default_rng(seed).normal(size=300)) for seed in range(200)]
    assert sum(bool(found) for found in wrong) <= 6


def test_planted_patterns_of_errors_are_named():
    z = np.random.default_rng(0).normal(size=300)
    outlier = z.copy()
    outlier[17] = 9
    assert "row 17." in _errors(outlier)["Outliers"]
    unequal = z * (0.4 + 1.5 * X[:, 0])
    assert "Where size 0.7" in _errors(unequal)["Errors are not equally large everywhere"]
    burst = z.copy()
    burst[100:110] += 2.5
    text = _errors(burst)["Neighbouring rows err together"]
    first, last = (int(word) for word in text.split("from ")[1].split(" lie")[0].split(" to "))
    assert 97 <= first <= 102
    assert 107 <= last <= 112
    heavy = np.random.default_rng(1).standard_t(2.5, size=300)
    heavy /= np.sqrt(np.mean(heavy**2))
    assert "Heavy tails of the noise" in _errors(heavy)


def test_another_noise_is_advised_to_gaussian_models_only():
    z = np.random.default_rng(0).normal(size=300) * (0.4 + 1.5 * X[:, 0])
    z[17] = 9
    for gaussian in (True, False):
        found = {f.title: f.text for f in error_findings(z, X[:, 1], X, COLUMNS, "y", NAMES, gaussian)}
        assert ("heavier tails" in found["Outliers"]) is gaussian
        assert ("HeteroscedasticGaussian" in found["Errors are not equally large everywhere"]) is gaussian


def test_a_large_error_where_errors_are_large_is_no_outlier():
    """Noise that grows sixfold along an input: hardly a table has a row named for that, and a planted one still is."""
    spread = np.exp(1.8 * (X[:, 0] - 0.5))
    spread /= np.sqrt(np.mean(spread**2))
    false = missed = 0
    for seed in range(60):
        z = spread * np.random.default_rng(seed).normal(size=300)
        false += "Outliers" in _errors(z)
        z[np.argmin(X[:, 0])] = 6.0  # of the model's standard deviation, where that is far more than is typical
        missed += "Outliers" not in _errors(z)
    assert false <= 3
    assert missed == 0


def test_rows_of_a_burst_are_not_named_as_outliers_too():
    z = np.random.default_rng(0).normal(size=300)
    z[100:110] += 3.5
    assert np.abs(z[100:110]).max() > 4
    found = _errors(z)
    assert "Neighbouring rows err together" in found
    assert "Outliers" not in found


def test_a_burst_is_more_than_what_chance_puts_together():
    rng = np.random.default_rng(0)
    by_chance = [bool(bursts(X, rng.choice(300, 40, replace=False))) for _ in range(60)]
    assert sum(by_chance) <= 3
    near = np.argsort(np.sum((X - 0.5) ** 2, axis=1))[:25]
    (found, *_) = bursts(X, np.union1d(near, rng.choice(300, 15, replace=False)))
    assert set(near) <= set(found)


def test_outliers_do_not_hide_in_bands_that_they_made_heavy():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (120, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    y[[5, 50]] += 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit says that another noise would be better
        model = GPRegressor("se").fit(X[:100], y[:100])
    assert model.bands_.df < 10
    found = {f.title: f for f in report(model, X[100:], y[100:], baselines=False).content.findings}
    assert {"5", "50"} == set(map(str, found["Outliers"].about))


def test_suspected_outliers_are_marked_and_listed_by_the_names_of_their_rows():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, 60)
    y = np.sin(x) + 0.1 * rng.normal(size=60)
    y[17] += 3
    table = pd.DataFrame({"x": x}, index=pd.Index([f"N-{i}" for i in range(60)], name="probe"))
    model = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(0.04), optimizer=None, normalize=False)
    made = report(model.fit(table, y), table + 0.05, np.sin(x), X_train=table, y_train=y, baselines=False)
    suspects = made.content.suspects
    assert (suspects.names.tolist(), suspects.why) == (["N-17"], ("far off",))
    assert (suspects.X.item(), suspects.y.item()) == (x[17], y[17])
    assert "Rings mark suspected outliers" in made.html
    section = made.html.split('id="suspects"')[1].split("</section>")[0]
    assert "N-17" in section
    assert "Rows are named by probe." in section


def test_coverage_in_parts_of_the_data_shows_what_the_whole_hides():
    rng = np.random.default_rng(0)
    held = np.where(X[:, 0] < 1 / 3, rng.random(300) < 0.84, rng.random(300) < 0.998).astype(float)
    groups = {g.where.split(" ")[0]: g for g in conditional_coverage(held, X[:, 1], X, COLUMNS[:1], "y")[3:4]}
    assert groups["size"].coverage.verdict == "too narrow"
    level = [g.coverage.verdict for g in conditional_coverage((rng.random(300) < 0.95) * 1.0, X[:, 1], X, COLUMNS, "y")]
    assert level.count("right") >= len(level) - 1


# --------------------------------------------------------------------------------------------------- leaks and copies
def test_an_input_made_from_the_target_is_named():
    rng = np.random.default_rng(0)
    y = np.sin(5 * X[:, 0]) + 0.2 * rng.normal(size=300)
    leaked = np.column_stack([X[:, 0], 3 * y**3 + y])
    assert leak_findings(X, y, COLUMNS, classes=False) == []
    (finding,) = leak_findings(leaked, y, COLUMNS, classes=False)
    assert finding.text.startswith("age alone tells nearly all of the target")
    codes = (y > 0).astype(int)
    assert leak_findings(X, codes, COLUMNS, classes=True) == []
    (finding,) = leak_findings(np.column_stack([X[:, 0], codes + 0.1 * rng.random(300)]), codes, COLUMNS, classes=True)
    assert finding.text.startswith("age alone")


def test_copies_of_rows_are_named():
    y = X[:, 0] ** 2
    again, target = np.vstack([X, X[3:5]]), np.append(y, y[3:5])
    found = row_findings(again, target, X[:2] + 0.5, RowNames.of(again, 302))
    assert "2 training rows repeat another one, target and all (rows 300 and 301)" in found[0].text


def test_rows_that_were_filled_in_are_no_copies_and_have_a_star():
    names = RowNames.of(X, 300)
    same = X.copy()
    same[3:5] = X[7]
    assert row_findings(same, X[:, 0], X + 2, names)[0].title == "Duplicate inputs"
    assert [f.title for f in row_findings(same, X[:, 0], X + 2, names, [3, "4"])] == ["Extrapolation"]
    marked = names.marked([3])
    assert marked.names[2:5].tolist() == ["2", "3 *", "4"]
    assert marked.told == "Rows are counted from 0. A star marks rows with missing cells, which were filled in."


def test_what_looks_equally_good_has_a_star_each():
    values = [{"m": 24.861}, {"m": 24.859}, {"m": 30.0}]
    scores = [Scores(str(i), "", v, {}, {}) for i, v in enumerate(values)]
    summary = SimpleNamespace(target="y", n_test=9)
    content = SimpleNamespace(scores=scores, comparisons=[None, None], summary=summary)
    section = scores_section(content, [Metric("m", "M", "", "low")], set(), lambda _: "")
    assert section.blocks[0].count('class="best"') == 2


def test_dates_are_asked_about_on_the_same_day_of_the_week():
    day = Input.dates("day", (0,), 18000.0, lambda values: (values - 18000.0)[:, None])
    days = np.linspace(0, 1000, 40)[:, None]
    model = GPRegressor(optimizer=None).fit(days, np.sin(days[:, 0] / 50))
    grid = partial_dependence(model, days, day).grid
    assert len(grid) > 40
    assert set(np.diff(grid) % 7) == {0}


# ------------------------------------------------------------------------------------------------------------- classes
def test_a_rare_class_comes_first():
    codes = np.r_[np.ones(4, int), np.zeros(40, int)]
    x = np.where(codes == 1, 2.0, -1.0)[:, None] + 0.6 * np.random.default_rng(0).normal(size=(44, 1))
    made = report(GPClassifier(optimizer=None).fit(x, codes), x, codes, baselines=False, class_names=["no", "yes"])
    header = made.html.split("</header>")[0]
    assert "right on held-out rows" not in header
    assert "yes found, with no false alarms" in header


def test_two_classes_get_thresholds_and_curves(flags):
    made = report(flags.model, flags.X_test, flags.y_test, target="flag")
    c = made.content.choices
    even = next(d for d in c.decisions if d.ratio == 1)
    predicted = flags.model.predict_proba(flags.X_test)[:, c.positive] > 0.5
    truth = np.asarray(flags.y_test) == flags.model.classes_[c.positive]
    assert (even.found, even.false_alarms) == (np.sum(predicted & truth), np.sum(predicted & ~truth))
    assert c.curves.recall[-1] == 1
    assert c.curves.precision[-1] == pytest.approx(truth.mean())
    assert len(made.content.class_reliability) == 2
    assert 'id="chooser"' in made.html
    assert "Which threshold" in made.html


def test_no_thresholds_for_three_classes():
    x = np.linspace(-3, 3, 45)[:, None]
    model = GPClassifier(likelihood=Bernoulli(), multi_class="one_vs_rest", optimizer=None)
    model.fit(x[::2], np.digitize(x[::2, 0], [-1, 1]))
    content = report(model, x[1::2], np.digitize(x[1::2, 0], [-1, 1]), baselines=False).content
    assert content.choices is None
    named = report(model, x[1::2], np.digitize(x[1::2, 0], [-1, 1]), baselines=False, class_names=["a", "b", "c"])
    assert {h.part.split(", ")[1] for h in named.content.hyperparameters} == {"a", "b", "c"}
    assert content.effects[0].effect.lower.shape == (25, 3)
