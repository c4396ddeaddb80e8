"""From a table to a matrix: kinds of columns, missing cells, later tables, tasks, and the way through JSON."""

from __future__ import annotations

import datetime
import decimal
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from errorband.tables import Encoded, TableEncoder, TableError

TARGET = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def failure(action, *arguments, **options) -> str:
    """Return the message of the `TableError` that `action` raises, after checking that it is one sentence."""
    with pytest.raises(TableError) as caught:
        action(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert not re.search(r"[.!?]\s+[A-Z]", message)
    return message


def table(target=TARGET, **columns) -> pd.DataFrame:
    return pd.DataFrame({**columns, "y": target})


def encode(column, *, target=TARGET, **options) -> Encoded:
    """Encode a table with the one feature `c`."""
    frame = table(target=target, c=column)
    return TableEncoder.fit(frame, target="y", **options).transform(frame)


def refused(column, *, target=TARGET, **options) -> str:
    return failure(TableEncoder.fit, table(target=target, c=column), target="y", **options)


def same(left: Encoded, right: Encoded) -> None:
    for name in ("X", "y", "row_index", "ids"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert (left.feature_names, left.notices, left.n_rows) == (right.feature_names, right.notices, right.n_rows)


# --- kinds of columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, 3, 4, 5, 6],
        pd.array([1, 2, 3, 4, 5, 6], dtype="Int64"),
        [decimal.Decimal(number) for number in range(1, 7)],
        pd.to_timedelta([1, 2, 3, 4, 5, 6], unit="D"),
        ["1", "2", "3", " 4", "5 ", "6"],
        ["1%", "2 %", "3%", "4%", "5%", "6%"],
        ["$1", "$ 2", "$3", "$4.0", "$5", "$6"],
        ["1 €", "2€", "3 €", "4,0 €", "5€", "6 €"],
    ],
)
def test_numbers_in_every_dress(column):
    encoded = encode(column)
    assert encoded.feature_names == ["c"]
    np.testing.assert_array_equal(encoded.X[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(encoded.y, TARGET)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1,234.5", "2", "3"], [1234.5, 2, 3]),
        (["1.234,5", "2", "3"], [1234.5, 2, 3]),
        (["1,234,567", "2", "3"], [1234567, 2, 3]),
        (["1 234", "2", "−3"], [1234, 2, -3]),
        (["1\u202f234,5", "1'234,5", "-2"], [1234.5, 1234.5, -2]),
        (["0,125", "1,250", "2,5"], [0.125, 1.25, 2.5]),
        (["-$1,000.50", "$2.25", "$3"], [-1000.5, 2.25, 3]),
        (["1e3", "2.5E-1", "3"], [1000, 0.25, 3]),
    ],
)
def test_numbers_written_as_text(column, expected):
    np.testing.assert_array_equal(encode(column, target=[1.5, 2.0, 3.0]).X[:, 0], expected)


def test_numbers_that_can_be_read_in_two_ways_are_explained():
    message = refused(["1,234", "5,678", "9"], target=[1.5, 2.0, 3.0])
    assert "'1,234' is 1234 or 1.234" in message
    assert "more than one way" in refused(["1.5", "2,5", "3"], target=[1.5, 2.0, 3.0])
    assert "different signs (% and no sign)" in refused(["5%", "0.05", "3%"], target=[1.5, 2.0, 3.0])
    assert "different signs ($ and €)" in refused(["$5", "€5", "€3"], target=[1.5, 2.0, 3.0])


def test_numbers_of_a_later_table_are_read_as_in_training():
    encoder = TableEncoder.fit(table(c=["1.234,5", "2", "3", "4", "5", "6"]), target="y")
    assert encoder.transform(pd.DataFrame({"c": ["1,234"]})).X.tolist() == [[1.234]]
    encoder = TableEncoder.fit(table(c=["1%", "2%", "3%", "4%", "5%", "6%"]), target="y")
    assert encoder.transform(pd.DataFrame({"c": ["2.5%"]})).X.tolist() == [[2.5]]
    assert "numbers with % in training" in failure(encoder.transform, pd.DataFrame({"c": [0.025]}))


