"""Functions that stay accurate far in the tails, with derivatives of any order; and sine and cosine, quickly.

With h = φ/Φ, everything about the normal distribution follows from two functions that neither over- nor underflow,

    ℓ(x) = log Φ(x) + ½ min(x, 0)²,    r(x) = ℓ'(x) = h(x) + min(x, 0),    r' = [x < 0] − h (h + x),

so automatic differentiation never divides two values that have both underflowed.
"""

import functools
from fractions import Fraction
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

LOG_2PI = float(np.log(2 * np.pi))
ROOT_HALF, ROOT_2_OVER_PI = float(np.sqrt(0.5)), float(np.sqrt(2 / np.pi))
_TAIL = 100.0  # for x < −100, h + x is computed by its asymptotic series


# ---------------------------------------------------------------------------------------------- normal distribution
@functools.cache
def _erfcx_series() -> np.ndarray:
    """Chebyshev coefficients of (1 + 2x)·erfcx(x) in (x − 3.75)/(x + 3.75), x ≥ 0 (Shepherd & Laframboise 1981)."""

    def function(t: np.ndarray) -> np.ndarray:
        x = 3.75 * (1 + t) / (1 - t)
        return (1 + 2 * x) * scipy.special.erfcx(x)

    return np.polynomial.chebyshev.chebinterpolate(function, 127)[:23]  # later coefficients are below rounding  # pyright: ignore[reportCallIssue, reportArgumentType]


def _erfcx(x: Any) -> Any:
    """exp(x²) erfc(x) for x ≥ 0, to a few units in the last place."""
    t = (x - 3.75) / (x + 3.75)
    series = jnp.asarray(_erfcx_series(), t.dtype)

    def clenshaw(k: Any, b: tuple[Any, Any]) -> tuple[Any, Any]:
        return 2 * t * b[0] - b[1] + series[len(series) - 1 - k], b[0]

    b1, b2 = jax.lax.fori_loop(0, len(series) - 1, clenshaw, (jnp.zeros_like(t), jnp.zeros_like(t)))
    return (t * b1 - b2 + series[0]) / (1 + 2 * x)


def _negative(x: Any) -> Any:
    """min(x, 0), with the derivative 0 at 0."""
    return jnp.where(x < 0, x, 0.0)


@jax.jit
def _relative(x: Any) -> tuple[Any, Any]:
    """ℓ and r. Compiled on its own, so that programs that need it in many places trace it once."""
    low, high = _negative(x), x - _negative(x)
    left, right = _erfcx(-low * ROOT_HALF), 0.5 * jax.lax.erfc(high * ROOT_HALF)
    size = jnp.maximum(-x, _TAIL)
    u = 1 / size**2
    far = (1 - u * (2 - u * (10 - 74 * u))) / size
    near = jnp.where(x < -_TAIL, far, ROOT_2_OVER_PI / left + low)
    hazard = jnp.where(x < 0, near, jnp.exp(-0.5 * (high**2 + LOG_2PI)) / (1 - right))
    return jnp.where(x < 0, jnp.log(0.5 * left), jnp.log1p(-right)), hazard


@jax.custom_jvp
def log_ndtr_relative(x: Any) -> Any:
    """ℓ(x) = log Φ(x) + ½ min(x, 0)², which decreases only like −log|x| for x → −∞."""
    return _relative(x)[0]


@jax.custom_jvp
def hazard_relative(x: Any) -> Any:
    """r(x) = φ(x)/Φ(x) + min(x, 0): about 1/|x| for x → −∞, tiny for x → ∞."""
    return _relative(x)[1]


@log_ndtr_relative.defjvp
def _(primals, tangents):
    return log_ndtr_relative(*primals), hazard_relative(*primals) * tangents[0]


@hazard_relative.defjvp
def _(primals, tangents):
    (x,), r = primals, hazard_relative(*primals)
    h, excess = r - _negative(x), r + (x - _negative(x))
    return r, (jnp.where(x < 0, 1.0, 0.0) - h * excess) * tangents[0]


def log_ndtr(x: Any) -> Any:
    """Log of Φ(x), for any x.

    Examples
    --------
    >>> with jax.enable_x64(True):
    ...     print(float(log_ndtr(-40.0)), float(jax.grad(jax.grad(log_ndtr))(-40.0)))
    -804.608... -0.9993...
    """
    x = jnp.asarray(x)
    return log_ndtr_relative(x) - 0.5 * _negative(x) ** 2


