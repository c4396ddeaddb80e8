"""Encodings of columns and of the target, learned from the training table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pandas as pd

from errorband.inputs import Input
from errorband.tables.cells import KINDS, Cells, read_cells
from errorband.tables.errors import TableError, refuse_repeats, show_cell, show_names

_CYCLES = {"year": 365.25, "week": 7.0}
_SPAN_FOR_CYCLE = {"year": 365.25, "week": 14.0}


@dataclass(frozen=True)
class Column:
    """Encoding of one column as features."""

    name: str
    kind: str
    notation: str = ""
    levels: list[str] = field(default_factory=list)
    fill: float = 0.0
    origin: float = 0.0
    cycles: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, name: str, cells: Cells, rows: np.ndarray) -> Column:
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

    def read(self, column: pd.Series) -> Cells:
        """Parse a column as in training, into floats; a level becomes its position in `levels`, or -1 if unseen."""
        cells = read_cells(column, self.kind, self.notation)
        if cells.kind == "empty":
            return cells
        if self.kind == "text":
            place = {level: float(number) for number, level in enumerate(self.levels)}
            codes = np.array([np.nan if word is None else place.get(word, -1.0) for word in cells.values])
            if (codes >= 0).any():
                return cells._replace(values=codes)
            cells = read_cells(column)._replace(problem="")
            if cells.kind == "text":
                return cells._replace(values=codes)
        units = (self.notation[1:], cells.notation[1:]) if self.kind == cells.kind == "number" else ("", "")
        if cells.problem:
            raise TableError(cells.problem.replace(" or leave the column out with --ignore", ""))
        if cells.kind != self.kind or units[0] != units[1]:
            then, now = (f" with {unit}" if unit else "" for unit in units)
            raise TableError(
                f"Column {show_cell(self.name)} held {KINDS[self.kind]}{then} in training but holds "
                f"{KINDS[cells.kind]}{now} (such as {show_cell(column.dropna().tolist()[0])}) here, "
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

    def as_input(self, first: int) -> Input:
        """Return the column as an input of a model, of which it has the features from position ``first`` on."""
        places = range(first, first + len(self.feature_names))
        if self.kind == "text":
            return Input.words(self.name, places, self.levels, self.features(np.arange(len(self.levels), dtype=float)))
        if self.kind == "boolean":
            return Input.words(self.name, places, ("no", "yes"), np.array([[0.0], [1.0]]))
        if self.kind == "date":
            return Input.dates(self.name, places, self.origin, self.features)
        return Input.number(self.name, first)


def _day_in_cycle(days: np.ndarray, cycle: str) -> np.ndarray:
    """Return the whole day of the year (from 0 on 1 January) or of the week (from 0 on Monday)."""
    whole = np.floor(days)
    if cycle == "week":
        return (whole + 3) % 7
    dates = whole.astype(np.int64).astype("datetime64[D]")
    return (dates - dates.astype("datetime64[Y]")).astype(float)


def is_missing(cells: Cells) -> np.ndarray:
    return np.asarray(pd.isna(cells.values), dtype=bool)


def distinct_values(cells: Cells, rows: np.ndarray) -> list:
    return sorted(pd.Series(cells.values[rows & ~is_missing(cells)]).unique().tolist())


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    names = [str(name) for name in frame.columns]
    refuse_repeats(names, "The table")
    return frame.set_axis(names, axis=1)


def column_of(frame: pd.DataFrame, name: str) -> pd.Series:
    return cast(pd.Series, frame[name])


def leave_out_constant(cells: dict[str, Cells], rows: np.ndarray, notices: list[str]) -> None:
    for name in list(cells):
        distinct = distinct_values(cells[name], rows)
        if not distinct:
            raise TableError(f"Column {show_cell(name)} has no values at all, so leave it out with --ignore.")
        if len(distinct) == 1:
            del cells[name]
            notices.append(f"Column {show_cell(name)} is left out because it holds one value only.")


def tell_gaps(gaps: Mapping[str, np.ndarray], cells: Mapping[str, Cells]) -> str:
    """Name the columns with missing cells, with counts and the text of cells that are not dates."""
    found = []
    for name, gap in gaps.items():
        odd = cells[name].unreadable if name in cells else ()
        if gap.any():
            found.append(f"{show_cell(name)} ({gap.sum():,}{f', as {show_names(odd, 2)} is no date' if odd else ''})")
    return ", ".join(found[:10]) + (f" and {len(found) - 10:,} more columns" if len(found) > 10 else "")


def refuse_missing(gaps: Mapping[str, np.ndarray], cells: Mapping[str, Cells], choose: str = "choose") -> None:
    """Raise an error that names the columns with missing cells; ``choose`` says when the other ways are chosen."""
    if told := tell_gaps(gaps, cells):
        raise TableError(
            f"Cells are missing in {told}, so fill them in or {choose} --missing drop or --missing impute."
        )


def refuse_free_text(cells: Mapping[str, Cells], rows: np.ndarray, max_levels: int) -> None:
    """Raise an error that names all columns of words with too many levels, and those that may be names of rows."""
    levels = {name: len(distinct_values(column, rows)) for name, column in cells.items() if column.kind == "text"}
    free = {name: n for name, n in levels.items() if n > max_levels}
    if not free:
        return
    told = show_names(free, 4)
    most = f"{max(free.values()):,} different values"
    are, them = ("is", "it") if len(free) == 1 else ("are", "them")
    ids = [name for name, n in free.items() if n == rows.sum()]
    name = f", name rows by {show_cell(ids[0])} with --id" if ids else ""
    raise TableError(
        f"{'Column' if len(free) == 1 else 'Columns'} {told} {are} free text with {'' if len(free) == 1 else 'up to '}"
        f"{most}, so leave {them} out with --ignore{name} or allow more than {max_levels} with --max-levels."
    )


def label_text(cells: Cells) -> list[str | None]:
    if cells.kind == "text":
        return list(cells.values)
    if cells.kind == "boolean":
        return [None if np.isnan(value) else str(bool(value)) for value in cells.values]
    return [None if np.isnan(v) else f"{v:.0f}" if v.is_integer() else repr(v) for v in cells.values.tolist()]


def learn_labels(name: str, cells: Cells, rows: np.ndarray, max_levels: int) -> tuple[list[str], str]:
    """Return the classes of a target as text, and the type they had."""
    distinct = distinct_values(cells, rows)
    if len(distinct) == 1:
        raise TableError(f"The target {show_cell(name)} has one class only, so add rows of another class.")
    if len(distinct) > max_levels:
        raise TableError(
            f"The target {show_cell(name)} has {len(distinct):,} classes where at most {max_levels} are allowed, "
            f"so choose {'another target' if cells.kind == 'text' else '--task regression'} or raise --max-levels."
        )
    kinds = {"text": "str", "boolean": "bool", "number": "int" if _all_whole(distinct) else "float"}
    dtype = object if cells.kind == "text" else float
    labels = label_text(Cells(cells.kind, np.array(distinct, dtype=dtype)))
    return cast(list[str], labels), kinds[cells.kind]


def _all_whole(values: Sequence) -> bool:
    return all(isinstance(value, float) and value.is_integer() for value in values)


def choose_task(name: str, cells: Cells, rows: np.ndarray, task: str, notices: list[str]) -> str:
    distinct, shown = distinct_values(cells, rows), show_cell(name)
    if task == "auto":
        found, whole = KINDS[cells.kind], _all_whole(distinct)
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
