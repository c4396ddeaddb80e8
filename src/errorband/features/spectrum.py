"""Sparse spectrum: a finite number of sinusoids, with frequencies from the kernel's spectral density."""

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband import special
from errorband.features.base import Features
from errorband.features.layer import Layer, given_or_drawn, held_weights, seeded
from errorband.kernels import KERNELS, Kernel, spectral
from errorband.parameters import REAL, check_whole, hyperparameter, value_of
from errorband.precision import double_precision


class SparseSpectrum(Features):
    r"""Sinusoids of h frequencies with amplitudes and phases integrated out (Lázaro-Gredilla et al. 2010).

    By Bochner's theorem a stationary kernel is σ² E cos ωᵀ(x − x'), ω drawn from its spectral density. With h draws

        f(x) = √(σ²/h) Σ_r [a_r cos ω_rᵀx + b_r sin ω_rᵀx],   a_r, b_r ~ N(0, 1),

    has the prior covariance (σ²/h) Σ_r cos ω_rᵀ(x − x'). Frequencies are drawn once at unit length-scale and divided by
    the length-scales, which are learned; with ``learn`` so are the frequencies themselves, though one of the two would
    do: the search finds better optima with both. Cost O(N·(2h)²). The prior is periodic in a complicated way, so bands
    do not open far from the data: use it to interpolate, or for a few million rows.

    Parameters
    ----------
    n_frequencies : int
        Number h of frequencies; there are 2h features.
    frequencies : array (h, D), Parameter or None
        At unit length-scale, for the inputs that the kernel looks at; None draws them at ``fit``. A kernel that is a
        sum has an equal share of them for each term; one that is a product has columns for the inputs of each factor.
    learn : bool
        Learn the frequencies too. More accurate, and with many of them over-confident: see ``bound_noise`` of
        ``WeightSpace`` and ``Mixture``.

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
    short_names: ClassVar = {"sparse-spectrum": {}, "ssgp-fixed": {}, "ssgp": {"learn": True}}

    n_frequencies: int = eqx.field(default=100, static=True)
    frequencies: Any = hyperparameter(REAL, ndim=2)
    _: KW_ONLY
    learn: bool = eqx.field(default=False, static=True)

    def __check_init__(self):
        check_whole("SparseSpectrum", "n_frequencies", self.n_frequencies)

    @property
    def size(self) -> int:
        frequencies = value_of(self.frequencies)
        return 2 * (self.n_frequencies if frequencies is None else len(frequencies))

    def check(self, kernel: Kernel) -> None:
        spectral.check_spectrum(kernel, "SparseSpectrum", KERNELS)

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        def draw():
            return spectral.draw(kernel, X.shape[1], seeded(random_state), self.n_frequencies)

        columns = spectral.n_columns(kernel, X.shape[1])
        ready = given_or_drawn(self, "frequencies", draw, columns)
        return ready if self.learn else ready.held()

    def held(self) -> "SparseSpectrum":
        """Copy with fixed frequencies."""
        return held_weights(self, "frequencies", True)

    def K_fu(self, kernel: Any, X):
        omega, share = spectral.frequencies(kernel, X.shape[1], self.frequencies)
        angles, root = X @ omega.T, jnp.sqrt(share)
        return jnp.concatenate([root * special.cos(angles), root * special.sin(angles)], axis=1)

    def k_ff(self, kernel: Any, X):
        """The variance of the kernel, as cos² + sin² = 1."""
        return kernel.gram_diag(X)

    def layer(self, kernel: Any, n_features: int) -> Layer:
        """The sinusoids as a layer of cosines: cos(Wx + b) with b = 0 and −π/2."""
        with double_precision():
            omega, share = map(np.asarray, spectral.frequencies(kernel, n_features, self.frequencies))
        shift = np.repeat([0.0, -0.5 * np.pi], len(omega))
        return Layer(np.tile(omega, (2, 1)), shift, np.tile(np.sqrt(share), 2), "cosine")
