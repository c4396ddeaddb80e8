"""Inter-domain features of the squared exponential: integrals of the function under Gaussian windows and waves.

    u = ∫ f(x) g(x) dx,   g(x) = Σ_k π_k N(x; μ_k, diag(v_k)) cos(θ_k + ωᵀ(x − μ_k)).

With length-scales one, per input, and d = x − μ, s = 1 + v, δ = μ − μ', q = 1 + v + v', a = vω − v'ω' the integrals are

    K_fu = σ² ∏ s^−½ exp(−(d² + vω²)/2s) · cos(θ + Σ vωd/s),                                                       (1)
    K_uu = ½σ² ∏ q^−½ Σ_± exp(−½[vω² + v'ω'² + (δ² − a²)/q]) cos(θ ± θ' − Σ δa/q),   with ±ω' in a,                (2)

of one component with another (the kernel being E exp(iz(x − x')) over a normal z, both are Gaussian integrals). Points
have v = 0, averages ω = θ = 0. A multiple of u says the same as u: each feature is divided by its own standard
deviation, or about so if it has several components, which keeps K_uu well conditioned however fast the waves are.

The formulas (4.12) to (4.16) that Lázaro-Gredilla (2010) prints for windows with waves lack ½, ℓ² and the phase shift
Σ δa/q; with them (f, u) is no Gaussian process.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from errorband import special
from errorband.features.base import Features
from errorband.kernels import Kernel, SquaredExponential

SMALLEST = 1e-8  # of 1 + e^(…) cos 2θ, which is zero for a sine of frequency zero


class Windows(NamedTuple):
    """M features of K components each, in units of the length-scales.

    Attributes
    ----------
    centres, variances : arrays (M, K, D)
        μ and v.
    shares : array (M, K)
        π.
    frequencies : array (M, D) or None
        ω; None: no waves.
    phases : array (M, K) or None
        θ.
    """

    centres: Any
    variances: Any
    shares: Any
    frequencies: Any = None
    phases: Any = None

    @property
    def flat(self) -> tuple[Any, Any, Any, Any]:
        """Centres, variances and frequencies (M·K, D) and phases (M·K,) of the components."""
        M, K, D = self.centres.shape
        mu, v = (a.reshape(M * K, D) for a in (self.centres, self.variances))
        if self.frequencies is None:
            return mu, v, None, None
        return mu, v, jnp.repeat(self.frequencies, K, axis=0), self.phases.reshape(M * K)


class Windowed(Features):
    """Base of features that are windows: a subclass writes ``windows``, from which all covariances follow."""

    def windows(self, kernel: Any) -> Windows:
        """The features in units of the length-scales of the kernel. Traced."""
        raise NotImplementedError

    def check(self, kernel: Kernel) -> None:
        if type(kernel) is not SquaredExponential:
            raise ValueError(f"{type(self).__name__} needs the kernel SquaredExponential; got {type(kernel).__name__}.")

    def K_fu(self, kernel: Any, X):
        return covariance_with_function(kernel, X, self.windows(kernel))

    def K_uu(self, kernel: Any):
        return covariance(kernel, self.windows(kernel))


def points(places: Any) -> Windows:
    """Values of the function at M places, in units of the length-scales."""
    return Windows(places[:, None], jnp.zeros_like(places)[:, None], jnp.ones((len(places), 1)))


def joined(parts: list[Windows]) -> Windows:
    """Features of several kinds as one: components that a feature does not have get the share zero."""
    K, D = max(w.shares.shape[1] for w in parts), parts[0].centres.shape[2]
    waves = any(w.frequencies is not None for w in parts)
    ready = []
    for w in parts:
        M, k = w.shares.shape
        pad = lambda a: jnp.pad(a, [(0, 0), (0, K - k)] + [(0, 0)] * (a.ndim - 2))  # noqa: B023, E731
        omega = jnp.zeros((M, D)) if w.frequencies is None else w.frequencies
        theta = jnp.zeros((M, K)) if w.phases is None else pad(w.phases)
        ready.append((pad(w.centres), pad(w.variances), pad(w.shares), omega, theta))
    fields = [jnp.concatenate(field) for field in zip(*ready, strict=True)]
    return Windows(*fields) if waves else Windows(*fields[:3])


def covariance_with_function(kernel: Any, X: Any, windows: Windows) -> Any:
    """K_fu (n, M), equation (1). Traced. By products, so that no array of (n, M, D) is made."""
    x = kernel.select(X) / kernel.lengthscale
    mu, v, omega, theta = windows.flat
    s = 1.0 + v
    distance = x**2 @ (1.0 / s).T - 2.0 * x @ (mu / s).T + jnp.sum(mu**2 / s, axis=1)
    exponent = -0.5 * (jnp.maximum(distance, 0.0) + jnp.sum(jnp.log(s), axis=1))
    values = jnp.exp(exponent + _fading(v, s, omega) - 0.5 * _log_size(windows))
    if omega is not None:
        turn = v * omega / s
        values = values * special.cos(theta + x @ turn.T - jnp.sum(turn * mu, axis=1))
    return kernel.variance * _combined(values, windows)


def covariance(kernel: Any, windows: Windows) -> Any:
    """K_uu (M, M), equation (2). Traced. Input by input, so that no array of (M, M, D) is made."""
    mu, v, omega, theta = windows.flat
    size = 0.5 * _log_size(windows)

    @jax.checkpoint
    def one_input(columns):
        m, v, w = columns
        delta, q = m[:, None] - m, 1.0 + v[:, None] + v
        plain = -0.5 * (jnp.log(q) + delta**2 / q)
        if w is None:
            return (plain,)
        faded = plain - 0.5 * (v * w**2)[:, None] - 0.5 * v * w**2
        sides = [(v * w)[:, None] - sign * v * w for sign in (1.0, -1.0)]
        return tuple((faded + a**2 / (2.0 * q), delta * a / q) for a in sides)

    columns = (mu.T, v.T, None if omega is None else omega.T)
    start = jax.tree.map(jnp.zeros_like, one_input(jax.tree.map(lambda a: a[0], columns)))
    total, _ = jax.lax.scan(lambda sums, c: (jax.tree.map(jnp.add, sums, one_input(c)), None), start, columns)
    scale = size[:, None] + size
    if omega is None:
        values = jnp.exp(total[0] - scale)
    else:
        (e_plus, turn_plus), (e_minus, turn_minus) = total
        plus = jnp.exp(e_plus - scale) * special.cos(theta[:, None] + theta - turn_plus)
        values = 0.5 * (plus + jnp.exp(e_minus - scale) * special.cos(theta[:, None] - theta - turn_minus))
    values = _combined(_combined(values, windows).T, windows)
    return kernel.variance * 0.5 * (values + values.T)


def _fading(v: Any, s: Any, omega: Any) -> Any:
    return 0.0 if omega is None else -0.5 * jnp.sum(v * omega**2 / s, axis=1)


def _log_size(windows: Windows) -> Any:
    """Log of the prior variance of each component by itself, the average over those of a feature; (M·K,)."""
    _, v, omega, theta = windows.flat
    q = 1.0 + 2.0 * v
    size = -0.5 * jnp.sum(jnp.log(q), axis=1)
    if omega is not None:
        rest = jnp.exp(-jnp.sum(v * omega**2 * (1.0 - 1.0 / q), axis=1)) * special.cos(2.0 * theta)
        size = size - jnp.sum(v * omega**2 / q, axis=1) + jnp.log(0.5 * jnp.maximum(1.0 + rest, SMALLEST))
    M, K = windows.shares.shape
    return size if K == 1 else jnp.repeat(jnp.mean(size.reshape(M, K), axis=1), K)


def _combined(values: Any, windows: Windows) -> Any:
    """From columns of components to columns of features."""
    M, K = windows.shares.shape
    return values if K == 1 else jnp.sum(values.reshape(-1, M, K) * windows.shares, axis=2)
