"""Stationary kernels: functions of x − z, most of them of the scaled distance r² = Σ (x_d − z_d)²/ℓ_d²."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from errorband.kernels.base import Kernel, by_rows, half_range, scaled_distance
from errorband.parameters import LENGTH, POSITIVE, VARIANCE, Interval, hyperparameter, plain
from errorband.parameters.checks import check_number, check_whole, generator


class Stationary(Kernel):
    """A kernel of the difference x − z, scaled by one length-scale per input (ARD) or one for all.

    A subclass writes ``evaluate`` for a correlation of its own, or derives from :class:`Radial` and writes ``profile``.

    Parameters
    ----------
    lengthscale : float, array or None
        One number for all inputs, or one per input. None chooses from the data: half the range of each input.
    variance : float or None
        Prior variance of the function. None takes the variance of the targets.
    ard : bool
        With ``lengthscale=None``: one length-scale per input (default) or a single one.
    active_dims : sequence of int or str, optional
        Inputs the kernel depends on.
    """

    lengthscale: Any = hyperparameter(POSITIVE, ndim=1, unit=LENGTH)
    variance: Any = hyperparameter(POSITIVE, ndim=0, unit=VARIANCE)
    ard: bool = eqx.field(default=True, static=True, kw_only=True)

    spectrum_scales: ClassVar[tuple[str, ...]] = ("lengthscale", "variance")
    """Hyperparameters that scale the spectral density; all others change its shape."""

    def standard_spectrum(self, rng: np.random.Generator, n: int, n_features: int) -> np.ndarray:
        """Draws (n, D) of ω from the spectral density at unit length-scale: correlation(τ) = E cos(ωᵀτ)."""
        raise NotImplementedError(f"{type(self).__name__} has no sampler of its spectral density.")

    def scaled_spectrum(self, standard: Any) -> Any:
        """Frequencies at the length-scales of the kernel, from those at unit length-scale. Traceable."""
        return standard / self.lengthscale

    def evaluate_diag(self, X):
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def defaults(self, X, y_variance):
        scales = half_range(X)
        return {"lengthscale": scales if self.ard else np.mean(scales), "variance": y_variance}

    def sample_spectrum(self, random_state: Any, n: int, n_features: int) -> np.ndarray:
        """Draw n angular frequencies ω (rows) from the normalised spectral density.

        By Bochner's theorem k(x, z) = variance · E cos(ωᵀ(x − z)).

        Examples
        --------
        >>> k = SquaredExponential(lengthscale=0.5)
        >>> omega = k.sample_spectrum(0, 100_000, 1)
        >>> float(np.cos(omega * 0.5).mean().round(2)), float(np.exp(-0.5).round(2))
        (0.61, 0.61)
        """
        rng = generator(random_state)
        unit = np.broadcast_to([[-1.0], [1.0]], (2, n_features))
        kernel: Any = plain(self.initialised(unit, 1.0))  # values that are None get their defaults for unit data
        return np.asarray(kernel.scaled_spectrum(kernel.standard_spectrum(rng, n, n_features)))


class Radial(Stationary):
    """variance · profile(r²), a function of the scaled distance r² = Σ (x_d − z_d)²/ℓ_d² only.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.
    """

    @abc.abstractmethod
    def profile(self, r2: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Correlation at squared scaled distance r²; 1 at zero."""

    def evaluate(self, X, Z):
        return self.variance * self.profile(self.scaled_distance(X, Z))

    def scaled_distance(self, X: Float[Array, "N D"], Z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        """r² for all pairs of rows."""
        return scaled_distance(X, Z, jnp.broadcast_to(self.lengthscale, X.shape[1:]))


class SquaredExponential(Radial):
    """k = variance · exp(−½ r²): infinitely smooth functions (Rasmussen & Williams 2006, §4.2).

    Continuous diffusion on R^D from a point source is this kernel, see :func:`heat`.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.

    Examples
    --------
    >>> SquaredExponential(lengthscale=2.0, variance=1.5)([[0.0], [2.0]]).round(4)
    array([[1.5   , 0.9098],
           [0.9098, 1.5   ]])
    """

    short_names: ClassVar = {"se": {}, "rbf": {}}

    def profile(self, r2):
        return jnp.exp(-0.5 * r2)

    def standard_spectrum(self, rng, n, n_features):
        return rng.standard_normal((n, n_features))


class Matern(Radial):
    """Matérn covariance of smoothness ν = ½, 3/2 or 5/2 (Rasmussen & Williams 2006, §4.2).

    With s = √(2ν)·r: e^−s, (1 + s)e^−s, (1 + s + s²/3)e^−s. ν = ½ is the Ornstein–Uhlenbeck process.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.
    nu : {0.5, 1.5, 2.5}
        Smoothness; the functions are ⌈ν⌉ − 1 times differentiable.

    Examples
    --------
    >>> Matern(1.0, 1.0, nu=1.5)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])
    """

    short_names: ClassVar = {"matern12": {"nu": 0.5}, "matern32": {"nu": 1.5}, "matern52": {"nu": 2.5}}

    nu: float = eqx.field(default=1.5, static=True, kw_only=True)

    def __check_init__(self):
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(
                f"nu={self.nu!r}: {type(self).__name__} has closed forms for 0.5, 1.5 and 2.5; choose one of them."
            )

    def profile(self, r2):
        s = safe_sqrt(2 * self.nu * r2)
        polynomial = {0.5: lambda: 1.0, 1.5: lambda: 1 + s, 2.5: lambda: 1 + s + s * s / 3}[self.nu]()
        return polynomial * jnp.exp(-s)

    def standard_spectrum(self, rng, n, n_features):
        # The spectral density of a Matérn kernel is a Student-t with 2ν degrees of freedom.
        normal = rng.standard_normal((n, n_features))
        return normal / np.sqrt(rng.chisquare(2 * self.nu, (n, 1)) / (2 * self.nu))


class RationalQuadratic(Radial):
    """k = variance · (1 + r²/2α)^−α: a mixture of squared exponentials of many length-scales.

    exp(−½ r²τ) averaged over τ ~ Gamma(α, α) (Rasmussen & Williams 2006, §4.2).

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.
    alpha : float or None
        α > 0; the smaller, the more the length-scales differ. α → ∞ is the squared exponential. None starts at 1.

    Examples
    --------
    >>> RationalQuadratic(1.0, 1.0, alpha=0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.7071]])
    """

    short_names: ClassVar = {"rq": {}}

    alpha: Any = hyperparameter(POSITIVE, ndim=0)

    def profile(self, r2):
        return jnp.exp(-self.alpha * jnp.log1p(r2 / (2 * self.alpha)))

    def defaults(self, X, y_variance):
        return super().defaults(X, y_variance) | {"alpha": 1.0}

    def standard_spectrum(self, rng, n, n_features):
        alpha = 1.0 if plain(self).alpha is None else float(plain(self).alpha)
        precision = rng.gamma(alpha, 1 / alpha, (n, 1))  # exp(−½ r² τ) mixed over τ ~ Gamma(α, α)
        return np.sqrt(precision) * rng.standard_normal((n, n_features))


class PoweredExponential(Radial):
    """k = variance · exp(−r^power), 0 < power ≤ 2 (the γ-exponential of Rasmussen & Williams 2006, §4.2).

    ``power=2`` is a squared exponential of length-scale ℓ/√2; above 2 it is not a covariance.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.
    power : float or None
        Exponent, in (0, 2]: the smaller, the rougher the functions. None starts at 1.5.

    Examples
    --------
    >>> PoweredExponential(1.0, 1.0, power=1.0)([[0.0]], [[2.0]]).round(4)
    array([[0.1353]])
    """

    power: Any = hyperparameter(Interval(0.0, 2.0, strict=False), ndim=0)

    def profile(self, r2):
        return jnp.exp(-safe_power(r2, self.power))

    def defaults(self, X, y_variance):
        return super().defaults(X, y_variance) | {"power": 1.5}

    def standard_spectrum(self, rng, n, n_features):
        # exp(−r^p) = E exp(−r² A) with A positive (p/2)-stable (Kanter's representation); so ω = √(2A)·normal.
        power = 1.5 if plain(self).power is None else float(plain(self).power)
        a = power / 2
        normal = rng.standard_normal((n, n_features))
        if a >= 1:
            return np.sqrt(2.0) * normal
        u, e = rng.uniform(0, np.pi, (n, 1)), rng.exponential(size=(n, 1))
        stable = np.sin(a * u) / np.sin(u) ** (1 / a) * (np.sin((1 - a) * u) / e) ** ((1 - a) / a)
        return np.sqrt(2 * stable) * normal


class Laplacian(Stationary):
    """k = variance · exp(−Σ |x_d − z_d|/ℓ_d): a product of one-dimensional exponentials.

    The radial form exp(−‖x − z‖/2σ), also called Laplacian (Smola, *Bayesian Kernel Methods*, 2002), is
    ``Matern(lengthscale=2σ, nu=0.5)``; on one input both agree.

    Parameters
    ----------
    lengthscale, variance, ard, active_dims
        As in :class:`Stationary`.

    Examples
    --------
    >>> Laplacian(1.0, 1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    def evaluate(self, X, Z):
        distance = by_rows(lambda x, Z: jnp.sum(jnp.abs(x - Z), axis=1), X / self.lengthscale, Z / self.lengthscale)
        return self.variance * jnp.exp(-distance)

    def standard_spectrum(self, rng, n, n_features):
        return rng.standard_cauchy((n, n_features))


def heat(time: float, n_features: int = 1) -> SquaredExponential:
    """Kernel of continuous diffusion: G_2t(x − z), with ∂_t p = Δp (Smola, *Bayesian Kernel Methods*, 2002).

    A special case of the squared exponential: exp(−‖x − z‖²/8t)/(8πt)^(D/2), that is ℓ² = 4t. Other differential
    operators give other stationary kernels: the logarithm of the spectral density is the operator.

    Parameters
    ----------
    time : float
        t > 0.
    n_features : int
        D, the number of inputs.

    Examples
    --------
    >>> heat(0.25)([[0.0]], [[1.0]]).round(4)
    array([[0.242]])
    """
    check_number("heat", "time", time)
    check_whole("heat", "n_features", n_features)
    return SquaredExponential(lengthscale=2 * np.sqrt(time), variance=(8 * np.pi * time) ** (-n_features / 2))


# The next two functions have custom derivatives, because the usual guard, two nested `where`s, is not safe under XLA:
# it may compute r² twice, once with a fused multiply-add, and then the two tests disagree where r² is zero.


@jax.custom_vjp
def safe_sqrt(r2: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """√r² with derivative zero at zero, where r² itself has zero derivative."""
    return jnp.sqrt(jnp.maximum(r2, 0.0))


def _safe_sqrt_forward(r2):
    s = safe_sqrt(r2)
    return s, s


def _safe_sqrt_backward(s, bar):
    return (bar * jnp.where(s > CLOSE, 0.5 / s, 0.0),)


safe_sqrt.defvjp(_safe_sqrt_forward, _safe_sqrt_backward)


@jax.custom_vjp
def safe_power(r2: Float[Array, "*shape"], power: Any) -> Float[Array, "*shape"]:
    """r^power, with derivative zero at zero."""
    return jnp.where(r2 > 0, jnp.exp(0.5 * power * _log(r2)), 0.0)


def _safe_power_forward(r2, power):
    return safe_power(r2, power), (r2, power)


def _safe_power_backward(saved, bar):
    r2, power = saved
    value = safe_power(r2, power)
    r2_bar = bar * jnp.where(r2 > CLOSE**2, 0.5 * power * value / r2, 0.0)
    return r2_bar, jnp.sum(bar * value * 0.5 * _log(r2))


safe_power.defvjp(_safe_power_forward, _safe_power_backward)


def _log(r2):
    return jnp.log(jnp.maximum(r2, 1e-300))


# Derivatives treat scaled distances below this as zero: they are smaller than the rounding of the inputs.
CLOSE = 1e-8
