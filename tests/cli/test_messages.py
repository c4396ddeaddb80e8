"""Messages send the user the right way: advice that exists, all of it at once, and none where none helps."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cli.sentences import check_one_sentence
from errorband.cli.fitting import _ended
from errorband.tables import TableEncoder, TableError, write_table
from errorband.training.result import FitResult

FRAME = pd.DataFrame({"x": np.arange(30.0), "note": [f"word {i}" for i in range(30)], "y": np.arange(30.0) ** 2})


def test_columns_of_free_text_are_named_together():
    several = FRAME.assign(text=[f"{'abcdefghijklmnopqrstuvwxyz'[i % 26]}!" for i in range(30)])
    told = (
        "Columns 'note' and 'text' are free text with up to 30 different values, so leave them out with --ignore, name "
        "rows by 'note' with --id or allow more than 20 with --max-levels."
    )
    with pytest.raises(TableError) as found:
        TableEncoder.fit(several, target="y")
    assert str(found.value) == told
    with pytest.raises(TableError, match=r"^Column 'text' is free text with 26 different values, so leave it out"):
        TableEncoder.fit(several, target="y", id_column="note")


def test_one_row_is_too_few():
    with pytest.raises(TableError, match="one row with a target"):
        TableEncoder.fit(FRAME.head(1), target="y")


def test_options_of_fit_are_not_offered_by_predict(run, tmp_path):
    FRAME.drop(columns="note").to_csv(tmp_path / "t.csv", index=False)
    args = ("--target", "y", "--time-budget", 1, "-o", tmp_path / "m.eb", "-q")
    assert run("fit", tmp_path / "t.csv", *args).exit_code == 0
    (tmp_path / "gap.csv").write_text("x,z\n1,1\n,2\n")
    result = run("predict", tmp_path / "m.eb", tmp_path / "gap.csv")
    check_one_sentence(result, 3)
    assert "so fill them in or fit with --missing drop or --missing impute." in result.stderr
    (tmp_path / "word.csv").write_text("x\n1\n2\nthree\n")
    result = run("predict", tmp_path / "m.eb", tmp_path / "word.csv")
    check_one_sentence(result, 3)
    assert "--ignore" not in result.stderr


@pytest.mark.parametrize(
    ("stop", "limit", "advice"),
    [
        ("out of time", 29.78493, True),
        ("interrupted", None, False),
        ("line search", None, False),
        ("max_iter", 200, False),
        ("max_iter", 60, True),  # what was planned for a minute
    ],
)
def test_more_time_is_advised_where_it_helps(stop, limit, advice):
    known = {f.name: 0 for f in dataclasses.fields(FitResult)}
    told = _ended(FitResult(**known | {"stop": stop, "limit": limit, "iterations": 7}))
    assert ("--time-budget" in told) == advice
    assert "LBFGS" not in told
    assert "29.7849" not in told


def test_a_command_that_does_not_exist(run):
    result = run("ft", "data.csv")
    check_one_sentence(result, 2)
    assert result.stderr.startswith("Error: No such command 'ft' (perhaps 'fit'), so see '")


def test_parquet_without_its_package(tmp_path, monkeypatch):
    def without(*args, **kwargs):
        raise ImportError("Unable to find a usable engine; tried using: 'pyarrow', 'fastparquet'.")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", without)
    with pytest.raises(TableError, match=r"Writing .* needs pyarrow, so run 'pip install pyarrow' or write CSV\.$"):
        write_table(FRAME, tmp_path / "t.parquet")
