"""The command-line tool. Start-up imports nothing heavy: the commands import what they need."""

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


app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.PREDICT_EXAMPLES)(predict.predict)
app.command(epilog=predict.INFO_EXAMPLES)(predict.info)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command(epilog=demo.EXAMPLES)(demo.demo)


def main() -> None:
    """Entry point of the ``errorband`` command."""
    app()
