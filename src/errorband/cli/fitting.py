"""The work of ``errorband fit``: split, search, judge on held-out rows, and condition the model on all of them."""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd

from errorband import __version__, parameters
from errorband.approximations import APPROXIMATIONS, Inducing
from errorband.cli.failures import ExitCode, Problem, one_sentence
from errorband.estimators import GPClassifier, GPRegressor
from errorband.optimise import LBFGS
from errorband.tables import Encoded, TableEncoder, TableError, read_table

LEAST_ROWS = 5
EXACT_LIMIT = 5_000  # rows of an exact model: its matrices then have 200 MB each
CLASS_LIMIT = 2_000  # rows of a classifier, which works through its matrices again and again


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to fit."""

    kernel: Any = None
    kernel_name: str = "se"
    model: str = "auto"
    inducing: str | None = None
    test_size: float = 0.2
    seed: int = 0
    time_budget: float = 60.0
    max_rows: int | None = None
    verbose: int = 0


@dataclasses.dataclass
class Fitted:
    """What the search found."""

    judged: Any  # conditioned on the training rows only
    final: Any  # conditioned on all rows
    train: np.ndarray
    test: np.ndarray
    rows_in_model: int
    notes: list[str]
    warnings: list[str]


def read_data(data: str, id_column: str | None) -> pd.DataFrame:
    """The table, with the cells of the id column as they stand."""
    return read_table(data, text_columns=[] if id_column is None else [id_column])


def rows_for(seconds: float) -> int:
    """Rows on which an exact search takes about so long: its cost grows with their cube.

    The number depends on nothing but the budget, so that a seed gives the same model on every machine.

    Examples
    --------
    >>> rows_for(60), rows_for(5), rows_for(3600)
    (2500, 1100, 5000)
    """
    rows = 2_000 * (seconds / 30) ** (1 / 3)
    return int(min(max(100 * round(rows / 100), 500), EXACT_LIMIT))


def effort(encoder: TableEncoder) -> float:
    """How many times the work of a regression with as many rows: sweeps over the rows, and more with every class.

    Examples
    --------
    >>> from types import SimpleNamespace as Stub
    >>> effort(Stub(labels=[])), effort(Stub(labels=["no", "yes"])), effort(Stub(labels=["a", "b", "c"]))
    (1.0, 20.0, 30.0)
    """
    n_classes = len(encoder.labels)
    return 1.0 if n_classes == 0 else 10.0 * max(n_classes, 2)


def class_names(model: Any, encoder: TableEncoder) -> list[str] | None:
    """What the classes of a fitted classifier are called in the table; None for a regression."""
    if encoder.task != "classification":
        return None
    return [str(label) for label in encoder.decode_labels(np.asarray(model.classes_))]


def approximation_named(name: str, inducing: str | None = None) -> Any:
    """What the estimators take as ``approximation``, from what was given on the command line."""
    known = {key.lower(): cls for key, cls in APPROXIMATIONS.items()}
    if name.lower() in ("auto", "exact"):
        if inducing is not None:
            raise Problem(
                f"--inducing {inducing} needs a model with inducing points, so add --model fitc or --model vfe.",
                ExitCode.USAGE,
            )
        return name.lower()
    if name.lower() not in known:
        choices = ", ".join(dict.fromkeys(["auto", "exact", *known]))
        raise Problem(f"There is no model {name!r}, so choose one of {choices}.", ExitCode.USAGE)
    cls: Any = known[name.lower()]
    if inducing is None:
        return cls()
    if inducing == "auto" and issubclass(cls, Inducing):
        return cls("auto")
    if not (inducing.isdecimal() and int(inducing) > 0):
        choice = " or auto" if issubclass(cls, Inducing) else ""
        raise Problem(f"--inducing {inducing} is not a number above 0{choice}, so give one.", ExitCode.USAGE)
    return cls(int(inducing))


def split(encoded: Encoded, encoder: TableEncoder, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows to learn from and of the held-out ones."""
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
        counts = np.bincount(y)
        if len(several := np.flatnonzero(counts[y] > 1)) > n_test:  # the only row of its class is there to learn from
            rows = several
        classes = len(np.unique(y[rows]))
        if counts[y[rows]].min() > 1 and min(n_test, len(rows) - n_test) >= classes:
            stratify = y[rows]
    _, test = train_test_split(rows, test_size=n_test, random_state=settings.seed, stratify=stratify)
    return np.setdiff1d(np.arange(n), test), np.sort(test)


