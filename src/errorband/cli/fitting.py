"""The work of ``errorband fit``: split the rows, search hyperparameters, and condition the model on all rows."""

import dataclasses
import math
import warnings
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from errorband import __version__, effects
from errorband.cli import incomplete
from errorband.cli.failures import ExitCode, Problem, one_sentence
from errorband.cli.incomplete import Learnable
from errorband.cli.models import unfitted
from errorband.cli.planning import Plan, exact_rows, optimizer, plan
from errorband.cli.settings import Settings
from errorband.estimators import Mixture
from errorband.estimators.candidates import AUTO, Candidates, concluded_ahead, is_auto
from errorband.estimators.validation import first_of_copies
from errorband.missing import Donors
from errorband.tables import Encoded, TableEncoder, TableError, read_table, require_column
from errorband.tables.cells import read_cells
from errorband.tables.columns import column_of
from errorband.tables.errors import count_of
from errorband.training import LBFGS
from errorband.training.result import Stop

LEAST_ROWS = 5
LEAST_SECONDS = 20  # to search in, if kernels and kinds of noise are to be compared that nobody asked for
MOST_NOISE_ROWS = 1000  # with which noise is compared


@dataclasses.dataclass(frozen=True)
class FittedModels:
    """Two models with the hyperparameters that the search found.

    Attributes
    ----------
    judged, final : GPRegressor or GPClassifier
        Conditioned on training rows only, to be judged on held-out rows; and on all rows, to be written.
    train, learned, test : arrays of int
        Positions of the training rows, of those among them that the judged model has, and of the held-out rows that it
        can be judged on.
    X : DataFrame
        The inputs of all rows, as the models learned them.
    judged_donors, final_donors : Donors or None
        Rows from which the two models draw missing cells.
    automatic : str
        Why the tool chose the approximation; empty if the user or the estimator did.
    candidates : Candidates or None
        What kernel and noise were chosen from, if that was left to the tool.
    notes, cuts, warnings : list of str
        What to tell: remarks, rows left out though nobody asked for it, and what went wrong in the search.
    """

    judged: Any
    final: Any
    train: np.ndarray
    learned: np.ndarray
    test: np.ndarray
    X: pd.DataFrame
    judged_donors: Donors | None
    final_donors: Donors | None
    automatic: str
    candidates: Candidates | None
    notes: list[str]
    cuts: list[str]
    warnings: list[str]


def read_data(data: str, id_column: str | None) -> pd.DataFrame:
    """Read the table; cells of the id column stay text."""
    return read_table(data, text_columns=[] if id_column is None else [id_column])


def class_names(model: Any, encoder: TableEncoder) -> list[str] | None:
    """Return the names that the table gives to the classes of a fitted classifier; None for a regression."""
    if encoder.task != "classification":
        return None
    return [str(label) for label in encoder.decode_labels(np.asarray(model.classes_))]


def split(encoded: Encoded, encoder: TableEncoder, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the rows to learn from and of those to hold out."""
    from sklearn.model_selection import train_test_split

    n, y = len(encoded.X), encoded.y
    if n < LEAST_ROWS:
        raise TableError(
            f"The table has {n} usable {'row' if n == 1 else 'rows'} where at least {LEAST_ROWS} are needed, "
            "so add rows or fill in missing cells."
        )
    n_test = min(max(1, round(settings.test_size * n)), n - 2)
    rows, stratify = np.arange(n), None
    if encoder.task == "classification" and y is not None:
        rows, stratify = _rows_to_hold_out(y, n_test, settings.seed)
    _, test = train_test_split(rows, test_size=n_test, random_state=settings.seed, stratify=stratify)
    return np.setdiff1d(np.arange(n), test), np.sort(test)


def _rows_to_hold_out(y: np.ndarray, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows among which held-out ones are drawn, and their classes if each can be drawn in its share.

    A class can be learned only if a row of it is not held out, so the only row of a class never is. Where the others
    are too few to keep their shares, one row of each class, drawn at random, is set aside to learn from. If that leaves
    too few rows to hold out, any row may be held out.
    """
    rows, counts = np.arange(len(y)), np.bincount(y)
    several = rows[counts[y] > 1]
    if min(n_test, len(several) - n_test) >= max(1, len(np.unique(y[several]))):
        return several, y[several]
    order = np.random.default_rng(seed).permutation(rows)
    set_aside = order[np.unique(y[order], return_index=True)[1]]
    others = np.setdiff1d(rows, set_aside)
    return (others if len(others) > n_test else rows), None


def weights_of(frame: pd.DataFrame, name: str | None, encoded: Encoded) -> np.ndarray | None:
    """The weights of the rows that are used, from a column of the table; None if there is none."""
    if name is None:
        return None
    require_column(frame, name)
    cells = read_cells(column_of(frame, name))
    if cells.problem or cells.kind != "number":
        raise TableError(
            cells.problem or f"The weights in column {name!r} are not numbers, so choose another --weight."
        )
    weights = np.asarray(cells.values, dtype=np.float64)[encoded.row_index]
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and np.any(weights > 0)):
        raise TableError(f"The weights in column {name!r} are missing or negative in some rows, so correct them.")
    return weights


