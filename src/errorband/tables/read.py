"""Read tables from CSV, gzip and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any, cast

import pandas as pd

from errorband.tables.errors import TableError, closest_names, count_of, refuse_repeats, show_cell, show_names

__all__ = ["read_table", "require_column"]

_DELIMITERS = (",", ";", "\t", "|")
_WHITESPACE = r"\s+"
_MISSING_CELLS = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null"]
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r'"(?:[^"]|"")*"[^ \t\n]*|[^" \t\n][^ \t\n]*')
_QUOTED = re.compile(r'(?:^|(?<=[,;|\s]))"(?:[^"]|"")*"')
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_DECIMAL_COMMA = re.compile(rb'[;"\n] *[+-]?\d+,\d+(?:[eE][+-]?\d+)?(?= *(?:[;"\n]|\Z))')
_DECIMAL_POINT = re.compile(rb'[;"\n] *[+-]?\d+\.\d+(?:[eE][+-]?\d+)?(?= *(?:[;"\n]|\Z))')
_PANDAS_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT_FLOATS: dict[str, Any] = {} if _PANDAS_VERSION >= (3, 1) else {"float_precision": "round_trip"}
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 200


def read_table(
    path: str | os.PathLike[str],
    *,
    max_bytes: int = 2 * 1024**3,
    max_columns: int = 5000,
    text_columns: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Read a table with a header line into a data frame.

    The format is found from the content, not from the name: Parquet, CSV, or either of them inside gzip.
    CSV cells may be separated by commas, semicolons, tabs, bars or blanks; a semicolon table may use decimal
    commas. Text is UTF-8; anything else that still looks like text is read as Windows-1252 (which contains
    the printable part of Latin-1). The cells ``NA``, ``N/A``, ``NaN``, ``null`` and empty ones are missing; the
    word ``None`` is not, because it is a common level of a category.

    Parameters
    ----------
    path : str or path-like
        The file, or ``"-"`` for standard input.
    max_bytes : int, default=2 GiB
        The largest table to accept, counted after decompression; reading stops as soon as it is passed.
    max_columns : int, default=5000
        The largest number of columns to accept.
    text_columns : sequence of str, default=()
        CSV columns to leave as text, such as row names whose leading zeros matter; unknown names are skipped.

    Returns
    -------
    pandas.DataFrame
        The table, with remarks for the user in ``frame.attrs["notices"]``.

    Raises
    ------
    TableError
        If the table cannot be read, in one sentence.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trees.csv")
    ...     _ = path.write_text("tree;height\noak;20,5\nelm;17,0\n")
    ...     frame = read_table(path)
    >>> frame["height"].tolist(), frame.attrs["notices"]
    ([20.5, 17.0], ["Commas in numbers of 'trees.csv' were read as decimal commas."])
    """
    name = os.fspath(path)
    label = "standard input" if name == "-" else show_cell(os.path.basename(name) or name, width=80)
    try:
        with _open_source(name, max_bytes, label) as source:
            head = source.read(4)
            source.seek(0)
            if head[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=source) as unpacked:
                    source = io.BytesIO(_read_limited(unpacked, max_bytes, label))
                    head = source.getvalue()[:4]
            if head == b"PAR1":
                return _read_parquet(source, label, max_bytes, max_columns)
            data = _read_limited(source, max_bytes, label)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"The gzip data of {label} is damaged or cut short, so compress or copy it again.") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TableError(f"Cannot read {label} ({reason}), so check the path and its permissions.") from error
    return _read_csv(data, label, max_columns, text_columns)


def _open_source(name: str, max_bytes: int, label: str) -> IO[bytes]:
    """Open a file or standard input as a seekable stream."""
    if name == "-":
        pipe = getattr(sys.stdin, "buffer", None)
        if pipe is None:
            raise TableError("Standard input is closed, so pipe a table into the command or name a file.")
        return io.BytesIO(_read_limited(pipe, max_bytes, label))
    if os.path.isdir(name):
        raise TableError(f"The path {label} is a directory, so name one file in it.")
    try:
        handle = open(name, "rb")  # noqa: SIM115
    except FileNotFoundError:
        folder = os.path.dirname(name) or "."
        near = closest_names(os.path.basename(name), os.listdir(folder)) if os.path.isdir(folder) else []
        hint = f" (closest there: {show_names(near)})" if near else ""
        raise TableError(f"There is no file {show_cell(name, width=200)}{hint}, so check the path.") from None
    except ValueError as error:
        raise TableError(f"The path {label} is not a valid file name ({error}), so check it.") from error
    if handle.seekable():
        return handle
    with handle:
        return io.BytesIO(_read_limited(handle, max_bytes, label))


