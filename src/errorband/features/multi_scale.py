"""Multi-scale features: the function seen through Gaussian windows of different widths."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from errorband.features.placement import place
from errorband.features.points import UNIT
from errorband.features.windows import Windowed, Windows
from errorband.parameters import PLACE, POSITIVE, Real, hyperparameter, replace_values, value_of

FIRST_WIDTH = 0.3  # of the windows, in length-scales, where the search starts


class MultiScale(Windowed):
    r"""Averages of the function under Gaussian windows (Walder, Kim & Schölkopf 2008; Lázaro-Gredilla 2009).

    u_m = ∫ f(x) N(x; μ_m, diag(c_m² − ℓ²)) dx for the squared exponential of length-scales ℓ and variance σ²:

        K_fu = σ² ∏_d (ℓ_d/c_md) exp(−Σ_d (x_d − μ_md)²/2c_md²),
        K_uu = σ² ∏_d (ℓ_d/s_d) exp(−Σ_d (μ_md − μ_nd)²/2s_d²),    s_d² = c_md² + c_nd² − ℓ_d².

    each divided by the standard deviation of u_m, which changes nothing but the conditioning of K_uu.
    c² = ℓ²(1 + w²), w the widths in length-scales: c ≥ ℓ always holds, and with w → 0 these are inducing points. Wide
    windows suit smooth stretches of a function whose length-scale is set by rough ones.

    Parameters
    ----------
    centres : array (M, D), Parameter or None
        μ, in the units of the data; None places them by k-means.
    widths : array (M, D), Parameter or None
        w; None starts at 0.3.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.approximations import FITC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=FITC(12, features=MultiScale()), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    centres: Any = hyperparameter(Real(unit=UNIT), ndim=2, unit=PLACE)
    widths: Any = hyperparameter(POSITIVE, ndim=2)

    @property
    def size(self) -> int:
        return len(value_of(self.centres))

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        centres, widths = value_of(self.centres), value_of(self.widths)
        if centres is None:
            if n is None:
                raise ValueError(
                    "MultiScale() has no number of features: give it one in FITC(n, features=MultiScale())."
                )
            centres = place("kmeans", n, kernel, X, classes, random_state)
        if np.ndim(centres) != 2 or np.shape(centres)[1] != X.shape[1] or len(centres) == 0:
            raise ValueError(
                f"centres of MultiScale must be an array of shape (M, {X.shape[1]}); got shape {np.shape(centres)}."
            )
        if widths is None:
            widths = np.full(np.shape(centres), FIRST_WIDTH)
        if np.shape(widths) != np.shape(centres):
            raise ValueError(
                f"widths of MultiScale must have the shape of centres, {np.shape(centres)}; got {np.shape(widths)}."
            )
        return replace_values(self, {("centres",): centres, ("widths",): widths})

    def windows(self, kernel: Any) -> Windows:
        mu, v = kernel.select(self.centres) / kernel.lengthscale, kernel.select(self.widths) ** 2
        return Windows(mu[:, None], v[:, None], jnp.ones((len(mu), 1)))
