"""``errorband demo``."""

from pathlib import Path
from typing import Annotated

import typer

from errorband.cli import options as o
from errorband.cli.failures import ExitCode, Problem, guarded
from errorband.cli.fit import fit
from errorband.cli.predict import predict

SECONDS = 15  # for the search: too few to compare kernels, which would take longer than all the rest

EXAMPLES = """Examples:

errorband demo --output out"""


@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("out"),
    seed: o.Seed = 0,
    debug: o.Debug = False,
) -> None:
    """Fit two generated curves, draw their bands, and run the tool from table to report. No network."""
    from errorband.cli import demonstrations
    from errorband.cli.screen import Screen, named_scores

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(
            f"The folder {output} cannot be made ({error.strerror}), so choose another.", ExitCode.USAGE
        ) from error
    screen = Screen()
    model, found = demonstrations.curve(seed)
    screen.scores("a generated curve with a gap (120 rows)", named_scores(found))
    picture = output / "band.png"
    demonstrations.draw_band(model, picture)
    screen.say(f"Picture of the band: {picture}\n")
    model, rows = demonstrations.changing_noise(seed)
    title = "a generated curve with noise that grows (150 rows; 95 % bands of 400 new ones)"
    screen.table(title, demonstrations.NOISE_HEADER, rows)
    picture = output / "noise.png"
    demonstrations.draw_band(model, picture, "The band is as wide as the noise")
    screen.say(f"Picture of the band: {picture}\n")

    table, new = demonstrations.write_diabetes(output, seed)
    files = {"output": output / "model.eb", "report": output / "report.html"}
    screen.say(
        f"$ errorband fit {table} --target progression --id patient --time-budget {SECONDS} -o {files['output']} "
        f"--report {files['report']}"
    )
    fit(str(table), "progression", id_column="patient", seed=seed, time_budget=SECONDS, debug=debug, **files)
    out = output / "predictions.csv"
    screen.say(f"\n$ errorband predict {files['output']} {new} -o {out}")
    predict(files["output"], str(new), output=str(out), debug=debug)
