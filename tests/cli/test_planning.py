"""What --model auto comes to: all rows, without approximation or through inducing points, and it says so."""

import itertools
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from errorband.approximations import FITC
from errorband.cli import planning
from errorband.cli.planning import inducing_for, plan
from errorband.cli.settings import Settings
from errorband.estimators import base
from errorband.table_model import TableModel

NUMBERS = SimpleNamespace(task="regression", labels=[])
CLASSES = SimpleNamespace(task="classification", labels=["no", "yes"])
COLUMNS = ("--target", "progression", "--ignore", "patient,clinic,visit,sex")


def planned(n, encoder=NUMBERS, **settings):
    y = np.arange(n) % 2 if encoder is CLASSES else np.zeros(n)
    return plan(y, np.arange(n // 5, n), encoder, Settings(**settings))


@pytest.mark.parametrize(("encoder", "limit"), [(NUMBERS, base.EXACT_ROWS), (CLASSES, base.EXACT_ROWS_SITES)])
def test_all_rows_are_in_the_model_and_beyond_the_limit_it_is_sparse(encoder, limit):
    for n, approximation in ((limit, "auto"), (limit + 1, FITC(200))):
        p = planned(n, encoder)
        assert p.model == approximation
        assert (len(p.judged), len(p.final)) == (n - n // 5, n)
        assert p.cuts == []
    assert len(p.searched) == len(p.judged)  # inducing points learn from all rows, too
    assert p.notes == [p.reason]
    assert p.reason.startswith(
        f"FITC with 200 inducing inputs, to use every row: {limit + 1:,} are more than the {limit:,}"
    )


def test_without_approximation_the_search_uses_as_many_rows_as_time_allows():
    p = planned(4000)
    assert (len(p.searched), p.reason) == (2500, "")
    assert p.notes == [
        "Hyperparameters were learned from 2,500 of 3,200 training rows, drawn at random, as --time-budget 60 allows."
    ]
    assert len(planned(4000, time_budget=600.0).searched) == 3200


def test_rows_are_left_out_of_an_exact_model_with_a_warning():
    p = planned(8000, model="exact")
    assert (p.model, len(p.searched), len(p.judged), len(p.final)) == ("exact", 2500, 5000, 5000)
    assert p.cuts == [
        "The model keeps 5,000 of 8,000 rows, drawn at random: --model exact can hold no more, --model auto uses all."
    ]
    assert planned(8000, model="vfe").cuts == []


@pytest.mark.parametrize("model", ["auto", "exact", "fitc"])
def test_max_rows_holds_for_every_model(model):
    p = planned(8000, model=model, max_rows=6000)
    assert (len(p.searched), len(p.judged), len(p.final)) == (6000, 6000, 6000)
    assert p.cuts == []
    assert p.notes[-2:] == [
        "Hyperparameters were learned from 6,000 of 6,400 training rows (--max-rows).",
        "The model keeps 6,000 of 8,000 rows (--max-rows).",
    ]
    assert (p.model == "exact") == (model == "exact")


def test_fewer_inducing_inputs_if_time_or_memory_is_short():
    assert inducing_for(1_000_000, 60.0, NUMBERS) < 200
    assert inducing_for(1_000_000, 600.0, NUMBERS) == 200
    assert inducing_for(100_000, 1e9, SimpleNamespace(labels=list("abcdefghij"))) * 48 * 1_000_000 <= 2 * 2**30
    p = planned(1_000_000)
    assert p.model.n_inducing < 200
    assert p.reason.endswith("For more inducing inputs --time-budget 60 is too short.")


@pytest.fixture
def small(monkeypatch):
    """Without approximation at most fifty rows, and nine inducing inputs beyond."""
    monkeypatch.setattr(base, "EXACT_ROWS", 50)
    monkeypatch.setattr(planning, "MOST_INDUCING", 9)


def test_many_rows_are_all_used_and_it_says_how(run, fitted, tmp_path, small):
    args = ("-o", tmp_path / "m.eb", "--report", tmp_path / "r.html", "--time-budget", 5)
    result = run("fit", fitted / "data.csv", *COLUMNS, *args)
    assert result.exit_code == 0, result.stderr
    why = (
        "FITC with 9 inducing inputs, to use every row: 80 are more than the 50 that a model without approximation "
        "takes."
    )
    assert f"Note: {why}" in result.stderr
    assert "rows, drawn at random" not in result.stderr
    assert "Model, learned from 80 rows" in result.stdout
    model = TableModel.load(tmp_path / "m.eb").estimator
    assert model.n_training_rows_ == 80
    assert model.approximation_.inducing_inputs.shape == (9, 3)
    facts = json.loads(run("info", tmp_path / "m.eb", "--json").stdout)
    assert (facts["model"], facts["approximation"], facts["n_inducing"]) == ("auto", "FITC", 9)
    assert facts["approximation_reason"] == why
    assert why in facts["notes"]
    assert f"Automatic      {why}" in run("info", tmp_path / "m.eb").stdout
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count(why) >= 2  # among the parts of the model, and with the inducing inputs


def test_an_exact_model_leaves_rows_out_with_a_warning(run, fitted, tmp_path, small):
    result = run("fit", fitted / "data.csv", *COLUMNS, "-o", tmp_path / "m.eb", "--model", "exact", "--time-budget", 5)
    assert result.exit_code == 0, result.stderr
    assert "Warning: The model keeps 50 of 80 rows" in result.stderr
    assert TableModel.load(tmp_path / "m.eb").estimator.n_training_rows_ == 50


def test_few_rows_need_no_approximation_and_it_says_so(run, fitted):
    facts = json.loads(run("info", fitted / "model.eb", "--json").stdout)
    assert (facts["approximation"], facts["n_inducing"]) == ("Exact", None)
    assert facts["approximation_reason"] == "No approximation: 64 rows, of at most 5000."  # as chosen for the search


def test_compare_says_where_it_uses_inducing_points(run, fitted, monkeypatch):
    monkeypatch.setattr(base, "EXACT_ROWS", 20)
    args = ("--folds", 2, "--time-budget", 4, "--max-rows", 60, "--likelihoods", "gaussian")
    result = run("compare", fitted / "data.csv", *COLUMNS, *args)
    assert result.exit_code == 0, result.stderr
    assert "60 of 80 rows are compared" in result.stderr
    assert "learn from 30 rows through inducing points: without approximation they take at most 20" in result.stderr


def test_a_seed_gives_the_same_model_whatever_the_clock_says(run, fitted, tmp_path, monkeypatch):
    args = ("fit", fitted / "data.csv", *COLUMNS, "--kernel", "se", "-q")
    assert run(*args, "-o", tmp_path / "a.eb").exit_code == 0
    hours = itertools.count(step=3600.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(hours))
    assert run(*args, "-o", tmp_path / "b.eb").exit_code == 0
    calm, busy = (TableModel.load(tmp_path / name).estimator.fit_result_ for name in ("a.eb", "b.eb"))
    assert busy.seconds > 3600 > calm.seconds
    assert (busy.stop, busy.evaluations) == (calm.stop, calm.evaluations)
    np.testing.assert_array_equal(busy.theta, calm.theta)
