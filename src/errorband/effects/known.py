"""What fitted models know of their data, in the units of the data."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from errorband.estimators.hyperparameters import input_names
from errorband.inputs import Input


def process(model: Any) -> Any:
    """The Gaussian process that a fitted estimator predicts with, ``process_``; None if it has none.

    That is the estimator itself for most, and all members as one for a committee.
    """
    return getattr(model, "process_", None)


def searched(model: Any) -> list[Any]:
    """The fitted models inside an estimator that may have had a search each: one, or one for each class."""
    return [model] if process(model) is None else list(process(model).members_)


def search_log_evidence(model: Any) -> float:
    """Log evidence of the rows that were searched; a model conditioned on other rows remembers it."""
    return getattr(model, "search_log_evidence_", model.log_evidence_)


def additive(model: Any) -> bool:
    """Whether targets are a latent function plus noise, so that both have the same units."""
    return process(model) is not None and process(model).likelihood_.location_scale


def main_latent(model: Any) -> str | None:
    """Name of the latent function that predictions follow: the only one, or the one in the units of the target.

    None if there are several and none of them is, or if there is no Gaussian process.
    """
    if process(model) is None:
        return None
    likelihood = process(model).likelihood_
    names = likelihood.latent_names
    if len(names) == 1:
        return names[0]
    return next((name for l, name in enumerate(names) if likelihood.latent_in_units(l)), None)


def inputs(model: Any, X: Any = None) -> np.ndarray:
    """X as an array of floats with the columns of the model; the training inputs if None."""
    if X is None:
        return model.training_data()[0]
    check_is_fitted(model)
    if isinstance(X, str):
        raise TypeError(f"X must be rows, or None for the training rows; for the input {X!r} write feature={X!r}.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X must have {model.n_features_in_} columns, as in fit; got shape {X.shape}.")
    return X


def feature_position(feature: int | str, names: list[str]) -> int:
    """Position of an input given by position or name."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature={feature!r}: the model has {', '.join(map(repr, names[:20]))}.")
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise ValueError(f"feature={feature}: the model has {len(names)} inputs, counted from 0.")
    return int(feature) % len(names)


def plain_inputs(model: Any) -> tuple[Input, ...]:
    """Return each feature of the model as an input of its own."""
    return tuple(Input.number(name, j) for j, name in enumerate(input_names(model)))


def label_columns(model: Any) -> np.ndarray:
    """Which inputs hold numbered labels, such as nodes of a graph, so that values in between mean nothing: (D,)."""
    D = model.n_features_in_
    kernels = [] if process(model) is None else [l.kernel for l in process(model).members_[0].latents_.values()]
    return np.any([np.zeros(D, bool), *(kernel.raw_columns(D) for kernel in kernels)], axis=0)


def posterior_draws(model: Any, X: np.ndarray, n: int, random_state: Any = 0) -> np.ndarray:
    """Functions drawn from the posterior at the rows of X: (n, rows)."""
    latent = main_latent(model) or True
    return quiet(process(model).sample_posterior, X, n_samples=n, random_state=random_state, latent=latent)


def quiet(method: Any, X: np.ndarray, **options: Any) -> Any:
    """Call ``method(X)`` without scikit-learn's remark that our own array has no column names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(X, **options)


def sample_rows(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """At most n of the rows, drawn at random."""
    return rows if len(rows) <= n else rows[np.sort(rng.choice(len(rows), n, replace=False))]
