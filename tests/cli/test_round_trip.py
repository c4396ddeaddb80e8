"""From a table to predictions: what the commands print and write, and that it is what the Python API gives."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import errorband
from errorband import LBFGS, GPRegressor
from errorband.approximations import APPROXIMATIONS
from errorband.cli import fitting
from errorband.cli.candidates import baselines
from errorband.cli.models import model_named
from errorband.cli.settings import Settings
from errorband.reporting.classification.baselines import CLASS_BASELINES
from errorband.reporting.regression.baselines import BASELINES
from errorband.table_model import TableModel, as_frame
from errorband.tables import TableEncoder, read_table


def test_fit_prints_scores_and_writes_all(fitted):
    printed = (fitted / "fit.txt").read_text()
    for word in ("errorband GPRegressor", "Training mean", "Linear regression", "NLPD", "held-out rows", "model.eb"):
        assert word in printed
    assert "<html" in (fitted / "report.html").read_text(encoding="utf-8")[:500].lower()


def test_info(run, fitted):
    result = run("info", fitted / "model.eb")
    assert result.exit_code == 0
    for word in ("progression (regression)", "clinic", "north, south, west", "Matern", "80 in the model"):
        assert word in result.stdout
    facts = json.loads(run("info", fitted / "model.eb", "--json").stdout)
    assert facts["rows_in_model"] == 80
    assert facts["rows_held_out"] == 16
    assert [c["name"] for c in facts["columns"]] == ["sex", "clinic", "visit", "bmi", "bp", "s5"]


def test_predictions_equal_those_of_the_python_api(run, fitted, diabetes, tmp_path):
    new = diabetes.drop(columns="progression").iloc[::-3]
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    assert run("predict", fitted / "model.eb", tmp_path / "new.csv", "--output", out, "--level", 0.8).exit_code == 0
    got = pd.read_csv(out, dtype={"patient": str})
    assert list(got) == ["patient", "mean", "std", "lower", "upper"]
    assert got["patient"].tolist() == new["patient"].tolist()
    estimator = errorband.load(fitted / "model.eb")
    assert isinstance(estimator, GPRegressor)
    encoder = TableModel.load(fitted / "model.eb").encoder
    predictive = estimator.predictive(as_frame(encoder.transform(new.reset_index(drop=True)))[0])
    lower, upper = predictive.interval(0.8)
    for name, values in (("mean", predictive.mean), ("std", predictive.std), ("lower", lower), ("upper", upper)):
        np.testing.assert_allclose(got[name], values, rtol=1e-12)


def test_the_model_is_one_fitted_by_hand(fitted):
    """Same encoding, same training rows, same search: then all rows with the hyperparameters found."""
    frame = read_table(fitted / "data.csv", text_columns=["patient"])
    encoder = TableEncoder.fit(frame, target="progression", id_column="patient")
    model = TableModel.load(fitted / "model.eb")
    assert model.encoder == encoder
    X, y = as_frame(encoder.transform(frame))
    assert model.estimator.n_training_rows_ == len(X)
    train, _ = fitting.split(encoder.transform(frame), encoder, Settings())
    searched = GPRegressor(random_state=0).fit(X.iloc[train], y[train])
    assert model.estimator.scaling_.y_shift == searched.scaling_.y_shift == pytest.approx(y[train].mean())
    np.testing.assert_allclose(searched.condition_on(X, y).predict(X), model.estimator.predict(X), rtol=1e-10)


def test_standard_input_and_output(run, fitted, diabetes):
    text = diabetes.drop(columns="progression").head(3).to_csv(index=False)
    result = run("predict", fitted / "model.eb", "-", input=text)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "patient,mean,std,lower,upper"
    assert [line.split(",")[0] for line in lines[1:]] == ["0000", "0001", "0002"]


def test_fit_from_standard_input(run, diabetes, tmp_path):
    text = diabetes[["bmi", "progression"]].to_csv(index=False)
    result = run("fit", "-", "--target", "progression", "-o", tmp_path / "m.eb", "--time-budget", 5, input=text)
    assert result.exit_code == 0
    assert (tmp_path / "m.eb").exists()


@pytest.mark.parametrize(("missing", "empty"), [("drop", True), ("impute", False)])
def test_semicolons_and_missing_cells(run, wine, tmp_path, missing, empty):
    wine.to_csv(tmp_path / "wine.csv", index=False, sep=";", decimal=",")
    model, out = tmp_path / "wine.eb", tmp_path / "out.csv"
    common = ("fit", tmp_path / "wine.csv", "--target", "alcohol", "-o", model, "--time-budget", 5)
    result = run(*common, "--missing", missing)
    assert result.exit_code == 0
    assert "decimal commas" in result.stderr
    assert run("predict", model, tmp_path / "wine.csv", "-o", out).exit_code == 0
    got = pd.read_csv(out)
    assert len(got) == len(wine)
    assert got["mean"].isna().tolist() == [empty and i in (3, 5, 17) for i in range(len(wine))]


def test_rows_with_missing_cells_are_predicted_and_named(run, wine, tmp_path):
    wine.to_csv(tmp_path / "wine.csv", index=False)
    args = ("--target", "alcohol", "--missing", "impute", "-o", tmp_path / "m.eb", "--time-budget", 5)
    result = run("fit", tmp_path / "wine.csv", *args, "--report", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    assert "3 rows with missing cells" in result.stderr
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "3 rows with missing cells: 5, 7 and 19." in page  # the header is line 1
    assert "Rows are lines of the file." in page
    model = TableModel.load(tmp_path / "m.eb")
    assert model.estimator.n_training_rows_ == len(wine) - 3
    found, _ = model.predict(wine.head(6))
    assert found["imputed"].tolist() == ["", "", "", "hue", "", "grape"]
    complete = model.predict(wine.dropna())[0]
    assert found["std"][5] > complete["std"].mean()


def test_reports_name_rows_by_their_id(fitted, diabetes):
    page = (fitted / "report.html").read_text(encoding="utf-8")
    assert "Rows are named by patient." in page
    table = page.split("Most surprising training rows</h2>")[1].split("</table>")[0]
    frame = diabetes.set_index("patient")
    for row in table.split('<th scope="row"')[1:]:
        name, observed = row.split(">")[1].split("<")[0], row.split("<td")[1].split(">")[1].split("<")[0]
        assert float(observed.replace(",", "")) == pytest.approx(frame.loc[name, "progression"], abs=0.5)


def test_ignored_columns_and_kernels(run, fitted, tmp_path):
    model = tmp_path / "m.eb"
    result = run(
        "fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex", "-o", model,
        "--kernel", "matern32+linear", "--time-budget", 5,
    )  # fmt: skip
    assert result.exit_code == 0
    assert "Matern(nu=1.5) + Linear" in run("info", model).stdout


def test_many_rows_are_drawn_and_it_says_so(run, fitted, tmp_path):
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex")
    first = run(*args, "-o", tmp_path / "a.eb", "--max-rows", 30, "--time-budget", 20)
    assert first.exit_code == 0
    assert "30 of 64 training rows" in first.stderr
    assert "30 of 80 rows" in first.stderr
    run(*args, "-o", tmp_path / "b.eb", "--max-rows", 30, "--time-budget", 20)
    a, b = (TableModel.load(tmp_path / name).estimator for name in ("a.eb", "b.eb"))
    np.testing.assert_array_equal(a.training_data()[0], b.training_data()[0])


def test_quiet_prints_nothing(run, fitted, tmp_path):
    result = run("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex",
                 "-o", tmp_path / "m.eb", "--quiet", "--time-budget", 0.1)  # fmt: skip
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = run("predict", fitted / "model.eb", fitted / "data.csv", "-o", tmp_path / "o.csv", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_a_search_that_stops_early_is_a_warning(run, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("errorband.cli.fitting.optimizer", lambda *planned: LBFGS(max_iter=1))
    result = run("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex",
                 "-o", tmp_path / "m.eb", "--kernel", "se(lengthscale=1e4, variance=1)")  # fmt: skip
    assert result.exit_code == 0
    assert "Warning: The search for hyperparameters did not converge" in result.stderr


def test_compare(run, fitted):
    result = run("compare", fitted / "data.csv", "--target", "progression", "--ignore", "patient,visit,sex,clinic",
                 "--folds", 2, "--time-budget", 10, "--likelihoods", "gaussian")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = [line.split("│") for line in result.stdout.splitlines() if line.startswith("│")]
    assert {row[1].strip() for row in rows} == {
        "GP, se", "GP, matern32", "GP, matern52", "GP, se+linear",
        "linear regression", "training mean",
    }  # fmt: skip
    nlpd = [float(row[2].replace("−", "-")) for row in rows]
    assert nlpd == sorted(nlpd)


def test_baselines_of_compare_are_those_of_reports():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    methods = {m.name: m.predict for m in baselines()}
    for name in BASELINES:
        found = methods[name.lower()](X[:30], y[:30], X[30:])
        of_report = BASELINES[name][1](X[:30], y[:30], X[30:])
        np.testing.assert_array_equal(found.mean, of_report.mean)
        np.testing.assert_array_equal(found.std, of_report.std)
    with pytest.raises(ValueError, match="so few or so many rows"):
        methods["gradient boosting"](X[:10], y[:10], X[10:])
    codes, methods = (y > 0).astype(int), {m.name: m.predict for m in baselines(2)}
    for name in CLASS_BASELINES:
        found = methods[name.lower()](X[:30], codes[:30], X[30:])
        np.testing.assert_array_equal(found, CLASS_BASELINES[name][1](X[:30], codes[:30], X[30:], 2))


@pytest.mark.parametrize(("target", "registry"), [("progression", BASELINES), ("sex", CLASS_BASELINES)])
def test_fit_with_a_report_trains_every_baseline_once(run, fitted, tmp_path, monkeypatch, target, registry):
    trained = []
    for name, (note, fit) in registry.items():
        counted = lambda *args, name=name, fit=fit: trained.append(name) or fit(*args)  # noqa: E731
        monkeypatch.setitem(registry, name, (note, counted))
    args = ("--ignore", "patient,clinic,visit", "-o", tmp_path / "m.eb", "--report", tmp_path / "r.html")
    result = run("fit", fitted / "data.csv", "--target", target, *args, "--time-budget", 1, all_of_it=True)
    assert result.exit_code == 0, result.stderr
    assert trained == list(registry)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for name in registry:
        assert name in result.stdout
        assert name in page
    verdict = TableModel.load(tmp_path / "m.eb").facts["verdict"]
    assert verdict in " ".join(result.stdout.split())
    assert verdict in page.replace("\u202f%", " %")


def test_demo(run, tmp_path):
    result = run("demo", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    for name in ("band.png", "noise.png", "diabetes.csv", "model.eb", "report.html", "new.csv", "predictions.csv"):
        assert (tmp_path / "out" / name).stat().st_size > 0
        assert name in result.stdout
    assert result.stdout.count("Linear regression") == 2  # a demonstration and the fit have the same baselines


def test_version_and_help(run):
    assert run("--version").stdout.strip() == f"errorband {errorband.__version__}"
    assert "130 interrupted" in run("--help").stdout
    for command in ("fit", "predict", "info", "compare", "demo"):
        shown = run(command, "--help")
        assert shown.exit_code == 0
        assert f"errorband {command}" in shown.stdout


def test_help_imports_nothing_heavy():
    code = "import sys, errorband.cli; print(*[m for m in ('jax', 'pandas', 'sklearn', 'numpy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_inducing_points(run, fitted, tmp_path):
    args = ("--target", "progression", "--id", "patient", "--model", "vfe", "--inducing", "7", "-o", tmp_path / "m.eb")
    result = run("fit", fitted / "data.csv", *args)
    assert result.exit_code == 0
    model = TableModel.load(tmp_path / "m.eb").estimator
    assert type(model.approximation_).__name__ == "VFE"
    assert len(model.approximation_.inducing_inputs) == 7
    assert model.n_training_rows_ == 80


def test_automatic_number_of_inducing_points(run, fitted, tmp_path):
    args = ("--target", "progression", "--id", "patient", "--model", "vfe", "--inducing", "auto", "--time-budget", "2")
    result = run("fit", fitted / "data.csv", *args, "-o", tmp_path / "m.eb", "--report", tmp_path / "r.html")
    assert result.exit_code == 0
    model = TableModel.load(tmp_path / "m.eb")
    sweep = model.estimator.inducing_sweep_
    assert len(model.estimator.approximation_.inducing_inputs) == sweep.chosen
    assert f"--inducing auto: {sweep.certificate}" in model.facts["notes"]
    assert f"Automatic      {sweep.certificate}" in run("info", tmp_path / "m.eb").stdout
    assert sweep.certificate in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "model", sorted(set(APPROXIMATIONS) - {"Exact", "VFE", "WeightSpace", "RelevanceVectors", "SparseGreedy"})
)
def test_every_name_is_a_model(model):
    made = model_named(model.lower(), "6")
    assert type(made).__name__ == model


def test_features_that_are_a_whole_prior_are_models_too():
    assert type(model_named("sparsespectrum", "6")).__name__ == "SparseSpectrum"


@pytest.mark.filterwarnings("ignore:.*variances of the Nyström")
@pytest.mark.parametrize(
    "model",
    [
        name if name in ("IVM", "PIC") else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(set(APPROXIMATIONS) - {"Exact", "VFE", "WeightSpace", "RelevanceVectors", "SparseGreedy"})
    ],
)
def test_every_model_by_name(model, run, fitted, tmp_path):
    args = ("--target", "progression", "--id", "patient", "--time-budget", "1", "-o", tmp_path / "m.eb")
    result = run("fit", fitted / "data.csv", *args, "--model", model.lower(), "--inducing", "6")
    assert result.exit_code == 0
    found = TableModel.load(tmp_path / "m.eb")
    assert type(found.estimator.approximation_).__name__ == model
    rows = 6 if model in ("IVM", "SubsetOfData") else 80
    assert found.facts["rows_in_model"] == rows
    assert f"learned from {rows} rows" in " ".join(result.stdout.split())


def test_ids_that_a_spreadsheet_would_run_are_copied_with_a_remark(run, fitted, diabetes, tmp_path):
    frame = diabetes.head(3).assign(patient=["=HYPERLINK(0)", "-5", "0003"])
    frame.to_csv(tmp_path / "new.csv", index=False)
    args = ("predict", fitted / "model.eb", tmp_path / "new.csv", "--id", "patient", "-o", tmp_path / "out.csv")
    result = run(*args)
    assert result.exit_code == 0
    assert "'patient' begin with a sign that starts a formula" in result.stderr
    assert pd.read_csv(tmp_path / "out.csv", dtype=str)["patient"].tolist() == ["=HYPERLINK(0)", "-5", "0003"]
    frame.assign(patient=["-5", "+7", "1"]).to_csv(tmp_path / "new.csv", index=False)
    assert "formula" not in run(*args).stderr


def test_copies_of_rows_do_not_pass_for_targets_without_noise(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    table["y"] = table["a"] + 0.3 * rng.normal(size=60)
    table = pd.concat([table, table.iloc[:12]])
    table.to_csv(tmp_path / "t.csv", index=False)
    args = ("--target", "y", "--kernel", "linear", "--likelihood", "gaussian", "-o", tmp_path / "m.eb")
    assert run("fit", tmp_path / "t.csv", *args).exit_code == 0
    model = errorband.load(tmp_path / "m.eb")
    assert model.n_training_rows_ == 72
    assert 0.05 < model.likelihood_.noise_variance < 0.15
