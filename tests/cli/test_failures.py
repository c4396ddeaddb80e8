"""Whatever is wrong with tables, model files or the call: one sentence, the right exit code, no traceback."""

import gzip
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.sentences import check_one_sentence
from errorband import GPRegressor
from errorband.cli import failures
from errorband.cli.failures import explain, one_sentence
from errorband.tables import read_table
from errorband.training.lbfgs import _Run

ROWS = "\n".join(f"{i},{i % 3},{2 * i}" for i in range(12))
BAD_TABLES = {
    "empty": b"",
    "blank lines": b"\n\n  \n",
    "header only": b"a,b,y\n",
    "one row": b"a,b,y\n1,2,3\n",
    "all missing column": b"a,b,y\n" + "\n".join(f"{i},,{i}" for i in range(12)).encode(),
    "mixed types": b"a,b,y\n" + ROWS.encode() + b"\n1,oak,3\n",
    "words in the target": b"a,b,y\n" + ROWS.encode() + b"\n1,2,oak\n",
    "too many columns": ",".join(f"c{i}" for i in range(5001)).encode() + b"\n" + b"1," * 5000 + b"1\n",
    "not text": bytes(range(256)) * 20,
    "zip file": b"PK\x03\x04" + b"\0" * 100,
    "utf-16": "a,y\n1,2\n".encode("utf-16"),
    "ragged": b"a,b,y\n1,2,3\n1,2\n",
    "repeated names": b"a,a,y\n1,2,3\n2,3,4\n",
    "constant inputs": b"a,y\n" + b"".join(b"1,%d\n" % i for i in range(12)),
    "no inputs": b"y\n" + b"".join(b"%d\n" % i for i in range(12)),
    "infinite": b"a,b,y\n" + ROWS.encode() + b"\n1,inf,3\n",
    "missing cells": b"a,b,y\n" + ROWS.encode() + b"\n1,,3\n",
    "broken gzip": gzip.compress(b"a,b,y\n" + ROWS.encode())[:-12],
}


@pytest.mark.parametrize("name", BAD_TABLES)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_bad_table(run, tmp_path, name, command):
    (tmp_path / "t.csv").write_bytes(BAD_TABLES[name])
    extra = ("-o", tmp_path / "m.eb") if command == "fit" else ()
    check_one_sentence(run(command, tmp_path / "t.csv", "--target", "y", *extra), 3)
    assert not (tmp_path / "m.eb").exists()


def test_gzip_over_the_limit(run, tmp_path, monkeypatch):
    monkeypatch.setitem(read_table.__kwdefaults__, "max_bytes", 10_000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 100_000))
    check_one_sentence(run("fit", tmp_path / "t.csv.gz", "--target", "y"), 3)


def test_windows_text_is_read_with_a_note(run, tmp_path):
    rows = "\n".join(f"{i},{'Käse' if i % 2 else 'Brot'},{i * 2}" for i in range(12))
    (tmp_path / "t.csv").write_bytes(f"a,b,y\n{rows}\n".encode("latin-1"))
    result = run("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.eb", "--time-budget", 1)
    assert result.exit_code == 0
    assert "Windows-1252" in result.stderr


def test_wrong_target_suggests_the_right_one(run, fitted):
    result = run("fit", fitted / "data.csv", "--target", "progresion")
    check_one_sentence(result, 3)
    assert "'progression'" in result.stderr


def test_no_such_table(run, fitted):
    result = run("fit", fitted / "dta.csv", "--target", "y")
    check_one_sentence(result, 3)
    assert "data.csv" in result.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda f: f.assign(clinic="moon"), "moon"),
        (lambda f: f.drop(columns="bmi"), "bmi"),
        (lambda f: f.rename(columns={"bmi": "BMI "}), "BMI"),
        (lambda f: f.assign(bmi="heavy"), "words"),
        (lambda f: f.assign(visit="someday"), "dates"),
        (lambda f: f.assign(bp=None), "bp"),
        (lambda f: f.head(0), "no rows"),
    ],
)
def test_tables_that_do_not_fit_the_model(run, fitted, diabetes, tmp_path, change, told):
    change(diabetes.head(6)).to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", fitted / "model.eb", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    check_one_sentence(result, 3)
    assert told in result.stderr
    assert not (tmp_path / "o.csv").exists()


def _altered(data: bytes) -> bytes:
    at = data.index(b'"encoder"')
    return data[:at] + b'"encodeR"' + data[at + 9 :]


@pytest.mark.parametrize(
    "change", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"a,b\n1,2\n", lambda b: b[:-1], _altered]
)
@pytest.mark.parametrize("command", ["predict", "info"])
def test_bad_model_file(run, fitted, tmp_path, change, command):
    (tmp_path / "m.eb").write_bytes(change((fitted / "model.eb").read_bytes()))
    extra = (fitted / "data.csv",) if command == "predict" else ()
    check_one_sentence(run(command, tmp_path / "m.eb", *extra), 4)


def test_no_model_file_or_one_without_a_table(run, fitted, tmp_path):
    check_one_sentence(run("info", tmp_path / "nothing.eb"), 4)
    check_one_sentence(run("info", tmp_path), 4)
    GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]).save(tmp_path / "plain.eb")
    check_one_sentence(run("info", tmp_path / "plain.eb"), 4)


