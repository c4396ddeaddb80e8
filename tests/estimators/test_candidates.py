"""Kernels and noises chosen by evidence with "auto", and what residuals say of the noise."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from sklearn.base import clone

import errorband
from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import FITC
from errorband.estimators import candidates, noise_check, stacking
from errorband.estimators.candidates import _Fit as Fit
from errorband.estimators.candidates import chosen
from errorband.estimators.defaults import default_kernel
from errorband.estimators.sharpness import sharpened
from errorband.features import MultiScale, SparseSpectrum

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (80, 1))
COUNTS = rng.poisson(np.exp(0.5 + np.sin(2 * X[:, 0]))).astype(float)


@pytest.fixture(scope="module")
def counts():
    return GPRegressor("se", likelihood="auto", random_state=0).fit(X, COUNTS)


def test_counts_ask_for_a_likelihood_of_counts(counts):
    table = counts.candidates_
    assert table.name[:3] == ("gaussian", "poisson", "negative-binomial")
    assert type(counts.likelihood_).__name__ in ("Poisson", "NegativeBinomial")
    assert table.log_evidence[1] > table.log_evidence[0] + 5
    assert sum(table.chosen) == 1
    assert set(table.n_rows) == {80}
    assert "poisson" in str(table)
    assert counts.get_params()["likelihood"] == "auto"


def test_what_was_chosen_is_kept_by_files_and_for_other_rows(counts, tmp_path):
    counts.save(tmp_path / "model.eb")
    again = errorband.load(tmp_path / "model.eb")
    assert again.candidates_ == counts.candidates_
    np.testing.assert_allclose(again.predict(X[:3]), counts.predict(X[:3]))
    other = again.condition_on(X[:40], COUNTS[:40])
    assert type(other.likelihood_) is type(counts.likelihood_)


def test_kernels_are_compared_on_the_same_rows():
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=80)
    model = GPRegressor("auto", random_state=0).fit(X, y)
    table = model.candidates_
    assert set(table.argument) == {"kernel"}
    assert table.chosen.count(True) == 1
    taken = table.chosen.index(True)
    assert table.loo[taken] >= table.loo[0]
    assert table.score[taken] >= table.score[0] - candidates.SAME
    assert abs(model.predict([[3.0]])[0] - 6.0) < 0.3
    assert not hasattr(GPRegressor("se").fit(X, y), "candidates_")


def test_searches_that_start_from_those_before_find_the_same(monkeypatch):
    monkeypatch.setattr(candidates, "ROWS", 48)
    y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=80)
    model = GPRegressor("auto", random_state=0).fit(X, y)
    table, some = model.candidates_, np.sort(np.random.RandomState(0).permutation(80)[:48])
    for argument, name, found in zip(table.argument, table.name, table.log_evidence, strict=True):
        if argument == candidates.ON_ALL:
            continue
        assert found == pytest.approx(GPRegressor(name, random_state=0).fit(X[some], y[some]).log_evidence_, abs=0.05)
    alone = GPRegressor(table.winners()["kernel"], random_state=0).fit(X, y)
    assert model.log_evidence_ == pytest.approx(alone.log_evidence_, abs=0.05)
    assert model.fit_result_.evaluations < 0.7 * alone.fit_result_.evaluations
    assert model.bands_.df > 2  # of the winner, though candidates have none
    assert "_fitted_before" not in vars(model)


def test_on_all_rows_the_winner_meets_the_first_candidate(monkeypatch):
    """Few rows say nothing of a short length-scale that all of them know; a winner that fails there is none."""
    monkeypatch.setattr(candidates, "ROWS", 12)
    x = np.linspace(-3, 3, 80)[:, None]
    y = np.sin(8 * x[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=80)
    seen = []

    def spoiled(model, argument, name, X, y, given, bands):
        found = fitted(model, argument, name, X, y, given, bands)
        seen.append((argument, name, len(y)))
        lead = 0.0 if name != "rq" else 100.0 if argument == "kernel" else -1e15
        return dataclasses.replace(found, score=found.score + lead, loo=np.full(len(y), lead))

    fitted = candidates._fitted
    monkeypatch.setattr(candidates, "_fitted", spoiled)
    model = GPRegressor("auto", random_state=0).fit(x, y)
    first = seen[0][1]
    assert [s for s in seen if s[0] == candidates.ON_ALL] == [(candidates.ON_ALL, name, 80) for name in (first, "rq")]
    assert model.candidates_.winners() == {"kernel": first}
    assert model.candidates_.n_rows[-2:] == (80, 80)
    assert model.log_evidence_ == pytest.approx(GPRegressor(random_state=0).fit(x, y).log_evidence_, abs=0.05)
    assert "all rows rq" in str(model.candidates_)


def test_a_new_choice_does_not_depend_on_the_last_one(counts):
    """Arguments that what was chosen before would not go with."""
    again = clone(counts).fit(X, COUNTS)
    assert again.likelihood_.log_rate
    again.set_params(target_transform="log").fit(X, COUNTS + 0.5)
    assert not again.likelihood_.log_rate


def test_columns_have_names_when_classes_choose_their_link():
    frame = pd.DataFrame({"a": X[:, 0], "b": rng.normal(size=80)})
    model = GPClassifier("se(column=a)", likelihood="auto", optimizer=LBFGS(max_iter=5), random_state=0)
    assert model.fit(frame, X[:, 0] > 0).score(frame, X[:, 0] > 0) > 0.9


def test_rows_of_no_weight_and_a_candidate_that_fails(monkeypatch):
    fitted = candidates._fitted

    def failing(model, argument, name, *rest):
        if name in ("matern52+linear", "matern32+linear"):
            model = GPRegressor("se", optimizer="none")  # which is refused
        return fitted(model, argument, name, *rest)

    monkeypatch.setattr(candidates, "_fitted", failing)
    weight = np.arange(80) % 4 > 0
    model = GPRegressor("auto", optimizer=LBFGS(max_iter=5), random_state=0)
    assert model.fit(X, np.sin(X[:, 0]), sample_weight=weight).candidates_.winners()["kernel"] in ("se", "rq")


@pytest.fixture(scope="module")
def classes():
    """Inputs, and labels that a line tells apart, one in ten of them wrong."""
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(90, 2))
    return inputs, np.where((inputs.sum(axis=1) > 0) ^ (rng.random(90) < 0.1), "yes", "no")


@pytest.fixture(scope="module")
def mixture(classes):
    return GPClassifier("auto", random_state=0).fit(*classes)


def test_classes_mix_their_candidates(classes, mixture):
    table = mixture.candidates_
    assert table.name == ("se", "linear", "matern12")
    alone = {name: GPClassifier(name, calibrate=False, random_state=0).fit(*classes) for name in table.name}
    left_out = np.stack([model.loo().log_density for model in alone.values()])
    evidence = np.array([model.log_evidence_ for model in alone.values()])
    np.testing.assert_allclose(table.share, stacking.stacked_shares(left_out, evidence), atol=0.01)
    new = np.random.default_rng(4).normal(size=(20, 2))
    for ask in ("predict_proba", "plug_in", "loo"):

        def answer(model, ask=ask):
            if ask == "loo":
                return model.loo().probabilities
            return model.predict_proba(new, plug_in=ask == "plug_in")

        expected = sum(w * answer(alone[name]) for name, w in zip(table.name, table.share, strict=True))
        expected = sharpened(expected, mixture.sharpness_)
        np.testing.assert_allclose(answer(mixture), expected, atol=2e-3)  # searches end nearby
    assert "share" in str(table)
    best = table.name[table.chosen.index(True)]
    assert mixture.log_evidence_ == pytest.approx(alone[best].log_evidence_, abs=0.05)
    assert type(mixture.kernel_) is type(alone[best].kernel_)


def test_candidates_of_classes_follow_the_first_in_whether_length_scales_are_equal(classes, mixture, monkeypatch):
    found = {}

    def keeping(model, argument, name, *rest):
        found[name] = fitted(model, argument, name, *rest)
        return found[name]

    fitted = candidates._fitted
    monkeypatch.setattr(candidates, "_fitted", keeping)
    again = GPClassifier("auto", random_state=0).fit(*classes)
    assert again.candidates_.share == mixture.candidates_.share
    first, rough = (found[name].model.fit_result_ for name in ("se", "matern12"))
    assert first.tied
    assert rough.tied
    alone = GPClassifier("matern12", random_state=0).fit(*classes).fit_result_
    assert rough.evaluations < alone.evaluations / 2  # no search for length-scales of each input
    assert rough.value == pytest.approx(alone.value, abs=0.05)


def test_what_is_compiled_ahead_changes_nothing(classes):
    inputs, labels = classes
    alone = GPClassifier(random_state=0).fit(inputs[:60], labels[:60])
    with candidates.concluded_ahead(GPClassifier(random_state=0), inputs, labels, {}):
        beside = GPClassifier(random_state=0).fit(inputs[:60], labels[:60])
    np.testing.assert_array_equal(alone.predict_proba(inputs), beside.predict_proba(inputs))
    with candidates.concluded_ahead(GPClassifier(random_state=0), inputs, labels[:3], {}):  # failure is silent
        pass


def test_a_mixture_of_candidates_is_kept_by_files_and_for_other_rows(classes, mixture, tmp_path):
    inputs, labels = classes
    mixture.save(tmp_path / "mixture.eb")
    again = errorband.load(tmp_path / "mixture.eb")
    np.testing.assert_array_equal(again.predict_proba(inputs), mixture.predict_proba(inputs))
    twice = again.condition_on(inputs, labels, sample_weight=np.full(90, 2.0))
    rows = np.tile(np.arange(90), 2)
    np.testing.assert_allclose(
        twice.predict_proba(inputs), mixture.condition_on(inputs[rows], labels[rows]).predict_proba(inputs), atol=1e-5
    )
    assert twice.candidates_ == mixture.candidates_
    assert twice.get_params()["kernel"] == "auto"
    plain = GPClassifier(optimizer=None).fit(inputs, labels)
    plain.save(tmp_path / "plain.eb")  # members share their rows, and none is in the file twice
    sizes = [(tmp_path / f"{name}.eb").stat().st_size for name in ("mixture", "plain")]
    assert sizes[0] < 1.3 * 3 * sizes[1]


def test_evidence_of_a_mixture_is_annealed_for_the_member_it_shows(mixture):
    asked = {"runs": 3, "temperatures": 10}
    assert mixture.annealed_evidence(**asked) == mixture.mixture_members_[0].annealed_evidence(**asked)


def test_members_that_saw_few_rows_go_on_with_all(classes, monkeypatch):
    inputs, labels = classes
    monkeypatch.setattr(candidates, "ROWS", 40)
    monkeypatch.setattr(candidates, "FEW", 50)
    known = []

    def keeping(model, *rest):
        known.append((model, again := go_on(model, *rest)))
        return again

    go_on = candidates._gone_on
    monkeypatch.setattr(candidates, "_gone_on", keeping)
    model = GPClassifier("auto", random_state=0).fit(100.0 + 50.0 * inputs, labels)
    table = model.candidates_
    assert set(table.n_rows) <= {40, 90}
    assert sum(table.share) == pytest.approx(1.0)
    assert all(m.n_training_rows_ == 90 and m.scaling_ is model.scaling_ for m in model.mixture_members_)
    assert model.score(100.0 + 50.0 * inputs, labels) > 0.85
    assert known
    for before, after in known:
        assert after.log_evidence_ > before.log_evidence_ - 0.01
        assert after.fit_result_.tied == before.fit_result_.tied
        alone = GPClassifier(after.kernel, calibrate=False, random_state=0).fit(100.0 + 50.0 * inputs, labels)
        assert after.log_evidence_ == pytest.approx(alone.log_evidence_, abs=0.5)
    assert max(after.log_evidence_ - before.log_evidence_ for before, after in known) > 0.05


def test_length_scales_stay_as_alike_as_few_rows_found_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=120) > 0
    few = GPClassifier("se", optimizer=LBFGS(settle=5), calibrate=False, random_state=0).fit(X[:60], y[:60])
    assert few.fit_result_.cost > 0
    more = candidates._gone_on(few.condition_on(X, y), 2.0, X, y, {})
    known, found = few.fit_result_, more.fit_result_
    assert not found.tied
    assert found.evaluations <= 3 * candidates.FURTHER  # one search, and none for what length-scales cost
    assert found.cost == pytest.approx(known.cost + 0.5 * np.log(2.0) * known.n_alike)
    assert found.n_numbers == known.n_numbers
    assert more.log_evidence_ > few.condition_on(X, y).log_evidence_


def test_what_cannot_be_mixed_is_the_best_alone(classes):
    inputs, labels = classes
    model = GPClassifier("auto", approximation=FITC(10), optimizer=LBFGS(max_iter=3), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(inputs, labels)
    assert model.candidates_.share == ()
    assert not hasattr(model, "mixture_members_")
    refitted = model.set_params(kernel="se", approximation="exact").fit(inputs, labels)
    assert not hasattr(refitted, "candidates_")


def test_shares_are_those_that_predict_rows_left_out_best():
    rng = np.random.default_rng(0)
    log_density = np.log(rng.uniform(0.05, 1.0, (3, 200)))
    weights, evidence = rng.uniform(0.5, 2.0, 200), np.array([-100.0, -95.0, -110.0])
    prior = np.exp(evidence / stacking.TEMPERATURE) / np.sum(np.exp(evidence / stacking.TEMPERATURE))

    def minus_objective(free):
        shares = np.exp(np.append(free, 0.0)) / np.sum(np.exp(np.append(free, 0.0)))
        rows = np.log(shares @ np.exp(log_density))
        return -np.sum(weights * rows) - stacking.PSEUDO_ROWS * np.sum(prior * np.log(shares))

    found = scipy.optimize.minimize(minus_objective, np.zeros(2), tol=1e-10).x
    expected = np.exp(np.append(found, 0.0)) / np.sum(np.exp(np.append(found, 0.0)))
    np.testing.assert_allclose(stacking.stacked_shares(log_density, evidence, weights), expected, atol=1e-5)
    whole = np.tile(log_density, (1, 2))
    np.testing.assert_allclose(
        stacking.stacked_shares(log_density, evidence, np.full(200, 2.0)),
        stacking.stacked_shares(whole, evidence),
        atol=1e-6,
    )
    none = np.full((2, 5), -np.inf)  # a row that nobody expects says nothing
    none[:, 0] = [-1.0, -2.0]
    assert np.all(np.isfinite(stacking.stacked_shares(none, np.zeros(2))))


def test_leave_one_out_has_a_word():
    z = np.linspace(-0.1, 0.1, 50)
    best = Fit("kernel", "high evidence", object(), 10.0, 10.0, -1.0 + z, 0.0)
    other = Fit("kernel", "better predictions", object(), 5.0, 5.0, -0.5 - z, 0.0)
    same = Fit("kernel", "as good", object(), 5.0, 5.0, -1.0 - z, 0.0)
    failed = Fit("kernel", "failed", None, -np.inf, -np.inf, np.full(50, -np.inf), 0.0)
    assert chosen([best, other, failed]) is other
    assert chosen([best, same, failed]) is best
    as_high = Fit("kernel", "as high", object(), 10.05, 10.05, -1.0 - z, 0.0)
    assert chosen([best, as_high]) is best  # the first of two between which a search cannot tell
    assert chosen([failed, failed]) is failed
    doubtful = Fit("kernel", "more evidence, worse predictions", object(), 20.0, 20.0, -1.01 - z, 0.0)
    assert chosen([best, doubtful]) is best  # the default
    assert chosen([failed, doubtful, best]) is doubtful  # there is no default to compare with


# ------------------------------------------------------------------------------------------------------- residuals
def test_residuals_say_what_noise_they_ask_for():
    r = np.random.default_rng(1)
    inputs, normal = r.normal(size=(300, 2)), r.normal(size=300)
    quiet = noise_check.gains(normal, inputs, inputs[:, 0])
    assert max(quiet.values()) < 3
    assert noise_check.advice(quiet, 300) is None
    gross = np.where(r.random(300) < 0.1, 8.0, 0.7) * normal
    found = noise_check.gains(gross, inputs, inputs[:, 0])
    assert found["outlier-mixture"] > max(50, found["heteroscedastic"])
    assert "outliers" in noise_check.advice(found, 300)
    fans = np.exp(0.8 * inputs[:, 1]) * normal
    found = noise_check.gains(fans, inputs, inputs[:, 0])
    assert found["heteroscedastic"] > max(50, found["student-t"], found["outlier-mixture"])


def test_a_plain_fit_warns_of_outliers():
    r = np.random.default_rng(0)
    y = np.sin(2 * X[:, 0]) + 0.05 * r.normal(size=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor(random_state=0).fit(X, y)
    y[::9] += 3 * r.normal(size=len(y[::9]))
    with pytest.warns(UserWarning, match='another noise.*likelihood="auto"'):
        model = GPRegressor(random_state=0).fit(X, y)
    assert max(model.noise_gains_.values()) > 10


def test_features_have_a_default_kernel_they_can_use():
    names = GPRegressor._kernel_candidates
    assert type(default_kernel(names, "auto")).__name__ == "Sum"
    for approximation in (SparseSpectrum(10), "sparse-spectrum(10)", FITC(5, features=MultiScale())):
        assert type(default_kernel(names, approximation)).__name__ == "SquaredExponential"


def test_a_kernel_that_is_rougher_still_is_left_out():
    def fitted(name, evidence, loo):
        return Fit("kernel", name, object(), evidence, evidence, np.full(4, loo), 0.0)

    smooth = fitted("matern52+linear", -10.0, -1.0)
    for rough, left_out in ((("matern32+linear", -20.0, -2.0), True), (("matern32+linear", -5.0, -0.5), False)):
        assert candidates.too_rough("matern12+linear", [smooth, fitted(*rough)]) is left_out
    assert not candidates.too_rough("matern12+linear", [smooth])
    assert not candidates.too_rough("rq", [smooth])


@pytest.mark.slow
def test_functions_of_single_inputs_are_tried_where_there_are_many():
    """Labels that a sum of three functions decides, of 30 inputs: no row has near neighbours in all of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 30))
    f = 3 * np.sin(3 * X[:, 0]) + 2 * np.cos(3 * X[:, 1]) + X[:, 2] ** 3
    model = GPClassifier("auto", random_state=0).fit(X[:200], f[:200] > 0)
    assert model.candidates_.winners()["kernel"] == "additive"
    plain = GPClassifier(random_state=0).fit(X[:200], f[:200] > 0)
    assert model.score(X[200:], f[200:] > 0) > plain.score(X[200:], f[200:] > 0)


