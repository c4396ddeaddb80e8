"""``errorband compare``."""

import shlex
from typing import Annotated, Any

import typer

from errorband.cli import options as o
from errorband.cli.failures import guarded

EXAMPLES = """Examples:

errorband compare houses.csv --target price

errorband compare houses.csv --target price --kernels matern52,matern52+linear --models "fitc(50),vfe(50)"

errorband compare houses.csv --target price --folds 10 --time-budget 300 --missing drop --output scores.csv

Ctrl-C ends it; what is finished by then is shown and written."""


@guarded
def compare(
    data: o.DataFile,
    target: o.Target,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="CSV or Parquet file for the table; - is stdout.")
    ] = None,
    task: Annotated[o.Task, typer.Option(help="Numbers or classes; auto decides from the target.")] = o.Task.auto,
    kernels: Annotated[
        str | None, typer.Option(help="Kernels to compare, as for fit, separated by commas; by default a few.")
    ] = None,
    likelihoods: Annotated[
        str | None,
        typer.Option(
            help="Likelihoods to compare, with the first kernel; by default student-t, outlier-mixture and twinned, "
            "for counts poisson and negative-binomial. 'gaussian' leaves them out."
        ),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Models to compare, as for fit, with the first kernel: 'fitc(50),vfe(50)'.")
    ] = None,
    target_transform: o.TargetTransform = None,
    exposure: o.Exposure = None,
    weight: o.Weight = None,
    folds: Annotated[int, typer.Option(min=2, max=100, help="Number of folds.")] = 5,
    seed: o.Seed = 0,
    time_budget: o.SharedBudget = 60.0,
    max_rows: o.MaxRows = None,
    missing: o.MissingCells = o.Missing.error,
    ignore: o.Ignore = "",
    id_column: o.IdColumn = None,
    max_levels: o.MaxLevels = 20,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Cross-validate Gaussian processes with several kernels and likelihoods, and baselines; the best comes first.

    Every method sees the same folds. Numbers are compared by their bands, classes by their probabilities; differences
    come with standard errors, from the losses row by row. The time budget is shared by all searches of
    hyperparameters.
    """
    o.check_output(output, "--output")
    import numpy as np

    from errorband.cli import candidates, cross_validation, fitting
    from errorband.cli.models import check_names
    from errorband.cli.planning import exact_rows, rows_to_search
    from errorband.cli.screen import Screen
    from errorband.cli.settings import Settings
    from errorband.table_model import as_frame
    from errorband.tables import TableEncoder, TableError, write_table

    choices = candidates.Choices(kernels, likelihoods, models)
    candidates.check_choices(choices)
    base = Settings(seed=seed, target_transform=target_transform, exposure=exposure, weight=weight)
    check_names(base)
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
    classes = encoder.task == "classification"
    X, y = as_frame(encoded)
    assert y is not None
    least = max(fitting.LEAST_ROWS, 2 * folds)
    if len(y) < least:
        raise TableError(f"The table has {len(y)} usable rows where {folds} folds need {least}, so lower --folds.")
    notes = [*frame.attrs.get("notices", []), *encoder.notices, *encoded.notices]
    if encoded.gaps.any():
        notes.append("Here they are filled in by the median or the most frequent level, for all methods alike.")
    weights = fitting.weights_of(frame, weight, encoded)
    if weights is not None:
        notes.append(
            "The Gaussian processes learn by the weights; baselines, and the figures, count all rows the same."
        )
    settings = candidates.settings_of(choices, encoder, y, base)
    searches = folds * sum(m.searches for m in candidates.processes(settings, encoder))
    share = Settings(time_budget=time_budget / searches)
    most = max_rows or rows_to_search(encoder, share) * folds // (folds - 1)
    if len(y) > most:
        kept = np.sort(np.random.default_rng(seed).choice(len(y), most, replace=False))
        notes.append(f"{most:,} of {len(y):,} rows are compared, drawn at random, to stay within the time budget.")
        X, y, weights = X.iloc[kept], y[kept], None if weights is None else weights[kept]
    n_train = len(y) * (folds - 1) // folds
    if n_train > (limit := exact_rows(encoder)):
        notes.append(
            f"The Gaussian processes learn from {n_train:,} rows through inducing points: without approximation they "
            f"take at most {limit:,}."
        )
    screen.note(notes)
    methods = candidates.processes(settings, encoder, share.time_budget) + candidates.baselines(len(encoder.labels))
    rows = cross_validation.splits(y, folds, seed, classes)
    with screen.progress("compare", len(methods) * folds) as step:
        found = cross_validation.cross_validate(
            methods, X, y, rows, lambda method, fold: step(f"{method}, fold {fold + 1}"), weights
        )
    if found.interrupted:
        screen.note([f"Interrupted: the figures are from {found.folds} of {folds} folds."], "Warning")
    done = f"{found.folds} of {folds} folds" if found.folds < folds else f"{folds} folds"
    screen.table(f"{target}: {len(y):,} rows, {X.shape[1]} inputs, {done}", *_table(found.rows, classes))
    screen.note([f"{r.method.name} could not be fitted: {r.failure}" for r in found.rows if r.failure], "Warning")
    if early := [f"{r.method.name} ({r.unfinished} of {found.folds} folds)" for r in found.rows if r.unfinished]:
        screen.note([f"Searches that did not converge: {', '.join(early)}. A larger --time-budget may help."])
    _conclude(screen, found.rows, classes, data, target)
    if output is not None:
        write_table(_frame(found.rows), output)
        screen.note([f"The table is in {output}."] if output != o.STANDARD else [])


def _table(results: list[Any], classes: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows as text."""
    from errorband.cli.screen import CLASS_HEADER, class_rows
    from errorband.reporting.text import number, percent

    if classes:
        header = CLASS_HEADER
        rows = class_rows((r.method.name, {} if r.scores is None else r.scores.values) for r in results)
    else:
        header = ("method", "NLPD", "RMSE", "95 % coverage")
        values = [{} if r.scores is None else r.scores.values for r in results]
        rows = [
            (r.method.name, number(v.get("nlpd"), decimals=3), number(v.get("rmse")), percent(v.get("coverage")))
            for r, v in zip(results, values, strict=True)
        ]
    more = [(_behind(r), f"{r.seconds:.1f} s") for r in results]
    return (*header, "behind the first", "time"), [(*row, *rest) for row, rest in zip(rows, more, strict=True)]


