"""Functions of the normal and gamma distributions that stay accurate far in the tails, with derivatives of any order.

Those of the normal distribution are each other's derivatives, so automatic differentiation never forms a quotient of
two numbers that have both underflown:

    log Φ' = h,    h' = −h e,    e' = 1 − h e,    (log Φ + x²/2)' = e,    h = φ/Φ,  e = h + x.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

LOG_2PI = float(np.log(2 * np.pi))
ROOT_HALF, ROOT_2_OVER_PI = float(np.sqrt(0.5)), float(np.sqrt(2 / np.pi))
_TAIL = 100.0  # beyond it, h + x is read off its asymptotic series


# ---------------------------------------------------------------------------------------------- normal distribution
@functools.cache
def _erfcx_series() -> np.ndarray:
    """Chebyshev coefficients of (1 + 2x)·erfcx(x) in (x − 3.75)/(x + 3.75), x ≥ 0 (Shepherd & Laframboise 1981)."""

    def function(t: np.ndarray) -> np.ndarray:
        x = 3.75 * (1 + t) / (1 - t)
        return (1 + 2 * x) * scipy.special.erfcx(x)

    return np.polynomial.chebyshev.chebinterpolate(function, 127)[:23]  # the rest is rounding


def _erfcx(x: Any) -> Any:
    """exp(x²) erfc(x) for x ≥ 0, to a few units in the last place."""
    t = (x - 3.75) / (x + 3.75)
    b1 = b2 = jnp.zeros_like(t)
    series = _erfcx_series()
    for c in series[:0:-1]:  # Clenshaw's recurrence
        b1, b2 = 2 * t * b1 - b2 + c, b1
    return (t * b1 - b2 + series[0]) / (1 + 2 * x)


def _density(x: Any) -> Any:
    return jnp.exp(-0.5 * (x**2 + LOG_2PI))


@jax.custom_jvp
def log_ndtr(x: Any) -> Any:
    """Log Φ(x), for any x.

    Examples
    --------
    >>> with jax.enable_x64(True):
    ...     print(float(log_ndtr(-40.0)), float(jax.grad(jax.grad(log_ndtr))(-40.0)))
    -804.608... -0.9987...
    """
    x = jnp.asarray(x)
    low, high = jnp.minimum(x, 0.0), jnp.maximum(x, 0.0)
    left = -0.5 * low**2 + jnp.log(0.5 * _erfcx(-low * ROOT_HALF))
    return jnp.where(x < 0, left, jnp.log1p(-0.5 * jax.scipy.special.erfc(high * ROOT_HALF)))


@jax.custom_jvp
def hazard(x: Any) -> Any:
    """h(x) = φ(x)/Φ(x), the derivative of log Φ; −x + 1/|x| far left."""
    x = jnp.asarray(x)
    low, high = jnp.minimum(x, 0.0), jnp.maximum(x, 0.0)
    left = ROOT_2_OVER_PI / _erfcx(-low * ROOT_HALF)
    return jnp.where(x < 0, left, _density(high) / (1 - 0.5 * jax.scipy.special.erfc(high * ROOT_HALF)))


@jax.custom_jvp
def excess(x: Any) -> Any:
    """e(x) = φ(x)/Φ(x) + x: the mean of a unit normal at x cut off below zero."""
    x = jnp.asarray(x)
    u = 1 / jnp.maximum(-x, _TAIL) ** 2
    far = (1 - u * (2 - u * (10 - 74 * u))) / jnp.maximum(-x, _TAIL)
    return jnp.where(x < -_TAIL, far, hazard(jnp.maximum(x, -_TAIL)) + jnp.maximum(x, -_TAIL))


@jax.custom_jvp
def log_ndtr_scaled(x: Any) -> Any:
    """Log Φ(x) + x²/2, which falls only like −log|x| far left."""
    x = jnp.asarray(x)
    low, high = jnp.minimum(x, 0.0), jnp.maximum(x, 0.0)
    return jnp.where(x < 0, jnp.log(0.5 * _erfcx(-low * ROOT_HALF)), 0.5 * high**2 + log_ndtr(high))


log_ndtr.defjvp(lambda x, dx: (log_ndtr(x[0]), hazard(x[0]) * dx[0]))
hazard.defjvp(lambda x, dx: (hazard(x[0]), -hazard(x[0]) * excess(x[0]) * dx[0]))
excess.defjvp(lambda x, dx: (excess(x[0]), (1 - hazard(x[0]) * excess(x[0])) * dx[0]))
log_ndtr_scaled.defjvp(lambda x, dx: (log_ndtr_scaled(x[0]), excess(x[0]) * dx[0]))


def log_ndtr_between(a: Any, b: Any) -> Any:
    """log(Φ(b) − Φ(a)) for a < b, from the tail in which the difference is not lost."""
    flip = a + b > 0
    low, high = jnp.where(flip, -b, a), jnp.where(flip, -a, b)
    top = log_ndtr(high)
    return top + jnp.log(-jnp.expm1(log_ndtr(low) - top))


def log_exponential_tail(rate: Any, mean: Any, variance: Any) -> Any:
    """Log ∫₀^∞ exp(−rate·t) N(t; mean, variance) dt, without overflow times underflow."""
    std = jnp.sqrt(variance)
    x = (mean - rate * variance) / std
    below = -0.5 * mean**2 / variance + log_ndtr_scaled(jnp.minimum(x, 0.0))
    above = rate * (0.5 * rate * variance - mean) + log_ndtr(jnp.maximum(x, 0.0))
    return jnp.where(x < 0, below, above)


# ------------------------------------------------------------------------------------------------------------- others
def log_gamma_ratio(x: Any, step: Any) -> Any:
    """Log Γ(x + step) − log Γ(x) for step ≥ 0, by Stirling's series where the two are large and close."""
    large = jnp.maximum(x, 20.0)
    series = (large + step - 0.5) * jnp.log1p(step / large) + step * jnp.log(large) - step
    series = series + _stirling(large + step) - _stirling(large)
    small = jnp.minimum(x, 20.0)
    exact = jax.scipy.special.gammaln(small + step) - jax.scipy.special.gammaln(small)
    return jnp.where(x > 20.0, series, exact)


def _stirling(x: Any) -> Any:
    u = 1 / x**2
    return (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / x


def exp_linear(x: Any, limit: float = 200.0) -> Any:
    """Exponential continued as a straight line beyond ``limit``, so that powers of it do not overflow."""
    top = jnp.exp(jnp.minimum(x, limit))
    return jnp.where(x > limit, top * (1 + jnp.maximum(x, limit) - limit), top)