def _too_large(label: str, max_bytes: int) -> TableError:
    return TableError(
        f"The table in {label} is larger than the limit of {max_bytes:,} bytes after decompression, "
        "so use a smaller table or raise the limit."
    )


def _read_limited(source: Any, max_bytes: int, label: str) -> bytes:
    chunks, total = [], 0
    while chunk := source.read(1 << 20):
        total += len(chunk)
        if total > max_bytes:
            raise _too_large(label, max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def _check_header(names: Sequence[str], label: str, max_columns: int) -> None:
    if len(names) > max_columns:
        raise TableError(
            f"The table in {label} has {count_of(len(names), 'column')} where at most {max_columns:,} are allowed, "
            "so remove columns or check the delimiter."
        )
    refuse_repeats(names, f"The header of {label}")


def _no_rows(label: str) -> TableError:
    return TableError(f"The table in {label} has a header but no rows, so add at least one row of data.")


def _read_parquet(source: IO[bytes], label: str, max_bytes: int, max_columns: int) -> pd.DataFrame:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise TableError(f"Reading {label} needs pyarrow, so run 'pip install pyarrow' or save it as CSV.") from error
    try:
        stored = pq.ParquetFile(source)
        _check_header(list(stored.schema_arrow.names), label, max_columns)
        batches, total = [], 0
        for batch in stored.iter_batches():
            total += batch.nbytes
            if total > max_bytes:
                raise _too_large(label, max_bytes)
            batches.append(batch)
        frame = pa.Table.from_batches(batches, stored.schema_arrow).to_pandas()
    except (TableError, MemoryError):
        raise
    except Exception as error:  # a damaged file makes Arrow fail in many ways
        raise TableError(f"The Parquet file {label} is damaged or cut short, so write or copy it again.") from error
    named_index = [level for level in frame.index.names if level is not None]
    frame = frame.reset_index(level=named_index).reset_index(drop=True) if named_index else frame.reset_index(drop=True)
    if frame.empty:
        raise _no_rows(label)
    frame.attrs = {"notices": []}
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    return frame


def _text_encoding(data: bytes, label: str, notices: list[str]) -> str:
    if data[:4] == b"PK\x03\x04":
        raise TableError(f"The file {label} looks like an Excel or zip file, so save the sheet as CSV or Parquet.")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"The file {label} looks like UTF-16 text, so save it as UTF-8.")
    if _CONTROL.search(data) is None:
        for encoding in ("utf-8", "cp1252"):
            try:
                data.decode(encoding)
            except UnicodeDecodeError:
                continue
            if encoding == "utf-8":
                return encoding
            if len(data.translate(None, bytes(range(128)))) <= 0.3 * len(data):
                notices.append(f"The text of {label} is not UTF-8 and was read as Windows-1252 (Latin-1).")
                return encoding
    raise TableError(f"The file {label} is not text in UTF-8 or Latin-1, so save the table as UTF-8 CSV or Parquet.")


