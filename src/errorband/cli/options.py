"""Options that several commands share, and checks of what was given."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from errorband.cli.failures import ExitCode, Problem
from errorband.files import check_writable

STANDARD = "-"


class Task(enum.StrEnum):
    """What kind of target it is."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Missing(enum.StrEnum):
    """What to do about missing cells."""

    error = "error"
    drop = "drop"
    impute = "impute"


class MultiClass(enum.StrEnum):
    """How three or more classes are modelled."""

    joint = "joint"
    one_vs_rest = "one-vs-rest"


def _level(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not between 0 and 1.")
    return value


DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, gzipped CSV or Parquet file; - reads CSV from stdin.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by 'errorband fit'.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of every random choice.")]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        help="Seconds for the search of hyperparameters. By default it is planned for a minute and no clock ends it.",
    ),
]
SharedBudget = Annotated[float, typer.Option(min=0.1, help="Seconds for all searches of hyperparameters together.")]
MissingCells = Annotated[
    Missing, typer.Option(help="Refuse missing cells, drop their rows, or average over what they may be.")
]
Ignore = Annotated[str, typer.Option(help="Columns to leave out, separated by commas.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="A column that names the rows; it is no input.")]
MaxLevels = Annotated[int, typer.Option(min=2, help="Most levels a column of words may have.")]
MaxRows = Annotated[
    int | None, typer.Option(min=5, help="Most rows to learn from; by default all, or as many as the time allows.")
]
Level = Annotated[float, typer.Option(callback=_level, help="Probability that the band holds the target.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing unless something fails.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def names(text: str) -> list[str]:
    """Comma-separated names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_output(path: str | Path | None, option: str) -> None:
    """Refuse a place that cannot be written before any work is done."""
    if path is None or str(path) == STANDARD:
        return
    place = Path(path)
    if place.is_dir():
        raise Problem(f"{option} {place} is a folder, so name a file in it.", ExitCode.USAGE)
    if not place.parent.is_dir():
        raise Problem(f"There is no folder {place.parent} for {option} {place.name}, so create it.", ExitCode.USAGE)
    if not place.exists() or place.is_file():  # a device or a pipe is opened once
        check_writable(place)


TargetTransform = Annotated[
    str | None, typer.Option(help="Learn a function of the target: log, box-cox, yeo-johnson, logit, 'logit(0, 100)'.")
]
Exposure = Annotated[
    str | None, typer.Option(help="A column that counts are proportional to; with --likelihood poisson, say.")
]
Weight = Annotated[str | None, typer.Option(help="A column of weights: 2 counts a row twice. It is no input.")]