def fit(
    X: pd.DataFrame,
    y: np.ndarray,
    encoder: TableEncoder,
    settings: Settings,
    rows: Any,
    weights: np.ndarray | None = None,
) -> FittedModels:
    """Search hyperparameters on training rows, then condition on all of them; ``rows`` is the result of ``split``.

    X has NaN where cells are missing, if the encoder accepts them.
    """
    train, test = rows
    settings = with_choices(settings, encoder, len(train))
    judged_donors, final_donors = (_donors(X.iloc[part], encoder, settings.seed) for part in (train, np.arange(len(y))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classes = encoder.task == "classification"
            learnable = incomplete.at_first(X, y, train, judged_donors, classes, settings.seed)
            chosen, known, found = _search_on(learnable, y, rows, encoder, settings, weights)
            if (more := incomplete.then(X, train, judged_donors, found)) is not None:
                caught.clear()
                learnable = more
                chosen, known, found = _search_on(learnable, y, rows, encoder, settings, weights)
            beside = _beside(learnable, weights)
            judged, learned = found, chosen.searched
            if len(chosen.judged) > len(chosen.searched):
                learned = chosen.judged[known[chosen.judged]]
                judged = _conditioned(found, learnable.X, y, learned, beside)
            final = _conditioned(found, learnable.X, y, chosen.final[known[chosen.final]], beside)
        except TableError:
            raise
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            told = one_sentence(str(error)).rstrip(".")
            raise Problem(
                f"The model cannot be fitted to these numbers ({told}), so check the table.", ExitCode.FIT
            ) from error
    train = train[learnable.usable[train]]
    notes, cuts = [*learnable.notes, *chosen.notes], list(chosen.cuts)
    inside = effects.searched(found)
    sweeps = [member.inducing_sweep_ for member in inside if hasattr(member, "inducing_sweep_")]
    notes += dict.fromkeys(f"--inducing auto: {sweep.certificate}" for sweep in sweeps)
    notes += dict.fromkeys(str(member.certificate_) for member in inside if hasattr(member, "certificate_"))
    if not known.all():
        left_out = count_of(int(np.sum(~known)), "row")
        cuts.append(f"Left out, because no row that was learned from has their class: {left_out}.")
    told = _warnings(caught, found, final)
    positions, tried = (train, learned, test[known[test]]), _tried(found)
    return FittedModels(
        judged, final, *positions, learnable.X, judged_donors, final_donors, chosen.reason, tried, notes, cuts, told
    )  # fmt: skip


def with_choices(settings: Settings, encoder: TableEncoder, n: int) -> Settings:
    """The options with "auto" for kernel and noise, if nothing was said of either and there is time for it.

    Candidates see few rows, but the winner all: a noise that is not Gaussian takes sweeps, and no more than 1000. Three
    and more classes would take a search for each of them and each candidate, so they have the default. The time is that
    of the options and not of the clock, so that a seed gives the same model everywhere.
    """
    plain = settings.model in ("auto", "exact") and settings.kernel is None and settings.likelihood is None
    plain = plain and settings.multi_class is None and settings.planned_seconds >= LEAST_SECONDS
    if not plain or len(encoder.labels) > 2 or n > exact_rows(encoder, settings):
        return settings
    noise = encoder.task == "regression" and settings.target_transform is None and n <= MOST_NOISE_ROWS
    return dataclasses.replace(settings, kernel=AUTO, likelihood=AUTO if noise else None)


def _donors(X: pd.DataFrame, encoder: TableEncoder, seed: int) -> Donors | None:
    if encoder.missing != "impute":
        return None
    return Donors.among(X.to_numpy(), [column.columns for column in encoder.inputs], seed)


def _search_on(
    learnable: Learnable, y: np.ndarray, rows: Any, encoder: TableEncoder, settings: Settings, weights: Any
) -> tuple[Plan, np.ndarray, Any]:
    """The plan for these rows, which of all rows are of a class that is learned, and the model that was found."""
    (train, test), usable = rows, learnable.usable
    chosen = plan(y, train[usable[train]], encoder, settings, np.flatnonzero(usable))
    known = np.isin(y, y[chosen.searched]) if encoder.task == "classification" else np.ones(len(y), bool)
    if not known[test].any():
        raise TableError("No class of the held-out rows is among the rows to learn from, so add rows of each class.")
    search = optimizer(chosen.model, len(chosen.searched), encoder, settings)
    asked = unfitted(
        settings, encoder, chosen.model, optimizer=search, random_state=settings.seed, verbose=settings.verbose
    )
    if learnable.noise is not None and is_auto(getattr(asked, "likelihood", None)):
        asked.set_params(likelihood=None)  # it was found to be Gaussian, and others know no noise of a row
    searched = chosen.searched
    if encoder.task == "regression" and weights is None:
        searched = _without_copies(learnable.X, y, searched)
        chosen = dataclasses.replace(chosen, searched=searched)
    beside, final = _beside(learnable, weights), chosen.final[known[chosen.final]]
    with concluded_ahead(asked, learnable.X.iloc[final], y[final], _of_rows(beside, final)):
        found = asked.fit(learnable.X.iloc[searched], y[searched], **_of_rows(beside, searched))
    if isinstance(found, Mixture):
        chosen.notes.extend([found.reason_] if found.kind == "auto" else [])
        found = found.model_
    return chosen, known, found


def _without_copies(X: pd.DataFrame, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """These rows without copies: two numbers that agree to the last digit say that there is no noise."""
    return rows[first_of_copies(X.iloc[rows].to_numpy(), y[rows])]


def _beside(learnable: Learnable, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """What an estimator learns from beside inputs and targets, for all rows of the table."""
    given = {"sample_weight": weights, "noise_variance": learnable.noise}
    return {name: values for name, values in given.items() if values is not None}


def _of_rows(beside: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[rows] for name, values in beside.items()}


def _conditioned(found: Any, X: pd.DataFrame, y: np.ndarray, rows: np.ndarray, beside: dict[str, np.ndarray]) -> Any:
    """The model with these rows; one that cannot be conditioned on others is fitted to them."""
    learn = found.condition_on if hasattr(found, "condition_on") else cast(Any, clone(found)).fit
    return learn(X.iloc[rows], y[rows], **_of_rows(beside, rows))


def _warnings(caught: list[warnings.WarningMessage], found: Any, final: Any) -> list[str]:
    """Return what to warn the user of, each sentence once.

    How the search and the inference ended is read from the models, in place of their ConvergenceWarnings, which speak
    of Python attributes.
    """
    told = []
    for search in _searches(found):
        if not getattr(search, "settled", search.converged):
            told.append(f"The search for hyperparameters did not converge: {_ended(search)}")
    statuses = [model.inference_status_ for model in (found, final) if hasattr(model, "inference_status_")]
    told += [status.message for status in statuses if not status.converged]
    told += [str(w.message) for w in caught if _for_the_user(w.category)]
    return list(dict.fromkeys(one_sentence(text) for text in told))


def _ended(search: Any) -> str:
    """Why a search ended, and what helps, as options of the tool."""
    if search.stop == Stop.OUT_OF_TIME:
        return f"{search.message} A larger --time-budget may help."
    if search.stop == Stop.MAX_ITER:
        planned = search.limit is not None and search.limit < LBFGS().max_iter
        more = " A larger --time-budget may help." if planned else ""
        return f"it stopped after {search.iterations} iterations, near the best point it knows.{more}"
    return str(search.message)


def _tried(model: Any) -> Candidates | None:
    """What "auto" chose from; None if nothing was left to it, or to each of several classes."""
    found = getattr(model, "candidates_", None)
    return found if isinstance(found, Candidates) else None


def _searches(model: Any) -> list[Any]:
    """How the searches of a fitted model and of those it is made of went."""
    results = [getattr(member, "fit_result_", None) for member in effects.searched(model)]
    return [r for r in results if hasattr(r, "converged")]


def _for_the_user(category: type[Warning]) -> bool:
    return not issubclass(category, DeprecationWarning | FutureWarning | ConvergenceWarning)


def facts(fitted: FittedModels, settings: Settings, encoded: Encoded, data: str, scores: list, verdict: str) -> dict:
    """Return the facts about the fit that the model file keeps, as JSON values."""
    member = getattr(fitted.final, "members_", [fitted.final])[0]  # those of one model for each class are alike
    kept = getattr(member, "approximation_", member)
    inducing = getattr(kept, "inducing_inputs", None)
    tried = {} if fitted.candidates is None else fitted.candidates.winners()
    return {
        "data": data,
        "errorband": __version__,
        "rows": encoded.n_rows,
        "rows_used": len(encoded.X),
        "rows_in_model": getattr(fitted.final, "n_training_rows_", len(encoded.X)),
        "rows_held_out": len(fitted.test),
        "kernel": tried.get("kernel", settings.kernel),
        "likelihood": tried.get("likelihood", settings.likelihood),
        "target_transform": settings.target_transform,
        "exposure": settings.exposure,
        "weight": settings.weight,
        "model": settings.model,
        "approximation": type(kept).__name__,
        "n_inducing": None if inducing is None else len(inducing),
        "approximation_reason": fitted.automatic or getattr(member, "approximation_reason_", None),
        "automatic": fitted.automatic,
        "seed": settings.seed,
        "search": _search(_searches(fitted.final)),
        "scores": [
            {"method": name, **{k: float(v) if math.isfinite(v) else None for k, v in values.items()}}
            for name, values in scores
        ],
        "verdict": verdict,
        "notes": [*fitted.notes, *fitted.cuts, *fitted.warnings],
    }


def _search(results: list[Any]) -> dict | None:
    """The searches as one: the message is that of the one that went worst."""
    if not results:
        return None
    return {
        "converged": all(bool(r.converged) for r in results),
        "message": str(min(results, key=lambda r: bool(r.converged)).message),
        "iterations": sum(int(r.iterations) for r in results),
        "seconds": round(sum(float(r.seconds) for r in results), 3),
    }
