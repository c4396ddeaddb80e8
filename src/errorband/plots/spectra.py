"""Spectra, and how many directions of the inputs matter."""

from typing import Any

import numpy as np

from errorband.effects import feature_position, input_names
from errorband.metrics.scorers import inside
from errorband.networks import FourierTransform, SupervisedReduction, fourier_transform
from errorband.plots.style import BLUE, VERMILION, axes_or_new


def plot_spectrum(model: Any, *, feature: int | str = 0, level: float = 0.95, ax: Any = None) -> Any:
    """Amplitudes of a fitted sparse spectrum against frequency, with bands: a periodogram for uneven samples.

    Parameters
    ----------
    model : GPRegressor with ``approximation=SparseSpectrum(...)``, or FourierTransform
    feature : int or str
        The input whose frequency is drawn, by position or column name (of a FourierTransform by position).
    level : float
        Probability of the bands.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.features import SparseSpectrum
    >>> t = np.sort(np.random.default_rng(0).uniform(0, 10, 60))
    >>> model = GPRegressor(approximation=SparseSpectrum(5), random_state=0).fit(t[:, None], np.sin(3 * t))
    >>> plot_spectrum(model).get_ylabel()
    'amplitude'
    """
    model = inside(model)[0]
    found = model if isinstance(model, FourierTransform) else fourier_transform(model)
    names = [str(j) for j in range(found.frequency.shape[1])] if found is model else input_names(model)
    ax = axes_or_new(ax)
    frequency, (low, high) = (
        np.abs(found.frequency[:, feature_position(feature, names)]),
        found.amplitude_interval(level),
    )
    ax.vlines(frequency, low, high, color=BLUE, alpha=0.4, lw=3, label=f"{100 * level:g} % interval")
    ax.plot(frequency, found.amplitude, "o", ms=3, color=VERMILION, label="amplitude")
    ax.set(xlabel="frequency (cycles per unit)", ylabel="amplitude", ylim=(0, None))
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_scree(model: Any, *, ax: Any = None) -> Any:
    """Singular values of the input weights of a trained network, and the information that so many directions keep.

    Parameters
    ----------
    model : fitted model with basis functions, or SupervisedReduction
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.features import Network
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = GPRegressor(approximation=Network(5), random_state=0).fit(X, X[:, 0])
    >>> plot_scree(model).get_xlabel()
    'direction'
    """
    reduction: Any = inside(model)[0]
    if not isinstance(reduction, SupervisedReduction):
        reduction = SupervisedReduction(reduction, prefit=True).fit(*reduction.training_data())
    ax = axes_or_new(ax)
    number = 1 + np.arange(len(reduction.singular_values_))
    ax.bar(number, reduction.singular_values_, color=BLUE, alpha=0.6)
    ax.set(xlabel="direction", ylabel="singular value")
    right = ax.twinx()
    right.plot(number, reduction.retained_information_, "o-", ms=3, color=VERMILION)
    right.set(ylabel="information kept", ylim=(0, 1.05))
    return ax
