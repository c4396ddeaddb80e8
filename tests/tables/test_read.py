"""Reading and writing of tables: formats, encodings, limits, and one sentence for everything that goes wrong."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import re
import stat
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from errorband.files import CannotWrite
from errorband.tables import TableError, read_table, require_column, write_table

SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FRAME = pd.DataFrame({"x": [1, 2, 3], "size": [0.1, 1.5, -2e-7], "tree": ["oak", "elm, old", 'ash "b"']})


def failure(action, *arguments, **options) -> str:
    """Return the message of the `TableError` that `action` raises, after checking that it is one sentence."""
    with pytest.raises(TableError) as caught:
        action(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert not re.search(r"[.!?]\s+[A-Z]", message)
    assert "\n" not in message
    return message


def put(folder: Path, content: bytes | str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    left = left.reset_index(drop=True)
    pd.testing.assert_frame_equal(left, right, check_dtype=False, check_exact=True, check_column_type=False)


# --- formats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter_is_found_and_quotes_are_respected(tmp_path, delimiter):
    path = put(tmp_path, FRAME.to_csv(index=False, sep=delimiter))
    same(read_table(path), FRAME)


def test_columns_separated_by_blanks_of_any_width(tmp_path):
    frame = read_table(put(tmp_path, '  x   y  "the name"\n  1 2.5   "a b"\n 10 3.5   c\n\n'))
    same(frame, pd.DataFrame({"x": [1, 10], "y": [2.5, 3.5], "the name": ["a b", "c"]}))


def test_delimiters_inside_quotes_do_not_count(tmp_path):
    frame = read_table(put(tmp_path, '"x" "a;b"\n1 "c;d"\n2 e\n'))
    same(frame, pd.DataFrame({"x": [1, 2], "a;b": ["c;d", "e"]}))
    frame = read_table(put(tmp_path, 'pipe 5", long,x\n1,2,3\n'))
    assert list(frame.columns) == ['pipe 5"', "long", "x"]


def test_one_column_and_prose_in_one_column(tmp_path):
    assert read_table(put(tmp_path, "x\n1\n2\n"))["x"].tolist() == [1, 2]
    frame = read_table(put(tmp_path, "room temperature\n20.5\n21.0\n"))
    assert frame["room temperature"].tolist() == [20.5, 21.0]


def test_decimal_commas_with_semicolons(tmp_path):
    frame = read_table(put(tmp_path, "a (m, s);b (m, s)\n1,5;2,25\n-3,0;4\n"))
    same(frame, pd.DataFrame({"a (m, s)": [1.5, -3.0], "b (m, s)": [2.25, 4.0]}))
    assert "decimal commas" in frame.attrs["notices"][0]


def test_decimal_points_with_semicolons(tmp_path):
    frame = read_table(put(tmp_path, "a;b\n1.5;x, y\n2.5;z\n"))
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame.attrs["notices"] == []


def test_header_names_are_stripped_and_cells_may_follow_a_blank(tmp_path):
    same(read_table(put(tmp_path, 'a , b\n1, "x, y"\n2, z\n')), pd.DataFrame({"a": [1, 2], "b": ["x, y", "z"]}))


def test_line_ends_blank_lines_and_cells_over_two_lines(tmp_path):
    same(read_table(put(tmp_path, "\r\na,b\r\n1,2\r\n\r\n3,4")), pd.DataFrame({"a": [1, 3], "b": [2, 4]}))
    assert read_table(put(tmp_path, 'a,b\n1,"x\ny"\n'))["b"].tolist() == ["x\ny"]
    assert read_table(put(tmp_path, "a,b\r1,2\r"))["b"].tolist() == [2]


def test_missing_cells_and_the_word_none(tmp_path):
    frame = read_table(put(tmp_path, "a,b\n1,None\nNA,\nn/a,x\n"))
    assert frame["a"].isna().tolist() == [False, True, True]
    assert frame["b"].isna().tolist() == [False, True, False]


def test_text_columns_keep_leading_zeros(tmp_path):
    path = put(tmp_path, "id,x\n007,1\n010,2\n")
    assert read_table(path)["id"].tolist() == [7, 10]
    assert read_table(path, text_columns=["id", "other"])["id"].tolist() == ["007", "010"]


def test_nameless_columns_are_named_or_dropped_when_empty(tmp_path):
    frame = read_table(put(tmp_path, ",a,\n0,1,\n1,2,\n"))
    assert list(frame.columns) == ["unnamed_1", "a"]
    assert "'unnamed_1'" in frame.attrs["notices"][0]


def test_a_header_of_numbers_is_remarked_upon(tmp_path):
    assert "only numbers" in read_table(put(tmp_path, "1.5,2\n3,4\n")).attrs["notices"][0]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_write_then_read(tmp_path, name):
    write_table(FRAME, tmp_path / name)
    same(read_table(tmp_path / name), FRAME)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_gzip_and_parquet_are_found_by_content(tmp_path):
    same(read_table(put(tmp_path, gzip.compress(FRAME.to_csv(index=False).encode()), "a.txt")), FRAME)
    stored = io.BytesIO()
    FRAME.to_parquet(stored)
    same(read_table(put(tmp_path, stored.getvalue(), "b.dat")), FRAME)
    same(read_table(put(tmp_path, gzip.compress(stored.getvalue()), "c.dat")), FRAME)


def test_named_index_of_parquet_becomes_a_column(tmp_path):
    FRAME.set_index("tree").to_parquet(tmp_path / "a.parquet")
    same(read_table(tmp_path / "a.parquet").reindex(columns=FRAME.columns), FRAME)
    FRAME.set_axis([5, 6, 7]).to_parquet(tmp_path / "b.parquet")
    same(read_table(tmp_path / "b.parquet"), FRAME)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, pack):
    content = pack(FRAME.to_csv(index=False).encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    same(read_table("-"), FRAME)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "Standard input is closed" in failure(read_table, "-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_read_as_a_stream():
    reader, writer = os.pipe()
    os.write(writer, b"a,b\n1,2\n")
    os.close(writer)
    assert read_table(f"/dev/fd/{reader}")["b"].tolist() == [2]
    os.close(reader)


# --- encodings ------------------------------------------------------------------------------------------------------


def test_utf8_with_and_without_mark(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        frame = read_table(put(tmp_path, "naïve,µ\n1,ü\n".encode(encoding)))
        assert list(frame.columns) == ["naïve", "µ"]
        assert frame.attrs["notices"] == []


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_other_text_is_read_with_a_notice(tmp_path, encoding):
    frame = read_table(put(tmp_path, "größe,ort\n1,Köln\n2,Málaga\n".encode(encoding)))
    assert frame["ort"].tolist() == ["Köln", "Málaga"]
    assert "not UTF-8" in frame.attrs["notices"][0]


def test_binary_files_are_refused(tmp_path):
    assert "is not text" in failure(read_table, put(tmp_path, bytes(range(256)) * 4))
    assert "is not text" in failure(read_table, put(tmp_path, b"a,b\n1,\x00\n"))
    assert "is not text" in failure(read_table, put(tmp_path, "столбец,имя\n1,два\n".encode("cp1251")))
    assert "Excel" in failure(read_table, put(tmp_path, b"PK\x03\x04rest", "a.xlsx"))
    assert list(read_table(put(tmp_path, "PK,x\n1,2\n")).columns) == ["PK", "x"]
    assert "UTF-16" in failure(read_table, put(tmp_path, "a,b\n1,2\n".encode("utf-16")))


# --- everything that goes wrong -------------------------------------------------------------------------------------


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    put(tmp_path, "a\n1\n", "measurements.csv")
    message = failure(read_table, tmp_path / "mesurements.csv")
    assert "There is no file" in message
    assert "'measurements.csv'" in message
    assert "There is no file" in failure(read_table, tmp_path / "nowhere" / "a.csv")
    assert "is a directory" in failure(read_table, tmp_path)
    assert "not a valid file name" in failure(read_table, "a\0b.csv")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert "Permission denied" in failure(read_table, tmp_path / "measurements.csv")


def test_tables_without_content(tmp_path):
    for content in (b"", b"\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"):
        assert "is empty" in failure(read_table, put(tmp_path, content))
    assert "no rows" in failure(read_table, put(tmp_path, "a,b\n"))
    assert "no rows" in failure(read_table, put(tmp_path, "a\n\n"))
    assert "no rows" in failure(read_table, put(tmp_path, b"\xef\xbb\xbf\xef\xbb\xbf\n!"))
    assert "no rows" in failure(read_table, put(tmp_path, ",,\n,,\n"))
    assert "is empty" in failure(read_table, put(tmp_path, gzip.compress(b""), "a.gz"))
    FRAME.head(0).to_parquet(tmp_path / "a.parquet")
    assert "no rows" in failure(read_table, tmp_path / "a.parquet")


@pytest.mark.parametrize(("line", "count"), [("1,2,3", 3), ("1", 1), ("1,2,3,4,5", 5)])
def test_ragged_rows_name_the_line(tmp_path, line, count):
    message = failure(read_table, put(tmp_path, f"a,b\n1,2\n{line}\n3,4\n"))
    assert "Line 3 of 'table.csv'" in message
    assert f"{count} cell" in message


def test_rows_that_are_all_longer_than_the_header(tmp_path):
    assert "Line 2" in failure(read_table, put(tmp_path, "a,b\n1,2,3\n4,5,6\n"))


def test_ragged_rows_of_columns_separated_by_blanks(tmp_path):
    rows = "".join(f"{i} {i + 1}\n" for i in range(30_000))
    assert "blanks" in failure(read_table, put(tmp_path, f"a b\n{rows}1 2 3\n"))


def test_open_quotes(tmp_path):
    assert "table.csv" in failure(read_table, put(tmp_path, 'a,b\n1,"x\n2,y\n'))
    assert "quote" in failure(read_table, put(tmp_path, 'b||"a| a\n1|b "||aa\n ||"b|\t.'))


def test_repeated_names(tmp_path):
    assert "repeats the name 'a'" in failure(read_table, put(tmp_path, "a,b,a\n1,2,3\n"))


def test_too_many_columns(tmp_path):
    content = ",".join(f"c{i}" for i in range(11)) + "\n" + ",".join("1" * 11) + "\n"
    assert "11 columns where at most 10" in failure(read_table, put(tmp_path, content), max_columns=10)
    pd.DataFrame({f"c{i}": [1] for i in range(11)}).to_parquet(tmp_path / "a.parquet")
    assert "11 columns" in failure(read_table, tmp_path / "a.parquet", max_columns=10)


def test_size_limit(tmp_path):
    path = put(tmp_path, "a,b\n" + "1,2\n" * 1000)
    assert "larger than the limit of 1,000 bytes" in failure(read_table, path, max_bytes=1000)
    assert len(read_table(path, max_bytes=4004)) == 1000
    pd.DataFrame({"a": np.zeros(10_000)}).to_parquet(tmp_path / "a.parquet")
    assert "larger than" in failure(read_table, tmp_path / "a.parquet", max_bytes=10_000)


def test_a_gzip_bomb_is_stopped_early(tmp_path, monkeypatch):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"1,2\n" * (1 << 18)
    content = packer.compress(b"a,b\n") + b"".join(packer.compress(block) for _ in range(64)) + packer.flush()
    produced = 0
    read = gzip.GzipFile.read

    def counting_read(self, size=-1):
        nonlocal produced
        chunk = read(self, size)
        produced += len(chunk)
        return chunk

    monkeypatch.setattr(gzip.GzipFile, "read", counting_read)
    assert "larger than" in failure(read_table, put(tmp_path, content, "a.csv.gz"), max_bytes=3 << 20)
    assert produced <= 5 << 20


def test_damaged_files(tmp_path):
    packed = gzip.compress(FRAME.to_csv(index=False).encode() * 100)
    assert "damaged" in failure(read_table, put(tmp_path, packed[:-20], "a.gz"))
    assert "damaged" in failure(read_table, put(tmp_path, packed[:12] + b"\xff" * 30 + packed[40:], "a.gz"))
    assert "damaged" in failure(read_table, put(tmp_path, b"PAR1" + b"\x07" * 40 + b"PAR1", "a.parquet"))


def test_unknown_column_names_what_comes_close():
    assert require_column(FRAME, "size") == "size"
    message = failure(require_column, FRAME, "Siz")
    assert "closest: 'size'" in message
    wide = pd.DataFrame({f"c{i}": [1] for i in range(100)})
    message = failure(require_column, wide, "zzz")
    assert "92 more" in message
    assert "closest" not in message


# --- writing --------------------------------------------------------------------------------------------------------


def test_write_to_standard_output(capsysbinary):
    write_table(FRAME.drop(columns="tree"), "-")
    assert capsysbinary.readouterr().out == b"x,size\n1,0.1\n2,1.5\n3,-2e-07\n"


def test_names_that_cannot_be_written(tmp_path):
    assert "no known ending" in failure(write_table, FRAME, tmp_path / "a.xlsx")
    with pytest.raises(CannotWrite, match="No such file or directory"):
        write_table(FRAME, tmp_path / "nowhere" / "a.csv")
    (tmp_path / "d.csv").mkdir()
    assert "not a regular file" in failure(write_table, FRAME, tmp_path / "d.csv")
    mixed = pd.DataFrame({"x": [1, "a", object()]}, dtype=object)
    assert "Cannot write" in failure(write_table, mixed, tmp_path / "a.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = put(tmp_path, "a\n1\n")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CannotWrite, match="No space left"):
        write_table(FRAME, path)
    assert path.read_text() == "a\n1\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_permissions_and_links_survive(tmp_path):
    path = put(tmp_path, "a\n1\n")
    path.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    write_table(FRAME, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    same(read_table(path), FRAME)


def test_gzip_output_is_reproducible_and_notices_stay_out_of_parquet(tmp_path):
    frame = FRAME.copy()
    frame.attrs["notices"] = ["a remark"]
    for name in ("a.csv.gz", "b.csv.gz", "a.parquet"):
        write_table(frame, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert b"a remark" not in (tmp_path / "a.parquet").read_bytes()
    assert frame.attrs == {"notices": ["a remark"]}


# --- properties -----------------------------------------------------------------------------------------------------

WORDS = st.text(alphabet=list("abcé,;|\t\"' \n.1-"), max_size=8).map(lambda text: f"w{text}w")
CELLS = {
    "integer": st.integers(-(2**53), 2**53),
    "float": st.floats(allow_nan=True, allow_infinity=False),
    "truth": st.booleans(),
    "word": WORDS,
}


@st.composite
def frames(draw) -> pd.DataFrame:
    names = draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    n_rows = draw(st.integers(1, 6))
    return pd.DataFrame(
        {
            name: draw(st.lists(CELLS[draw(st.sampled_from(sorted(CELLS)))], min_size=n_rows, max_size=n_rows))
            for name in names
        }
    )


@SMALL
@given(frame=frames(), delimiter=st.sampled_from([",", ";", "\t", "|", " "]), packed=st.booleans())
def test_any_frame_survives_any_delimiter(tmp_path, frame, delimiter, packed):
    if delimiter == " ":  # a line is a row where blanks separate cells, and an empty cell has to be visible
        frame = frame.rename(columns=lambda name: name.replace("\n", "_"))
        frame = frame.map(lambda cell: cell.replace("\n", "_") if isinstance(cell, str) else cell)
    if len(set(frame.columns)) < len(frame.columns):
        return
    text = frame.to_csv(index=False, sep=delimiter, quoting=csv.QUOTE_NONNUMERIC, na_rep="NaN").encode()
    same(read_table(put(tmp_path, gzip.compress(text) if packed else text)), frame)


@SMALL
@given(frame=frames())
def test_any_frame_survives_decimal_commas(tmp_path, frame):
    text = frame.to_csv(index=False, sep=";", decimal=",", quoting=csv.QUOTE_NONNUMERIC, na_rep="NaN")
    same(read_table(put(tmp_path, text)), frame)


@SMALL
@given(frame=frames(), name=st.sampled_from(["t.csv", "t.csv.gz", "t.parquet"]))
def test_any_frame_survives_writing(tmp_path, frame, name):
    write_table(frame, tmp_path / name)
    same(read_table(tmp_path / name), frame)


CSV_LIKE = st.text(alphabet=list("ab01.,;|\t\"' \n\r-e%é\x0b\x0c\x85\u2028\ufeff"), max_size=60).map(str.encode)
JUNK = st.one_of(st.binary(max_size=200), CSV_LIKE)
HEADS = st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"PAR1", b"\xef\xbb\xbf", b"a,b\n", b"a b\n1 2\n", b"a;b\n1,5;2\n"])


@settings(SMALL, max_examples=300)
@given(head=HEADS, junk=JUNK, tail=st.sampled_from([b"", b"PAR1", b"\n1,2\n"]), packed=st.booleans())
def test_any_bytes_give_a_table_or_one_sentence(tmp_path, head, junk, tail, packed):
    content = head + junk + tail
    with contextlib.suppress(TableError):
        frame = read_table(put(tmp_path, gzip.compress(content) if packed else content))
        assert len(frame) >= 1
        assert frame.columns.is_unique
