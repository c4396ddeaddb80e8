"""What predictions do along one input, the others as they are in the data."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from errorband.effects.known import (
    additive,
    feature_position,
    input_names,
    inputs,
    label_columns,
    main_latent,
    plain_inputs,
    process,
    quiet,
    sample_rows,
)
from errorband.inputs import Input
from errorband.parameters.checks import generator
from errorband.predictive import GaussianPredictive

# With at most this many distinct values an input is shown as levels instead of a curve.
MAX_LEVELS = 6
ROWS_AT_ONCE = 200  # of which a joint posterior is asked for
N_DRAWS = 200  # of the posterior, for bands around average probabilities


@dataclasses.dataclass(frozen=True)
class PartialDependence:
    """The average prediction along one input.

    Attributes
    ----------
    input : Input
        The input.
    grid : array (g,)
        Its values.
    curve : GaussianPredictive
        Posterior of the average of the latent function over the background rows, at each value of the grid. Of a model
        that is no Gaussian process only the mean is known: the standard deviation is NaN.
    n_rows : int
        Number of background rows.
    discrete : bool
        Whether the input has so few values that the grid holds all of them.
    in_target_units : bool
        Whether the curve can be read as a target. Not so for counts and the like, whose latent function is linked to
        the target by a logarithm or another curve.
    """

    input: Input
    grid: np.ndarray
    curve: GaussianPredictive
    n_rows: int
    discrete: bool
    in_target_units: bool = True

    @property
    def banded(self) -> bool:
        """Whether the model knows how sure it is of the average."""
        return bool(np.all(np.isfinite(self.curve.std)))


@dataclasses.dataclass(frozen=True)
class ClassDependence:
    """The average probability of each class along one input.

    Attributes
    ----------
    input : Input
        The input.
    grid : array (g,)
        Its values.
    share : array (g, C)
        Average probability of each class over the background rows, at each value of the grid.
    lower, upper : arrays (g, C)
        Where this average lies with probability 95 %, given what the model does not know of the latent functions; NaN
        if it is no Gaussian process.
    n_rows : int
        Number of background rows.
    discrete : bool
        Whether the input has so few values that the grid holds all of them.
    """

    input: Input
    grid: np.ndarray
    share: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_rows: int
    discrete: bool

    @property
    def banded(self) -> bool:
        """Whether the model knows how sure it is of the average."""
        return bool(np.all(np.isfinite(self.upper)))


def partial_dependence(
    model: Any,
    X: Any = None,
    feature: int | str | Input = 0,
    *,
    grid: Any = None,
    n_grid: int = 25,
    n_rows: int = 50,
    latent: str | None = None,
    random_state: Any = 0,
) -> PartialDependence:
    """The average prediction as a function of one input, with its posterior uncertainty.

    The average over rows is linear in the latent function, so its posterior is Gaussian and exact: mean aᵀm and
    variance aᵀCa, from the joint posterior (m, C) of all rows. It is the band of the average curve, noise left out,
    not the average of the bands.

    Parameters
    ----------
    model : fitted errorband estimator
    X : array or DataFrame (n, D), optional
        Rows whose other inputs are averaged over; the training inputs by default.
    feature : int, str or Input
        The input, by position or by column name; or a column of a table that became several features.
    grid : array (g,), optional
        Values of the input. Default: evenly spaced between the 1 % and 99 % quantiles of X, or all its values when
        they are few.
    n_grid, n_rows : int
        Length of the default grid; at most this many rows of X are used.
    latent : str, optional
        Which latent function, of a model with several; by default the one in the units of the target.
    random_state : int or Generator
        Which rows.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(50, 2))
    >>> model = GPRegressor().fit(X, 4 * X[:, 0] + 0.1 * rng.normal(size=50))
    >>> effect = partial_dependence(model, X, 0, grid=[0.25, 0.75])
    >>> np.diff(effect.curve.mean).round()
    array([2.])
    """
    rows, column = inputs(model, X), _input(model, feature)
    discrete = False
    if grid is None:
        if column.date:  # it may go through several years
            n_grid, n_rows = 2 * n_grid, max(n_rows // 2, 1)
        grid, discrete = _grid(model, rows, column, n_grid)
    grid = np.asarray(grid, dtype=np.float64)
    stacked, b = _stacked(rows, column, grid, n_rows, random_state)
    g = len(grid)
    if (inside := process(model)) is None:
        mean = np.asarray(quiet(model.predictive, stacked).mean).reshape(g, b).mean(axis=1)
        return PartialDependence(column, grid, GaussianPredictive(mean, np.full(g, np.nan)), b, discrete)
    which = latent or main_latent(model) or True
    # Members of a committee count otherwise where rows are asked about together: the average is that of predictions.
    mean = quiet(inside.predict, stacked, latent=which).reshape(g, b).mean(axis=1)
    variance = np.empty(g)
    for part in _parts(g, b):
        _, cov = quiet(inside.predict, stacked[b * part.start : b * part.stop], return_cov=True, latent=which)
        k = np.arange(len(part))
        blocks = cov.reshape(len(k), b, len(k), b)[k, :, k, :]
        variance[part] = np.maximum(blocks.mean(axis=(1, 2)), 0.0)
    curve = GaussianPredictive(mean, np.sqrt(variance))
    in_units = additive(model) and which == main_latent(model)
    return PartialDependence(column, grid, curve, b, discrete, in_units)


def class_dependence(
    model: Any,
    X: Any = None,
    feature: int | str | Input = 0,
    *,
    n_grid: int = 25,
    n_rows: int = 30,
    random_state: Any = 0,
) -> ClassDependence:
    """The average probability of each class of a classifier as a function of one input, with its uncertainty.

    The band is made of draws of the latent functions from their joint posterior at all rows: each draw gives an average
    of probabilities. Latent functions of several classes are drawn independently of one another.

    Parameters
    ----------
    model, X, feature, n_grid, n_rows, random_state
        As in :func:`partial_dependence`.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPClassifier
    >>> x = np.linspace(-3, 3, 40)[:, None]
    >>> model = GPClassifier().fit(x, x[:, 0] > 0)
    >>> found = class_dependence(model, x, 0, n_grid=5)
    >>> bool(found.share[0, 1] < 0.1 < 0.9 < found.share[-1, 1])
    True
    >>> bool(np.all(found.lower <= found.upper))
    True
    """
    rows, column = inputs(model, X), _input(model, feature)
    grid, discrete = _grid(model, rows, column, n_grid)
    stacked, b = _stacked(rows, column, grid, n_rows, random_state)
    share = quiet(model.predict_proba, stacked).reshape(len(grid), b, -1).mean(axis=1)
    if (inside := process(model)) is None:
        unknown = np.full_like(share, np.nan)
        return ClassDependence(column, grid, share, unknown, unknown, b, discrete)
    rng, averages = generator(random_state), np.empty((N_DRAWS, *share.shape))
    for part in _parts(len(grid), b):
        draws = _probability_draws(inside, stacked[b * part.start : b * part.stop], rng)
        averages[:, part] = draws.reshape(N_DRAWS, len(part), b, -1).mean(axis=2)
    lower, upper = np.quantile(averages, [0.025, 0.975], axis=0)
    return ClassDependence(column, grid, share, lower, upper, b, discrete)


def _parts(n_values: int, n_rows: int) -> Iterator[range]:
    """Values of a grid to ask about together: of the joint posterior only the rows of one value are averaged over.

    All parts are of one size, for which is compiled once; so the last two may have values in common.
    """
    number = -(-n_values // max(ROWS_AT_ONCE // n_rows, 1))
    each = -(-n_values // number)
    return (range(start, start + each) for start in (min(each * i, n_values - each) for i in range(number)))


def _probability_draws(model: Any, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Class probabilities at the rows under draws of the latent functions: (draws, rows, C)."""

    def of_member(member: Any, n_draws: int = N_DRAWS) -> np.ndarray:
        if hasattr(member, "mixture_members_"):  # each with as many draws as its weight stands for
            numbers = rng.multinomial(n_draws, member.posterior_.weights)
            drawn = [of_member(m, n) for m, n in zip(member.mixture_members_, numbers, strict=True)]
            return rng.permutation(np.concatenate(drawn))
        scaled, likelihood = member.scaling_.inputs(rows), member.likelihood_
        latent = [_draws(member.posterior_.joint(scaled, l), n_draws, rng) for l in range(likelihood.n_latents)]
        f = np.stack(latent, axis=-1).reshape(-1, likelihood.n_latents)
        return likelihood.plug_in_probabilities(f).reshape(n_draws, len(rows), -1)

    if len(model.members_) == 1:
        return model._sharpened(of_member(model))
    return model._sharpened(np.stack([of_member(member)[:, :, 1] for member in model.members_], axis=-1))


