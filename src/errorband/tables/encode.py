"""Encode tables as numeric matrices, with an encoding learned from the training table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from errorband.inputs import Input
from errorband.tables.cells import KINDS, Cells, read_cells
from errorband.tables.columns import (
    Column,
    choose_task,
    column_of,
    is_missing,
    label_text,
    learn_labels,
    leave_out_constant,
    refuse_free_text,
    refuse_missing,
    tell_gaps,
    with_text_names,
)
from errorband.tables.errors import TableError, closest_names, count_of, refuse_repeats, show_cell, show_names
from errorband.tables.read import require_column

__all__ = ["Encoded", "TableEncoder"]

Task = Literal["auto", "regression", "classification"]
Missing = Literal["error", "drop", "impute"]

_FORMAT, _VERSION = "errorband.table-encoder", 1


@dataclass(frozen=True)
class Encoded:
    """A table as a numeric matrix. Arrays have one entry per kept row; lists do not.

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
    gaps : ndarray of shape (n_kept, n_features)
        True where the cell was missing, or held a level that training did not have. `X` is filled in there.
    imputed : ndarray of shape (n_kept,)
        The names of the columns that these cells are in, as text; empty for a complete row.
    row_names : pandas.Index
        What the kept rows are called: the cells of the id column, or else the index of the table.
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: list[str]
    row_index: np.ndarray
    ids: np.ndarray | None
    notices: list[str]
    n_rows: int
    gaps: np.ndarray
    imputed: np.ndarray
    row_names: pd.Index

    @property
    def with_gaps(self) -> np.ndarray:
        """The features, with NaN where cells were missing or held an unknown level."""
        return np.where(self.gaps, np.nan, self.X)

    @property
    def incomplete(self) -> list[Any]:
        """The names of the rows with such cells."""
        return [name for name, gone in zip(self.row_names, np.any(self.gaps, axis=1).tolist(), strict=True) if gone]

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


