"""``errorband fit``."""

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from errorband.cli import options as o
from errorband.cli.failures import ExitCode, Problem, guarded, one_sentence

# Below, threads of BLAS gain little, and on a machine with other work they wait for one another.
FEW_ROWS = 1000

EXAMPLES = """Examples:

errorband fit houses.csv --target price

errorband fit houses.csv --target price --report report.html --missing impute --ignore street,agent

errorband fit flowers.csv --target species --multi-class one-vs-rest --report report.html

errorband fit visits.csv --target visits --likelihood poisson --exposure people --kernel matern52+linear

zcat houses.csv.gz | errorband fit - --target price --kernel matern32+linear --time-budget 300

Ctrl-C ends the search and keeps the best model so far (exit code 0, with a warning)."""


@guarded
def fit(
    data: o.DataFile,
    target: o.Target,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path("model.eb"),
    report: Annotated[Path | None, typer.Option(help="A report to write, as one HTML file.")] = None,
    task: Annotated[o.Task, typer.Option(help="Numbers or classes; auto decides from the target.")] = o.Task.auto,
    model: Annotated[
        str,
        typer.Option(
            help="auto uses all rows; exact; inducing points: fitc, vfe, power-ep, dtc, sor, pitc, pic, nystrom; some "
            "of the rows: ivm, subset-of-data; features: sparse-spectrum. A wrong name lists all. Arguments in "
            "brackets: 'power-ep(100, power=0.3)'."
        ),
    ] = "auto",
    inducing: Annotated[
        str | None,
        typer.Option(metavar="<int or auto>", help="How many inducing points (or auto) or rows; 200 by default."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="auto, the default, chooses by evidence; se, matern12, matern32, matern52, rq, linear, periodic and "
            "others; + adds and * multiplies some. Arguments in brackets: 'matern52 + periodic(period=7, column=day)'."
        ),
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option(
            help="How targets scatter. Numbers: auto, the default, chooses by evidence; gaussian, student-t, "
            "outlier-mixture, heteroscedastic, poisson, negative-binomial, gamma, beta and others. Classes: "
            "probit, logit, robust-threshold, ordinal."
        ),
    ] = None,
    target_transform: o.TargetTransform = None,
    exposure: o.Exposure = None,
    weight: o.Weight = None,
    robust: Annotated[
        str | None,
        typer.Option(
            metavar="<auto or likelihood>",
            help="Some targets are wrong: auto, or the --likelihood for it, student-t, outlier-mixture, twinned …",
        ),
    ] = None,
    multi_class: Annotated[
        o.MultiClass | None,
        typer.Option(help="Three or more classes in one model, or a model for each class (the default)."),
    ] = None,
    test_size: Annotated[float, typer.Option(min=0.01, max=0.9, help="Share of the rows to hold out.")] = 0.2,
    seed: o.Seed = 0,
    time_budget: o.Budget = None,
    max_rows: o.MaxRows = None,
    missing: o.MissingCells = o.Missing.error,
    ignore: o.Ignore = "",
    id_column: o.IdColumn = None,
    max_levels: o.MaxLevels = 20,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Learn a model from a table, judge it on held-out rows, and write it to a file.

    A share of the rows is held out and predicted from the others; the figures printed come from there. The model that
    is written then learns from all rows, with the same hyperparameters.
    """
    o.check_output(output, "--output")
    o.check_output(report, "--report")
    from errorband.cli import fitting
    from errorband.cli.models import check_names
    from errorband.cli.screen import Screen, named_scores
    from errorband.cli.settings import Settings
    from errorband.linalg import single_blas_thread
    from errorband.reporting import assess
    from errorband.reporting import report as make_report
    from errorband.table_model import TableModel, as_frame
    from errorband.tables import TableEncoder
    from errorband.tables.errors import count_of

    settings = Settings(
        kernel=kernel,
        likelihood=robust_likelihood(robust, likelihood),
        multi_class=multi_class,
        target_transform=target_transform,
        exposure=exposure,
        weight=weight,
        model=model,
        inducing=inducing,
        test_size=test_size,
        seed=seed,
        time_budget=time_budget,
        max_rows=max_rows,
        verbose=0 if quiet else 1,
    )
    check_names(settings)
    screen = Screen(quiet)
    frame = fitting.read_data(data, id_column)
    encoder = TableEncoder.fit(
        frame,
        target=target,
        task=task.value,
        ignore=[*o.names(ignore), *([] if weight is None else [weight])],
        id_column=id_column,
        missing=missing.value,
        max_levels=max_levels,
    )
    encoded = encoder.transform(frame, with_target=True)
    rows = fitting.split(encoded, encoder, settings)
    notices = [*frame.attrs.get("notices", []), *encoder.notices, *encoded.notices]
    X, y = as_frame(encoded, gaps=True)
    assert y is not None
    with single_blas_thread() if len(y) < FEW_ROWS else contextlib.nullcontext():
        fitted = fitting.fit(X, y, encoder, settings, rows, fitting.weights_of(frame, weight, encoded))
        screen.note([*notices, *fitted.notes])  # only now: a failure up to here is one sentence and nothing else
        screen.note([*fitted.cuts, *fitted.warnings], "Warning")
        screen.candidates(fitted.candidates)
        X_test, y_test = X.iloc[fitted.test], y[fitted.test]
        learned = fitted.X.iloc[fitted.learned], y[fitted.learned]
        common = {"X_train": learned[0], "y_train": learned[1], "target": target, "donors": fitted.judged_donors}
        common["class_names"] = fitting.class_names(fitted.judged, encoder)
        assessment = assess(fitted.judged, X_test, y_test, **common)
        scores, verdict = named_scores(assessment), " ".join(assessment.verdict)
        title = (
            f"{target}: {count_of(len(fitted.train), 'row')} to learn from, {len(fitted.test):,} held out, "
            f"{count_of(len(encoder.columns), 'input')}"
        )
        screen.scores(title, scores)
        screen.say(verdict)
        facts = fitting.facts(fitted, settings, encoded, data, scores, verdict)
        _save(TableModel(encoder, fitted.final, facts, fitted.final_donors), output)
        screen.say(f"Model, learned from {facts['rows_in_model']:,} rows: {output}")
        if report is None:
            return
        try:
            made = make_report(
                fitted.judged,
                X_test,
                y_test,
                title=f"{target}, predicted from {'standard input' if data == o.STANDARD else Path(data).name}",
                data_notes=[*notices, *fitted.notes, *fitted.cuts],
                random_state=seed,
                columns=encoder.inputs,
                incomplete=encoded.incomplete,
                assessment=assessment,
                automatic=fitted.automatic,
                **common,
            )
            made.save(report)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Interrupted after {output} was written, so only the report is missing.") from None
        screen.say(f"Report: {report}")


def _save(model: Any, output: Path) -> None:
    """Write the model; where that fails after all the work, write it to another place and say which."""
    try:
        model.save(output)
    except OSError as error:
        for folder in (tempfile.gettempdir(), Path.home(), Path.cwd()):
            with contextlib.suppress(OSError):
                saved = Path(tempfile.mkdtemp(prefix="errorband-", dir=folder)) / output.name
                model.save(saved)
                told = one_sentence(str(error)).rstrip(".")
                raise Problem(f"{told}; the model is in {saved} instead, so move it.", ExitCode.DISK) from error
        raise


def robust_likelihood(robust: str | None, likelihood: str | None) -> str | None:
    """Return the name of the likelihood that --robust and --likelihood ask for together.

    Examples
    --------
    >>> robust_likelihood("auto", None), robust_likelihood("student-t", None), robust_likelihood(None, "poisson")
    ('robust', 'student-t', 'poisson')
    """
    if robust is None:
        return likelihood
    if likelihood is not None:
        raise Problem("--robust names a likelihood, so leave --likelihood out.", ExitCode.USAGE)
    return "robust" if robust == "auto" else robust
