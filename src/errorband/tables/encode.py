"""Learn from a table how to make a numeric matrix of it, and make the same matrix of later tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import pandas as pd

from errorband.tables.errors import TableError, closest_names, count_of, show_cell, show_names
from errorband.tables.read import require_column

__all__ = ["Encoded", "TableEncoder"]

Task = Literal["auto", "regression", "classification"]
Missing = Literal["error", "drop", "impute"]

_FORMAT, _VERSION = "errorband.table-encoder", 1
_KINDS = {"number": "numbers", "boolean": "yes/no values", "date": "dates", "text": "words", "empty": "nothing"}
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[ ']\d{3})+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
)
_WITH_UNIT = re.compile(r"([+-]?)\s*([$€£¥₹]?)\s*([^\s%$€£¥₹](?:.*[^\s%$€£¥₹])?)\s*([%$€£¥₹]?)", re.DOTALL)
_TYPOGRAPHY = str.maketrans({"−": "-", "’": "'", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_SWAP_POINT_AND_COMMA = str.maketrans(".,", ",.")
_DATES = ("ISO8601", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
_DATES_WITH_MONTH_NAMES = ("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y")
_DATE_NOTATIONS = [
    date + time
    for time, date in product(("", " %H:%M", " %H:%M:%S"), _DATES + _DATES_WITH_MONTH_NAMES)
    if not (time and date == "ISO8601")
]
_DATE_SHARE = 0.95
_CYCLES = {"year": 365.25, "week": 7.0}
_SPAN_FOR_CYCLE = {"year": 365.25, "week": 14.0}


@dataclass(frozen=True)
class Encoded:
    """A table as a numeric matrix; all arrays but none of the lists have one entry per kept row.

    Attributes
    ----------
    X : ndarray of shape (n_kept, n_features)
        The features.
    y : ndarray of shape (n_kept,) or None
        The target: numbers, or the integer codes of the labels; None if the table has no target.
    feature_names : list of str
        The names of the columns of `X`.
    row_index : ndarray of shape (n_kept,)
        The positions of the kept rows in the table, in their order.
    ids : ndarray of shape (n_kept,) or None
        The cells of the id column, if one was named and is there.
    notices : list of str
        Remarks for the user.
    n_rows : int
        The number of rows of the table, kept or not.
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: list[str]
    row_index: np.ndarray
    ids: np.ndarray | None
    notices: list[str]
    n_rows: int

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return one value per row of the table from one per kept row, with NaN for the others.

        Examples
        --------
        >>> frame = pd.DataFrame({"x": [1.0, None, 3.0], "y": [0.1, 0.2, 0.3]})
        >>> encoded = TableEncoder.fit(frame, target="y", missing="drop").transform(frame)
        >>> encoded.spread(np.array([10.0, 30.0]))
        array([10., nan, 30.])
        """
        values = np.asarray(values, dtype=float)
        full = np.full((self.n_rows, *values.shape[1:]), np.nan)
        full[self.row_index] = values
        return full


# --- cells: what a column holds -------------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """A column as floats (or text), NaN (or None) where a cell is missing."""

    kind: str
    values: np.ndarray
    notation: str = ""
    problem: str = ""
    unreadable: Sequence[str] = ()


def _read_cells(column: pd.Series, kind: str = "", notation: str = "") -> _Cells:
    """Find out what a column holds; with `kind` and `notation`, read text as training did."""
    missing = column.isna().to_numpy(dtype=bool)
    if missing.all():
        return _Cells("empty", np.full(len(column), np.nan))
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "boolean":
        return _Cells("boolean", column.to_numpy(dtype=float, na_value=np.nan))
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return _finite(column, _Cells("number", column.to_numpy(dtype=float, na_value=np.nan)))
    if inferred == "datetime64":
        return _Cells("date", _days(pd.to_datetime(column, utc=True)), "ISO8601")
    if inferred == "timedelta64":
        return _Cells("number", (column / pd.Timedelta(days=1)).to_numpy(dtype=float, na_value=np.nan))
    pairs = zip(column.astype(object), missing, strict=True)
    words = np.array([None if gone else str(cell).strip() or None for cell, gone in pairs], dtype=object)
    codes, found = pd.factorize(words)
    levels = [str(level) for level in found]
    if not levels:
        return _Cells("empty", np.full(len(column), np.nan))
    if kind == "text" or isinstance(column.dtype, pd.CategoricalDtype):
        return _Cells("text", words)
    if {level.lower() for level in levels} <= {"true", "false"}:
        truth = np.array([float(level.lower() == "true") for level in levels])
        return _Cells("boolean", np.where(codes < 0, np.nan, truth[codes]))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    numbers, style, problem = _parse_numbers(levels, notation if kind == "number" else "")
    numeric = ~np.isnan(numbers)
    if numeric.all() or (problem and kind != "date"):
        if problem:
            return _Cells("text", words, problem=f"Column {show_cell(column.name)} {problem}")
        return _finite(column, _Cells("number", np.where(codes < 0, np.nan, numbers[codes]), style))
    days, style, problem = _parse_dates(levels, counts, notation if kind == "date" else "")
    if style:
        unreadable = [level for level, day in zip(levels, days, strict=True) if np.isnan(day)]
        return _Cells("date", np.where(codes < 0, np.nan, days[codes]), style, unreadable=unreadable)
    if numeric.any() and not problem:
        examples = [[level for level, is_number in zip(levels, numeric, strict=True) if is_number == want][:3] for want in (1, 0)]
        problem = (
            f"mixes {count_of(counts[numeric].sum(), 'number')} (such as {show_names(examples[0])}) with "
            f"{count_of(counts[~numeric].sum(), 'word')} (such as {show_names(examples[1])}), "
            "so empty the cells of one sort or leave the column out with --ignore."
        )
    return _Cells("text", words, problem=problem and f"Column {show_cell(column.name)} {problem}")


def _finite(column: pd.Series, cells: _Cells) -> _Cells:
    if not np.isinf(cells.values).any():
        return cells
    found = count_of(int(np.isinf(cells.values).sum()), "infinite number")
    return cells._replace(problem=f"Column {show_cell(column.name)} has {found}, so correct or empty these cells.")


def _parse_numbers(levels: list[str], notation: str) -> tuple[np.ndarray, str, str]:
    """Return numbers (NaN for words), their notation (the decimal sign and a unit such as %) and any problem."""
    units: set[str] = set()
    points, commas = np.full((2, len(levels)), np.nan)
    for place, level in enumerate(levels):
        match = _WITH_UNIT.fullmatch(level.translate(_TYPOGRAPHY))
        if match is None or (match[2] and match[4]):
            continue
        body = match[1] + match[3]
        points[place], commas[place] = _plain_number(body), _plain_number(body.translate(_SWAP_POINT_AND_COMMA))
        if not np.isnan([points[place], commas[place]]).all():
            units.add(match[2] or match[4])
    either = np.where(np.isnan(points), commas, points)
    if np.isnan(either).any():
        return either, "", ""
    advice = "so write these cells as plain numbers such as 1234.5."
    if len(units) > 1:
        shown = " and ".join(sorted(unit or "no sign" for unit in units))
        return either, "", f"has numbers with different signs ({shown}), {advice}"
    readings = {sign: values for sign, values in ((".", points), (",", commas)) if not np.isnan(values).any()}
    if notation:
        readings = {sign: values for sign, values in readings.items() if sign == notation[0]}
    if not readings:
        odd = next(level for level, value in zip(levels, commas if notation[:1] == "," else points, strict=True) if np.isnan(value))
        return either, "", f"uses points and commas in numbers in more than one way (such as {show_cell(odd)}), {advice}"
    if len(readings) == 2 and not np.array_equal(points, commas):
        place = int(np.flatnonzero(points != commas)[0])
        return either, "", (
            f"has numbers that can be read in two ways ({show_cell(levels[place])} is {points[place]:.15g} "
            f"or {commas[place]:.15g}), {advice}"
        )
    sign = next(iter(readings))
    return readings[sign], sign + units.pop(), ""


def _plain_number(text: str) -> float:
    return float(re.sub(r"[, ']", "", text)) if _NUMBER.fullmatch(text) else np.nan


def _days(stamps: pd.Series) -> np.ndarray:
    """Return days since 1970 as floats, for times in UTC."""
    micro = stamps.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 86_400e6)


def _parse_dates(levels: list[str], counts: np.ndarray, notation: str) -> tuple[np.ndarray, str, str]:
    """Return days since 1970 (NaN for other text), the notation that reads most cells, and any problem."""
    text = pd.Series([level if re.search(r"\d", level) else None for level in levels], dtype=object)
    best_share, best, style, problem = 0.0, np.full(len(levels), np.nan), "", ""
    for candidate in dict.fromkeys((notation, "ISO8601")) if notation else _DATE_NOTATIONS:
        head = pd.to_datetime(text.iloc[:100], format=candidate, errors="coerce", utc=True)
        if not notation and head.notna().mean() < 0.5:
            continue
        days = _days(pd.to_datetime(text, format=candidate, errors="coerce", utc=True))
        share = counts[~np.isnan(days)].sum() / counts.sum()
        if share > best_share:
            best_share, best, style, problem = share, days, candidate, ""
        elif share == best_share and not notation and not np.array_equal(days, best, equal_nan=True):
            problem = f"has dates such as {show_cell(levels[0])} in which day and month can be told apart nowhere, "
            problem += "so write them as 2024-12-31."
    if best_share < (_DATE_SHARE if not notation else 1e-9):
        return best, "", ""
    return (best, "", problem) if problem else (best, style, "")


# --- columns: what is learned about each of them --------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """How one column becomes features."""

    name: str
    kind: str
    notation: str = ""
    levels: list[str] = field(default_factory=list)
    fill: float = 0.0
    origin: float = 0.0
    cycles: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, name: str, cells: _Cells, rows: np.ndarray) -> _Column:
        if cells.kind == "text":
            present = [word for word in cells.values[rows] if word is not None]
            levels = sorted(set(present))
            return cls(name, "text", levels=levels, fill=float(levels.index(max(levels, key=present.count))))
        values = cells.values[rows & ~np.isnan(cells.values)]
        if cells.kind == "boolean":
            return cls(name, "boolean", fill=float(values.mean() > 0.5))
        learned = cls(name, cells.kind, cells.notation, fill=float(np.median(values)))
        if cells.kind != "date":
            return learned
        cycles = [
            cycle
            for cycle, span in _SPAN_FOR_CYCLE.items()
            if np.ptp(values) > span and len(np.unique(_day_in_cycle(values, cycle))) > 1
        ]
        return replace(learned, origin=float(values.min()), cycles=cycles)

    def read(self, column: pd.Series) -> _Cells:
        """Read a column of a later table as this one was read, as floats in which -1 is an unseen level."""
        cells = _read_cells(column, self.kind, self.notation)
        if cells.kind == "empty":
            return cells
        same_unit = self.kind != "number" or cells.notation[1:] == self.notation[1:]
        if cells.problem or cells.kind != self.kind or not same_unit:
            example = show_cell(column[column.notna()].iloc[0])
            expected = _KINDS[self.kind] + (f" with {self.notation[1:]}" if self.notation[1:] and self.kind == "number" else "")
            raise TableError(
                cells.problem
                or f"Column {show_cell(self.name)} held {expected} in training but holds {_KINDS[cells.kind]} "
                f"(such as {example}) here, so bring it back to the form it had."
            )
        if self.kind != "text":
            return cells
        place = {level: float(number) for number, level in enumerate(self.levels)}
        unseen = sorted({word for word in cells.values if word is not None and word not in place})
        codes = [np.nan if word is None else place.get(word, -1.0) for word in cells.values]
        return cells._replace(values=np.array(codes, dtype=float), unreadable=unseen)

    @property
    def feature_names(self) -> list[str]:
        if self.kind == "text":
            return [f"{self.name}={level}" for level in (self.levels[1:] if len(self.levels) == 2 else self.levels)]
        if self.kind == "date":
            waves = [f"{self.name} [{cycle} {wave}]" for cycle in self.cycles for wave in ("sin", "cos")]
            return [f"{self.name} [days]", *waves]
        return [self.name]

    def features(self, values: np.ndarray) -> np.ndarray:
        if self.kind == "text" and len(self.levels) == 2:
            return np.where(values < 0, 0.5, values)[:, None]
        if self.kind == "text":
            return (values[:, None] == np.arange(len(self.levels))).astype(float)
        if self.kind != "date":
            return values[:, None]
        angles = [2 * np.pi * _day_in_cycle(values, cycle) / _CYCLES[cycle] for cycle in self.cycles]
        return np.column_stack([values - self.origin, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])


def _day_in_cycle(days: np.ndarray, cycle: str) -> np.ndarray:
    """Return the whole day of the year (from 0 on 1 January) or of the week (from 0 on Monday)."""
    whole = np.floor(days)
    if cycle == "week":
        return (whole + 3) % 7
    dates = whole.astype(np.int64).astype("datetime64[D]")
    return (dates - dates.astype("datetime64[Y]")).astype(float)


def _label_text(cells: _Cells) -> np.ndarray:
    """Return class labels as text, None where missing."""
    if cells.kind == "text":
        return cells.values
    names = [
        None if np.isnan(value) else str(bool(value)) if cells.kind == "boolean" else f"{value:.0f}" if value.is_integer() else repr(value)
        for value in cells.values.tolist()
    ]
    return np.array(names, dtype=object)


# --- the encoder ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableEncoder:
    """How a table becomes a numeric matrix, learned once and saved as JSON.

    ===================  =============================================================================================
    Column               Features
    ===================  =============================================================================================
    numbers              The number; text such as ``1,234.5``, ``12 %`` (as 12) or ``€5`` counts if only one reading fits.
    yes/no               0 or 1.
    dates                Days since the first training date; with a span of more than a year also the sine and cosine
                         of the day of the year, with more than two weeks those of the day of the week (times in UTC).
    words, two levels    One column, 1 for the second level in alphabetical order.
    words, more levels   One 0/1 column per level.
    one value only       None; the column is left out with a notice.
    ===================  =============================================================================================

    A level that training did not have is an error, except with ``missing="impute"``: there it gets the point at
    equal distance from all known levels (all zeros, or 0.5 for two levels), so that error bands widen.

    Attributes
    ----------
    target, task, missing, id_column : str
        What was asked for; `task` is ``"regression"`` or ``"classification"``.
    labels, label_type : list of str, str
        The classes as text, and the type they had: ``"str"``, ``"int"``, ``"float"`` or ``"bool"``.
    notices : list of str
        What was decided while learning, for the user.

    Examples
    --------
    >>> frame = pd.DataFrame({"tree": ["oak", "elm", "ash", "oak"], "age": [9, 30, 12, 21], "height": [4.1, 9.0, 5.5, 7.2]})
    >>> encoder = TableEncoder.fit(frame, target="height")
    >>> encoder.feature_names
    ['tree=ash', 'tree=elm', 'tree=oak', 'age']
    >>> again = TableEncoder.from_dict(encoder.to_dict())
    >>> again.transform(frame.head(2)).X
    array([[ 0.,  0.,  1.,  9.],
           [ 0.,  1.,  0., 30.]])
    """

    target: str
    task: str
    missing: str
    id_column: str | None
    columns: list[_Column]
    unused: list[str]
    target_column: _Column
    labels: list[str]
    label_type: str
    notices: list[str]

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        *,
        target: str,
        task: Task = "auto",
        ignore: Sequence[str] = (),
        id_column: str | None = None,
        missing: Missing = "error",
        max_levels: int = 20,
    ) -> TableEncoder:
        """Learn the encoding from a training table.

        Parameters
        ----------
        frame : pandas.DataFrame
            The table.
        target : str
            The column to predict.
        task : {"auto", "regression", "classification"}, default="auto"
            With ``"auto"``, words, yes/no values and exactly two whole numbers are classes; all else is regression.
        ignore : sequence of str, default=()
            Columns to leave out.
        id_column : str, optional
            A column that names the rows; it is no feature.
        missing : {"error", "drop", "impute"}, default="error"
            Refuse missing cells, drop their rows, or fill in the median or the most frequent level. Rows without
            a target are refused under ``"error"`` and dropped otherwise.
        max_levels : int, default=20
            The largest number of levels of a column of words.

        Returns
        -------
        TableEncoder
            The encoder; call `transform` on the same table for the training matrix.

        Examples
        --------
        >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "outcome": ["well", "ill", "well"]})
        >>> TableEncoder.fit(frame, target="outcome").notices
        ["The task is classification, because the target 'outcome' holds words (2 classes)."]
        """
        if task not in get_args(Task) or missing not in get_args(Missing):
            raise TableError(f"The options task={task!r} and missing={missing!r} are not both known, so check their spelling.")
        frame = _with_text_names(frame)
        for name in (target, *ignore, *([id_column] if id_column is not None else [])):
            require_column(frame, name)
        if target in ignore or target == id_column:
            raise TableError(f"The target {show_cell(target)} is also ignored or the id column, so use it once only.")
        if not len(frame):
            raise TableError("The training table has no rows, so add some.")
        target_cells = _read_cells(frame[target], kind="text" if _is_words(frame[target], task) else "")
        chosen, target_column, labels, label_type, notices = _learn_target(target, target_cells, task, max_levels)
        has_target = ~_is_missing(target_cells)

        cells: dict[str, _Cells] = {}
        unused = list(ignore)
        for name in frame.columns:
            if name in (target, id_column) or name in unused:
                continue
            cells[name] = _usable(name, _read_cells(frame[name]))
        kept = _drop_constant(cells, has_target, notices, unused)
        for name, column in cells.items():
            if column.unreadable:
                notices.append(f"Column {show_cell(name)} is read as dates, except {show_names(column.unreadable, 3)}, which count as missing.")
        if missing == "drop":
            while True:
                complete = has_target & ~np.any([_is_missing(column) for column in cells.values()] or [~has_target], axis=0)
                if not complete.any():
                    raise TableError("Every training row has a missing cell, so leave out columns with --ignore or fill in cells.")
                before = len(cells)
                kept = _drop_constant(cells, complete, notices, unused)
                if len(cells) == before:
                    break
        if not cells:
            raise TableError("No column is left to predict from, so add columns that vary or ignore fewer.")
        for name, column in cells.items():
            n_levels = len({word for word in column.values[kept] if word is not None}) if column.kind == "text" else 0
            if n_levels > max_levels:
                raise TableError(
                    f"Column {show_cell(name)} is free text with {n_levels:,} different values, so leave it out with "
                    f"--ignore or allow more than {max_levels} with --max-levels."
                )
        if missing == "error":
            gaps = {target: int((~has_target).sum())} | {name: int(_is_missing(column).sum()) for name, column in cells.items()}
            _refuse_missing(gaps)
        columns = [_Column.learn(name, column, kept) for name, column in cells.items()]
        return cls(target, chosen, missing, id_column, columns, unused, target_column, labels, label_type, notices)