def _draws(joint: tuple[np.ndarray, np.ndarray], n_draws: int, rng: np.random.Generator) -> np.ndarray:
    mean, cov = joint
    scale = np.linalg.cholesky(cov + 1e-8 * max(float(np.mean(np.diag(cov))), 1e-300) * np.eye(len(cov)))
    return mean + rng.standard_normal((n_draws, len(mean))) @ scale.T


def _input(model: Any, feature: int | str | Input) -> Input:
    if isinstance(feature, Input):
        return feature
    return plain_inputs(model)[feature_position(feature, input_names(model))]


def _stacked(
    rows: np.ndarray, column: Input, grid: np.ndarray, n_rows: int, random_state: Any
) -> tuple[np.ndarray, int]:
    """Background rows for each value of the grid in turn, with that value; and how many rows these are."""
    background = sample_rows(rows, n_rows, generator(random_state))
    b = len(background)
    return column.put(np.tile(background, (len(grid), 1)), np.repeat(grid, b)), b


def _grid(model: Any, rows: np.ndarray, column: Input, n_grid: int) -> tuple[np.ndarray, bool]:
    """Values of an input to ask about: all of them if they are few, or evenly spaced ones."""
    if column.levels:
        return np.arange(len(column.levels), dtype=np.float64), True
    values = column.values(rows)
    found = np.unique(values)
    if label_columns(model)[column.columns[0]] or len(found) <= MAX_LEVELS:
        return found, True
    low, high = np.quantile(values, [0.01, 0.99])
    if column.date and (step := (high - low) / (n_grid - 1)) > 7:
        # Whole weeks, so that the day of the week, which the model may know, is the same all along.
        return np.arange(np.floor(low), high, 7 * np.round(step / 7)), False
    return np.linspace(low, high, n_grid), False