def test_infinite_numbers_are_refused():
    assert "'c' has 1 infinite number" in refused([1.0, np.inf, 2, 3, 4, 5])
    assert "'y' has 1 infinite number" in refused([1, 2, 3, 4, 5, 6], target=[1.5, -np.inf, 2, 3, 4, 5])


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True, True, False, True],
        pd.array([True, False, True, True, False, True], dtype="boolean"),
        ["true", "FALSE", "True", "true", "false", "true"],
    ],
)
def test_booleans_become_zero_and_one(column):
    assert encode(column).X[:, 0].tolist() == [1, 0, 1, 1, 0, 1]


def test_two_levels_make_one_column_and_more_levels_one_each():
    two = encode(["no", "yes", "no", "yes ", "no", "no"])
    assert two.feature_names == ["c=yes"]
    assert two.X[:, 0].tolist() == [0, 1, 0, 1, 0, 0]
    three = encode(["b", "a", "c", "a", "b", "c"])
    assert three.feature_names == ["c=a", "c=b", "c=c"]
    np.testing.assert_array_equal(three.X.sum(axis=1), 1)
    assert three.X[:, 0].tolist() == [0, 1, 0, 1, 0, 0]


def test_pandas_categories_of_numbers_stay_categories():
    frame = table(c=pd.Categorical([10, 20, 30, 10, 20, 30]))
    encoder = TableEncoder.fit(frame, target="y")
    assert encoder.feature_names == ["c=10", "c=20", "c=30"]
    assert encoder.transform(pd.DataFrame({"c": [20]})).X.tolist() == [[0, 1, 0]]


def test_free_text_names_the_column_and_the_options():
    words = [f"remark {chr(97 + i)}" for i in range(6)]
    message = refused(words, max_levels=5)
    assert "'c' is free text with 6 different values" in message
    assert "--ignore" in message
    assert "--max-levels" in message
    assert encode(words, max_levels=6).X.shape == (6, 6)


def test_constant_columns_are_left_out_with_a_notice():
    frame = table(c=["a"] * 6, d=[1.0, None, 1.0, 1.0, 1.0, 1.0], x=range(6))
    encoder = TableEncoder.fit(frame, target="y")
    assert encoder.feature_names == ["x"]
    assert sum("one value only" in notice for notice in encoder.notices) == 2
    encoded = encoder.transform(pd.DataFrame({"x": [1], "c": ["b"]}))
    assert encoded.notices == []
    assert "No column is left" in refused([1] * 6)


def test_empty_columns_are_named():
    assert "Column 'c' has no values" in refused([None] * 6)
    assert "Column 'c' has no values" in refused(["", " ", None, "", "", ""], missing="impute")
    frame = table(c=[None, None, None, None, None, 1.0], target=[1.5, 2, 3, 4, 5, None], x=range(6))
    assert "Column 'c' has no values" in failure(TableEncoder.fit, frame, target="y", missing="drop")


def test_mixed_columns_show_examples_and_counts():
    message = refused(["1", "2", "3", "4", "n.d.", "low"])
    assert "'c' mixes 4 numbers (such as '1', '2' and '3') with 2 words (such as 'n.d.' and 'low')" in message
    assert "mixes 5 numbers" in refused([1, 2.5, 3, 4, 5, "unknown"])


