"""Every model from the shell: kernels, likelihoods and models by name, and estimators that others register."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from cli.sentences import check_one_sentence
from errorband.cli.failures import Problem
from errorband.cli.models import _for_task, check_names, model_named, unfitted
from errorband.cli.planning import optimizer, rows_to_search
from errorband.cli.settings import Settings
from errorband.estimators import ESTIMATORS, GPClassifier
from errorband.predictive import GaussianPredictive
from errorband.table_model import TableModel
from errorband.tables import TableEncoder


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Counts, classes and a date, of forty days."""
    rng, n = np.random.default_rng(0), 40
    x = rng.uniform(0, 4, n)
    day = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(n), "D")
    kind = np.array(["low", "mid", "high"])[np.digitize(x, [1.3, 2.6])]
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    frame = pd.DataFrame({"sold on": day, "size": x, "kind": kind, "visits": rng.poisson(np.exp(x - 1))})
    frame.to_csv(path, index=False)
    return path


def fit(run, path, folder, *options, target="visits"):
    result = run("fit", path, "--target", target, "--time-budget", 1, "-o", folder / "m.eb", *options)
    assert result.exit_code == 0, result.stderr
    return TableModel.load(folder / "m.eb")


def test_likelihood_and_a_composed_kernel(run, visits, tmp_path):
    kernel = "matern52(columns=[size, kind]) + periodic(period=7, column='sold on')"
    model = fit(run, visits, tmp_path, "--likelihood", "poisson", "--kernel", kernel, "--model", "fitc(5)")
    estimator = model.estimator
    assert type(estimator.likelihood_).__name__ == "Poisson"
    names = np.asarray(estimator.feature_names_in_)
    assert [*names[list(estimator.kernel_.left.active_dims)]] == ["size", "kind=high", "kind=low", "kind=mid"]
    assert [*names[list(estimator.kernel_.right.active_dims)]] == ["sold on [days]"]
    assert len(estimator.approximation_.inducing_inputs) == 5
    assert (model.facts["kernel"], model.facts["likelihood"]) == (kernel, "poisson")


def test_choices_by_evidence_are_left_to_the_estimator(visits):
    frame = pd.read_csv(visits)
    settings = Settings(kernel="auto", likelihood="auto")
    check_names(settings)
    encoder = TableEncoder.fit(frame, target="visits")
    estimator = unfitted(settings, encoder, "auto")
    assert (estimator.kernel, estimator.likelihood) == ("auto", "auto")
    assert rows_to_search(encoder, settings) < rows_to_search(encoder, Settings())
    with pytest.raises(Problem, match="There is no likelihood 'auto'"):
        unfitted(settings, TableEncoder.fit(frame, target="kind"), "auto")


def test_networks_and_mixtures_of_them(run, visits, tmp_path):
    """The number of basis functions plans the search; a mixture is one of models with the options of the command."""
    model = fit(run, visits, tmp_path, "--model", "mcn(4)", "--kernel", "se")
    assert model.estimator.approximation_.features.size == 4
    mixture = ("--model", "mixture(mcn(4), n=2, kind=auto)", "--kernel", "se", "--report", tmp_path / "r.html")
    model = fit(run, visits, tmp_path, *mixture)
    assert "mean log density of" in " ".join(model.facts["notes"])
    numbers = TableEncoder.fit(pd.read_csv(visits), target="visits")
    iterations = [optimizer(model_named(name), 10**6, numbers, Settings()).max_iter
                  for name in ("mcn(50)", "bounded(mcn(50))", "mixture(mcn(50))")]  # fmt: skip
    assert iterations == [171, 171, 42]
    for name in ("mixture(rvm)", "mixture(exact)", "mixture(4)"):
        with pytest.raises(Problem, match=r"write one like mixture\(mcn\(50\)\)"):
            model_named(name)