def fit(X: pd.DataFrame, y: np.ndarray, encoder: TableEncoder, settings: Settings, rows: Any) -> Fitted:
    """Search hyperparameters on training rows, then condition on all of them; ``rows`` is the result of ``split``."""
    cls: Any = GPClassifier if encoder.task == "classification" else GPRegressor
    train, test = rows
    rng = np.random.default_rng(settings.seed)
    learn = train
    approximation = approximation_named(settings.model, settings.inducing)
    exact = isinstance(approximation, str)
    labels = y if encoder.task == "classification" else np.zeros(len(y), int)
    budget = rows_for(settings.time_budget / effort(encoder))
    searched = _subset(learn, settings.max_rows or (budget if exact else len(y)), rng, labels)
    most = EXACT_LIMIT if encoder.task == "regression" else CLASS_LIMIT
    limit = settings.max_rows or (most if exact else len(y))
    judged_rows = (
        learn if len(learn) <= limit else searched if limit <= len(searched) else _subset(learn, limit, rng, labels)
    )
    final_rows = _subset(np.arange(len(y)), limit, rng, labels)
    notes = []
    if len(searched) < len(learn):
        notes.append(
            f"Hyperparameters were learned from {len(searched):,} of {len(learn):,} training rows, drawn at random, "
            f"as --time-budget {settings.time_budget:g} allows."
            if settings.max_rows is None
            else f"Hyperparameters were learned from {len(searched):,} of {len(learn):,} training rows (--max-rows)."
        )
    if len(final_rows) < len(y):
        notes.append(
            f"The model keeps {len(final_rows):,} of {len(y):,} rows, drawn at random: an exact Gaussian process "
            "cannot hold more."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = cls(
                settings.kernel,
                approximation=approximation,
                optimizer=LBFGS(max_seconds=settings.time_budget),
                random_state=settings.seed,
                verbose=settings.verbose,
            ).fit(X.iloc[searched], y[searched])
            judged = found if len(judged_rows) == len(searched) else conditioned(found, X, y, judged_rows)
            final = conditioned(found, X, y, final_rows)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            told = one_sentence(str(error)).rstrip(".")
            raise Problem(
                f"The model cannot be fitted to these numbers ({told}), so check the table.", ExitCode.FIT
            ) from error
    final.fit_result_ = found.fit_result_  # how the hyperparameters were found
    if hasattr(found, "inducing_sweep_"):
        notes.append(f"--inducing auto: {found.inducing_sweep_.certificate}")
    told = dict.fromkeys(_told(w) for w in caught if _for_the_user(w))
    rows_in_model = len(searched) if final is found else len(final_rows)
    return Fitted(judged, final, train, test, rows_in_model, notes, list(told))


def conditioned(found: Any, X: pd.DataFrame, y: np.ndarray, rows: np.ndarray) -> Any:
    """The same hyperparameters with other rows: nothing is searched.

    A model made of several, one for each class, has no single set of them and stays as it is.
    """
    if isinstance(found.kernel_, list | tuple):
        return found
    settings = found.get_params(deep=False) | {
        "kernel": parameters.plain(found.kernel_),
        "mean": parameters.plain(found.mean_),
        # A name stays a name, as it means another object if other rows have more classes.
        "likelihood": found.likelihood if isinstance(found.likelihood, str) else parameters.plain(found.likelihood_),
        "optimizer": None,
    }
    if not isinstance(settings["approximation"], str):
        settings["approximation"] = parameters.plain(found.approximation_)
    model = type(found)(**settings).fit(X.iloc[rows], y[rows])
    for name in ("approximation_reason_", "inducing_sweep_", "moved_inducing_"):  # how the inducing inputs were found
        if hasattr(found, name):
            setattr(model, name, getattr(found, name))
    return model


def _subset(rows: np.ndarray, most: int, rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """At most so many rows, drawn at random, with at least one of each label if there is room."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(rows)
    _, firsts = np.unique(labels[order], return_index=True)
    order = np.concatenate([order[firsts], np.delete(order, firsts)]) if len(firsts) > 1 else order
    return np.sort(order[:most])


def _for_the_user(warning: warnings.WarningMessage) -> bool:
    names = {cls.__name__ for cls in warning.category.__mro__}
    return "DeprecationWarning" not in names and "FutureWarning" not in names


def _told(warning: warnings.WarningMessage) -> str:
    text = one_sentence(str(warning.message))
    if "did not converge" not in text:
        return text
    return text.replace("; see fit_result_", "").rstrip(".") + "; a larger --time-budget may help."


def judge(fitted: Fitted, X: pd.DataFrame, y: np.ndarray, encoder: TableEncoder) -> tuple[list[tuple[str, dict]], str]:
    """Held-out metrics of the model and of baselines, and a verdict in words: the same as in the report."""
    if encoder.task == "classification":
        from errorband.cli.classes import judge_classes

        return judge_classes(fitted.judged, X, y, fitted.train, fitted.test, encoder.target)
    from errorband import effects
    from errorband.reporting.build import calibrate
    from errorband.reporting.checks import verdict
    from errorband.reporting.scores import baseline_scores, compare, score

    model, X_test, y_test = fitted.judged, X.iloc[fitted.test], y[fitted.test]
    X_train, y_train = effects.training_data(model)
    predictive = model.predictive(X_test)
    own = score(f"errorband {type(model).__name__}", "", y_test, predictive, y_train)
    others = baseline_scores(X_train, y_train, X_test.to_numpy(), y_test)
    sentences = verdict(
        own, [compare(own, o) for o in others], list(calibrate(y_test, predictive).at), encoder.target, len(y_test)
    )
    return [(s.name, s.values) for s in (own, *others)], " ".join(sentences)


def facts(fitted: Fitted, settings: Settings, encoded: Encoded, data: str, scores: list, verdict: str) -> dict:
    """What the model file remembers about the fit."""
    return {
        "data": data,
        "errorband": __version__,
        "rows": encoded.n_rows,
        "rows_used": len(encoded.X),
        "rows_in_model": fitted.rows_in_model,
        "rows_held_out": len(fitted.test),
        "kernel": settings.kernel_name,
        "seed": settings.seed,
        "search": _search(fitted.final.fit_result_),
        "scores": [
            {"method": name, **{k: float(v) if math.isfinite(v) else None for k, v in values.items()}}
            for name, values in scores
        ],
        "verdict": verdict,
        "notes": [*fitted.notes, *fitted.warnings],
    }


def _search(result: Any) -> dict | None:
    if not hasattr(result, "converged"):
        return None
    return {
        "converged": bool(result.converged),
        "message": str(result.message),
        "iterations": int(result.iterations),
        "seconds": round(float(result.seconds), 3),
    }