# --- dates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2024-01-01", "2024-01-13", "2024-01-14"]),
        pd.to_datetime(["2024-01-01", "2024-01-13", "2024-01-14"]).tz_localize("UTC"),
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 13), datetime.date(2024, 1, 14)],
        ["2024-01-01", "2024-01-13", "2024-01-14"],
        ["2024-01-01T00:00:00Z", "2024-01-13", "2024-01-14T02:00:00+02:00"],
        ["2024/01/01", "2024/01/13", "2024/01/14"],
        ["01.01.2024", "13.01.2024", "14.01.2024"],
        ["01/01/2024", "13/01/2024", "14/01/2024"],
        ["01/01/2024", "01/13/2024", "01/14/2024"],
        ["01/01/24 00:00", "01/13/24 00:00", "01/14/24 00:00"],
        ["1 Jan 2024", "13 Jan 2024", "14 Jan 2024"],
        ["January 1, 2024", "January 13, 2024", "January 14, 2024"],
    ],
)
def test_dates_in_every_dress(column):
    encoded = encode(column, target=[1.5, 2.0, 3.0])
    assert encoded.feature_names == ["c [days]"]
    assert encoded.X[:, 0].tolist() == [0, 12, 13]


def test_cycles_need_a_long_enough_span():
    days = pd.Series(pd.date_range("2023-01-01", periods=6, freq="100D"))
    encoded = encode(days)
    names = ["[days]", "[year sin]", "[year cos]", "[week sin]", "[week cos]"]
    assert encoded.feature_names == [f"c {name}" for name in names]
    angle = 2 * np.pi * (days.dt.day_of_year.to_numpy() - 1) / 365.25
    np.testing.assert_allclose(encoded.X[:, 1], np.sin(angle), atol=1e-12)
    angle = 2 * np.pi * days.dt.day_of_week.to_numpy() / 7
    np.testing.assert_allclose(encoded.X[:, 4], np.cos(angle), atol=1e-12)
    assert encode(pd.date_range("2023-01-01", periods=6, freq="10D")).X.shape[1] == 3
    assert encode(pd.date_range("2023-01-01", periods=6, freq="7D")).X.shape[1] == 1


def test_later_dates_count_from_the_first_training_date_in_the_same_notation():
    encoder = TableEncoder.fit(table(target=[1.5, 2], c=["01/02/2024", "13/02/2024"]), target="y")
    assert encoder.transform(pd.DataFrame({"c": ["03/02/2024"]})).X.tolist() == [[2]]
    assert encoder.transform(pd.DataFrame({"c": ["2024-02-03"]})).X.tolist() == [[2]]
    assert encoder.transform(pd.DataFrame({"c": pd.to_datetime(["2024-01-31 12:00"])})).X.tolist() == [[-0.5]]
    assert "held dates in training but holds words" in failure(encoder.transform, pd.DataFrame({"c": ["soon"]}))


def test_day_and_month_that_cannot_be_told_apart():
    assert "day and month" in refused(["01/02/2024", "03/04/2024", "05/06/2024"], target=[1.5, 2, 3])


def test_a_few_cells_that_are_no_dates_count_as_missing():
    column = [f"2024-01-{day:02d}" for day in range(1, 20)] + ["soon"]
    target = np.arange(20) + 0.5
    assert "'c' (1, as 'soon' is no date)" in refused(column, target=target)
    encoded = encode(column, target=target, missing="impute")
    assert encoded.X[-1, 0] == 9
    column = [f"{day:02d}/01/2024" for day in range(1, 20)] + ["see note 3: later"]
    assert encode(column, target=target, missing="drop").X[:, 0].tolist() == list(range(19))
    column[0] = "later"
    assert encode(column, target=target, max_levels=30).feature_names[0].startswith("c=")


def test_words_that_pandas_takes_for_dates_stay_words():
    assert encode(["now", "today", "now", "today", "now", "now"]).feature_names == ["c=today"]


# --- missing cells --------------------------------------------------------------------------------------------------

GAPPY = table(
    a=[1.0, None, 3.0, 4.0, 10.0, 4.0],
    b=["u", "v", None, "u", "w", "u"],
    t=[True, None, True, False, True, True],
    row=list("pqrstu"),
)