@dataclass(frozen=True)
class TableEncoder:
    """Encoding of a table as a numeric matrix, learned once with `fit` and saved as JSON.

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
    that training did not have is an error, except with ``missing="impute"``: there it is as good as missing, and
    becomes the point at equal distance from all known levels (all zeros, or 0.5 where there are two).

    Attributes
    ----------
    target, task, missing, id_column : str
        The arguments of `fit`; `task` is ``"regression"`` or ``"classification"``.
    columns, target_column, unused : list, object, list of str
        The learned encodings of the features and of the target, and the columns that are left out.
    labels, label_type : list of str, str
        The classes as text, and the type they had: ``"str"``, ``"int"``, ``"float"`` or ``"bool"``.
    notices : list of str
        Decisions made by `fit`, as sentences for the user.

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
    columns: list[Column]
    target_column: Column
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
        frame = with_text_names(frame)
        for name in (target, *ignore, *([] if id_column is None else [id_column])):
            require_column(frame, name)
        if target in ignore or target == id_column:
            raise TableError(f"The target {show_cell(target)} is also ignored or the id column, so use it once only.")
        answer = read_cells(column_of(frame, target))
        if answer.kind in ("empty", "date"):
            raise TableError(f"The target {show_cell(target)} holds {KINDS[answer.kind]}, so choose another target.")
        if answer.problem and (task != "classification" or answer.kind != "text"):
            raise TableError(answer.problem)

        cells: dict[str, Cells] = {}
        for name in (name for name in frame.columns if name not in (target, id_column, *ignore)):
            cells[name] = read_cells(column_of(frame, name))
            if cells[name].problem:
                raise TableError(cells[name].problem)
        notices: list[str] = []
        rows = ~is_missing(answer)
        if rows.sum() == 1:
            raise TableError("The table has one row with a target, from which nothing can be learned, so add rows.")
        leave_out_constant(cells, rows, notices)
        n_columns = -1
        while missing == "drop" and cells and n_columns != len(cells):
            n_columns = len(cells)
            rows = ~np.any([is_missing(column) for column in (answer, *cells.values())], axis=0)
            if not rows.any():
                raise TableError("Every row has a missing cell, so fill some in or leave out columns with --ignore.")
            leave_out_constant(cells, rows, notices)
        if not cells:
            raise TableError("No column is left to predict from, so add columns that vary or ignore fewer.")
        refuse_free_text(cells, rows, max_levels)
        if missing == "error":
            refuse_missing({name: is_missing(column) for name, column in {target: answer, **cells}.items()}, cells)

        chosen = choose_task(target, answer, rows, task, notices)
        labels, label_type = learn_labels(target, answer, rows, max_levels) if chosen == "classification" else ([], "")
        columns = [Column.learn(name, column, rows) for name, column in cells.items()]
        unused = [name for name in frame.columns if name not in cells and name not in (target, id_column)]
        target_column = Column(target, answer.kind, answer.notation)
        encoder = cls(target, chosen, missing, id_column, columns, target_column, unused, labels, label_type, notices)
        refuse_repeats(encoder.feature_names, "The list of features")
        return encoder

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, in the order of the columns of the matrix."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns as inputs of a model, with the features that each became.

        Examples
        --------
        >>> frame = pd.DataFrame({"tree": ["oak", "elm", "ash"], "age": [9, 30, 12], "height": [4.1, 9.0, 5.5]})
        >>> [(column.name, column.columns) for column in TableEncoder.fit(frame, target="height").inputs]
        [('tree', (0, 1, 2)), ('age', (3,))]
        """
        found, first = [], 0
        for column in self.columns:
            found.append(column.as_input(first))
            first += len(column.feature_names)
        return tuple(found)

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
        frame = with_text_names(frame)
        self._require_features(frame)
        notices: list[str] = []
        known = {*(column.name for column in self.columns), *self.unused, self.target, self.id_column}
        if extra := [name for name in frame.columns if name not in known]:
            notices.append(f"Columns that training did not have are ignored: {show_names(extra)}.")
        if self.id_column is not None and self.id_column not in frame:
            notices.append(f"The id column {show_cell(self.id_column)} is not in this table.")
        cells = {column.name: column.read(column_of(frame, column.name)) for column in self.columns}
        gaps = {name: is_missing(read) for name, read in cells.items()}
        y = self._read_target(frame, with_target)
        no_target = np.zeros(len(frame), dtype=bool) if y is None else np.isnan(y)
        if self.missing == "error":
            refuse_missing({self.target: no_target} | gaps, cells, choose="fit with")
        if no_target.any():
            notices.append(
                f"{count_of(int(no_target.sum()), 'row')} without a target {show_cell(self.target)} left out."
            )
        incomplete = np.any([*gaps.values()], axis=0)
        told = tell_gaps(gaps, cells)
        if told and self.missing == "drop":
            notices.append(f"{count_of(int(incomplete.sum()), 'row')} with missing cells left out: {told}.")
        elif told:
            notices.append(f"Cells are missing in {told}.")
        keep = ~no_target & ~incomplete if self.missing == "drop" else ~no_target
        blocks, unknown = [], {}
        for column in self.columns:
            values = np.where(gaps[column.name], column.fill, cells[column.name].values)[keep]
            unseen = (values < 0) & (column.kind == "text")
            if unseen.any():
                self._meet_unseen(column, column_of(frame, column.name).to_numpy(object)[keep][unseen], notices)
            unknown[column.name] = gaps[column.name][keep] | unseen
            blocks.append(column.features(values))
        if y is not None:
            y = self._check_labels(y[keep], column_of(frame, self.target).to_numpy(object)[keep])
        ids = frame[self.id_column].to_numpy()[keep] if self.id_column in frame else None
        X = np.hstack(blocks).astype(float)
        widths = [block.shape[1] for block in blocks]
        filled = np.repeat(np.column_stack([*unknown.values()]), widths, axis=1)
        named = np.array([", ".join(name for name in unknown if unknown[name][i]) for i in range(len(X))], dtype=object)
        rows = frame.index[keep] if ids is None else pd.Index(ids, name=self.id_column)
        return Encoded(
            X, y, self.feature_names, np.flatnonzero(keep), ids, notices, len(frame), filled, named, rows
        )  # fmt: skip

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
        """Return the target as floats: NaN if missing, for classes the index of the label or -1 if unseen."""
        if with_target:
            require_column(frame, self.target)
        if with_target is False or self.target not in frame:
            return None
        column = self.target_column
        cells = read_cells(column_of(frame, self.target), column.kind, column.notation)
        if cells.kind == "empty":
            return cells.values if with_target else None
        if self.task == "regression":
            return column.read(column_of(frame, self.target)).values
        place = {label: float(number) for number, label in enumerate(self.labels)}
        return np.array([np.nan if word is None else place.get(word, -1.0) for word in label_text(cells)])

    def _check_labels(self, y: np.ndarray, cells: np.ndarray) -> np.ndarray:
        if self.task == "regression":
            return y
        if (y < 0).any():
            raise TableError(
                f"The target {show_cell(self.target)} holds {show_names(dict.fromkeys(map(str, cells[y < 0])), 3)} "
                f"where training had {show_names(self.labels)}, so correct these rows or train with them."
            )
        return y.astype(np.int64)

    def _meet_unseen(self, column: Column, cells: np.ndarray, notices: list[str]) -> None:
        unseen = show_names(dict.fromkeys(str(cell).strip() for cell in cells), 3)
        found = f"Column {show_cell(column.name)} holds {unseen} where training had {show_names(column.levels)}"
        if self.missing != "impute":
            raise TableError(f"{found}, so correct these cells or train with them.")
        notices.append(f"{found}; these cells are treated as missing.")

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
            parts["columns"] = [Column(**column) for column in parts["columns"]]
            parts["target_column"] = Column(**parts["target_column"])
            if not {column.kind for column in (*parts["columns"], parts["target_column"])} <= set(KINDS):
                raise TypeError("unknown kind of column")
            return cls(**parts)
        except (KeyError, TypeError) as error:
            raise TableError("The description of the table encoder is damaged, so save or copy it again.") from error
