"""``errorband demo``."""

from pathlib import Path
from typing import Annotated

import typer

from errorband.cli import options as o
from errorband.cli.failures import ExitCode, Problem, guarded
from errorband.cli.fit import fit
from errorband.cli.predict import predict

EXAMPLES = """Examples:

errorband demo --output out"""


@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("out"),
    seed: o.Seed = 0,
    debug: o.Debug = False,
) -> None:
    """Fit two small data sets, draw a band, and run the tool from table to report. No network."""
    from errorband.cli import demonstrations
    from errorband.cli.screen import Screen, named_scores

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(
            f"The folder {output} cannot be made ({error.strerror}), so choose another.", ExitCode.USAGE
        ) from error
    screen = Screen()
    found = demonstrations.diabetes(seed)
    screen.scores("diabetes (442 rows, 10 inputs, a quarter held out)", named_scores(found))
    model, found = demonstrations.curve(seed)
    screen.scores("a generated curve with a gap (120 rows)", named_scores(found))
    picture = output / "band.png"
    demonstrations.draw_band(model, picture)
    screen.say(f"Picture of the band: {picture}\n")

    table, new = demonstrations.write_diabetes(output, seed)
    files = {"output": output / "model.eb", "report": output / "report.html"}
    screen.say(
        f"$ errorband fit {table} --target progression --id patient -o {files['output']} --report {files['report']}"
    )
    fit(str(table), "progression", id_column="patient", seed=seed, time_budget=30.0, debug=debug, **files)
    out = output / "predictions.csv"
    screen.say(f"\n$ errorband predict {files['output']} {new} -o {out}")
    predict(files["output"], str(new), output=str(out), debug=debug)