def _records(data: bytes, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of every record that is not blank."""
    lines = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors="replace", newline="")
    if delimiter == _WHITESPACE:
        for number, line in enumerate(lines, 1):
            if words := _WORD.findall(line):
                yield number, [word[1:-1].replace('""', '"') if word[0] == word[-1] == '"' else word for word in words]
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    for cells in reader:
        if len(cells) > 1 or "".join(cells).strip(" \t"):
            yield reader.line_num, cells


def _sniff_delimiter(data: bytes, encoding: str) -> str:
    """Return the delimiter that gives most rows the width of the header, then the most numbers, then the most cells."""
    sample = data[:_SAMPLE_BYTES]
    if len(sample) < len(data):
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    lines = _QUOTED.sub("", sample.decode(encoding, "replace")).split("\n")
    header = next((line for line in lines if line.strip(" ")), "")
    scores: dict[str, tuple[float, float, int]] = {}
    for delimiter in (*_DELIMITERS, _WHITESPACE):
        if delimiter != _WHITESPACE and delimiter not in header:
            continue
        if delimiter == _WHITESPACE and any(agreement >= 0.5 for agreement, _, _ in scores.values()):
            continue
        rows: list[list[str]] = []
        try:
            rows.extend(cells for _, cells in islice(_records(sample, encoding, delimiter), _SAMPLE_ROWS))
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        fitting = [row for row in rows[1:] if len(row) == width]
        numbers = sum(_NUMBER.fullmatch(cell.strip()) is not None for row in fitting for cell in row)
        agreement = len(fitting) / max(len(rows) - 1, 1) if len(rows) > 1 else 1.0
        if delimiter != _WHITESPACE or agreement == 1.0:
            scores[delimiter] = (agreement, numbers / max(width * len(fitting), 1), width)
    return max(scores, key=lambda delimiter: scores[delimiter], default=",")


def _read_csv(data: bytes, label: str, max_columns: int, text_columns: Sequence[str]) -> pd.DataFrame:
    notices: list[str] = []
    while data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if b"\r" in data:  # older pandas can run out of memory on lone carriage returns
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data or data.isspace():
        raise TableError(f"The table in {label} is empty, so write a header line and at least one row to it.")
    encoding = _text_encoding(data, label, notices)
    delimiter = _sniff_delimiter(data, encoding)
    decimal = "."
    if delimiter == ";":
        commas, points = (sum(1 for _ in shape.finditer(data)) for shape in (_DECIMAL_COMMA, _DECIMAL_POINT))
        if commas > points:
            decimal = ","
            notices.append(f"Commas in numbers of {label} were read as decimal commas.")
    try:
        header, nameless, lines = _scan(_records(data, encoding, delimiter), label, max_columns, delimiter)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # raised for cells that would be lost
            frame = pd.read_csv(
                io.BytesIO(data),
                sep=delimiter,
                names=header,
                header=0,
                index_col=False,
                encoding=encoding,
                decimal=decimal,
                dtype=cast(Any, dict.fromkeys(text_columns, str)),
                skipinitialspace=True,
                low_memory=False,
                keep_default_na=False,
                na_values=_MISSING_CELLS,
                **_EXACT_FLOATS,
            )
    except TableError:
        raise
    except (csv.Error, ValueError, OverflowError, pd.errors.ParserWarning) as error:
        raise TableError(
            f"The table in {label} cannot be split into rows and cells, so check that every quote is closed."
        ) from error
    if len(header) > 1 and len(frame) != len(lines):
        raise TableError(f"The quotes in {label} can be read in two ways, so put quotes around whole cells only.")
    if all(_NUMBER.fullmatch(name) for name in header):
        notices.append(f"The first line of {label} was taken as the header although it holds only numbers.")
    frame = frame.drop(columns=[name for name in nameless if not frame[name].count()])
    if frame.empty:
        raise _no_rows(label)
    kept = [name for name in nameless if name in frame]
    if kept:
        notices.append(f"Columns of {label} without a name were called {show_names(kept)}.")
    frame.attrs = {"notices": notices}
    if len(frame) == len(lines):
        frame.index = pd.Index(lines, name="line")
    return frame


def _scan(
    records: Iterator[tuple[int, list[str]]], label: str, max_columns: int, delimiter: str
) -> tuple[list[str], list[str], list[int]]:
    """Check that all rows are as wide as the header; return its names, those invented, and the line of each row."""
    header: list[str] = []
    nameless: list[str] = []
    lines: list[int] = []
    for line, cells in records:
        if not header:
            header = [cell.strip().strip("\ufeff") or f"unnamed_{place}" for place, cell in enumerate(cells, 1)]
            nameless = [name for name, cell in zip(header, cells, strict=True) if not cell.strip().strip("\ufeff")]
            _check_header(header, label, max_columns)
            continue
        if len(cells) != len(header):
            split = "blanks" if delimiter == _WHITESPACE else repr(delimiter)
            raise TableError(
                f"Line {line:,} of {label} has {count_of(len(cells), 'cell')} where the header has {len(header):,} "
                f"(cells end at {split}), so fix that line or put quotes around cells that contain the delimiter."
            )
        lines.append(line)
    if not lines:
        raise _no_rows(label)
    return header, nameless, lines


def require_column(frame: pd.DataFrame, name: str) -> str:
    """Return `name` if the table has that column, and otherwise say which names come close.

    Examples
    --------
    >>> require_column(pd.DataFrame({"temperature": [1.0], "place": ["a"]}), "temprature")
    Traceback (most recent call last):
    ...
    errorband.tables.errors.TableError: There is no column 'temprature' (closest: 'temperature') among 'temperature'
    and 'place', so check the name.
    """
    available = [str(column) for column in frame.columns]
    if name in available:
        return name
    near = closest_names(name, available)
    hint = f" (closest: {show_names(near)})" if near else ""
    raise TableError(f"There is no column {show_cell(name)}{hint} among {show_names(available)}, so check the name.")
