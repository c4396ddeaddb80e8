"""Marginalised networks: a hidden layer whose output weights are integrated out."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from errorband.features.base import Features
from errorband.features.bases import Basis, basis_of
from errorband.features.layer import Layer, given_or_drawn, held_weights, seeded
from errorband.kernels import Kernel
from errorband.parameters import REAL, check_whole, hyperparameter, plain, value_of
from errorband.precision import double_precision

SAMPLE = 1000  # rows from which the power of a basis is found


class Network(Features):
    r"""A network with one hidden layer of M units, output weights integrated out (Lázaro-Gredilla 2010, ch. 3 and 5).

        f(x) = Σ_i v_i φ(x; w_i),   v_i ~ N(0, σ²/(M σ_p²)),

    σ_p² the average power of φ. The posterior mean is a plain network (:func:`errorband.networks.export`); the ridge of
    its output weights, Mσ_p²σ_n²/σ², and its input weights w_i come from the evidence. Cost O(N·M²).

    ========== ================================= =========== ================================================
    ``basis``  φ(x; w)                           σ_p²        with ``learn=False`` and M → ∞
    ========== ================================= =========== ================================================
    "cosine"   cos(ωᵀx + phase)                  ½           the kernel, which has a spectral density
    "erf"      erf(w₀/ℓ₀ + Σ w_d x_d/ℓ_d)        1           ``ArcSine``; ℓ₀ = ‖ℓ‖ with another kernel
    "bumps"    exp(−½ Σ (x_d − c_d)²/(ρℓ_d)²)    from rows   a density of rows; ρ = min(1, 2/M^(1/D))
    function   function(w₀/ℓ₀ + Σ w_d x_d/ℓ_d)   from rows
    ========== ================================= =========== ================================================

    The kernel says how weights are scaled (length-scales) and how large f is (variance); its formula is not used.

    Parameters
    ----------
    n_units : int
        Number M of hidden units.
    basis : {"cosine", "erf", "bumps"} or callable
        The basis; a callable is the activation, traced by JAX, and a model with one is kept by pickle only.
    weights : array (M, columns), Parameter or None
        Input weights at unit length-scale: a phase or bias, then a column for each input (for bumps only those, the
        centres); None draws them at ``fit``.
    learn : bool
        Learn the input weights. If not, cosines still learn their phases.
    power : float or None
        σ_p²; None: as in the table, "from rows" being the average of φ² over rows of the data at the first weights.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GPRegressor(approximation=Network(20, "erf"), random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[np.pi / 2]])[0] - 1) < 0.1)
    True
    """

    weight_space: ClassVar[bool] = True
    short_names: ClassVar = {"network": {}, "mcn": {"basis": "cosine"}, "mmlp": {"basis": "erf"}}

    n_units: int = eqx.field(default=100, static=True)
    basis: str | Callable[[Any], Any] = eqx.field(default="cosine", static=True)
    weights: Any = hyperparameter(REAL, ndim=2)
    _: KW_ONLY
    learn: bool = eqx.field(default=True, static=True)
    power: Any = eqx.field(default=None, converter=lambda p: p if p is None or hasattr(p, "aval") else np.asarray(p))

    def __check_init__(self):
        check_whole("Network", "n_units", self.n_units)
        basis_of(self.basis)
        if self.power is not None and not np.all(np.asarray(self.power) > 0):
            raise ValueError(f"Network(power={self.power!r}): give a number above zero.")

    @property
    def size(self) -> int:
        weights = value_of(self.weights)
        return self.n_units if weights is None else len(weights)

    @property
    def _basis(self) -> Basis:
        return basis_of(self.basis)

    def check(self, kernel: Kernel) -> None:
        self._basis.check(kernel)

    def initialised(self, kernel: Any, X, n=None, classes=None, random_state=None):
        basis, D = self._basis, X.shape[1]

        def draw():
            return basis.draw(kernel, X, seeded(random_state), self.n_units)

        ready = given_or_drawn(self, "weights", draw, basis.n_columns(kernel, D))
        power = ready.power if ready.power is not None else basis.power
        if power is None:
            with double_precision():
                units, _ = plain(ready)._units(plain(kernel), np.asarray(X[: len(X) : max(1, len(X) // SAMPLE)]))
                power = float(jnp.mean(units**2))
        ready = eqx.tree_at(lambda f: f.power, ready, np.asarray(power), is_leaf=lambda leaf: leaf is None)
        return ready if self.learn else ready.held()

    def held(self) -> "Network":
        """Copy with fixed input weights, but for phases."""
        fixed: Any = True
        if self._basis.first_is_free:
            fixed = np.arange(np.shape(value_of(self.weights))[1])[None] > 0
        return held_weights(self, "weights", fixed)

    def K_fu(self, kernel: Any, X):
        units, share = self._units(kernel, X)
        return jnp.sqrt(share / self.power) * units

    def _units(self, kernel: Any, X: Any) -> tuple[Any, Any]:
        """φ at the rows of X, and the share of the prior variance that each has."""
        W, b, share, precision = self._basis.place(kernel, X.shape[1], self.weights)
        argument = X @ W.T + b
        if precision is not None:
            argument = argument - 0.5 * (X**2 @ precision)[:, None]
        return self._basis.activation(argument), share

    def layer(self, kernel: Any, n_features: int) -> Layer:
        """The hidden layer in plain numbers."""
        with double_precision():
            found = self._basis.place(kernel, n_features, self.weights)
            W, b, share, precision = (None if a is None else np.asarray(a) for a in found)
        return Layer(W, b, np.sqrt(share / self.power), self.basis, precision)  # pyright: ignore[reportArgumentType]
