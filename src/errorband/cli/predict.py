"""``errorband predict`` and ``errorband info``."""

import json
import math
from typing import Annotated

import typer

from errorband.cli import options as o
from errorband.cli.failures import guarded

PREDICT_EXAMPLES = """Examples:

errorband predict model.eb new.csv --output out.csv

errorband predict model.eb new.csv --level 0.8 --id house

cat new.csv | errorband predict model.eb - > out.csv"""

INFO_EXAMPLES = """Examples:

errorband info model.eb

errorband info model.eb --json"""


@guarded
def predict(
    model: o.ModelFile,
    data: o.DataFile,
    output: Annotated[str, typer.Option("--output", "-o", help="CSV or Parquet file to write; - is stdout.")] = "-",
    level: o.Level = 0.95,
    id_column: Annotated[str | None, typer.Option("--id", help="A column to copy beside the predictions.")] = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Predict every row of a table, in its order: mean, std, lower and upper end of the band.

    For classes: the prediction and the probability of each class. The band is where the target itself will lie with
    the given probability, noise included. If the model accepts missing cells (--missing impute), predictions are
    averaged over what they may be, and the column imputed names them.
    """
    o.check_output(output, "--output")
    from errorband.cli.screen import Screen
    from errorband.table_model import TableModel
    from errorband.tables import read_table, require_column, write_table
    from errorband.tables.errors import count_of

    screen = Screen(quiet)
    table_model = TableModel.load(model)
    texts = [name for name in (id_column, table_model.encoder.id_column) if name is not None]
    frame = read_table(data, text_columns=texts)
    if id_column is not None:
        require_column(frame, id_column)
    predictions, notices = table_model.predict(frame, level=level, id_column=id_column)
    screen.note([*frame.attrs.get("notices", []), *notices])
    write_table(predictions, output)
    if output != o.STANDARD:
        screen.say(f"{count_of(len(predictions), 'prediction')}: {output}")


@guarded
def info(
    model: o.ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    debug: o.Debug = False,
) -> None:
    """Show what a model file holds: its columns, its parts, and how well it did on held-out rows."""
    from errorband.cli.screen import Screen
    from errorband.reporting.parts.describe import describe
    from errorband.reporting.text import number
    from errorband.table_model import TableModel

    table_model = TableModel.load(model)
    encoder, facts, estimator = table_model.encoder, table_model.facts, table_model.estimator
    columns = [(c.name, c.kind, _detail(c)) for c in encoder.columns]
    evidence = float(getattr(estimator, "log_evidence_", "nan"))
    if as_json:
        parts = {
            "target": encoder.target,
            "task": encoder.task,
            "missing": encoder.missing,
            "id": encoder.id_column,
            "columns": [{"name": name, "kind": kind, "inputs": detail} for name, kind, detail in columns],
            "labels": encoder.labels,
            "estimator": type(estimator).__name__,
            "log_evidence": evidence if math.isfinite(evidence) else None,
            **facts,
        }
        typer.echo(json.dumps(parts, indent=2, ensure_ascii=False))
        return
    screen = Screen()
    lines = {
        "Target": f"{encoder.target} ({encoder.task})",
        "Estimator": type(estimator).__name__,
        **describe(estimator, facts.get("automatic", "")),
        **({"Log evidence": number(evidence, decimals=2)} if math.isfinite(evidence) else {}),
        "Rows": f"{facts.get('rows_in_model', 0):,} in the model, of {facts.get('rows', 0):,} in {facts.get('data')}",
        "Search": _search(facts.get("search")),
        "Missing cells": encoder.missing,
        "Row names": encoder.id_column or "none",
        "Written by": f"errorband {facts.get('errorband')}",
    }
    width = max(map(len, lines))
    for name, text in lines.items():
        screen.say(f"{name:<{width}}  {text}")
    screen.table("Columns", ("column", "kind", "inputs"), columns, words=True)
    if facts.get("scores"):
        scores = [(s["method"], s) for s in facts["scores"]]
        screen.scores(f"On {facts.get('rows_held_out')} held-out rows", scores)
        screen.say(facts.get("verdict", ""))


def _detail(column) -> str:
    if column.kind == "text":
        shown = ", ".join(column.levels[:6])
        return shown + (f" and {len(column.levels) - 6} more" if len(column.levels) > 6 else "")
    return ", ".join(column.feature_names)


def _search(search: dict | None) -> str:
    if not search:
        return "none"
    return f"{search['message']} {search['iterations']} iterations in {search['seconds']:.1f} s"
