"""Other places to start a search from: what the data say of them is little, so several are tried."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import parameters
from errorband.data import TrainingData
from errorband.model import Model

# Factors on length-scales and on the variance of the noise, as chosen from the data. Length-scales of many inputs must
# be long for any two rows to be neighbours: distances grow like the root of their number.
SHORT, QUIET = 0.3, 0.01

LIFT = 1.5  # where the variance of noise begins at least, in units of its lower bound


def other_starts(model: Model, left_out: frozenset[tuple[str, ...]]) -> list[np.ndarray]:
    """Vectors like that of the model, but with long or short length-scales, or little noise, or both.

    None if the user gave one of these (``left_out``: paths of the hyperparameters that were left out): a search starts
    at the values given.
    """
    moving = [e for e in parameters.entries(model) if e.path[-1] in ("lengthscale", "noise_variance") and not e.fixed]
    if any(e.path not in left_out for e in moving):
        return []
    scales = [e for e in moving if e.path[-1] == "lengthscale"]
    noises = [e for e in moving if e.path[-1] == "noise_variance"]
    vectors = []
    for length, noise in itertools.product(("as is", "long", "short"), ("as is", "quiet")):
        moved = {e.path: e.value * _factor(e.value, length) for e in scales if length != "as is"}
        moved |= {e.path: e.value * QUIET for e in noises if noise == "quiet"}
        valid = all(e.constraint.valid(moved[e.path]) for e in moving if e.path in moved)
        if moved and valid and (length == "as is" or scales) and (noise == "as is" or noises):
            vectors.append(parameters.pack(parameters.replace_values(model, moved)))
    return vectors


def lifted(model: Model) -> Model:
    """The model with noise that is learned at least 1.5 times its lower bound, as a search from other values begins.

    A value is the bound plus e^raw: where an exact search of few rows has pressed it onto the bound, few features, for
    which there is more noise, would see no gradient and stay.
    """
    values = {}
    for e in parameters.entries(model):
        lowest = LIFT * getattr(e.constraint, "lower", 0.0)
        if e.path[-1] == "noise_variance" and not e.fixed and np.any(e.value < lowest) and e.constraint.valid(lowest):
            values[e.path] = np.maximum(e.value, lowest)
    return parameters.replace_values(model, values)


def started_from_data(model: Model, data: TrainingData) -> Model:
    """The model with length-scales and variances that are free at what would be chosen from the data.

    For one latent function. Values whose default has another shape, one number for all inputs say, get its mean.
    """
    X, y = np.asarray(data.X), data.y
    names = ("lengthscale", "variance", "noise_variance")
    moving = [e for e in parameters.entries(model) if e.path[-1] in names and not e.fixed]
    blank: Any = parameters.replace_values(model, {e.path: None for e in moving})
    kernel = blank.latent.kernel.initialised(X, float(np.var(y)) or 1.0)
    filled: dict[tuple[str, ...], Any] = {
        ("latents", "0", "kernel", *e.path): e.value for e in parameters.entries(kernel)
    }
    filled |= {("likelihood", *e.path): e.value for e in parameters.entries(blank.likelihood.initialised(y))}
    values = {}
    for e in moving:
        new = np.asarray(filled[e.path], dtype=np.float64)
        new = new if new.shape == np.shape(e.value) else np.full(np.shape(e.value), np.exp(np.mean(np.log(new))))
        values[e.path] = np.where(e.free, new, e.value)
    return parameters.replace_values(model, values)


def scales_from_data(model: Model, data: TrainingData) -> Model:
    """The model with all length-scales that are free at what would be chosen from the data."""
    X, values = np.asarray(data.X), {}
    for l, latent in enumerate(model.latents):
        free = [e for e in parameters.entries(latent.kernel) if e.path[-1] == "lengthscale" and not e.fixed]
        blank: Any = parameters.replace_values(latent.kernel, {e.path: None for e in free})
        chosen = {e.path: e.value for e in parameters.entries(blank.initialised(X, 1.0))}
        values |= {("latents", str(l), "kernel", *e.path): np.where(e.free, chosen[e.path], e.value) for e in free}
    return parameters.replace_values(model, values)


def started_like(model: Model, known: Sequence[Model]) -> Model | None:
    """The model at the values found for the last one that has all its length-scales; features stay where they are.

    None if no other has, or there are none: a kernel of another form is another search.
    """
    moving = [e for e in parameters.entries(model) if not e.fixed and "features" not in e.path]
    scales = {_form(e) for e in moving if e.path[-1] == "lengthscale"}
    for other in reversed(known):
        found = {_form(e): e.value for e in parameters.entries(other)}
        if scales and scales <= set(found):
            values = {e.path: np.where(e.free, found.get(_form(e), e.value), e.value) for e in moving}
            return parameters.replace_values(model, {e.path: e.constraint.inside(values[e.path]) for e in moving})
    return None


def _form(e: Any) -> tuple[Any, ...]:
    """What a hyperparameter has in common with one of another model: a length-scale of labels is no length."""
    return e.path, np.shape(e.value), e.unit


def plain_prior(model: Model) -> bool:
    """Whether the whole prior is learned from all rows, or features that stand for it.

    A variational bound is started so with points only: few windows, at the little noise that scouts find, ended lower.
    """
    if not model.approximation.strategies:
        return True
    bound = model.approximation.site_power is not None
    return all(l.features is not None and (l.features.movable or not bound) for l in model.latents)


def _factor(lengthscale: Any, length: str) -> float:
    return SHORT if length == "short" else max(np.sqrt(np.size(lengthscale)), 1 / SHORT)
