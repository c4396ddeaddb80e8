"""The command-line tool. Start-up imports nothing heavy: the commands import what they need."""

import gc
import io
import sys
from typing import Annotated

import typer

from errorband import __version__
from errorband.cli import compare, demo, fit, predict
from errorband.cli.failures import EXIT_CODES, OneSentenceGroup

EPILOG = f"""Exit codes:

{EXIT_CODES}

Examples:

errorband fit houses.csv --target price --report report.html

errorband predict model.eb new.csv --output out.csv"""

app = typer.Typer(
    cls=OneSentenceGroup,
    help="Predictions with error bands you can trust.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"errorband {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Predictions with error bands you can trust."""


def _unwrapped(text: str) -> str:
    """Paragraphs on one line each, for the terminal to break."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _command, _examples in (
    (fit.fit, fit.EXAMPLES),
    (predict.predict, predict.PREDICT_EXAMPLES),
    (predict.info, predict.INFO_EXAMPLES),
    (compare.compare, compare.EXAMPLES),
    (demo.demo, demo.EXAMPLES),
):
    app.command(help=_unwrapped(_command.__doc__ or ""), epilog=_examples)(_command)


def main() -> None:
    """Entry point of the ``errorband`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows another, and nothing fails
    # A process that lives for seconds has little garbage, and what is traced and imported is much to look through.
    gc.set_threshold(100_000)
    app()
