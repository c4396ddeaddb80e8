"""What a fitted model has learned of each input, by asking it for predictions: so it works for every kernel.

:func:`relevance` says how much each input matters, :func:`partial_dependence` what the average prediction does along
one input, with the posterior uncertainty of that average. Both change one input at a time and leave the others as
they are, so with strongly related inputs they also ask about rows that never occur.
"""

import dataclasses
import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from errorband.predictive import GaussianPredictive

# With at most this many distinct values an input is shown as levels instead of a curve.
MAX_LEVELS = 6


@dataclasses.dataclass(frozen=True)
class PartialDependence:
    """The average prediction along one input.

    Attributes
    ----------
    feature : int
        Position of the input.
    name : str
        Its name.
    grid : array (g,)
        Values of the input.
    curve : GaussianPredictive
        Posterior of the average of the latent function over the background rows, at each value of the grid.
    n_rows : int
        Number of background rows.
    discrete : bool
        Whether the input has so few values that the grid holds all of them.
    in_target_units : bool
        Whether the curve can be read as a target. Not so for counts and the like, whose latent function is linked to
        the target by a logarithm or another curve.
    """

    feature: int
    name: str
    grid: np.ndarray
    curve: GaussianPredictive
    n_rows: int
    discrete: bool
    in_target_units: bool = True


def relevance(model: Any, X: Any = None, *, n_rows: int = 200, random_state: Any = 0) -> np.ndarray:
    r"""How much the prediction depends on each input, in the units of the target.

    The square root of the total-effect variance of the predicted mean :math:`f`,

    .. math:: r_j = \sqrt{\tfrac12 \, \mathrm E \left[ (f(x) - f(x'_j, x_{-j}))^2 \right]},

    where :math:`x'_j` is the value of input j in another row of the data. Interactions count, the scale of the inputs
    does not, and any kernel will do: for a linear function it is the slope times the input's standard deviation.
    For a classifier :math:`f` is the vector of class probabilities over √2, so that with two classes it is the
    typical change of the probability of either.

    Parameters
    ----------
    model : fitted errorband estimator
    X : array or DataFrame (n, D), optional
        Rows that say how the inputs are distributed; the training inputs by default.
    n_rows : int
        At most this many of the rows are used.
    random_state : int or Generator
        Which rows, and which other rows they are paired with.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> model = GPRegressor().fit(X, 3 * X[:, 0] + 0.1 * rng.normal(size=50))
    >>> large, small = relevance(model)
    >>> bool(large > 10 * small)
    True
    """
    rng = np.random.default_rng(random_state)
    rows = _sample(inputs(model, X), n_rows, rng)
    n, d = rows.shape
    if n < 2:
        return np.zeros(d)
    here = np.tile(_response(model, rows), (2, 1))
    order = rng.permutation(n)
    total = np.empty(d)
    for j in range(d):
        changed = np.tile(rows, (2, 1))
        for k in range(2):  # the neighbour one and two places along a random circle: never the row itself if n > 2
            changed[k * n + order, j] = rows[np.roll(order, k + 1), j]
        total[j] = np.mean(np.sum((here - _response(model, changed)) ** 2, axis=1))
    return np.sqrt(0.5 * total)