@pytest.mark.parametrize(
    "args",
    [
        ("fit",),
        ("fit", "DATA"),
        ("fitt", "DATA"),
        ("fit", "DATA", "--target", "progression", "--kernel", "matern23"),
        ("fit", "DATA", "--target", "progression", "--model", "forest"),
        ("fit", "DATA", "--target", "progression", "--inducing", "10"),
        ("fit", "DATA", "--target", "progression", "--model", "fitc", "--inducing", "many"),
        ("fit", "DATA", "--target", "progression", "--model", "subsetofdata", "--inducing", "auto"),
        ("fit", "DATA", "--target", "progression", "--output", "/nowhere/at/all.eb"),
        ("fit", "DATA", "--target", "progression", "--report", "/"),
        ("fit", "DATA", "--target", "progression", "--test-size", "2"),
        ("fit", "DATA", "--target", "progression", "--missing", "guess"),
        ("fit", "DATA", "--target", "progression", "--seed", "x"),
        ("predict", "MODEL", "DATA", "--level", "1"),
        ("predict", "MODEL"),
        ("compare", "DATA", "--target", "progression", "--folds", "1"),
    ],
)
def test_wrong_call(run, fitted, args):
    places = {"DATA": fitted / "data.csv", "MODEL": fitted / "model.eb"}
    check_one_sentence(run(*(places.get(a, a) for a in args)), 2)


def test_numbers_that_cannot_be_fitted(run, tmp_path):
    pd.DataFrame({"a": range(12), "y": [i * 1e150 for i in range(12)]}).to_csv(tmp_path / "t.csv", index=False)
    check_one_sentence(run("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.eb"), 5)


def test_unexpected_errors_and_debug(run, fitted, monkeypatch):
    monkeypatch.setattr("errorband.table_model.TableModel.load", lambda path: 1 / 0)
    check_one_sentence(run("info", fitted / "model.eb"), 1)
    shown = run("info", fitted / "model.eb", "--debug")
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr
    assert "ZeroDivisionError" in shown.stderr


def test_interrupt_keeps_the_best_model_so_far(run, fitted, tmp_path, monkeypatch):
    def interrupt(self, theta):
        raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "after_iteration", interrupt)
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex")
    result = run(*args, "-o", tmp_path / "m.eb")
    assert result.exit_code == 0
    assert "Interrupted" in result.stderr
    assert (tmp_path / "m.eb").exists()


def test_interrupt_before_there_is_a_model(run, fitted, tmp_path, monkeypatch):
    def interrupt(self, theta):
        raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "negative", interrupt)
    args = ("fit", fitted / "data.csv", "--target", "progression", "--ignore", "patient,clinic,visit,sex")
    check_one_sentence(run(*args, "-o", tmp_path / "m.eb"), 130)
    assert not (tmp_path / "m.eb").exists()


def test_explanations():
    assert explain(MemoryError())[1] == failures.ExitCode.FIT
    assert "pip install" in explain(ModuleNotFoundError("no", name="plotly"))[0]
    assert one_sentence("One. Two.\nX is 1.5. A b?") == "One; two; X is 1.5; a b?"


CELLS = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats(allow_nan=False, width=32).map(str),
    st.sampled_from(["", "NA", "oak", "elm", "true", "false", "2024-01-01", "1,5", "inf", '"', "1e300", "ä", "7 %"]),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=0, max_size=12),
    numeric=st.booleans(),
    missing=st.sampled_from(["error", "drop", "impute"]),
)
def test_random_tables_never_crash_the_tool(run, tmp_path, rows, numeric, missing):
    if numeric:  # otherwise few tables get as far as a fit
        rows = [[str(i % 4), str(len(row[0])), str(3 * i - len(row[1]))] for i, row in enumerate(rows)]
    (tmp_path / "t.csv").write_text("a;b;y\n" + "\n".join(";".join(row) for row in rows), encoding="utf-8")
    result = run("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.eb", "--time-budget", 0.1,
                 "--missing", missing)  # fmt: skip
    assert result.exit_code in (0, 2, 3, 5), (result.exit_code, result.stderr)
    assert "Traceback" not in result.stderr
    if result.exit_code:
        check_one_sentence(result, result.exit_code)
    else:
        assert run("predict", tmp_path / "m.eb", tmp_path / "t.csv", "-o", tmp_path / "o.csv").exit_code == 0


@pytest.mark.parametrize("code", list(failures.ExitCode))
def test_every_exit_code_is_told_by_the_help_and_the_page(code):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"\n| {code:d} | " in page
    assert f"\n{code:d} " in f"\n{failures.EXIT_CODES}"


@pytest.mark.parametrize("quiet", [False, True])
def test_a_warning_is_a_sentence_without_a_path(capsys, quiet):
    @failures.guarded
    def command(quiet):
        warnings.warn("12 variances came out below zero. Use FITC.", RuntimeWarning, stacklevel=1)

    command(quiet=quiet)
    told = "" if quiet else "Warning: 12 variances came out below zero; use FITC.\n"
    assert capsys.readouterr() == ("", told)
