"""Tables whose target is a class: refused in one sentence, or judged by probabilities once there is a classifier."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cli.sentences import check_one_sentence
from errorband.cli.classes import judge_classes
from errorband.cli.screen import Screen
from errorband.estimators import ESTIMATORS
from errorband.pipeline import TableModel
from errorband.tables import TableEncoder

without = pytest.mark.skipif("GPClassifier" in ESTIMATORS, reason="there is a classifier")
with_one = pytest.mark.skipif("GPClassifier" not in ESTIMATORS, reason="there is no classifier yet")


@without
def test_classes_are_refused_in_one_sentence(run, wine, tmp_path):
    wine.to_csv(tmp_path / "wine.csv", index=False)
    check_one_sentence(run("fit", tmp_path / "wine.csv", "--target", "grape", "--missing", "drop"), 2)


@with_one
@pytest.mark.parametrize("classes", [2, 3])
def test_fit_and_predict_classes(run, wine, tmp_path, classes):
    frame = wine if classes == 3 else wine[wine["grape"] != "Barbera"]
    frame.to_csv(tmp_path / "wine.csv", index=False)
    model, out = tmp_path / "m.eb", tmp_path / "o.csv"
    fit = run("fit", tmp_path / "wine.csv", "--target", "grape", "--missing", "drop", "-o", model, "--time-budget", 5)
    assert fit.exit_code == 0, fit.stderr
    assert "Logistic regression" in fit.stdout
    assert run("predict", model, tmp_path / "wine.csv", "-o", out).exit_code == 0
    got = pd.read_csv(out)
    assert len(got) == len(frame)
    assert got.columns[0] == "prediction"
    complete = got.notna().all(axis=1)
    np.testing.assert_allclose(got.loc[complete].iloc[:, 1:].sum(axis=1), 1.0, atol=1e-6)


def test_scores_and_predictions_of_any_classifier(wine, capsys):
    frame = wine.dropna().reset_index(drop=True)
    encoder = TableEncoder.fit(frame, target="grape")
    encoded = encoder.transform(frame)
    X = pd.DataFrame(encoded.X, columns=pd.Index(encoded.feature_names))
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:40], rows[40:]
    model = LogisticRegression(max_iter=5000).fit(X.iloc[train], encoded.y[train])
    scores, verdict = judge_classes(model, X, encoded.y, train, test, "grape")
    own = scores[0][1]
    assert own["error_rate"] == pytest.approx(np.mean(model.predict(X.iloc[test]) != encoded.y[test]))
    truth = model.predict_proba(X.iloc[test])[np.arange(len(test)), encoded.y[test]]
    assert own["log_loss"] == pytest.approx(-np.mean(np.log(truth)))
    assert dict(scores)["Class frequencies"]["information"] == pytest.approx(0.0)
    assert "held-out rows of grape right" in verdict
    Screen().scores("grape", scores)
    assert "log loss" in capsys.readouterr().out
    table, _ = TableModel(encoder, model).predict(frame.drop(columns="grape"))
    assert list(table) == ["prediction", "p(Barbera)", "p(Barolo)", "p(Grignolino)"]
    assert table["prediction"].tolist() == encoder.decode_labels(model.predict(X)).tolist()
