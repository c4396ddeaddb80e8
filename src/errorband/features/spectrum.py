"""Sparse spectrum: a finite number of sinusoids, with frequencies drawn from the kernel's spectral density."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from errorband.features.base import Features
from errorband.kernels import KERNELS, Kernel, Stationary
from errorband.parameters import check_whole, entries

_NO_SPECTRUM = Stationary.standard_spectrum  # what kernels without a sampler inherit


class SparseSpectrum(Features):
    r"""Sinusoids of h frequencies with amplitudes and phases integrated out (Lázaro-Gredilla et al. 2010).

    By Bochner's theorem a stationary kernel is σ² E cos ωᵀ(x − x'), ω drawn from its spectral density. With h draws

        f(x) = √(σ²/h) Σ_r [a_r cos ω_rᵀx + b_r sin ω_rᵀx],   a_r, b_r ~ N(0, 1),

    has the prior covariance (σ²/h) Σ_r cos ω_rᵀ(x − x'). Frequencies are drawn once at unit length-scale and divided by
    the length-scales, which are learned. Cost O(N·(2h)²). The prior is periodic in a complicated way, so bands do not
    open far from the data: use it to interpolate, or for a few million rows.

    Parameters
    ----------
    n_frequencies : int
        Number h of frequencies; there are 2h features.
    frequencies : array (h, D) or None
        At unit length-scale, for the inputs that the kernel looks at; None draws them at ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=SparseSpectrum(30), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    weight_space: ClassVar[bool] = True

    n_frequencies: int = eqx.field(default=100, static=True)
    frequencies: Any = eqx.field(default=None, converter=lambda w: None if w is None else np.asarray(w, float))

    def __check_init__(self):
        check_whole("SparseSpectrum", "n_frequencies", self.n_frequencies)

    @property
    def size(self) -> int:
        return 2 * len(self.frequencies)

    def check(self, kernel: Kernel) -> None:
        drawn = {n: c for n, c in KERNELS.items() if getattr(c, "standard_spectrum", None) is not _NO_SPECTRUM}
        known = [name for name, cls in drawn.items() if issubclass(cls, Stationary)]
        if type(kernel).__name__ not in known:
            raise ValueError(
                f"SparseSpectrum needs a kernel with a spectral density to draw from: one of {', '.join(known)}; got "
                f"{type(kernel).__name__}."
            )
        for entry in entries(kernel):
            if entry.path[-1] not in ("lengthscale", "variance") and not entry.fixed:
                raise ValueError(
                    f"SparseSpectrum draws frequencies once, so {entry.name} of {type(kernel).__name__} cannot be "
                    f"learned: fix it, {entry.name}=Parameter(..., fixed=True)."
                )

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        D = kernel.select(X[:1]).shape[1]
        if self.frequencies is not None:
            if self.frequencies.ndim != 2 or self.frequencies.shape[1] != D:
                raise ValueError(
                    f"frequencies of SparseSpectrum must have shape (h, {D}), a column for each input of the kernel; "
                    f"got {self.frequencies.shape}."
                )
            return self
        seed = check_random_state(random_state).randint(2**31 - 1)
        drawn = kernel.standard_spectrum(np.random.default_rng(seed), self.n_frequencies, D)
        return SparseSpectrum(self.n_frequencies, drawn)

    def K_fu(self, kernel: Any, X):
        angles = (kernel.select(X) / kernel.lengthscale) @ self.frequencies.T
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.sqrt(kernel.variance / len(self.frequencies)) * waves

    def k_ff(self, kernel: Any, X):
        """The variance of the kernel, as cos² + sin² = 1."""
        return kernel.gram_diag(X)