def log_ndtr_between(a: Any, b: Any) -> Any:
    """log(Φ(b) − Φ(a)) for a < b, computed in the tail in which the difference does not cancel."""
    flip = a + b > 0
    low, high = jnp.where(flip, -b, a), jnp.where(flip, -a, b)
    top = log_ndtr(high)
    return top + jnp.log(-jnp.expm1(log_ndtr(low) - top))


def log_exponential_tail(rate: Any, mean: Any, variance: Any) -> Any:
    """Log ∫₀^∞ exp(−rate·t) N(t; mean, variance) dt, without overflow or underflow of its factors."""
    x = (mean - rate * variance) / jnp.sqrt(variance)
    scale = jnp.where(x < 0, -0.5 * mean**2 / variance, rate * (0.5 * rate * variance - mean))
    return scale + log_ndtr_relative(x)


# ------------------------------------------------------------------------------------------------------------- others
@jax.jit  # as `_relative`
def log_gamma_ratio(x: Any, step: Any) -> Any:
    """Log Γ(x + step) − log Γ(x) for step ≥ 0, by Stirling's series where both terms are large."""
    large = jnp.maximum(x, 20.0)
    series = (large + step - 0.5) * jnp.log1p(step / large) + step * jnp.log(large) - step
    series = series + _stirling(large + step) - _stirling(large)
    small = jnp.minimum(x, 20.0)
    exact = jax.scipy.special.gammaln(small + step) - jax.scipy.special.gammaln(small)
    return jnp.where(x > 20.0, series, exact)


def _stirling(x: Any) -> Any:
    u = 1 / x**2
    return (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / x


def exp_linear(x: Any) -> Any:
    """Exponential function, continued linearly beyond 200 so that its powers do not overflow."""
    limit = 200.0
    top = jnp.exp(jnp.minimum(x, limit))
    return jnp.where(x > limit, top * (1 + jnp.maximum(x, limit) - limit), top)


# ---------------------------------------------------------------------------------------------------- sine and cosine
def _half_pi() -> tuple[float, float, float]:
    """π/2 as a sum of three numbers, of which the first two have 33 bits: so many quarter turns times them is exact."""
    whole = Fraction("3.14159265358979323846264338327950288419716939937511") / 2
    first = Fraction(int(whole * 2**32), 2**32)
    second = Fraction(int((whole - first) * 2**65), 2**65)
    return float(first), float(second), float(whole - first - second)


_HALF_PI = _half_pi()
_MOST = 2.0**20  # up to here quarter turns have 20 bits


def _sine(x: Any, quarters: int) -> Any:
    """sin(x + quarters·π/2), to a unit in the last place of one.

    x is brought into ±π/4 by quarter turns (Cody & Waite 1980), where Taylor's series has nine terms. XLA's own sine
    takes ten times as long, most of the time of an evaluation with a few hundred waves; it is left to huge numbers.
    """

    def series(r: Any, first: int) -> Any:
        """Taylor's series of the sine (1) or cosine (0), by Horner's rule, without the factor r of the sine."""
        total = jnp.zeros_like(r)
        for k in reversed(range(9)):
            total = total * r**2 + (-1) ** k / factorial(2 * k + first)
        return total

    def near(x: Any) -> Any:
        turns = jnp.round(x * (2.0 / np.pi))
        r = ((x - turns * _HALF_PI[0]) - turns * _HALF_PI[1]) - turns * _HALF_PI[2]
        quadrant = turns.astype(jnp.int32) + quarters
        value = jnp.where(quadrant & 1, series(r, 0), r * series(r, 1))
        return jnp.where(quadrant & 2, -value, value)

    x = jnp.asarray(x)
    return jax.lax.cond(jnp.all(jnp.abs(x) < _MOST), near, jnp.cos if quarters else jnp.sin, x)


@jax.custom_jvp
def sin(x: Any) -> Any:
    """Sine, in double precision."""
    return _sine(x, 0)


@jax.custom_jvp
def cos(x: Any) -> Any:
    """Cosine, in double precision."""
    return _sine(x, 1)


@sin.defjvp
def _(primals, tangents):
    return sin(*primals), cos(*primals) * tangents[0]


@cos.defjvp
def _(primals, tangents):
    return cos(*primals), -sin(*primals) * tangents[0]
