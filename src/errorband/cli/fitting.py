"""The work of ``errorband fit``: split, search, judge on held-out rows, and condition the model on all of them."""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd

from errorband import __version__, parameters
from errorband.approximations import Inducing
from errorband.cli.failures import ExitCode, Problem, one_sentence
from errorband.cli.planning import Settings, plan
from errorband.estimators import GPClassifier, GPRegressor
from errorband.optimise import LBFGS
from errorband.tables import Encoded, TableEncoder, TableError, read_table

LEAST_ROWS = 5


@dataclasses.dataclass
class Fitted:
    """What the search found."""

    judged: Any  # conditioned on the training rows only
    final: Any  # conditioned on all rows
    train: np.ndarray
    test: np.ndarray
    rows_in_model: int
    notes: list[str]
    cuts: list[str]  # rows left out though nobody asked for it
    warnings: list[str]


def read_data(data: str, id_column: str | None) -> pd.DataFrame:
    """The table, with the cells of the id column as they stand."""
    return read_table(data, text_columns=[] if id_column is None else [id_column])


def class_names(model: Any, encoder: TableEncoder) -> list[str] | None:
    """What the classes of a fitted classifier are called in the table; None for a regression."""
    if encoder.task != "classification":
        return None
    return [str(label) for label in encoder.decode_labels(np.asarray(model.classes_))]


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
    chosen = plan(y, train, encoder, settings)
    searched, notes = chosen.searched, list(chosen.notes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = cls(
                settings.kernel,
                approximation=chosen.approximation,
                optimizer=LBFGS(max_seconds=settings.time_budget),
                random_state=settings.seed,
                verbose=settings.verbose,
            ).fit(X.iloc[searched], y[searched])
            if chosen.reason:
                found.approximation_reason_ = chosen.reason
            judged = found if len(chosen.judged) == len(searched) else conditioned(found, X, y, chosen.judged)
            final = conditioned(found, X, y, chosen.final)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            told = one_sentence(str(error)).rstrip(".")
            raise Problem(
                f"The model cannot be fitted to these numbers ({told}), so check the table.", ExitCode.FIT
            ) from error
    final.fit_result_ = found.fit_result_  # how the hyperparameters were found
    if hasattr(found, "inducing_sweep_"):
        notes.append(f"--inducing auto: {found.inducing_sweep_.certificate}")
    told = dict.fromkeys(_told(w) for w in caught if _for_the_user(w))
    rows_in_model = len(getattr(final, "active_rows_", searched if final is found else chosen.final))
    return Fitted(judged, final, train, test, rows_in_model, notes, chosen.cuts, list(told))


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
    if isinstance(found.approximation_, Inducing):  # how the inducing inputs were found
        for name in ("approximation_reason_", "inducing_sweep_", "moved_inducing_"):
            if hasattr(found, name):
                setattr(model, name, getattr(found, name))
    return model


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
    from errorband.reporting.scores import baseline_scores, paired, score

    model, X_test, y_test = fitted.judged, X.iloc[fitted.test], y[fitted.test]
    X_train, y_train = effects.training_data(model)
    predictive = model.predictive(X_test)
    own = score(f"errorband {type(model).__name__}", "", y_test, predictive, y_train)
    others = baseline_scores(X_train, y_train, X_test.to_numpy(), y_test)
    sentences = verdict(
        own, [paired(own, o) for o in others], list(calibrate(y_test, predictive).at), encoder.target, len(y_test)
    )
    return [(s.name, s.values) for s in (own, *others)], " ".join(sentences)


def facts(fitted: Fitted, settings: Settings, encoded: Encoded, data: str, scores: list, verdict: str) -> dict:
    """What the model file remembers about the fit."""
    kept = fitted.final.approximation_
    return {
        "data": data,
        "errorband": __version__,
        "rows": encoded.n_rows,
        "rows_used": len(encoded.X),
        "rows_in_model": fitted.rows_in_model,
        "rows_held_out": len(fitted.test),
        "kernel": settings.kernel_name,
        "model": settings.model,
        "approximation": type(kept).__name__,
        "n_inducing": len(kept.inducing_inputs) if isinstance(kept, Inducing) else None,
        "approximation_reason": fitted.final.approximation_reason_,
        "seed": settings.seed,
        "search": _search(fitted.final.fit_result_),
        "scores": [
            {"method": name, **{k: float(v) if math.isfinite(v) else None for k, v in values.items()}}
            for name, values in scores
        ],
        "verdict": verdict,
        "notes": [*fitted.notes, *fitted.cuts, *fitted.warnings],
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
