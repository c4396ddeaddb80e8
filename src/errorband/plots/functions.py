"""What a model has learned: the function of one or two inputs, effects and relevance of inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from errorband import effects
from errorband.effects import quiet
from errorband.metrics.scorers import inside
from errorband.plots.style import BLUE, LEVELS, VERMILION, axes_or_new, check_numbers, draw_bands, pyplot


def plot_band(
    model: Any,
    X: Any = None,
    *,
    levels: Sequence[float] = LEVELS,
    n_samples: int = 0,
    data: bool = True,
    latent: bool | str = False,
    random_state: Any = 0,
    ax: Any = None,
) -> Any:
    """The mean of a model of one input with its bands.

    Parameters
    ----------
    model : fitted errorband regressor with one input, or a pipeline that ends in one
    X : array (g,) or (g, 1) or DataFrame, optional
        Where to draw; by default the range of the training data and a little more.
    levels : sequence of float
        Probabilities of the central bands.
    n_samples : int
        So many functions drawn from the posterior are added as thin lines (models with additive noise).
    data : bool
        Add the training rows.
    latent : bool or str
        Bands of the function itself instead of new measurements; by name if the model has several latent functions.
    random_state : int or Generator
        Seed of the drawn functions.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 30)
    >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> ax = plot_band(GPRegressor().fit(x[:, None], y), n_samples=3)
    >>> [band.get_label() for band in ax.collections[:3]]
    ['95 % band', '80 % band', '50 % band']
    """
    if np.ndim(X) == 1 and not isinstance(X, str):
        X = np.asarray(X)[:, None]
    model, X = inside(model, X)
    check_numbers("plot_band", model)
    if model.n_features_in_ != 1:
        raise ValueError(
            f"plot_band draws models of one input; this one has {model.n_features_in_}. Use plot_partial_dependence, "
            "or plot_map for two."
        )
    if X is None:
        x = model.training_data()[0][:, 0]
        margin = 0.06 * (np.ptp(x) or 1.0)
        grid = np.linspace(x.min() - margin, x.max() + margin, 300)
    else:
        grid = np.sort(effects.inputs(model, X)[:, 0])
    ax = axes_or_new(ax)
    predictive = quiet(model.predictive, grid[:, None], latent=latent)
    draw_bands(ax, grid, predictive, levels)
    if n_samples and not effects.additive(model):
        raise ValueError("Functions can be drawn over targets for additive noise only; set n_samples=0.")
    if n_samples:
        for draw in effects.posterior_draws(model, grid[:, None], n_samples, random_state):
            ax.plot(grid, draw, color=VERMILION, lw=0.7, alpha=0.7)
    ax.plot(grid, predictive.mean, color=BLUE, lw=1.8, label="mean")
    if data:
        X_train, y_train = model.training_data()
        ax.plot(X_train[:, 0], y_train, "o", ms=3, color="black", alpha=0.6, label="training rows")
    if hasattr(model, "relevance_vectors_"):
        at = model.relevance_vectors_
        ax.plot(at[:, 0], quiet(model.predict, at), "o", ms=9, mfc="none", color=VERMILION, label="relevance vectors")
    ax.set_xlabel(effects.input_names(model)[0])
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_partial_dependence(
    model: Any,
    X: Any = None,
    *,
    feature: int | str = 0,
    levels: Sequence[float] = LEVELS,
    latent: str | None = None,
    ax: Any = None,
) -> Any:
    """The average prediction along one input, with the bands of that average (noise left out).

    Of a classifier it is the average probability of each class, or of the second of two, with its 95 % band.

    Parameters
    ----------
    model : fitted errorband estimator, or a pipeline that ends in one
    X : array or DataFrame (n, D), optional
        Rows whose other inputs are averaged over; the training inputs by default.
    feature : int or str
        The input, by position or column name.
    levels : sequence of float
        Probabilities of the central bands.
    latent : str, optional
        Which latent function, of a model with several; by default the one in the units of the target.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(30, 2))
    >>> model = GPRegressor().fit(X, X[:, 1] + 0.1 * rng.normal(size=30))
    >>> plot_partial_dependence(model, X, feature="x1").get_xlabel()
    'x1'
    """
    model, X = inside(model, X)
    if hasattr(model, "classes_"):
        return _class_dependence(model, X, feature, axes_or_new(ax))
    effect = effects.partial_dependence(model, X, feature, latent=latent)
    ax = axes_or_new(ax)
    if effect.discrete:
        lower, upper = effect.curve.interval(max(levels))
        spread = [effect.curve.mean - lower, upper - effect.curve.mean]
        ax.errorbar(effect.grid, effect.curve.mean, yerr=spread, fmt="o", color=BLUE, capsize=3)
        ax.set_xticks(effect.grid)
    else:
        draw_bands(ax, effect.grid, effect.curve, levels)
        ax.plot(effect.grid, effect.curve.mean, color=BLUE, lw=1.8)
    ax.set(xlabel=effect.input.name, ylabel=f"average {latent or 'prediction'}")
    return ax


def _class_dependence(model: Any, X: Any, feature: int | str, ax: Any) -> Any:
    effect = effects.class_dependence(model, X, feature)
    for c in _classes_to_draw(model):
        mean, low, high = effect.share[:, c], effect.lower[:, c], effect.upper[:, c]
        if effect.discrete:
            ax.errorbar(effect.grid, mean, yerr=[mean - low, high - mean], fmt="o", capsize=3, label=model.classes_[c])
        else:
            (curve,) = ax.plot(effect.grid, mean, lw=1.8, label=model.classes_[c])
            ax.fill_between(effect.grid, low, high, color=curve.get_color(), alpha=0.2, lw=0)
    if effect.discrete:
        ax.set_xticks(effect.grid)
    ax.legend(frameon=False)
    ax.set(xlabel=effect.input.name, ylabel="average probability", ylim=(0, 1))
    return ax


def _classes_to_draw(model: Any) -> list[int]:
    """Positions of the classes, or of the second of two: the first has what is left."""
    return [1] if len(model.classes_) == 2 else list(range(len(model.classes_)))


def plot_map(
    model: Any, X: Any = None, *, n_grid: int = 60, data: bool = True, latent: str | None = None, ax: Any = None
) -> Any:
    """Mean and standard deviation of a model of two inputs, side by side; additive noise is left out of the latter.

    Of a classifier the maps are of the probability of each class, or of the second of two.

    Parameters
    ----------
    model : fitted errorband estimator with two inputs, or a pipeline that ends in one
    X : array or DataFrame (n, 2), optional
        The map covers the range of these rows; the training inputs by default.
    n_grid : int
        Points along each side.
    data : bool
        Add the training rows.
    latent : str, optional
        A latent function by name; by default the one in the units of the target, or the target if there is none.
    ax : sequence of matplotlib Axes, optional
        One for each map.

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(30, 2))
    >>> left, right = plot_map(GPRegressor().fit(X, X[:, 1] + 0.1 * rng.normal(size=30)), n_grid=10)
    >>> left.get_title(), right.get_title()
    ('mean', 'standard deviation')
    """
    model, X = inside(model, X)
    titles = ["mean", "standard deviation"]
    if classes := hasattr(model, "classes_"):
        titles = [f"probability of {model.classes_[c]}" for c in _classes_to_draw(model)]
    n = len(titles)
    if ax is not None and np.size(ax) != n:
        number = {1: "one map", 2: "two maps"}.get(n, f"{n} maps")
        raise ValueError(f"plot_map draws {number} of this model: give ax as many, such as plt.subplots(1, {n})[1].")
    rows = effects.inputs(model, X)
    if rows.shape[1] != 2:
        raise ValueError(
            f"plot_map draws models of two inputs; this one has {rows.shape[1]}. Use plot_partial_dependence, or "
            "plot_band for one."
        )
    axes = pyplot().subplots(1, n, figsize=(4.5 * n, 3.8), layout="constrained")[1] if ax is None else ax
    sides = [np.linspace(low, high, n_grid) for low, high in zip(rows.min(axis=0), rows.max(axis=0), strict=True)]
    at = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    if classes:
        found, looks = quiet(model.predict_proba, at).T[_classes_to_draw(model)], n * [{"vmin": 0, "vmax": 1}]
    else:
        shown = latent or (effects.main_latent(model) if effects.additive(model) else False)
        found, looks = quiet(model.predict, at, return_std=True, latent=shown), [{}, {"cmap": "Oranges"}]
    names = effects.input_names(model)
    for axis, values, title, look in zip(np.ravel(axes), found, titles, looks, strict=True):
        look = {"cmap": "cividis", "shading": "gouraud", "rasterized": True, **look}
        mesh = axis.pcolormesh(*sides, values.reshape(n_grid, n_grid), **look)
        axis.figure.colorbar(mesh, ax=axis)
        if data:
            axis.plot(*model.training_data()[0].T, "o", ms=2.5, mfc="white", mec="black", mew=0.5)
        axis.set(xlabel=names[0], ylabel=names[1], title=title)
    return axes


def plot_relevance(model: Any, X: Any = None, *, most: int = 20, ax: Any = None) -> Any:
    """How much the prediction depends on each input, as bars with the most relevant input on top.

    The measure is :func:`errorband.effects.relevance`: by how much the predicted mean typically changes, in the units
    of the target, when this input alone is replaced by that of another row. Unlike the inverse of a length-scale it
    means the same for every kernel.

    Parameters
    ----------
    model : fitted errorband estimator, or a pipeline that ends in one
    X : array or DataFrame (n, D), optional
        Rows that say how the inputs are distributed; the training inputs by default.
    most : int
        At most so many inputs are shown.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(30, 2))
    >>> ax = plot_relevance(GPRegressor().fit(X, X[:, 1] + 0.1 * rng.normal(size=30)))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1', 'x0']
    """
    model, X = inside(model, X)
    values, names = effects.relevance(model, X), effects.input_names(model)
    order = np.argsort(-values, kind="stable")[:most]
    ax = axes_or_new(ax)
    ax.barh(np.arange(len(order)), values[order], color=BLUE)
    ax.set_yticks(np.arange(len(order)), [names[j] for j in order])
    ax.invert_yaxis()
    ax.set_xlabel("typical change of the prediction")
    return ax
