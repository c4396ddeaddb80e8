"""Learn from a table how to make a numeric matrix of it, and make the same matrix of later tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import pandas as pd

from errorband.tables.errors import TableError, closest_names, count_of, refuse_repeats, show_cell, show_names
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
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
_DATES_WITH_WORDS = ("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DATE_NOTATIONS = [date + time for time, date in product(_TIMES, _DATES + _DATES_WITH_WORDS)]
_DATE_SHARE = 0.95
_LONGEST_NUMBER = 60
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
    inferred = pd.api.types.infer_dtype(column, skipna=True) if kind != "text" else "string"
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
    if problem:
        return _Cells("text", words, problem=f"Column {show_cell(column.name)} {problem}")
    if numeric.all():
        return _finite(column, _Cells("number", np.where(codes < 0, np.nan, numbers[codes]), style))
    days, style, problem = _parse_dates(levels, counts, notation if kind == "date" else "")
    if style:
        unreadable = [level for level, day in zip(levels, days, strict=True) if np.isnan(day)]
        return _Cells("date", np.where(codes < 0, np.nan, days[codes]), style, unreadable=unreadable)
    if numeric.any() and not problem:
        problem = (
            f"mixes {count_of(counts[numeric].sum(), 'number')} (such as {show_names(found[numeric][:3])}) with "
            f"{count_of(counts[~numeric].sum(), 'word')} (such as {show_names(found[~numeric][:3])}), "
            "so empty the cells of one sort or leave the column out with --ignore."
        )
    return _Cells("text", words, problem=problem and f"Column {show_cell(column.name)} {problem}")


def _finite(column: pd.Series, cells: _Cells) -> _Cells:
    if not np.isinf(cells.values).any():
        return cells
    found = count_of(int(np.isinf(cells.values).sum()), "infinite number")
    return cells._replace(problem=f"Column {show_cell(column.name)} has {found}, so correct or empty these cells.")


def _parse_numbers(levels: list[str], notation: str) -> tuple[np.ndarray, str, str]:
    """Return numbers (NaN for words), their notation and any problem.

    A notation is the decimal sign (``.`` or ``,``, or ``?`` if no cell shows which) and a unit such as ``%``.
    """
    units: set[str] = set()
    points, commas = np.full((2, len(levels)), np.nan)
    for place, level in enumerate(levels):
        match = _WITH_UNIT.fullmatch(level.translate(_TYPOGRAPHY)) if len(level) <= _LONGEST_NUMBER else None
        if match is not None and not (match[2] and match[4]):
            body = match[1] + match[3]
            points[place], commas[place] = _plain_number(body), _plain_number(body.translate(_SWAP_POINT_AND_COMMA))
            units.add(match[2] or match[4])
    either = np.where(np.isnan(points), commas, points)
    if np.isnan(either).any():
        return either, "", ""
    advice = "so write these cells as plain numbers such as 1234.5."
    if len(units) > 1:
        shown = " and ".join(sorted(unit or "no sign" for unit in units))
        return either, "", f"has numbers with different signs ({shown}), {advice}"
    signs = notation[0] if notation[:1] in (".", ",") else ".,"
    readings = {sign: (points, commas)[sign == ","] for sign in signs}
    readings = {sign: values for sign, values in readings.items() if not np.isnan(values).any()}
    if not readings:
        odd = levels[int(np.isnan(commas if signs == "," else points).argmax())]
        return either, "", f"uses points and commas in more than one way (such as in {show_cell(odd)}), {advice}"
    if len(readings) == 1:
        sign, values = readings.popitem()
        return values, sign + units.pop(), ""
    if np.array_equal(points, commas):
        return points, "?" + units.pop(), ""
    place = int(np.flatnonzero(points != commas)[0])
    two_ways = f"{show_cell(levels[place])} is {points[place]:.15g} or {commas[place]:.15g}"
    return either, "", f"has numbers that can be read in two ways ({two_ways}), {advice}"


def _plain_number(text: str) -> float:
    return float(re.sub(r"[, ']", "", text)) if _NUMBER.fullmatch(text) else np.nan


def _days(stamps: pd.Series) -> np.ndarray:
    """Return days since 1970 as floats, for times in UTC."""
    micro = stamps.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 86_400e6)


def _parse_dates(levels: list[str], counts: np.ndarray, notation: str) -> tuple[np.ndarray, str, str]:
    """Return days since 1970 (NaN for other text), the notation that reads most cells, and any problem."""
    best_share, best, style, problem = 0.0, np.full(len(levels), np.nan), "", ""
    text = pd.Series([level if re.search(r"\d", level) else None for level in levels], dtype=object)
    for candidate in dict.fromkeys((notation, "ISO8601")) if notation else _plausible_notations(text):
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


def _plausible_notations(text: pd.Series) -> list[str]:
    """Return the notations of dates that read at least half of the first few cells."""
    head = text.head(100).dropna()
    if len(head) < 0.5 * len(text.head(100)):
        return []
    with_time, with_words = (head.str.contains(shape).mean() > 0.5 for shape in (":", "[A-Za-z]{3}"))
    shaped = ["ISO8601"] + [
        candidate
        for candidate in _DATE_NOTATIONS
        if ("%H" in candidate) == with_time and (re.search("%[bB]", candidate) is not None) == with_words
    ]
    readable = {name: pd.to_datetime(head, format=name, errors="coerce", utc=True).notna().mean() for name in shaped}
    return [name for name, share in readable.items() if share >= 0.5]


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
        learned = cls(name, cells.kind, cells.notation, fill=float(2 * np.median(values / 2)))
        if cells.kind != "date":
            return learned
        cycles = [
            cycle
            for cycle, span in _SPAN_FOR_CYCLE.items()
            if np.ptp(values) > span and len(np.unique(_day_in_cycle(values, cycle))) > 1
        ]
        return replace(learned, origin=float(values.min()), cycles=cycles)

    def read(self, column: pd.Series) -> _Cells:
        """Read a column as training did, into floats; a level becomes its place in `levels`, or -1 if unseen."""
        cells = _read_cells(column, self.kind, self.notation)
        if cells.kind == "empty":
            return cells
        if self.kind == "text":
            place = {level: float(number) for number, level in enumerate(self.levels)}
            codes = np.array([np.nan if word is None else place.get(word, -1.0) for word in cells.values])
            if (codes >= 0).any():
                return cells._replace(values=codes)
            cells = _read_cells(column)._replace(problem="")
            if cells.kind == "text":
                return cells._replace(values=codes)
        units = (self.notation[1:], cells.notation[1:]) if self.kind == cells.kind == "number" else ("", "")
        if cells.problem:
            raise TableError(cells.problem)
        if cells.kind != self.kind or units[0] != units[1]:
            then, now = (f" with {unit}" if unit else "" for unit in units)
            raise TableError(
                f"Column {show_cell(self.name)} held {_KINDS[self.kind]}{then} in training but holds "
                f"{_KINDS[cells.kind]}{now} (such as {show_cell(column.dropna().tolist()[0])}) here, "
                "so bring it back to the form it had."
            )
        return cells

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


def _is_missing(cells: _Cells) -> np.ndarray:
    return np.asarray(pd.isna(cells.values), dtype=bool)


def _distinct(cells: _Cells, rows: np.ndarray) -> list:
    return sorted(pd.unique(cells.values[rows & ~_is_missing(cells)]).tolist())


def _with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    names = [str(name) for name in frame.columns]
    refuse_repeats(names, "The table")
    return frame.set_axis(names, axis=1)


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    return cast(pd.Series, frame[name])


def _leave_out_constant(cells: dict[str, _Cells], rows: np.ndarray, notices: list[str]) -> None:
    for name in list(cells):
        distinct = _distinct(cells[name], rows)
        if not distinct:
            raise TableError(f"Column {show_cell(name)} has no values at all, so leave it out with --ignore.")
        if len(distinct) == 1:
            del cells[name]
            notices.append(f"Column {show_cell(name)} is left out because it holds one value only.")


def _tell_gaps(gaps: Mapping[str, np.ndarray], cells: Mapping[str, _Cells]) -> str:
    """Name the columns with missing cells, with counts and the text of cells that are no dates."""
    found = []
    for name, gap in gaps.items():
        odd = cells[name].unreadable if name in cells else ()
        if gap.any():
            found.append(f"{show_cell(name)} ({gap.sum():,}{f', as {show_names(odd, 2)} is no date' if odd else ''})")
    return ", ".join(found[:10]) + (f" and {len(found) - 10:,} more columns" if len(found) > 10 else "")


def _refuse_missing(gaps: Mapping[str, np.ndarray], cells: Mapping[str, _Cells]) -> None:
    if told := _tell_gaps(gaps, cells):
        raise TableError(f"Cells are missing in {told}, so fill them in or choose --missing drop or --missing impute.")


def _label_text(cells: _Cells) -> list[str | None]:
    if cells.kind == "text":
        return list(cells.values)
    if cells.kind == "boolean":
        return [None if np.isnan(value) else str(bool(value)) for value in cells.values]
    return [None if np.isnan(v) else f"{v:.0f}" if v.is_integer() else repr(v) for v in cells.values.tolist()]


def _learn_labels(name: str, cells: _Cells, rows: np.ndarray, max_levels: int) -> tuple[list[str], str]:
    """Return the classes of a target as text, and the type they had."""
    distinct = _distinct(cells, rows)
    if len(distinct) == 1:
        raise TableError(f"The target {show_cell(name)} has one class only, so add rows of another class.")
    if len(distinct) > max_levels:
        raise TableError(
            f"The target {show_cell(name)} has {len(distinct):,} classes where at most {max_levels} are allowed, "
            f"so choose {'another target' if cells.kind == 'text' else '--task regression'} or raise --max-levels."
        )
    kinds = {"text": "str", "boolean": "bool", "number": "int" if _all_whole(distinct) else "float"}
    dtype = object if cells.kind == "text" else float
    labels = _label_text(_Cells(cells.kind, np.array(distinct, dtype=dtype)))
    return cast(list[str], labels), kinds[cells.kind]


def _all_whole(values: Sequence) -> bool:
    return all(isinstance(value, float) and value.is_integer() for value in values)


def _choose_task(name: str, cells: _Cells, rows: np.ndarray, task: str, notices: list[str]) -> str:
    distinct, shown = _distinct(cells, rows), show_cell(name)
    if task == "auto":
        found, whole = _KINDS[cells.kind], _all_whole(distinct)
        if cells.kind == "number" and whole and len(distinct) == 2:
            task, found = "classification", "two whole numbers only"
        elif cells.kind == "number":
            task = "regression"
            if whole and 2 < len(distinct) <= 10 and rows.sum() > 10 * len(distinct):
                found = f"numbers (choose --task classification if its {len(distinct)} whole numbers are codes)"
        else:
            task = "classification"
        notices.append(f"The task is {task} because the target {shown} holds {found}.")
    if task == "regression" and cells.kind == "text":
        raise TableError(f"The target {shown} holds words, so choose --task classification or another target.")
    if task == "regression" and len(distinct) == 1:
        notices.append(f"The target {shown} has the same value in all rows, so there is little to learn.")
    return task


# --- the encoder ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableEncoder:
    """How a table becomes a numeric matrix, learned once with `fit` and saved as JSON.

    ==================  ==============================================================================================
    Column              Features
    ==================  ==============================================================================================
    numbers             The number; text such as ``1,234.5``, ``12 %`` (as 12) or ``€5`` if it can be read one way only.
    yes/no              0 or 1.
    dates               Days since the first training date; if training spans more than a year also sine and cosine of
                        the day of the year, if more than two weeks those of the day of the week (times in UTC).
    words, two levels   One column, 1 for the second level in alphabetical order.
    words, more levels  One 0/1 column per level.
    one value only      None; the column is left out with a notice.
    ==================  ==============================================================================================

    Text is a column of dates if one notation reads at least 95 % of its cells; the others count as missing. A level
    that training did not have is an error, except with ``missing="impute"``: there it becomes the point at equal
    distance from all known levels (all zeros, or 0.5 where there are two), so that error bands widen.

    Attributes
    ----------
    target, task, missing, id_column : str
        What was asked for; `task` is ``"regression"`` or ``"classification"``.
    columns, target_column, unused : list, object, list of str
        What was learned about the features and the target, and the columns that are left out.
    labels, label_type : list of str, str
        The classes as text, and the type they had: ``"str"``, ``"int"``, ``"float"`` or ``"bool"``.
    notices : list of str
        What was decided while learning, for the user.

    Examples
    --------
    >>> frame = pd.DataFrame({"tree": ["oak", "elm", "ash"], "age": [9, 30, 12], "height": [4.1, 9.0, 5.5]})
    >>> encoder = TableEncoder.fit(frame, target="height")
    >>> encoder.feature_names
    ['tree=ash', 'tree=elm', 'tree=oak', 'age']
    >>> TableEncoder.from_dict(encoder.to_dict()).transform(frame.head(2)).X
    array([[ 0.,  0.,  1.,  9.],
           [ 0.,  1.,  0., 30.]])
    """

    target: str
    task: str
    missing: str
    id_column: str | None
    columns: list[_Column]
    target_column: _Column
    unused: list[str]
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
            Refuse missing cells, leave out their rows, or fill in the median or the most frequent level. Rows without
            a target are refused under ``"error"`` and left out otherwise.
        max_levels : int, default=20
            The largest number of levels of a column of words, and of classes.

        Returns
        -------
        TableEncoder
            The encoder; `transform` of the same table gives the training matrix.

        Examples
        --------
        >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "outcome": ["well", "ill", "well"]})
        >>> TableEncoder.fit(frame, target="outcome").notices
        ["The task is classification because the target 'outcome' holds words."]
        """
        for option, value, known in (("task", task, get_args(Task)), ("missing", missing, get_args(Missing))):
            if value not in known:
                raise TableError(f"There is no {option} {show_cell(value)}, so choose one of {show_names(known)}.")
        frame = _with_text_names(frame)
        for name in (target, *ignore, *([] if id_column is None else [id_column])):
            require_column(frame, name)
        if target in ignore or target == id_column:
            raise TableError(f"The target {show_cell(target)} is also ignored or the id column, so use it once only.")
        answer = _read_cells(_column(frame, target))
        if answer.kind in ("empty", "date"):
            raise TableError(f"The target {show_cell(target)} holds {_KINDS[answer.kind]}, so choose another target.")
        if answer.problem and (task != "classification" or answer.kind != "text"):
            raise TableError(answer.problem)

        cells: dict[str, _Cells] = {}
        for name in (name for name in frame.columns if name not in (target, id_column, *ignore)):
            cells[name] = _read_cells(_column(frame, name))
            if cells[name].problem:
                raise TableError(cells[name].problem)
        notices: list[str] = []
        rows = ~_is_missing(answer)
        _leave_out_constant(cells, rows, notices)
        n_columns = -1
        while missing == "drop" and cells and n_columns != len(cells):
            n_columns = len(cells)
            rows = ~np.any([_is_missing(column) for column in (answer, *cells.values())], axis=0)
            if not rows.any():
                raise TableError("Every row has a missing cell, so fill some in or leave out columns with --ignore.")
            _leave_out_constant(cells, rows, notices)
        if not cells:
            raise TableError("No column is left to predict from, so add columns that vary or ignore fewer.")
        for name, column in cells.items():
            n_levels = len(_distinct(column, rows)) if column.kind == "text" else 0
            if n_levels > max_levels:
                raise TableError(
                    f"Column {show_cell(name)} is free text with {n_levels:,} different values, so leave it out with "
                    f"--ignore or allow more than {max_levels} with --max-levels."
                )
        if missing == "error":
            _refuse_missing({name: _is_missing(column) for name, column in {target: answer, **cells}.items()}, cells)

        chosen = _choose_task(target, answer, rows, task, notices)
        labels, label_type = _learn_labels(target, answer, rows, max_levels) if chosen == "classification" else ([], "")
        columns = [_Column.learn(name, column, rows) for name, column in cells.items()]
        unused = [name for name in frame.columns if name not in cells and name not in (target, id_column)]
        target_column = _Column(target, answer.kind, answer.notation)
        encoder = cls(target, chosen, missing, id_column, columns, target_column, unused, labels, label_type, notices)
        refuse_repeats(encoder.feature_names, "The list of features")
        return encoder

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, in the order of the columns of the matrix."""
        return [name for column in self.columns for name in column.feature_names]

    def transform(self, frame: pd.DataFrame, *, with_target: bool | None = None) -> Encoded:
        """Make the matrix of a table, with its rows in their order.

        Rows with missing cells are refused, left out or filled in as `missing` says; use `Encoded.spread` to put
        predictions back beside all rows. Columns that training did not have are ignored with a notice.

        Parameters
        ----------
        frame : pandas.DataFrame
            The table.
        with_target : bool, optional
            Whether to read the target, which also leaves out (or refuses) rows that lack it; pass False to predict
            for all rows. By default it is read if the column is there and not empty.

        Returns
        -------
        Encoded
            The matrix and what belongs to it.

        Examples
        --------
        >>> encoder = TableEncoder.fit(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.5, 0.7, 1.1]}), target="y")
        >>> encoder.transform(pd.DataFrame({"x": [5.0], "note": ["new"]})).notices
        ["Columns that training did not have are ignored: 'note'."]
        """
        frame = _with_text_names(frame)
        self._require_features(frame)
        notices: list[str] = []
        known = {*(column.name for column in self.columns), *self.unused, self.target, self.id_column}
        if extra := [name for name in frame.columns if name not in known]:
            notices.append(f"Columns that training did not have are ignored: {show_names(extra)}.")
        if self.id_column is not None and self.id_column not in frame:
            notices.append(f"The id column {show_cell(self.id_column)} is not in this table.")
        cells = {column.name: column.read(_column(frame, column.name)) for column in self.columns}
        gaps = {name: _is_missing(read) for name, read in cells.items()}
        y = self._read_target(frame, with_target)
        no_target = np.zeros(len(frame), dtype=bool) if y is None else np.isnan(y)
        if self.missing == "error":
            _refuse_missing({self.target: no_target} | gaps, cells)
        if no_target.any():
            notices.append(
                f"{count_of(int(no_target.sum()), 'row')} without a target {show_cell(self.target)} left out."
            )
        incomplete = np.any([*gaps.values()], axis=0)
        told = _tell_gaps(gaps, cells)
        if told and self.missing == "drop":
            notices.append(f"{count_of(int(incomplete.sum()), 'row')} with missing cells left out: {told}.")
        elif told:
            notices.append(f"Missing cells were filled in: {told}.")
        keep = ~no_target & ~incomplete if self.missing == "drop" else ~no_target
        blocks = []
        for column in self.columns:
            values = np.where(gaps[column.name], column.fill, cells[column.name].values)[keep]
            if column.kind == "text" and (values < 0).any():
                self._meet_unseen(column, _column(frame, column.name).to_numpy(object)[keep][values < 0], notices)
            blocks.append(column.features(values))
        if y is not None:
            y = self._check_labels(y[keep], _column(frame, self.target).to_numpy(object)[keep])
        ids = frame[self.id_column].to_numpy()[keep] if self.id_column in frame else None
        X = np.hstack(blocks).astype(float)
        return Encoded(X, y, self.feature_names, np.flatnonzero(keep), ids, notices, len(frame))

    def _require_features(self, frame: pd.DataFrame) -> None:
        absent = [column.name for column in self.columns if column.name not in frame]
        if not absent:
            return
        known = {column.name for column in self.columns}
        spare = [name for name in frame.columns if name not in known and name != self.target]
        hints = {near[0]: name for name in absent[:8] if (near := closest_names(name, spare, limit=1))}
        hint = "; ".join(f"perhaps {show_cell(found)} is {show_cell(name)}" for found, name in hints.items())
        noun = "column" if len(absent) == 1 else "columns"
        raise TableError(
            f"The table lacks the {noun} {show_names(absent)} that training had{f' ({hint})' if hint else ''}, "
            "so add or rename what is missing."
        )

    def _read_target(self, frame: pd.DataFrame, with_target: bool | None) -> np.ndarray | None:
        """Return the target as floats: NaN if missing, for classes the place of the label or -1 if unseen."""
        if with_target:
            require_column(frame, self.target)
        if with_target is False or self.target not in frame:
            return None
        column = self.target_column
        cells = _read_cells(_column(frame, self.target), column.kind, column.notation)
        if cells.kind == "empty":
            return cells.values if with_target else None
        if self.task == "regression":
            return column.read(_column(frame, self.target)).values
        place = {label: float(number) for number, label in enumerate(self.labels)}
        return np.array([np.nan if word is None else place.get(word, -1.0) for word in _label_text(cells)])

    def _check_labels(self, y: np.ndarray, cells: np.ndarray) -> np.ndarray:
        if self.task == "regression":
            return y
        if (y < 0).any():
            raise TableError(
                f"The target {show_cell(self.target)} holds {show_names(dict.fromkeys(map(str, cells[y < 0])), 3)} "
                f"where training had {show_names(self.labels)}, so correct these rows or train with them."
            )
        return y.astype(np.int64)

    def _meet_unseen(self, column: _Column, cells: np.ndarray, notices: list[str]) -> None:
        unseen = show_names(dict.fromkeys(str(cell).strip() for cell in cells), 3)
        found = f"Column {show_cell(column.name)} holds {unseen} where training had {show_names(column.levels)}"
        if self.missing != "impute":
            raise TableError(f"{found}, so correct these cells or train with them.")
        notices.append(f"{found}; these rows are treated as none of them.")

    def decode_labels(self, codes: np.ndarray) -> np.ndarray:
        """Return class labels in the type they had in the training table.

        Examples
        --------
        >>> encoder = TableEncoder.fit(pd.DataFrame({"x": [1.0, 2.0, 3.0], "ill": [0, 1, 1]}), target="ill")
        >>> encoder.decode_labels(np.array([1, 0]))
        array([1, 0])
        """
        convert = {"int": int, "float": float, "bool": lambda label: label == "True"}.get(self.label_type, str)
        labels = np.array([convert(label) for label in self.labels], dtype=object if convert is str else None)
        return labels[np.asarray(codes, dtype=np.int64)]

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as a dictionary that `json.dumps` accepts.

        Examples
        --------
        >>> encoder = TableEncoder.fit(pd.DataFrame({"x": [1.0, 2.0], "y": [0.5, 0.7]}), target="y")
        >>> encoder.to_dict()["version"]
        1
        """
        return {"format": _FORMAT, "version": _VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described.

        Examples
        --------
        >>> TableEncoder.from_dict({"format": "errorband.table-encoder", "version": 99})
        Traceback (most recent call last):
        ...
        errorband.tables.errors.TableError: The table encoder has version 99 where this errorband reads version 1,
        so use a matching version of errorband.
        """
        if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
            raise TableError("The data does not describe a table encoder, so load a file that errorband saved.")
        if data.get("version") != _VERSION:
            raise TableError(
                f"The table encoder has version {data.get('version')} where this errorband reads version {_VERSION}, "
                "so use a matching version of errorband."
            )
        try:
            parts = {name: value for name, value in data.items() if name not in ("format", "version")}
            parts["columns"] = [_Column(**column) for column in parts["columns"]]
            parts["target_column"] = _Column(**parts["target_column"])
            if not {column.kind for column in (*parts["columns"], parts["target_column"])} <= set(_KINDS):
                raise TypeError("unknown kind of column")
            return cls(**parts)
        except (KeyError, TypeError) as error:
            raise TableError("The description of the table encoder is damaged, so save or copy it again.") from error