def test_missing_cells_are_counted_by_default():
    message = failure(TableEncoder.fit, GAPPY, target="y", id_column="row")
    assert "'a' (1), 'b' (1), 't' (1)" in message
    assert "--missing" in message


def test_rows_with_missing_cells_are_dropped():
    encoder = TableEncoder.fit(GAPPY, target="y", id_column="row", missing="drop")
    encoded = encoder.transform(GAPPY)
    assert encoded.row_index.tolist() == [0, 3, 4, 5]
    assert encoded.ids is not None
    assert encoded.ids.tolist() == ["p", "s", "t", "u"]
    assert encoded.y is not None
    assert encoded.y.tolist() == [0.5, 3.5, 4.5, 5.5]
    assert encoder.feature_names == ["a", "b=w", "t"]
    assert "2 rows with missing cells left out" in encoded.notices[0]
    spread = encoded.spread(np.array([1.0, 2, 3, 4]))
    np.testing.assert_array_equal(spread, [1, np.nan, np.nan, 2, 3, 4])
    assert encoded.spread(np.ones((4, 2))).shape == (6, 2)


def test_dropping_all_rows_is_an_error():
    assert "Every row has a missing cell" in failure(
        TableEncoder.fit,
        table(target=[1.5, 2, 3, 4], a=[1, 2, None, None], b=[None, None, 1, 2]),
        target="y",
        missing="drop",
    )


def test_a_column_that_dropping_makes_constant_is_left_out():
    frame = table(a=[1, 2, 3, 4, 5, 6], b=["u", "u", "u", "u", "u", "v"], c=[1.0, 2, 3, 4, 5, None])
    encoder = TableEncoder.fit(frame, target="y", missing="drop")
    assert encoder.feature_names == ["a", "c"]
    assert len(encoder.transform(frame).X) == 5


def test_missing_cells_are_filled_in():
    encoder = TableEncoder.fit(GAPPY, target="y", id_column="row", missing="impute")
    encoded = encoder.transform(GAPPY)
    assert encoded.X[1].tolist() == [4, 0, 1, 0, 1]
    assert encoded.X[2].tolist() == [3, 1, 0, 0, 1]
    assert "Cells are missing in 'a' (1), 'b' (1), 't' (1)" in encoded.notices[0]
    later = encoder.transform(pd.DataFrame({"a": [None], "b": [None], "t": [None]}))
    assert later.X.tolist() == [[4, 1, 0, 0, 1]]


def test_rows_without_a_target():
    frame = table(target=[1.5, None, 2.5, 3.5, None, 4.5], a=[1, 2, 3, 4, 5, 6])
    assert "'y' (2)" in failure(TableEncoder.fit, frame, target="y")
    for missing in ("drop", "impute"):
        encoder = TableEncoder.fit(frame, target="y", missing=missing)
        encoded = encoder.transform(frame)
        assert encoded.row_index.tolist() == [0, 2, 3, 5]
        assert "2 rows without a target" in encoded.notices[0]
        assert encoder.transform(frame, with_target=False).row_index.tolist() == [0, 1, 2, 3, 4, 5]


def test_levels_in_dropped_rows_only_do_no_harm():
    frame = table(a=[1, 2, 3, 4, 5, None], b=["u", "v", "w", "u", "v", "only here"])
    encoder = TableEncoder.fit(frame, target="y", missing="drop")
    assert "b=only here" not in encoder.feature_names
    assert len(encoder.transform(frame).X) == 5
    labels = table(target=["p", "q", "p", "q", "p", "r"], a=[1, 2, 3, 4, 5, None])
    encoder = TableEncoder.fit(labels, target="y", missing="drop")
    assert encoder.labels == ["p", "q"]
    assert len(encoder.transform(labels).X) == 5


# --- later tables ---------------------------------------------------------------------------------------------------

TRAIN = table(temperature=[1.0, 2, 3, 4, 5, 6], tree=["oak", "elm", "ash", "oak", "elm", "ash"], sex=list("fmfmfm"))


