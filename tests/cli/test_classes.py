"""Tables whose target is a class: fit, report, predict and compare."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import errorband
from cli.sentences import check_one_sentence
from errorband.cli import fitting
from errorband.cli.planning import subset
from errorband.cli.screen import Screen, named_scores
from errorband.cli.settings import Settings
from errorband.reporting import assess
from errorband.table_model import TableModel, as_frame
from errorband.tables import TableEncoder


@pytest.fixture(scope="module")
def folder(run, wine, tmp_path_factory):
    """Three classes, fitted by the tool, with a report."""
    folder = tmp_path_factory.mktemp("wine")
    wine.to_csv(folder / "wine.csv", index=False, sep=";")
    result = run(
        "fit", folder / "wine.csv", "--target", "grape", "--missing", "drop", "-o", folder / "m.eb", "--time-budget", 5,
        "--report", folder / "r.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    (folder / "fit.txt").write_text(result.stdout)
    return folder


def test_fit_says_what_was_found(folder, run):
    text = (folder / "fit.txt").read_text()
    for word in ("Logistic regression", "Class frequencies", "calibration error", "AUC", "Report:"):
        assert word in text
    page = (folder / "r.html").read_text()
    assert "Barbera" in page
    assert "Most surprising training rows" in page
    info = run("info", folder / "m.eb")
    assert "grape (classification)" in info.stdout
    assert "Bernoulli" in info.stdout


def test_predict_writes_probabilities_and_the_class(folder, run, wine):
    out = folder / "o.csv"
    assert run("predict", folder / "m.eb", folder / "wine.csv", "-o", out).exit_code == 0
    got = pd.read_csv(out)
    assert list(got) == ["prediction", "p(Barbera)", "p(Barolo)", "p(Grignolino)"]
    assert len(got) == len(wine)
    complete = wine.drop(columns="grape").notna().all(axis=1).to_numpy()
    told = got[complete]
    np.testing.assert_allclose(told.iloc[:, 1:].sum(axis=1), 1.0, atol=1e-6)
    assert got[~complete].isna().all(axis=None)
    named = told.columns[1:].to_numpy()[told.iloc[:, 1:].to_numpy().argmax(axis=1)]
    assert [f"p({label})" for label in told["prediction"]] == list(named)
    right = np.mean(told["prediction"].to_numpy() == wine.loc[complete, "grape"].to_numpy())
    assert right > 0.8
    model = errorband.load(folder / "m.eb")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_training_rows_ == int((wine.notna().all(axis=1)).sum())


def test_a_boolean_target_and_few_whole_numbers(run, wine, tmp_path):
    frame = wine.dropna().head(40).assign(strong=lambda d: d["alcohol"] > 13).drop(columns=["grape", "alcohol"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = run("fit", tmp_path / "t.csv", "--target", "strong", "-o", tmp_path / "m.eb", "--time-budget", 2)
    assert fit.exit_code == 0, fit.stderr
    predict = run("predict", tmp_path / "m.eb", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert predict.exit_code == 0, predict.stderr
    got = pd.read_csv(tmp_path / "o.csv")
    assert set(got["prediction"]) == {True, False}
    encoder = TableEncoder.fit(frame.assign(grade=frame["hue"].round().astype(int)), target="grade", task="auto")
    asked = TableEncoder.fit(frame.assign(grade=np.arange(len(frame)) % 3), target="grade", task="classification")
    assert (encoder.task, asked.task) == ("classification", "classification")


def test_compare_classes(run, wine, tmp_path):
    two = wine[wine["grape"] != "Barbera"].dropna()[["hue", "proline", "grape"]]
    two.to_csv(tmp_path / "two.csv", index=False)
    result = run("compare", tmp_path / "two.csv", "--target", "grape", "--folds", 2, "--time-budget", 6)
    assert result.exit_code == 0, result.stderr
    for word in ("GP, se", "logistic regression", "class frequencies", "smallest log loss"):
        assert word in result.stdout
    shares = [line.split("│")[3].strip() for line in result.stdout.splitlines() if line.startswith("│")]
    losses = [float(share) for share in shares if share[:1].isdigit()]
    assert losses == sorted(losses)


def test_one_class_is_refused_in_one_sentence(run, wine, tmp_path):
    wine.dropna().assign(grape="Barolo").to_csv(tmp_path / "one.csv", index=False)
    check_one_sentence(run("fit", tmp_path / "one.csv", "--target", "grape"), 3)


def test_the_only_row_of_a_class_is_there_to_learn_from(wine):
    frame = wine.dropna().reset_index(drop=True)
    frame.loc[7, "grape"] = "Dolcetto"
    encoder = TableEncoder.fit(frame, target="grape")
    encoded = encoder.transform(frame)
    for seed in range(5):
        settings = Settings(seed=seed)
        train, test = fitting.split(encoded, encoder, settings)
        assert 7 in train
        assert len(test) == round(0.2 * len(frame))
        assert sorted([*train, *test]) == list(range(len(frame)))
        kept = subset(np.arange(len(frame)), 4, np.random.default_rng(seed), encoded.y)
        assert set(encoded.y[kept]) == set(range(4))


def test_a_class_that_nobody_learned_from_is_left_out_with_a_warning(wine):
    frame = wine.dropna().reset_index(drop=True).head(30)
    frame["grape"] = ["Barolo", "Barbera", "Dolcetto"] * 10
    encoder = TableEncoder.fit(frame, target="grape")
    X, y = as_frame(encoder.transform(frame))
    names = encoder.decode_labels(y)
    train, test = np.arange(20), np.arange(20, 30)
    train = train[names[train] != "Dolcetto"]
    fitted = fitting.fit(X, y, encoder, Settings(time_budget=0.1), (train, test))
    assert (names[fitted.test] != "Dolcetto").all()
    assert fitted.cuts == ["Left out, because no row that was learned from has their class: 10 rows."]
    assert fitted.final.n_training_rows_ == 20


def test_every_class_has_a_row_to_learn_from(wine):
    frame = wine.dropna().reset_index(drop=True).head(30)
    frame["grape"] = [f"g{i % 15}" for i in range(30)]  # two rows of each class, fewer held-out rows than classes
    encoder = TableEncoder.fit(frame, target="grape")
    encoded = encoder.transform(frame)
    for seed in range(5):
        train, test = fitting.split(encoded, encoder, Settings(seed=seed))
        assert len(set(encoded.y[train])) == 15
        assert len(test) == 6


def test_scores_and_predictions_of_any_classifier(wine, capsys):
    frame = wine.dropna().reset_index(drop=True)
    encoder = TableEncoder.fit(frame, target="grape")
    encoded = encoder.transform(frame)
    X = pd.DataFrame(encoded.X, columns=pd.Index(encoded.feature_names))
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:40], rows[40:]
    model = errorband.GPClassifier(optimizer=None).fit(X.iloc[train], encoded.y[train])
    found = assess(model, X.iloc[test], encoded.y[test], target="grape")
    scores, verdict = named_scores(found), " ".join(found.verdict)
    own = scores[0][1]
    assert own["error_rate"] == pytest.approx(np.mean(model.predict(X.iloc[test]) != encoded.y[test]))
    truth = model.predict_proba(X.iloc[test])[np.arange(len(test)), encoded.y[test]]
    assert own["log_loss"] == pytest.approx(-np.mean(np.log(truth)))
    assert dict(scores)["Class frequencies"]["information"] == pytest.approx(0.0)
    assert "held-out rows of grape right" in verdict
    Screen().scores("grape", scores)
    assert "log loss" in capsys.readouterr().out
    model = LogisticRegression(max_iter=5000).fit(X.iloc[train], encoded.y[train])  # any classifier will do
    table, _ = TableModel(encoder, model).predict(frame.drop(columns="grape"))
    assert list(table) == ["prediction", "p(Barbera)", "p(Barolo)", "p(Grignolino)"]
    assert table["prediction"].tolist() == encoder.decode_labels(model.predict(X)).tolist()