def test_one_model_for_each_class(run, visits, tmp_path):
    options = ("--multi-class", "one-vs-rest", "--likelihood", "logit", "--report", tmp_path / "r.html")
    model = fit(run, visits, tmp_path, *options, target="kind")
    assert len(model.estimator.estimators_) == 3
    assert model.facts["search"]["iterations"] == sum(r.iterations for r in model.estimator.fit_result_)
    assert "one for each class" in run("info", tmp_path / "m.eb").stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kernel", "periodic(column=sizes)"), "the column 'sizes' (closest: 'size')"),
        (("--kernel", "wiggly"), "There is no kernel 'wiggly', so choose from"),
        (("--kernel", "se+"), "cannot be read"),
        (("--likelihood", "poison"), "There is no likelihood 'poison' (closest: 'poisson')"),
        (("--likelihood", "probit"), "There is no likelihood 'probit', so choose from beta"),
        (("--multi-class", "one-vs-rest"), "--multi-class means nothing to a model of numbers"),
        (("--model", "fitc(20)", "--inducing", "10"), "both speak of numbers"),
        (("--model", "fitc(20, power=2)"), "no argument 'power'"),
    ],
)
def test_names_that_do_not_fit_are_refused(run, visits, tmp_path, options, told):
    result = run("fit", visits, "--target", "visits", "-o", tmp_path / "m.eb", *options)
    check_one_sentence(result, 2)
    assert told in result.stderr
    assert not (tmp_path / "m.eb").exists()


class NearestRowsRegressor(RegressorMixin, BaseEstimator):
    """An estimator of another kind: all that the tool needs is ``fit``, ``predictive`` and ``training_data``."""

    def __init__(self, spread=1.0, random_state=None):
        self.spread, self.random_state = spread, random_state

    def fit(self, X, y):
        self.X_, self.y_, self.feature_names_in_ = np.asarray(X), np.asarray(y), np.asarray(X.columns, dtype=object)
        self.n_features_in_ = self.X_.shape[1]
        return self

    def predictive(self, X):
        near = np.argmin(((np.asarray(X)[:, None] - self.X_) ** 2).sum(2), axis=1)
        return GaussianPredictive(self.y_[near], np.full(len(near), self.spread * np.std(self.y_)))

    def training_data(self):
        return self.X_, self.y_


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "NearestRowsRegressor", NearestRowsRegressor)


@pytest.mark.usefixtures("registered")
def test_a_line_in_the_registry_is_a_model_of_the_tool(run, visits, tmp_path):
    told = "--seed", "3", "--report", tmp_path / "r.html"
    model = fit(run, visits, tmp_path, "--model", "nearest-rows(spread=2)", *told)
    page = (tmp_path / "r.html").read_text()
    assert "The average prediction along one input" in page
    assert "the uncertainty of this average" not in page
    assert type(model.estimator) is NearestRowsRegressor
    assert (model.estimator.spread, model.estimator.random_state) == (2, 3)
    assert len(model.estimator.y_) == model.facts["rows_in_model"] == 40  # fitted again to all rows
    assert run("predict", tmp_path / "m.eb", visits, "-o", tmp_path / "p.csv").exit_code == 0
    assert "NearestRowsRegressor" in run("info", tmp_path / "m.eb").stdout
    assert json.loads(run("info", tmp_path / "m.eb", "--json").stdout)["log_evidence"] is None


@pytest.mark.usefixtures("registered")
def test_models_are_held_to_their_task_and_options(run, visits, tmp_path):
    assert type(model_named("nearestrows")) is NearestRowsRegressor
    output = ("-o", tmp_path / "m.eb", "--model", "nearest-rows")
    for options, told in (
        (("--target", "kind"), "is for numbers and the target holds classes, so choose from auto, exact"),
        (("--target", "visits", "--kernel", "se"), "--kernel means nothing to --model nearest-rows"),
        (("--target", "visits", "--inducing", "9"), "has no inducing points"),
    ):
        result = run("fit", visits, *options, *output)
        check_one_sentence(result, 2)
        assert told in result.stderr