def test_another_noise_is_searched_for_on_some_rows_and_has_all_in_its_posterior(monkeypatch):
    """With many rows an evaluation takes seconds: hyperparameters of few are conditioned on all."""
    monkeypatch.setattr("errorband.estimators.regressor.DEAR", 60)
    monkeypatch.setattr("errorband.estimators.candidates.ROWS", 50)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (90, 1))
    y = rng.poisson(np.exp(1 + np.sin(2 * X[:, 0])))
    model = GPRegressor("se", likelihood="auto", random_state=0).fit(X, y)
    assert model.candidates_.winners() == {"likelihood": "poisson"}
    assert len(model.training_data()[1]) == 90
    assert model.search_log_evidence_ > model.log_evidence_  # of sixty rows, and of all
    assert model.predict([[0.8]])[0] == pytest.approx(np.exp(1 + np.sin(1.6)), rel=0.2)


def test_errors_that_grow_along_an_input_are_no_outliers():
    """The bands have their spread: what is left of them is normal."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    y = np.sin(2 * X[:, 1]) + 0.2 * np.exp(X[:, 0]) * rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*another noise")
        model = GPRegressor(random_state=0).fit(X, y)
    assert model.noise_gains_["outlier-mixture"] > 40
    assert model.bands_.spread is not None