def test_missing_and_renamed_columns():
    encoder = TableEncoder.fit(TRAIN, target="y")
    message = failure(encoder.transform, TRAIN.rename(columns={"temperature": "Temprature"}))
    assert "lacks the column 'temperature'" in message
    assert "perhaps 'Temprature' is 'temperature'" in message
    assert "lacks the columns 'temperature' and 'sex'" in failure(encoder.transform, TRAIN[["tree"]])


def test_extra_columns_are_ignored_and_order_does_not_matter():
    encoder = TableEncoder.fit(TRAIN, target="y")
    later = TRAIN.iloc[::-1].assign(note="x").reindex(columns=["sex", "note", "tree", "temperature"])
    encoded = encoder.transform(later)
    np.testing.assert_array_equal(encoded.X, encoder.transform(TRAIN).X[::-1])
    assert encoded.y is None
    assert encoded.notices == ["Columns that training did not have are ignored: 'note'."]


def test_unseen_levels_are_an_error_or_none_of_the_known():
    later = TRAIN.assign(tree=["oak", "yew", "ash", "oak", "elm", "fir"], sex=list("fmxmfm"))
    for missing in ("error", "drop"):
        encoder = TableEncoder.fit(TRAIN, target="y", missing=missing)
        message = failure(encoder.transform, later)
        assert "'tree' holds 'yew' and 'fir' where training had 'ash', 'elm' and 'oak'" in message
    encoded = TableEncoder.fit(TRAIN, target="y", missing="impute").transform(later)
    assert encoded.X[1, 1:4].tolist() == [0, 0, 0]
    assert encoded.X[:, 4].tolist() == [0, 1, 0.5, 1, 0, 1]
    assert len(encoded.notices) == 2


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_type_changes_are_refused(missing):
    encoder = TableEncoder.fit(TRAIN, target="y", missing=missing)
    assert "'temperature' held numbers in training but holds words (such as 'hot')" in failure(
        encoder.transform, TRAIN.assign(temperature="hot")
    )
    assert "but holds yes/no values" in failure(encoder.transform, TRAIN.assign(temperature=True))
    assert "'tree' held words in training but holds numbers" in failure(encoder.transform, TRAIN.assign(tree=1.5))
    assert "mixes" in failure(encoder.transform, TRAIN.assign(temperature=["1", "2", "x", "3", "4", "5"]))


def test_missing_cells_of_later_tables():
    later = TRAIN.drop(columns="y").assign(temperature=[1.0, None, 3, None, 5, 6], tree=[None, *TRAIN["tree"][1:]])
    message = failure(TableEncoder.fit(TRAIN, target="y").transform, later)
    assert "'temperature' (2), 'tree' (1)" in message
    encoded = TableEncoder.fit(TRAIN, target="y", missing="drop").transform(later)
    assert encoded.row_index.tolist() == [2, 4, 5]
    assert encoded.n_rows == 6
    encoded = TableEncoder.fit(TRAIN, target="y", missing="drop").transform(later.assign(temperature=np.nan))
    assert encoded.X.shape == (0, 5)


def test_the_target_of_later_tables():
    encoder = TableEncoder.fit(TRAIN, target="y")
    assert encoder.transform(TRAIN.assign(y=None)).y is None
    assert encoder.transform(TRAIN, with_target=False).y is None
    assert "no column 'y'" in failure(encoder.transform, TRAIN.drop(columns="y"), with_target=True)
    assert "'y' held numbers" in failure(encoder.transform, TRAIN.assign(y="high"))
    classes = TableEncoder.fit(TRAIN, target="tree")
    assert "'yew' where training had" in failure(classes.transform, TRAIN.assign(tree="yew"))


