"""Windowed Fourier and time-frequency features: waves under Gaussian windows."""

from dataclasses import KW_ONLY
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.features.layer import seeded
from errorband.features.placement import cluster_centres
from errorband.features.points import UNIT
from errorband.features.windows import Windowed, Windows
from errorband.parameters import (
    LENGTH,
    PLACE,
    POSITIVE,
    REAL,
    Parameter,
    Real,
    check_whole,
    hyperparameter,
    replace_values,
    value_of,
)


class _Waves(Windowed):
    """Base: frequencies and phases, under windows of which subclasses say where they are."""

    frequencies: Any = hyperparameter(REAL, ndim=2)
    phases: Any = hyperparameter(REAL, ndim=1)
    widths: Any = hyperparameter(POSITIVE, ndim=2, unit=LENGTH)
    centres: Any = hyperparameter(Real(unit=UNIT), ndim=2, unit=PLACE)

    @property
    def _pairs(self) -> bool:
        return getattr(self, "phase", "free") == "integrated"

    @property
    def size(self) -> int:
        return len(value_of(self.frequencies)) * (2 if self._pairs else 1)

    def _waves(self, kernel: Any) -> tuple[Any, Any]:
        """Frequencies (M, D) in units of the length-scales, and phases (M,)."""
        omega = kernel.select(self.frequencies)
        if not self._pairs:
            return omega, self.phases
        quarter = jnp.repeat(jnp.array([0.0, -0.5 * jnp.pi]), len(omega))
        return jnp.tile(omega, (2, 1)), quarter

    def _first_waves(self, kernel: Any, X: np.ndarray, n: int | None, random_state: Any) -> dict[tuple[str, ...], Any]:
        """Starting values of frequencies and phases that are not given."""
        rng, name = seeded(random_state), type(self).__name__
        frequencies, values = value_of(self.frequencies), {}
        if frequencies is None:
            if n is None:
                raise ValueError(f"{name}() has no number of features: give it one in FITC(n, features={name}()).")
            h = max(1, n // 2) if self._pairs else n
            values[("frequencies",)] = frequencies = rng.standard_normal((h, X.shape[1]))
        check_shape(name, "frequencies", frequencies, ("M", X.shape[1]))
        if self._pairs:
            values[("phases",)] = Parameter(np.zeros(len(frequencies)), fixed=True)
        elif value_of(self.phases) is None:
            values[("phases",)] = rng.uniform(0.0, 2.0 * np.pi, len(frequencies))
        else:
            check_shape(name, "phases", value_of(self.phases), (len(frequencies),))
        return values


class WindowedFourier(_Waves):
    r"""Fourier transform of the function under a Gaussian window that all features share: FIFGP.

    u_m = ∫ f(x) N(x; c, diag(w²)) cos(θ_m + ω_mᵀ(x − c)) dx for the squared exponential (Lázaro-Gredilla &
    Figueiras-Vidal 2009). The window goes where the data are, the waves resolve what is inside; unlike those of a
    sparse spectrum the features say nothing of f far away, so bands open there.

    Parameters
    ----------
    frequencies : array (M, D), Parameter or None
        ω·ℓ, angular, at unit length-scale; None draws them from the spectral density of the kernel.
    phases : array (M,), Parameter or None
        θ; None draws them between 0 and 2π.
    widths : array (D,) or (K, D), Parameter or None
        w; None starts at the standard deviation of each input.
    centres : array (D,) or (K, D), Parameter or None
        c; None: the mean of the inputs, or of clusters if there are several windows.
    n_windows : int
        K: the window is a mixture of as many Gaussians, with shares that are learned.
    shares : array (K,), Parameter or None
        Shares of the mixture; None starts at 1/K.
    learn_centres : bool
        Learn the centres.
    phase : {"free", "integrated"}
        Learn the phases, or have a cosine and a sine of each frequency (M/2 frequencies), so that there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import FITC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=FITC(12, features=WindowedFourier()), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    _: KW_ONLY
    n_windows: int = eqx.field(default=1, static=True)
    shares: Any = hyperparameter(POSITIVE, ndim=1)
    learn_centres: bool = eqx.field(default=False, static=True)
    phase: str = eqx.field(default="free", static=True)

    def __check_init__(self):
        check_whole("WindowedFourier", "n_windows", self.n_windows)
        check_phase("WindowedFourier", self.phase)

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        values, K, D = self._first_waves(kernel, X, n, random_state), self.n_windows, X.shape[1]
        some = np.asarray(X[:: max(1, len(X) // 5000)])
        centres, widths, shares = (value_of(a) for a in (self.centres, self.widths, self.shares))
        if centres is None:
            rng = np.random.RandomState(seeded(random_state).integers(2**31 - 1))
            distinct = len(np.unique(some, axis=0))
            centres = some.mean(axis=0, keepdims=True) if K == 1 else cluster_centres(some, min(K, distinct), rng)
            centres = np.resize(centres, (K, D))
        if widths is None:
            widths = np.tile(spread(some) / (1.0 if K == 1 else np.sqrt(2.0)), (K, 1))
        centres, widths = (np.reshape(a, (-1, np.shape(a)[-1])) for a in (centres, widths))
        for name, value in (("centres", centres), ("widths", widths)):
            check_shape("WindowedFourier", name, value, (K, D))
        shares = np.full(K, 1.0 / K) if shares is None else shares
        check_shape("WindowedFourier", "shares", shares, (K,))
        held = isinstance(self.centres, Parameter)
        fixed = centres if held or self.learn_centres else Parameter(centres, fixed=True)
        one = Parameter(shares, fixed=True) if K == 1 and not isinstance(self.shares, Parameter) else shares
        values |= {("widths",): widths, ("centres",): fixed, ("shares",): one}
        return replace_values(self, values)

    def windows(self, kernel: Any) -> Windows:
        omega, theta = self._waves(kernel)
        M, K = len(omega), self.n_windows
        mu, w = (kernel.select(a) / kernel.lengthscale for a in (self.centres, self.widths))
        theta = theta[:, None] + omega @ (mu - jnp.mean(mu, axis=0)).T  # waves count from the middle of the centres
        every = lambda a: jnp.broadcast_to(a, (M, *a.shape))  # noqa: E731
        shares = jnp.ones((M, 1)) if K == 1 else every(self.shares)
        return Windows(every(mu), every(w**2), shares, omega, theta)


class TimeFrequency(_Waves):
    r"""Waves under Gaussian windows of one width, each around a centre of its own: TFIFGP (Gabor's features).

    u_m = ∫ f(x) N(x; c_m, diag(w²)) cos(θ_m + ω_mᵀ(x − c_m)) dx for the squared exponential (Lázaro-Gredilla 2010,
    §4.2.4; the covariances printed there are wrong, see :mod:`errorband.features.windows`). About twice as many numbers
    to learn as ``WindowedFourier``.

    Parameters
    ----------
    frequencies : array (M, D), Parameter or None
        ω·ℓ, angular, at unit length-scale; None draws them from the spectral density of the kernel.
    phases : array (M,), Parameter or None
        θ; None draws them between 0 and 2π.
    widths : array (D,), Parameter or None
        w; None starts at the standard deviation of each input.
    centres : array (M, D), Parameter or None
        c; None: all start at the mean of the inputs.
    phase : {"free", "integrated"}
        Learn the phases, or have a cosine and a sine of each frequency and centre (M/2 of them).

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import FITC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=FITC(12, features=TimeFrequency()), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    _: KW_ONLY
    phase: str = eqx.field(default="free", static=True)

    def __check_init__(self):
        check_phase("TimeFrequency", self.phase)

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        values, D = self._first_waves(kernel, X, n, random_state), X.shape[1]
        h = len(value_of(values.get(("frequencies",), self.frequencies)))
        some = np.asarray(X[:: max(1, len(X) // 5000)])
        centres, widths = value_of(self.centres), value_of(self.widths)
        if centres is None:
            centres = np.tile(some.mean(axis=0), (h, 1))
        if widths is None:
            widths = spread(some)
        check_shape("TimeFrequency", "centres", centres, (h, D))
        check_shape("TimeFrequency", "widths", widths, (D,))
        return replace_values(self, values | {("centres",): centres, ("widths",): widths})

    def windows(self, kernel: Any) -> Windows:
        omega, theta = self._waves(kernel)
        mu, w = (kernel.select(a) / kernel.lengthscale for a in (self.centres, self.widths[None]))
        mu = jnp.tile(mu, (2, 1)) if self._pairs else mu
        v = jnp.broadcast_to(w**2, mu.shape)
        return Windows(mu[:, None], v[:, None], jnp.ones((len(mu), 1)), omega, theta[:, None])


def spread(X: np.ndarray) -> np.ndarray:
    """Standard deviation of each input, 1 if it is constant."""
    std = X.std(axis=0)
    return np.where(std > 0, std, 1.0)


def check_shape(owner: str, name: str, value: Any, shape: tuple[Any, ...]) -> None:
    """Refuse an array of another shape; letters stand for any number above zero."""
    found = np.shape(value)
    fits = len(found) == len(shape) and 0 not in found
    if not fits or any(not isinstance(b, str) and a != b for a, b in zip(found, shape, strict=True)):
        told = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{name} of {owner} must have shape ({told}); got {found}.")


def check_phase(owner: str, phase: Any) -> None:
    """Refuse other ways to treat phases."""
    if phase not in ("free", "integrated"):
        raise ValueError(f"{owner}(phase={phase!r}): choose 'free' or 'integrated'.")
