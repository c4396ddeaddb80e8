"""``errorband compare``."""

import dataclasses
from typing import Annotated, Any

import typer

from errorband.cli import options as o
from errorband.cli.failures import guarded

EXAMPLES = """Examples:

errorband compare houses.csv --target price

errorband compare houses.csv --target price --folds 10 --time-budget 300 --missing drop"""


@guarded
def compare(
    data: o.DataFile,
    target: o.Target,
    task: Annotated[o.Task, typer.Option(help="Numbers or classes; auto decides from the target.")] = o.Task.auto,
    folds: Annotated[int, typer.Option(min=2, max=100, help="Number of folds.")] = 5,
    seed: o.Seed = 0,
    time_budget: o.Budget = 60.0,
    max_rows: o.MaxRows = None,
    missing: o.MissingCells = o.Missing.error,
    ignore: o.Ignore = "",
    id_column: o.IdColumn = None,
    max_levels: o.MaxLevels = 20,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Cross-validate Gaussian processes with several kernels and simple baselines; the best comes first.

    Every method sees the same folds. Numbers are compared by their bands, classes by their probabilities. The time
    budget is shared by all searches of hyperparameters.
    """
    import numpy as np

    from errorband.cli import cross_validation, fitting
    from errorband.cli.planning import exact_rows, rows_to_search
    from errorband.cli.screen import CLASS_HEADER, Screen, class_rows
    from errorband.cli.settings import Settings
    from errorband.reporting.text import number, percent
    from errorband.table_model import as_frame
    from errorband.tables import TableEncoder, TableError

    screen = Screen(quiet)
    frame = fitting.read_data(data, id_column)
    encoder = TableEncoder.fit(
        frame,
        target=target,
        task=task.value,
        ignore=o.names(ignore),
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
    kernels = cross_validation.CLASS_KERNELS if classes else cross_validation.COMPARED_KERNELS
    n_classes = len(encoder.labels)
    searches = folds * (len(kernels) + (n_classes if n_classes > 2 else 0))  # one for each class, too
    most = max_rows or rows_to_search(encoder, Settings(time_budget=time_budget / searches)) * folds // (folds - 1)
    if len(y) > most:
        kept = np.sort(np.random.default_rng(seed).choice(len(y), most, replace=False))
        notes.append(f"{most:,} of {len(y):,} rows are compared, drawn at random, to stay within the time budget.")
        X, y = X.iloc[kept], y[kept]
    n_train = len(y) * (folds - 1) // folds
    if n_train > (limit := exact_rows(encoder)):
        notes.append(
            f"The Gaussian processes learn from {n_train:,} rows through inducing points: without approximation they "
            f"take at most {limit:,}."
        )
    screen.note(notes)
    methods = len(cross_validation.class_catalogue(n_classes) if classes else cross_validation.catalogue())
    with screen.progress("compare", methods * folds) as step:
        results: list[Any] = (cross_validation.cross_validate_classes if classes else cross_validation.cross_validate)(
            X,
            y,
            folds=folds,
            seed=seed,
            max_seconds=time_budget / searches,
            report=lambda method, fold: step(f"{method}, fold {fold + 1}"),
        )
    title = f"{target}: {len(y):,} rows, {X.shape[1]} inputs, {folds} folds"
    if classes:
        scores = [(r.method, dataclasses.asdict(r)) for r in results]
        rows = [(*row, f"{r.seconds:.1f} s") for row, r in zip(class_rows(scores), results, strict=True)]
        screen.table(title, (*CLASS_HEADER, "time"), rows)
    else:
        rows = [
            (r.method, number(r.nlpd, decimals=3), number(r.rmse), percent(r.coverage), f"{r.seconds:.1f} s")
            for r in results
        ]
        screen.table(title, ("method", "NLPD", "RMSE", "95 % coverage", "time"), rows)
    screen.note([f"{r.method} could not be fitted: {r.failure}" for r in results if r.failure], "Warning")
    best = results[0]
    if not best.failure and classes:
        screen.say(f"{best.method} has the smallest log loss: its probabilities describe rows it has not seen best.")
    elif not best.failure:
        screen.say(f"{best.method} has the smallest NLPD: its bands describe rows it has not seen best.")