def test_the_id_column():
    encoder = TableEncoder.fit(TRAIN.assign(row=list("abcdef")), target="y", id_column="row")
    assert "row" not in encoder.feature_names
    encoded = encoder.transform(TRAIN)
    assert encoded.ids is None
    assert "id column 'row'" in encoded.notices[0]


# --- the request ----------------------------------------------------------------------------------------------------


def test_ignored_columns():
    encoder = TableEncoder.fit(TRAIN, target="y", ignore=["tree"])
    assert encoder.feature_names == ["temperature", "sex=m"]
    assert encoder.transform(TRAIN).notices == []


def test_requests_that_make_no_sense():
    assert "closest: 'tree'" in failure(TableEncoder.fit, TRAIN, target="tre")
    assert "no column 'nix'" in failure(TableEncoder.fit, TRAIN, target="y", ignore=["nix"])
    assert "no column 'nix'" in failure(TableEncoder.fit, TRAIN, target="y", id_column="nix")
    assert "use it once" in failure(TableEncoder.fit, TRAIN, target="y", ignore=["y"])
    assert "use it once" in failure(TableEncoder.fit, TRAIN, target="y", id_column="y")
    assert "no task 'ranking'" in failure(TableEncoder.fit, TRAIN, target="y", task="ranking")
    assert "no missing 'keep'" in failure(TableEncoder.fit, TRAIN, target="y", missing="keep")
    assert "No column is left" in failure(TableEncoder.fit, TRAIN[["y"]], target="y")
    repeated = pd.concat([TRAIN, TRAIN[["tree"]]], axis=1)
    assert "repeats the name 'tree'" in failure(TableEncoder.fit, repeated, target="y")
    clash = TRAIN.assign(**{"tree=oak": range(6)})
    assert "repeats the name 'tree=oak'" in failure(TableEncoder.fit, clash, target="y")
    assert "holds nothing" in failure(TableEncoder.fit, TRAIN.head(0), target="y")


def test_names_that_are_not_text():
    frame = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [0.5, 1.5, 2.5]})
    assert TableEncoder.fit(frame, target="1").transform(frame).feature_names == ["0"]


# --- the task -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "task", "why"),
    [
        (["a", "b", "a", "c", "b", "a"], "classification", "holds words"),
        ([True, False, True, True, False, True], "classification", "yes/no"),
        ([0, 1, 1, 0, 1, 0], "classification", "two whole numbers"),
        ([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], "classification", "two whole numbers"),
        ([0.5, 1.5, 1.5, 0.5, 1.5, 0.5], "regression", "holds numbers"),
        ([1, 2, 3, 1, 2, 3], "regression", "holds numbers"),
    ],
)
def test_the_task_is_found_and_explained(target, task, why):
    encoder = TableEncoder.fit(table(target=target, a=range(6)), target="y")
    assert encoder.task == task
    assert f"The task is {task}" in encoder.notices[0]
    assert why in encoder.notices[0]


def test_few_whole_numbers_get_a_hint():
    frame = table(target=[1, 2, 3] * 20, a=range(60))
    assert "--task classification" in TableEncoder.fit(frame, target="y").notices[0]
    encoder = TableEncoder.fit(frame, target="y", task="classification")
    assert encoder.labels == ["1", "2", "3"]
    assert encoder.notices == []


@pytest.mark.parametrize(
    ("target", "label_type"),
    [
        (["b", "a", "b", "c", "a", "c"], "str"),
        ([True, False, True, True, False, True], "bool"),
        ([10, 9, 10, 9, 10, 9], "int"),
        ([0.5, 2.0, 0.5, 2.0, 2.0, 0.5], "float"),
        (["1", "2", "3a", "1", "2", "1"], "str"),
    ],
)
def test_labels_come_back_as_they_were(target, label_type):
    frame = table(target=target, a=range(6))
    encoder = TableEncoder.fit(frame, target="y", task="classification")
    encoder = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    encoded = encoder.transform(frame)
    assert encoder.label_type == label_type
    assert encoded.y is not None
    assert encoded.y.dtype == np.int64
    assert encoder.decode_labels(encoded.y).tolist() == target
    assert sorted(set(encoded.y.tolist())) == list(range(len(set(target))))