def _behind(result: Any) -> str:
    from errorband.reporting.text import number

    if result.behind is None:
        return "–"
    return f"{number(result.behind.difference, decimals=3)} ± {number(result.behind.standard_error, decimals=3)}"


def _conclude(screen: Any, results: list[Any], classes: bool, data: str, target: str) -> None:
    """Say who is first and who is as good for all that these rows can tell, and how to fit the model."""
    from errorband.reporting.text import listing

    best = results[0]
    if best.scores is None:
        return
    loss, what = ("log loss", "probabilities") if classes else ("NLPD", "bands")
    even = [r.method.name for r in results[1:] if r.within_chance]
    if even:
        are = "is" if len(even) == 1 else "are"
        screen.say(
            f"{best.method.name} has the smallest {loss}, but {listing(even)} {are} within two standard errors of it: "
            "the difference could be chance."
        )
    else:
        screen.say(f"{best.method.name} has the smallest {loss}: its {what} describe rows it has not seen best.")
    model = next((r.method for r in results if r.within_chance and r.method.options is not None), None)
    if model is not None and data != o.STANDARD:
        table = f"{shlex.quote(data)} --target {shlex.quote(target)}"
        screen.say(f"To fit {model.name}: errorband fit {table} {model.options}".rstrip())


def _frame(results: list[Any]) -> Any:
    """The table as numbers."""
    import pandas as pd

    return pd.DataFrame([
        {
            "method": r.method.name,
            **({} if r.scores is None else r.scores.values),
            "standard_error": r.standard_error,
            "behind": 0.0 if r.behind is None and r.scores is not None else getattr(r.behind, "difference", None),
            "behind_standard_error": getattr(r.behind, "standard_error", None),
            "seconds": r.seconds,
            "options": r.method.options,
            "failure": r.failure,
        }
        for r in results
    ])  # fmt: skip
