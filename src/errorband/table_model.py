"""A table model: how a table becomes numbers, and the estimator that predicts from them, kept in one file."""

import dataclasses
import os
from typing import Any

import numpy as np
import pandas as pd

from errorband import missing
from errorband.missing import Donors
from errorband.persistence import ModelFileError, load_with_table, save
from errorband.tables import Encoded, TableEncoder, TableError

_FORMAT, _VERSION = "errorband.table-model", 1


@dataclasses.dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with the encoding of its table.

    Parameters
    ----------
    encoder : TableEncoder
        Makes the estimator's inputs from a table.
    estimator : GPRegressor or GPClassifier
        Fitted to a DataFrame with the encoder's feature names.
    facts : dict
        What is known about the fit, as JSON: rows, held-out metrics, how the search went.
    donors : Donors, optional
        Training rows from which missing cells are drawn; only if the encoder accepts missing cells.

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> frame = pd.DataFrame({"tree": ["oak", "elm", "oak", "elm"], "age": [9, 30, 12, 20], "height": [4.0, 9, 5, 7]})
    >>> encoder = TableEncoder.fit(frame, target="height")
    >>> estimator = GPRegressor(optimizer=None).fit(*as_frame(encoder.transform(frame)))
    >>> predictions, notices = TableModel(encoder, estimator).predict(frame.head(2))
    >>> list(predictions), len(predictions), notices
    (['mean', 'std', 'lower', 'upper'], 2, [])
    """

    encoder: TableEncoder
    estimator: Any
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    donors: Donors | None = None

    def predict(
        self, frame: pd.DataFrame, *, level: float = 0.95, id_column: str | None = None
    ) -> tuple[pd.DataFrame, list[str]]:
        """Predict every row of a table, in its order.

        Parameters
        ----------
        frame : DataFrame
            A table with the columns of training; the target may be there or not.
        level : float
            Probability that the interval from ``lower`` to ``upper`` holds the target.
        id_column : str, optional
            A column to copy to the front of the result. By default the one named in training, if it is there.

        Returns
        -------
        predictions : DataFrame
            ``mean, std, lower, upper``; for classes ``prediction`` and one probability for each. Rows with missing
            cells are empty if training left such rows out. If it accepted them, predictions are averaged over what the
            cells may be, and ``imputed`` names the columns where that was done.
        notices : list of str
            Remarks for the user.
        """
        encoded = self.encoder.transform(frame, with_target=False)
        columns = self._columns(encoded, level)
        name = id_column if id_column is not None or self.encoder.id_column not in frame else self.encoder.id_column
        if name is not None:
            if name in columns:
                raise TableError(f"The id column {name!r} has the name of a column of the result, so rename it.")
            columns = {name: frame[name].to_numpy(), **columns}
        return pd.DataFrame(columns), [*encoded.notices, *_formulas(columns)]

    def _columns(self, encoded: Encoded, level: float) -> dict[str, np.ndarray]:
        found: dict[str, Any]
        if self.encoder.task == "classification":
            found = self._class_columns(encoded)
        elif not len(encoded.X):
            found = {name: np.full(encoded.n_rows, np.nan) for name in ("mean", "std", "lower", "upper")}
        else:
            predictive = missing.predictive(self.estimator, encoded.with_gaps, self.donors)
            lower, upper = predictive.interval(level)
            parts = {"mean": predictive.mean, "std": predictive.std, "lower": lower, "upper": upper}
            found = {name: encoded.spread(values) for name, values in parts.items()}
        return found | {"imputed": encoded.imputed} if self.encoder.missing == "impute" else found

    def _class_columns(self, encoded: Encoded) -> dict[str, np.ndarray]:
        X = encoded.with_gaps
        codes = np.asarray(self.estimator.classes_)
        labels = self.encoder.decode_labels(codes)
        share = missing.probabilities(self.estimator, X, self.donors)
        chosen = np.full(encoded.n_rows, None, dtype=object)
        chosen[encoded.row_index] = labels[share.argmax(axis=1)] if len(X) else []
        return {
            "prediction": chosen,
            **{f"p({label})": encoded.spread(share[:, i]) for i, label in enumerate(labels)},
        }

    def save(self, path: str | os.PathLike) -> None:
        """Write encoder, estimator and facts to one file; :func:`errorband.load` still reads the estimator from it."""
        document = {"format": _FORMAT, "version": _VERSION, "encoder": self.encoder.to_dict(), "facts": self.facts}
        if self.donors is not None:
            document["donors"] = self.donors.to_dict()
        save(self.estimator, path, table=document)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TableModel":
        """Read what ``save`` wrote.

        Raises
        ------
        ModelFileError
            If there is no such file, or it is not a model of a table.
        """
        try:
            estimator, document = load_with_table(path)
        except OSError as error:
            raise ModelFileError(f"There is no model file at {path}, so check the path.") from error
        if document is None:
            raise ModelFileError(
                f"{path} holds an estimator without a table, so predict with errorband.load in Python or write the "
                "model with 'errorband fit'."
            )
        try:
            if document["format"] != _FORMAT or document["version"] != _VERSION:
                raise ModelFileError(f"{path} describes its table in another version, so upgrade errorband.")
            donors = Donors.from_dict(document["donors"]) if "donors" in document else None
            return cls(TableEncoder.from_dict(document["encoder"]), estimator, dict(document["facts"]), donors)
        except (TableError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"The description of the table in {path} is damaged, so fit the model again."
            ) from error


def _formulas(columns: dict[str, np.ndarray]) -> list[str]:
    """A remark on cells copied from a table that a spreadsheet would take for formulas; they are left as they are."""
    texts = [name for name, cells in columns.items() if any(map(_is_formula, cells)) or _is_formula(name)]
    if not texts:
        return []
    return [
        f"Cells of {', '.join(map(repr, texts))} begin with a sign that starts a formula in a spreadsheet, so import "
        "them as text there."
    ]


def _is_formula(cell: Any) -> bool:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def as_frame(encoded: Encoded, gaps: bool = False) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Inputs with their names and those of their rows, and targets; with ``gaps`` missing cells are not filled in."""
    values = encoded.with_gaps if gaps else encoded.X
    return pd.DataFrame(values, index=encoded.row_names, columns=pd.Index(encoded.feature_names)), encoded.y
