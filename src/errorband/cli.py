"""The command-line tool."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(help="Predictions with error bands you can trust.", no_args_is_help=True, add_completion=True)
console = Console()


@app.callback()
def _root() -> None:
    """Predictions with error bands you can trust."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the generated curve.")] = 0,
) -> None:
    """Fit two small data sets, print held-out figures and draw a band. No network."""
    from errorband import demo as content

    output.mkdir(parents=True, exist_ok=True)
    console.print(_table("diabetes (442 rows, 10 inputs, a quarter held out)", content.diabetes_scores(seed)))
    model, X, y, scores = content.curve(seed)
    console.print(_table("a generated curve with a gap (120 rows)", scores))
    picture = output / "band.png"
    content.draw_band(model, X, y, picture)
    console.print(f"Picture of the band: {picture}")


def _table(title: str, scores: list) -> Table:
    table = Table(title=title)
    table.add_column("method")
    for name in ("RMSE", "NLPD", "95 % coverage"):
        table.add_column(name, justify="right")
    for s in scores:
        table.add_row(s.method, f"{s.rmse:.3f}", f"{s.nlpd:.3f}", f"{100 * s.coverage:.1f} %")
    return table


def main() -> None:
    """Entry point of the ``errorband`` command."""
    app()
