"""How much each input matters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband.effects.known import additive, inputs, main_latent, plain_inputs, process, quiet, sample_rows
from errorband.inputs import Input
from errorband.parameters.checks import generator


def relevance(
    model: Any,
    X: Any = None,
    *,
    n_rows: int = 200,
    random_state: Any = 0,
    columns: Sequence[Input] | None = None,
) -> np.ndarray:
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
    columns : sequence of Input, optional
        Columns of a table that became several features, which are replaced together. By default each feature is an
        input of its own.

    Returns
    -------
    array, one number for each input

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
    rng = generator(random_state)
    rows = sample_rows(inputs(model, X), n_rows, rng)
    columns = plain_inputs(model) if columns is None else columns
    n = len(rows)
    if n < 2:
        return np.zeros(len(columns))
    here = _response(model, rows)
    order = rng.permutation(n)
    total = np.zeros(len(columns))
    for i, column in enumerate(columns):
        own = np.array(column.columns)
        for k in (1, 2):  # the neighbour one and two places along a random circle: never the row itself if n > 2
            changed = rows.copy()
            changed[np.ix_(order, own)] = rows[np.ix_(np.roll(order, k), own)]
            total[i] += 0.5 * np.mean(np.sum((here - _response(model, changed)) ** 2, axis=1))
    return np.sqrt(0.5 * total)


def significance(
    model: Any, X: Any = None, *, n_rows: int = 50, random_state: Any = 0, columns: Sequence[Input] | None = None
) -> np.ndarray:
    r"""How far the effect of each input stands out from what the model is unsure of, in standard deviations.

    With :math:`\Delta f = f(x'_j, x_{-j}) - f(x)` as in :func:`relevance`, for the latent function,

    .. math:: z_j = \sqrt{\mathrm E [(\mathrm E \, \Delta f)^2] \, / \, \mathrm E [\mathrm{var} \, \Delta f]},

    with posterior moments inside and averages over rows outside. Noise alone gives an input without effect a value of
    about one.

    Parameters
    ----------
    model, X, n_rows, random_state, columns
        As in :func:`relevance`.

    Returns
    -------
    array, one number for each input; infinite where the model has no latent function to ask

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> large, small = significance(GPRegressor("linear").fit(X, 3 * X[:, 0] + 0.1 * rng.normal(size=50)))
    >>> bool(large > 50), bool(small < 2)
    (True, True)
    """
    rng = generator(random_state)
    rows = sample_rows(inputs(model, X), n_rows, rng)
    columns, n = plain_inputs(model) if columns is None else columns, len(rows)
    found = np.full(len(columns), np.inf)
    if hasattr(model, "predict_proba") or main_latent(model) is None or n < 2:
        return found
    order, latent = rng.permutation(n), main_latent(model)
    for i, column in enumerate(columns):
        changed, own = rows.copy(), np.array(column.columns)
        changed[np.ix_(order, own)] = rows[np.ix_(np.roll(order, 1), own)]
        mean, cov = quiet(process(model).predict, np.vstack([rows, changed]), return_cov=True, latent=latent)
        variance = np.diag(cov)[:n] + np.diag(cov)[n:] - 2 * np.diag(cov[:n, n:])
        found[i] = np.sqrt(np.mean((mean[n:] - mean[:n]) ** 2) / max(float(np.mean(variance)), 1e-300))
    return found


def _response(model: Any, rows: np.ndarray) -> np.ndarray:
    """What is predicted: (n, 1) for a mean, (n, C) for class probabilities."""
    if hasattr(model, "predict_proba"):
        return quiet(model.predict_proba, rows) / np.sqrt(2)
    if process(model) is None:
        return np.asarray(quiet(model.predictive, rows).mean)[:, None]
    # The latent mean where it is the same: it needs no variances.
    latent = main_latent(model) if additive(model) else False
    return quiet(process(model).predict, rows, latent=latent)[:, None]
