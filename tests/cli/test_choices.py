"""Kernel and noise that nobody asked for are chosen by evidence, if there is time."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from errorband.cli.fitting import with_choices
from errorband.cli.screen import Screen
from errorband.cli.settings import Settings
from errorband.estimators.candidates import Candidates
from errorband.table_model import TableModel


@pytest.mark.parametrize(
    ("asked", "n", "kernel", "likelihood"),
    [
        ({}, 500, "auto", "auto"),
        ({}, 3000, "auto", None),  # sweeps over so many rows take too long
        ({}, 6000, None, None),
        ({"time_budget": 5.0}, 500, None, None),
        ({"kernel": "se"}, 500, "se", None),
        ({"likelihood": "poisson"}, 500, None, "poisson"),
        ({"model": "fitc"}, 500, None, None),
        ({"target_transform": "log"}, 500, "auto", None),
    ],
)
def test_what_is_left_to_the_tool(asked, n, kernel, likelihood):
    encoder = SimpleNamespace(task="regression", labels=[], feature_names=["x"], columns=[])
    found = with_choices(Settings(**asked), encoder, n)
    assert (found.kernel, found.likelihood) == (kernel, likelihood)


@pytest.mark.parametrize(("labels", "kernel"), [(["no", "yes"], "auto"), (["a", "b", "c"], None)])
def test_classes_have_their_own_noise(labels, kernel):
    encoder = SimpleNamespace(task="classification", labels=labels, feature_names=["x"], columns=[])
    found = with_choices(Settings(), encoder, 100)
    assert (found.kernel, found.likelihood) == (kernel, None)


def test_the_table_marks_what_was_kept(capsys):
    names, figures = ("se", "rq"), ((-10.0, -12.0), (-14.0, -18.0), (-0.5, -0.7))
    found = Candidates(("kernel", "kernel"), names, *figures, (40, 40), (1.0, 1.0), (True, False))
    Screen().candidates(found)
    shown = capsys.readouterr().out
    assert "Tried on 40 rows" in shown
    assert "kernel se *" in shown
    assert "kernel rq *" not in shown
    assert "−12.0" in shown


@pytest.mark.slow
def test_from_table_to_report(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 60)
    y = np.sin(3 * x) + np.where(rng.random(60) < 0.15, 3.0, 0.05) * rng.normal(size=60)
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    files = "--output", tmp_path / "m.eb", "--report", tmp_path / "r.html"
    result = run("fit", tmp_path / "t.csv", "--target", "y", *files, all_of_it=True)
    assert result.exit_code == 0, result.stderr
    assert "Tried on 48 rows" in result.stdout
    assert "What was tried" in (tmp_path / "r.html").read_text()
    model = TableModel.load(tmp_path / "m.eb")
    kept = model.estimator.candidates_.winners()
    assert kept["likelihood"] in ("student-t", "outlier-mixture")
    assert (model.facts["kernel"], model.facts["likelihood"]) == (kept["kernel"], kept["likelihood"])
