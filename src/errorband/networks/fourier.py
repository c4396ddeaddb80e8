"""The sparse Fourier transform: amplitudes and phases of a fitted sparse spectrum, with their uncertainty."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from errorband.networks.export import layer_of, posterior_weights
from errorband.parameters.checks import generator

DRAWS = 4000  # of amplitudes and phases, from which their spread is found


@dataclasses.dataclass(frozen=True)
class FourierTransform:
    """f(x) = offset + Σ_r amplitude_r cos(2π frequency_r·x − phase_r), with the posterior of each term.

    Attributes
    ----------
    frequency : array (h, D)
        Cycles per unit of each input, in the units of the data. The sign of one is free: the first that is not zero is
        positive.
    amplitude, amplitude_std : arrays (h,)
        Posterior mean and standard deviation of each amplitude, in the units of the target.
    phase, phase_std : arrays (h,)
        Circular mean and standard deviation of each phase, radians between −π and π; the standard deviation is large
        where the amplitude may be zero.
    cosine, sine : arrays (h,)
        Posterior means of the coefficients: their root sum of squares is the amplitude of the mean function.
    offset : float
        Mean of the targets, which is not part of the spectrum.
    draws : array (S, h, 2)
        Draws of the coefficients, for intervals.
    """

    frequency: np.ndarray
    amplitude: np.ndarray
    amplitude_std: np.ndarray
    phase: np.ndarray
    phase_std: np.ndarray
    cosine: np.ndarray
    sine: np.ndarray
    offset: float
    draws: np.ndarray = dataclasses.field(repr=False)

    def amplitude_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central interval of each amplitude."""
        tail = 50 * (1 - level)
        low, high = np.percentile(np.hypot(*np.moveaxis(self.draws, 2, 0)), [tail, 100 - tail], axis=0)
        return low, high

    def order(self) -> np.ndarray:
        """Positions of the frequencies, of the largest amplitude first."""
        return np.argsort(-self.amplitude)


def fourier_transform(model: Any, random_state: Any = 0) -> FourierTransform:
    """Amplitude and phase at each frequency of a fitted sparse spectrum, given the data.

    Rows need not be at equal distances. The posterior of the coefficients is Gaussian; that of amplitudes and phases is
    found from draws of it.

    Parameters
    ----------
    model : GPRegressor
        Fitted with ``approximation=SparseSpectrum(...)``.
    random_state : int or Generator
        Seed of the draws.

    Returns
    -------
    transform : FourierTransform

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.features import SparseSpectrum
    >>> rng = np.random.default_rng(0)
    >>> t = np.sort(rng.uniform(0, 40, 200))
    >>> y = 3 * np.cos(2 * np.pi * 0.5 * t) + 0.3 * rng.normal(size=200)
    >>> grid = 2 * np.pi * np.linspace(0.05, 1.0, 20)[:, None]  # angular, at length-scale one
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.parameters import Parameter
    >>> kernel = SquaredExponential(Parameter(1.0, fixed=True))
    >>> model = GPRegressor(kernel, approximation=SparseSpectrum(20, grid), normalize=False).fit(t[:, None], y)
    >>> found = fourier_transform(model)
    >>> first = found.order()[0]
    >>> found.frequency[first].round(2), found.amplitude[first].round(1)
    (array([0.5]), np.float64(3.0))
    """
    layer, (mean, cov), scaling = layer_of(model), posterior_weights(model), model.scaling_
    h = len(layer.W) // 2
    if layer.activation != "cosine" or len(layer.W) % 2 or not np.array_equal(layer.W[:h], layer.W[h:]):
        raise ValueError(
            "A Fourier transform is that of a sparse spectrum: fit with approximation=SparseSpectrum(...)."
        )
    scale, shift = (1.0, 0.0) if is_classifier(model) else model._units(True)  # latent values of classes have no units
    omega = layer.W[:h] / scaling.x_scale
    first = omega[np.arange(h), np.argmax(omega != 0, axis=1)]
    omega = omega * np.where(first < 0, -1.0, 1.0)[:, None]
    # A term a cos(z − s) + b sin(z − s), s = ω·shift, in waves that count from zero; b changes its sign with ω.
    sign, turn = np.where(first < 0, -1.0, 1.0), omega @ scaling.x_shift
    rotation = np.array([[np.cos(turn), -sign * np.sin(turn)], [np.sin(turn), sign * np.cos(turn)]])
    size = scale * layer.scale[:h]

    def coefficients(weights: np.ndarray) -> np.ndarray:
        pairs = size[:, None] * np.stack([weights[..., :h], weights[..., h:]], axis=-1)
        return np.einsum("ijr,...rj->...ri", rotation, pairs)

    rng = generator(random_state)
    spread, axes = np.linalg.eigh(cov)
    noise = rng.standard_normal((DRAWS, len(mean))) @ (axes * np.sqrt(np.maximum(spread, 0.0))).T
    draws, centre = coefficients(mean + noise), coefficients(mean)
    amplitude, phase = np.hypot(draws[..., 0], draws[..., 1]), np.arctan2(draws[..., 1], draws[..., 0])
    direction = np.mean(np.exp(1j * phase), axis=0)
    return FourierTransform(
        frequency=omega / (2 * np.pi),
        amplitude=amplitude.mean(axis=0),
        amplitude_std=amplitude.std(axis=0),
        phase=np.angle(direction),
        phase_std=np.sqrt(-2 * np.log(np.maximum(np.abs(direction), 1e-300))),
        cosine=centre[:, 0],
        sine=centre[:, 1],
        offset=float(shift),
        draws=draws,
    )