def test_targets_that_cannot_be_used():
    numbers = [1, 2, 3, 4, 5, 6]
    assert "one class only" in refused(numbers, target=["a"] * 6)
    assert "holds words" in refused(numbers, target=["a", "b"] * 3, task="regression")
    assert "holds dates" in refused(numbers, target=pd.date_range("2024-01-01", periods=6))
    assert "holds nothing" in refused(numbers, target=[None] * 6)
    assert "mixes" in refused(numbers, target=["1", "2", "x", "4", "5", "6"])
    many = [f"class {chr(97 + i)}" for i in range(6)]
    assert "6 classes where at most 5" in refused(numbers, target=many, max_levels=5)
    assert "--task regression" in refused(numbers, target=range(6), max_levels=5, task="classification")


def test_a_constant_number_is_allowed_with_a_notice():
    encoder = TableEncoder.fit(table(target=[7.5] * 6, a=range(6)), target="y")
    assert any("same value in all rows" in notice for notice in encoder.notices)
    truth = TableEncoder.fit(table(target=[True, False] * 3, a=range(6)), target="y", task="regression")
    np.testing.assert_array_equal(truth.transform(table(target=[True, False] * 3, a=range(6))).y, [1, 0] * 3)


# --- through JSON ---------------------------------------------------------------------------------------------------


def test_data_that_is_no_encoder():
    good = TableEncoder.fit(TRAIN, target="y").to_dict()
    assert "does not describe" in failure(TableEncoder.from_dict, {})
    assert "does not describe" in failure(TableEncoder.from_dict, [])
    assert "version 2" in failure(TableEncoder.from_dict, {**good, "version": 2})
    for damaged in (
        {name: value for name, value in good.items() if name != "columns"},
        {**good, "columns": [{"name": "x"}]},
        {**good, "columns": [{"name": "x", "kind": "colour"}]},
        {**good, "columns": 3},
        {**good, "target_column": None},
        {**good, "surprise": 1},
    ):
        assert "damaged" in failure(TableEncoder.from_dict, damaged)


CELLS = {
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "truth": st.booleans(),
    "word": st.text(alphabet="abé ,\"'", max_size=2).map(lambda text: f"w{text}"),
    "date": st.dates(datetime.date(1800, 1, 1), datetime.date(2200, 1, 1)).map(str),
    "price": st.decimals(-9999, 9999, places=2).map(lambda price: f"{price:,} €"),
}


@st.composite
def frames(draw) -> pd.DataFrame:
    n_rows = draw(st.integers(3, 12))
    columns = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=4, unique=True)):
        cells = CELLS[draw(st.sampled_from(sorted(CELLS)))]
        if draw(st.booleans()):
            cells = st.one_of(st.none(), cells, cells, cells)
        columns[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    return pd.DataFrame(columns)


@settings(max_examples=80, deadline=None)
@given(frame=frames(), missing=st.sampled_from(["error", "drop", "impute"]), identify=st.booleans())
def test_an_encoder_survives_json(frame, missing, identify):
    target = frame.columns[-1]
    if identify:
        frame["row"] = [f"r{place}" for place in range(len(frame))]
    try:
        encoder = TableEncoder.fit(frame, target=target, missing=missing, id_column="row" if identify else None)
    except TableError:
        assume(False)
        return
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
    assert again == encoder
    encoded = encoder.transform(frame)
    same(again.transform(frame), encoded)
    assert np.isfinite(encoded.X).all()
    assert encoded.X.shape == (len(encoded.row_index), len(encoder.feature_names))
    assert (np.diff(encoded.row_index) > 0).all()
    alone = frame.iloc[encoded.row_index].drop(columns=target)
    same(again.transform(alone), encoder.transform(alone))
