"""Write tables atomically."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from errorband.files import atomic_write
from errorband.tables.errors import TableError, show_cell


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table as CSV, gzipped CSV or Parquet, as the end of the name says.

    A file is written under another name in the same directory, forced to disk and then moved into place, so
    that a reader sees the old file or the new one and never a part. The row index is not written.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    path : str or path-like
        A name that ends in ``.csv``, ``.csv.gz`` or ``.parquet``, or ``"-"`` for CSV on standard output.

    Examples
    --------
    >>> write_table(pd.DataFrame({"x": [1, 2], "tree": ["oak", "elm"]}), "-")
    x,tree
    1,oak
    2,elm
    """
    name = os.fspath(path)
    if name == "-":
        text = frame.to_csv(index=False, lineterminator="\n")
        buffer = getattr(sys.stdout, "buffer", None)
        sys.stdout.write(text) if buffer is None else buffer.write(text.encode("utf-8"))
        sys.stdout.flush()
        return
    target = Path(os.path.realpath(name))
    label = show_cell(name, width=200)
    if not name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise TableError(f"The output name {label} has no known ending, so end it in .csv, .csv.gz or .parquet.")
    if target.exists() and not target.is_file():
        raise TableError(f"The output {label} is not a regular file, so name a file or '-' for standard output.")
    try:
        with atomic_write(target) as handle:
            _write_as(frame, handle, name.lower())
    except ImportError as error:
        raise TableError(f"Writing {label} needs pyarrow, so run 'pip install pyarrow' or write CSV.") from error
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise TableError(f"Cannot write {label} ({reason}), so check the columns.") from error


def _write_as(frame: pd.DataFrame, handle: IO[bytes], name: str) -> None:
    plain = frame.copy(deep=False)
    plain.attrs = {}
    if name.endswith(".parquet"):
        plain.to_parquet(handle, index=False)
    elif name.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) as packed:
            plain.to_csv(cast(Any, packed), index=False, lineterminator="\n", encoding="utf-8")
    else:
        plain.to_csv(cast(Any, handle), index=False, lineterminator="\n", encoding="utf-8")
