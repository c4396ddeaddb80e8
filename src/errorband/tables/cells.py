"""Recognise the content of a column: numbers, yes/no values, dates or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from errorband.tables.errors import count_of, show_cell, show_names

KINDS = {"number": "numbers", "boolean": "yes/no values", "date": "dates", "text": "words", "empty": "nothing"}
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


class Cells(NamedTuple):
    """A column as floats (or text), NaN (or None) where a cell is missing."""

    kind: str
    values: np.ndarray
    notation: str = ""
    problem: str = ""
    unreadable: Sequence[str] = ()


def read_cells(column: pd.Series, kind: str = "", notation: str = "") -> Cells:
    """Recognise and parse a column; with `kind` and `notation`, parse text as in training."""
    missing = column.isna().to_numpy(dtype=bool)
    if missing.all():
        return Cells("empty", np.full(len(column), np.nan))
    inferred = pd.api.types.infer_dtype(column, skipna=True) if kind != "text" else "string"
    if inferred == "boolean":
        return Cells("boolean", column.to_numpy(dtype=float, na_value=np.nan))
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return _finite(column, Cells("number", column.to_numpy(dtype=float, na_value=np.nan)))
    if inferred == "datetime64":
        return Cells("date", _days(pd.to_datetime(column, utc=True)), "ISO8601")
    if inferred == "timedelta64":
        return Cells("number", (column / pd.Timedelta(days=1)).to_numpy(dtype=float, na_value=np.nan))
    pairs = zip(column.astype(object), missing, strict=True)
    words = np.array([None if gone else str(cell).strip() or None for cell, gone in pairs], dtype=object)
    codes, found = pd.factorize(words)
    levels = [str(level) for level in found]
    if not levels:
        return Cells("empty", np.full(len(column), np.nan))
    if kind == "text" or isinstance(column.dtype, pd.CategoricalDtype):
        return Cells("text", words)
    if {level.lower() for level in levels} <= {"true", "false"}:
        truth = np.array([float(level.lower() == "true") for level in levels])
        return Cells("boolean", np.where(codes < 0, np.nan, truth[codes]))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    numbers, style, problem = _parse_numbers(levels, notation if kind == "number" else "")
    numeric = ~np.isnan(numbers)
    if problem:
        return Cells("text", words, problem=f"Column {show_cell(column.name)} {problem}")
    if numeric.all():
        return _finite(column, Cells("number", np.where(codes < 0, np.nan, numbers[codes]), style))
    days, style, problem = _parse_dates(levels, counts, notation if kind == "date" else "")
    if style:
        unreadable = [level for level, day in zip(levels, days, strict=True) if np.isnan(day)]
        return Cells("date", np.where(codes < 0, np.nan, days[codes]), style, unreadable=unreadable)
    if numeric.any() and not problem:
        problem = (
            f"mixes {count_of(counts[numeric].sum(), 'number')} (such as {show_names(found[numeric][:3])}) with "
            f"{count_of(counts[~numeric].sum(), 'word')} (such as {show_names(found[~numeric][:3])}), "
            "so empty the cells of one sort or leave the column out with --ignore."
        )
    return Cells("text", words, problem=problem and f"Column {show_cell(column.name)} {problem}")


def _finite(column: pd.Series, cells: Cells) -> Cells:
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