def partial_dependence(
    model: Any,
    X: Any = None,
    feature: int | str = 0,
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
    feature : int or str
        The input, by position or by column name.
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
    rows = inputs(model, X)
    names = input_names(model)
    j = feature_position(feature, names)
    discrete = False
    if grid is None:
        grid, discrete = _grid(model, rows[:, j], j, n_grid)
    grid = np.asarray(grid, dtype=np.float64)
    background = _sample(rows, n_rows, np.random.default_rng(random_state))
    b, g = len(background), len(grid)
    stacked = np.tile(background, (g, 1))
    stacked[:, j] = np.repeat(grid, b)
    which = latent or main_latent(model) or True
    mean, cov = quiet(model.predict, stacked, return_cov=True, latent=which)
    blocks = cov.reshape(g, b, g, b)[np.arange(g), :, np.arange(g), :]
    variance = np.maximum(blocks.mean(axis=(1, 2)), 0.0)
    curve = GaussianPredictive(mean.reshape(g, b).mean(axis=1), np.sqrt(variance))
    in_units = additive(model) and which == main_latent(model)
    return PartialDependence(j, names[j], grid, curve, b, discrete, in_units)


def average_probabilities(
    model: Any, X: Any = None, feature: int | str = 0, *, n_grid: int = 25, n_rows: int = 50, random_state: Any = 0
) -> tuple[np.ndarray, np.ndarray, bool, int]:
    """Average probability of each class of a classifier as a function of one input.

    Returns
    -------
    grid : array (g,)
        Values of the input.
    share : array (g, C)
        Probabilities, averaged over rows of X in which the input was set to each value.
    discrete : bool
        Whether the input has so few values that the grid holds all of them.
    n_rows : int
        Number of rows averaged over.
    """
    rows = inputs(model, X)
    j = feature_position(feature, input_names(model))
    grid, discrete = _grid(model, rows[:, j], j, n_grid)
    background = _sample(rows, n_rows, np.random.default_rng(random_state))
    stacked = np.tile(background, (len(grid), 1))
    stacked[:, j] = np.repeat(grid, len(background))
    share = quiet(model.predict_proba, stacked).reshape(len(grid), len(background), -1).mean(axis=1)
    return grid, share, discrete, len(background)


def posterior_draws(model: Any, X: np.ndarray, n: int, random_state: Any = 0) -> np.ndarray:
    """Functions drawn from the posterior at the rows of X: (n, rows)."""
    latent = main_latent(model) or True
    return quiet(model.sample_posterior, X, n_samples=n, random_state=random_state, latent=latent)


# ------------------------------------------------------------------------------------------- what models know of data
def search_log_evidence(model: Any) -> float:
    """Log evidence of the rows that were searched; a model conditioned on other rows remembers it."""
    return getattr(model, "search_log_evidence_", model.log_evidence_)


def additive(model: Any) -> bool:
    """Whether targets are the latent function plus noise, so that both have the same units."""
    return model.likelihood_.location_scale


def main_latent(model: Any) -> str | None:
    """Name of the latent function that predictions follow: the only one, or the one in the units of the target.

    None if there are several and none of them is.
    """
    names, likelihood = model.likelihood_.latent_names, model.likelihood_
    if len(names) == 1:
        return names[0]
    return next((name for l, name in enumerate(names) if likelihood.latent_in_units(l)), None)


def inputs(model: Any, X: Any = None) -> np.ndarray:
    """X as an array of floats with the columns of the model; the training inputs if None."""
    if X is None:
        return model.training_data()[0]
    check_is_fitted(model)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X must have {model.n_features_in_} columns, as in fit; got shape {X.shape}.")
    return X


def input_names(model: Any) -> list[str]:
    """Column names seen in ``fit``, or x0, x1, … if there were none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def feature_position(feature: int | str, names: list[str]) -> int:
    """Position of an input given by position or name."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature={feature!r}: the model has {', '.join(map(repr, names[:20]))}.")
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise ValueError(f"feature={feature}: the model has {len(names)} inputs, counted from 0.")
    return int(feature) % len(names)


def _grid(model: Any, values: np.ndarray, j: int, n_grid: int) -> tuple[np.ndarray, bool]:
    """Values of input j to ask about: all of them if they are few, or evenly spaced ones."""
    # Numbers of nodes and the like: there is no value in between.
    labels = any(l.kernel.raw_columns(model.n_features_in_)[j] for l in model.members_[0].latents_.values())
    levels = np.unique(values)
    if labels or len(levels) <= MAX_LEVELS:
        return levels, True
    low, high = np.quantile(values, [0.01, 0.99])
    return np.linspace(low, high, n_grid), False


def _response(model: Any, rows: np.ndarray) -> np.ndarray:
    """What is predicted: (n, 1) for a mean, (n, C) for class probabilities."""
    if hasattr(model, "predict_proba"):
        return quiet(model.predict_proba, rows) / np.sqrt(2)
    # The latent mean where it is the same: it needs no variances.
    latent = main_latent(model) if additive(model) else False
    return quiet(model.predict, rows, latent=latent)[:, None]


def quiet(method: Any, X: np.ndarray, **options: Any) -> Any:
    """Call ``method(X)`` without scikit-learn's remark that our own array has no column names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(X, **options)


def _sample(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= n else rows[np.sort(rng.choice(len(rows), n, replace=False))]