def test_weights_exposures_and_transforms(run, visits, tmp_path):
    """Each reaches the estimator, and predictions follow."""
    frame = pd.read_csv(visits).assign(
        people=np.arange(1, 41) * 10.0, often=np.tile([1, 2], 20), cost=lambda t: 1 + t["size"] ** 2
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    ignored = ("--ignore", "sold on,kind", "--weight", "often")
    counted = fit(run, tmp_path / "t.csv", tmp_path, *ignored, "--likelihood", "poisson", "--exposure", "people")
    assert counted.estimator.exposure == "people"
    assert np.sum(counted.estimator._training_data.weights) == 60
    assert "often" in counted.encoder.unused
    double, _ = counted.predict(frame.assign(people=2 * frame["people"]))
    np.testing.assert_allclose(double["mean"], 2 * counted.predict(frame)[0]["mean"], rtol=1e-6)
    options = ("--target-transform", "log", "--ignore", "sold on,kind,often,visits", "--report", tmp_path / "r.html")
    positive = fit(run, tmp_path / "t.csv", tmp_path, *options, target="cost")
    assert positive.predict(frame, level=0.999)[0]["lower"].min() > 0
    assert positive.facts["target_transform"] == "log"
    assert "Log of cost" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--target-transform", "logarithm"), 2, "There is no target_transform 'logarithm'"),
        (("--exposure", "kind", "--likelihood", "poisson"), 2, "--exposure kind is not an input that holds numbers"),
        (("--exposure", "size"), 5, "is for counts at a rate"),
        (("--target-transform", "log"), 5, "needs targets that are above 0"),
        (("--weight", "kind"), 3, "are not numbers"),
        (("--weight", "sizes"), 3, "There is no column 'sizes'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(run, visits, tmp_path, options, code, told):
    result = run("fit", visits, "--target", "visits", "-o", tmp_path / "m.eb", "--time-budget", 1, *options)
    check_one_sentence(result, code)
    assert told in result.stderr


def test_a_kernel_of_labels_over_a_column_of_words(run, visits, tmp_path):
    kernel = "se(column=size) * categorical(column=kind)"
    model = fit(run, visits, tmp_path, "--kernel", kernel, "--ignore", "sold on", "--missing", "impute")
    frame = pd.read_csv(visits).drop(columns="visits").head(3)
    known, new = (model.predict(f)[0]["std"] for f in (frame, frame.assign(kind="huge")))
    assert np.all(new > known)


def test_a_name_of_two_estimators_goes_by_the_task():
    found = {
        (name, classes): _for_task(model_named(name), SimpleNamespace(model=name), classes)
        for name in ("rvm", "bcm")
        for classes in (False, True)
    }
    assert [type(found["rvm", classes]).__name__ for classes in (False, True)] == ["RVMRegressor", "RVMClassifier"]
    assert found["bcm", False].estimator is None
    assert isinstance(found["bcm", True].estimator, GPClassifier)
    assert [type(model_named(name)).__name__ for name in ("sga", "lsc", "p1nn", "poe")] == [
        *("SparseGreedy", "LeastSquaresGPClassifier", "ProbabilisticNearestNeighbour", "ProductOfExperts")
    ]


def test_reports_on_what_is_no_gaussian_process(run, visits, tmp_path):
    told = "--ignore", "sold on", "--model", "p1nn", "--report", tmp_path / "r.html"
    fit(run, visits, tmp_path, *told, target="kind")
    page = (tmp_path / "r.html").read_text()
    assert "ProbabilisticNearestNeighbour()" in page
    assert "log evidence" not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("rvm", "visits"),
        ("rvm", "kind"),
        ("bcm(n_members=2)", "visits"),
        ("poe(n_members=2)", "kind"),
        ("sga(9)", "visits"),
        ("lsc", "kind"),
        ("p1nn", "kind"),
        ("generative-gaussian", "kind"),
    ],
)
def test_estimators_of_other_kinds(run, visits, tmp_path, name, target):
    """Fitted, judged, reported on, shown and asked for predictions by the tool."""
    told = "--ignore", "sold on", "--model", name, "--report", tmp_path / "r.html"
    fit(run, visits, tmp_path, *told, target=target)
    assert "Before you trust it" in (tmp_path / "r.html").read_text()
    assert run("info", tmp_path / "m.eb").exit_code == 0
    assert run("predict", tmp_path / "m.eb", visits, "-o", tmp_path / "p.csv").exit_code == 0
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert len(predicted) == 40
    assert predicted.notna().all().all()
