"""The bivariate normal distribution function, in logarithms, with derivatives of any order."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, owens_t

from errorband.quadrature import log_integral
from errorband.special import LOG_2PI, log_ndtr

LARGEST = 1 - 1e-12  # correlation, in absolute value: beyond it the two factors have no width


@jax.custom_jvp
def log_ndtr2(h: Any, k: Any, rho: Any) -> Any:
    """Log Φ₂(h, k; ρ) = log P(Z₁ ≤ h, Z₂ ≤ k), of two standard normal variables with correlation ρ.

    With a common factor, Z = ±√|ρ| X + √(1 − |ρ|) ε for each, the two are independent given X, and

        Φ₂ = ∫ Φ((h − √|ρ| x)/√(1 − |ρ|)) Φ((k ∓ √|ρ| x)/√(1 − |ρ|)) N(x; 0, 1) dx,

    an integral over one log-concave function, which is found in logarithms: nothing under- or overflows. Derivatives
    need no integral: ∂Φ₂/∂h = φ(h) Φ((k − ρh)/√(1 − ρ²)) and ∂Φ₂/∂ρ = φ₂(h, k; ρ) (Genz 2004).

    Examples
    --------
    >>> with jax.enable_x64(True):
    ...     print(round(float(jnp.exp(log_ndtr2(0.0, 0.0, 0.5))), 12), round(float(log_ndtr2(-40.0, -30.0, 0.9)), 5))
    0.333333333333 -804.60844
    """
    size = jnp.clip(jnp.abs(rho), 1e-12, LARGEST)
    slope, rest = jnp.sqrt(size), jnp.sqrt(1 - size)
    turned = jnp.where(rho < 0, -slope, slope)

    def log_g(x):
        return log_ndtr((h - slope * x) / rest) + log_ndtr((k - turned * x) / rest)

    # With a large correlation the two factors are steps.
    steps = jnp.stack([h / slope, k / turned]), jnp.full(2, rest / slope)
    return log_integral(log_g, jnp.zeros_like(size), jnp.ones_like(size), frozen=log_g, concave=True, feature=steps)


@log_ndtr2.defjvp
def _(primals, tangents):
    h, k, rho = (jnp.asarray(x) for x in primals)
    value = log_ndtr2(h, k, rho)
    s2 = 1 - jnp.clip(rho, -LARGEST, LARGEST) ** 2
    s = jnp.sqrt(s2)
    by_h = jnp.exp(-0.5 * (h**2 + LOG_2PI) + log_ndtr((k - rho * h) / s) - value)
    by_k = jnp.exp(-0.5 * (k**2 + LOG_2PI) + log_ndtr((h - rho * k) / s) - value)
    by_rho = jnp.exp(-0.5 * (h**2 + k**2 - 2 * rho * h * k) / s2 - LOG_2PI - 0.5 * jnp.log(s2) - value)
    return value, by_h * tangents[0] + by_k * tangents[1] + by_rho * tangents[2]


def ndtr2(h: Any, k: Any, rho: Any) -> np.ndarray:
    """Φ₂(h, k; ρ) of NumPy arrays, to rounding in absolute terms, by Owen's T function (Owen 1956)."""
    h, k, rho = np.broadcast_arrays(*(np.asarray(x, float) for x in (h, k, rho)))
    h, k = (np.where(np.abs(x) < 1e-150, 1e-150, x) for x in (h, k))
    s = np.sqrt(np.maximum((1 - rho) * (1 + rho), 1e-30))
    opposite = np.where(h * k > 0, 0.0, 0.5)
    parts = owens_t(h, (k - rho * h) / (h * s)) + owens_t(k, (h - rho * k) / (k * s))
    return np.clip(0.5 * (ndtr(h) + ndtr(k)) - parts - opposite, 0.0, 1.0)
