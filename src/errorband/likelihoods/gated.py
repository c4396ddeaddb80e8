"""Mixtures of normals whose weights are latent functions: what the twinned and mixed models have in common."""

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit, ndtr

from errorband.likelihoods.base import Likelihood, floored, in_rows
from errorband.likelihoods.bivariate import log_ndtr2, ndtr2
from errorband.likelihoods.gaussian import log_normal
from errorband.parameters.checks import generator
from errorband.predictive import QuantilesFromCdf
from errorband.programs import program
from errorband.quadrature import (
    expectation,
    expectation_nd,
    log_integral,
    log_integral_nd,
    normal_rule,
    stretched_trapezoid,
)
from errorband.special import log_ndtr

THREE = 30, 3, 4.4  # nodes in each of three dimensions, and their reach: for noise not far below what f varies
NODES, EDGE = 64, 9.0  # of the first of two gates, in standard deviations from its mean

# For E log Φ(u): the trapezoid rule, exact to rounding up to a standard deviation of 5 (Φ has zeros 2.8 off the real
# line), and to 1e-8 at 10.
Z = np.linspace(-9.0, 9.0, 161)
WEIGHTS = np.exp(-0.5 * Z**2) / np.sum(np.exp(-0.5 * Z**2))


class Gate(NamedTuple):
    """The factor Φ(sign·(u + bias)), u the latent function of this number."""

    latent: int
    sign: float
    bias: Any


class Branch(NamedTuple):
    """One term of the mixture: weight · ∏ gates · N(y; centre + f, variance), f the latent function ``leaf``.

    Without a leaf the normal is the same everywhere.
    """

    leaf: int | None
    variance: Any
    gates: tuple[Gate, ...]
    outlier: bool = False
    centre: Any = 0.0
    log_weight: Any = 0.0


class Gated(Likelihood):
    """p(y | f) = Σ weight · ∏ Φ(±(u + bias)) · N(y; f, variance): a subclass lists the branches.

    Φ(u) = P(u + ε > 0), ε ~ N(0, 1), so that a branch is an event of normal variables and its integral over
    N(f; m, V) is exact. With r = y − m_f and B = V_ff + variance, the gate given y is normal:

        Z = N(y; m_f, B) Φ(±q),    q = (m_u + bias + V_uf r/B)/√(1 + V_uu − V_uf²/B),

    and with two gates Φ₂ takes the place of Φ (Naish-Guzman 2007, §3.3 and §4.4). EP's moments follow by automatic
    differentiation.
    """

    closed_tilted: ClassVar[bool] = True
    closed_conditionals: ClassVar[bool] = True
    location_scale: ClassVar[bool] = True

    @abc.abstractmethod
    def branches(self) -> tuple[Branch, ...]:
        """The terms of the mixture. Traceable."""

    # ------------------------------------------------------------------ called by inference
    def log_prob(self, y, f):
        def one(b):
            at = b.centre if b.leaf is None else b.centre + f[b.leaf]
            gates = sum(log_ndtr(g.sign * (f[g.latent] + g.bias)) for g in b.gates)
            return b.log_weight + gates + log_normal(y, at, b.variance)

        return _log_sum([one(b) for b in self.branches()])

    def log_tilted(self, y, mean, cov):
        return _log_sum([log_branch(b, y, mean, cov) for b in self.branches()])

    def _log_tilted_quadrature(self, y, mean, cov, power):
        """For one gate: over f on panels, which resolve small noise, and over u given f by a fixed rule."""
        if self.n_latents != 2:
            still, fixed = self._frozen(y), jax.lax.stop_gradient(power)
            log_g, frozen = lambda f: power * self.log_prob(y, f), lambda f: fixed * still(f)
            return log_integral_nd(log_g, mean, cov, frozen=frozen, concave=False, rule=stretched_trapezoid(*THREE))

        def log_g_of(likelihood, y, mean, cov, power):
            def log_g(f):
                u, log_weights = _gate_nodes(f, mean, cov)
                log_p = jax.vmap(lambda u: likelihood.log_prob(y, jnp.stack([f, u])))(u)
                return jax.nn.logsumexp(power * log_p + log_weights)

            return log_g

        arguments = (self, y, mean, cov, power)
        frozen = log_g_of(*jax.lax.stop_gradient(arguments))
        rule = {"frozen": frozen, "concave": False, "feature": self._narrowest(y)}
        return log_integral(log_g_of(*arguments), mean[0], cov[0, 0], **rule)

    def expected_log_prob(self, y, mean, cov):
        if self.n_latents != 2:
            return expectation_nd(lambda f: self.log_prob(y, f), mean, cov, stretched_trapezoid(*THREE))

        def average_of(likelihood, y, mean, cov):
            def average(f):
                u, log_weights = _gate_nodes(f, mean, cov)
                log_p = jax.vmap(lambda u: likelihood.log_prob(y, jnp.stack([f, u])))(u)
                return jnp.sum(np.exp(log_weights) * log_p)

            return average

        arguments = (self, y, mean, cov)
        frozen = average_of(*jax.lax.stop_gradient(arguments))
        rule = {"frozen": frozen, "concave": False, "feature": self._narrowest(y)}
        return expectation(average_of(*arguments), mean[0], cov[0, 0], **rule)

    def variational_term(self, y, mean, cov):
        """Log Σ exp E log(a branch): the lower bound of E log p with a distribution over the branches of each row.

        For any weights q of the branches w_c, E log Σ w_c ≥ Σ q_c (E log w_c − log q_c), and the best are q_c ∝
        exp E log w_c (Naish-Guzman 2007, §4.3, whose q(c) q(f) q(u) this is: correlations of f and u play no part).
        E log N is closed, and E log Φ one-dimensional.
        """
        return _log_sum([expected_log_branch(b, y, mean, cov) for b in self.branches()])

    def _narrowest(self, y: Any) -> tuple[Any, Any]:
        return y, jnp.sqrt(jnp.min(jnp.stack([jnp.asarray(b.variance) for b in self.branches()])))

    # ------------------------------------------------------------------ outliers
    def outlier_probability(self, y: Any, mean: Any, cov: Any) -> np.ndarray:
        """P(outlier | y), given latent mean (n, L) and covariance (n, L, L) predicted without y (the cavity)."""
        return expit(in_rows(_log_odds, self, np.asarray(y, float), *floored(mean, cov)))

    def outlier_rate(self, mean: Any, cov: Any) -> np.ndarray:
        """P(outlier) of targets not seen yet, given latent mean (n, L) and covariance (n, L, L)."""
        mean, cov = floored(mean, cov)
        return np.sum([_rate(b, mean, cov) for b in self.branches() if b.outlier], axis=0)

    # ------------------------------------------------------------------ prediction
    def predictive(self, mean, cov):
        return GatedPredictive(self, *floored(mean, cov))

    def conditional_mean(self, f):
        return sum(w * at for w, at, _ in self._given(f))

    def conditional_variance(self, f):
        return sum(w * (v + at**2) for w, at, v in self._given(f)) - self.conditional_mean(f) ** 2

    def conditional_cdf(self, y, f):
        return sum(w * ndtr((y - at) / np.sqrt(v)) for w, at, v in self._given(f))

    def conditional_sample(self, f, rng):
        weights, centres, variances = (np.stack(part) for part in zip(*self._given(f), strict=True))
        edges = np.cumsum(weights, axis=0)[:-1]
        which = np.sum(rng.random(edges.shape[1:]) > edges, axis=0)[None]
        at, v = (np.take_along_axis(a, which, axis=0)[0] for a in (centres, variances))
        return at + np.sqrt(v) * rng.standard_normal(at.shape)

    def _given(self, f: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Weight, mean and variance of each branch at latent values (..., L)."""
        f, found = np.asarray(f, float), []
        for b in self.branches():
            w = np.full(f.shape[:-1], np.exp(float(b.log_weight)))
            for gate in b.gates:
                w = w * ndtr(gate.sign * (f[..., gate.latent] + float(gate.bias)))
            at = float(b.centre) + (np.zeros(w.shape) if b.leaf is None else f[..., b.leaf])
            found.append((w, at, np.full(w.shape, float(b.variance))))
        return found


def _gate_nodes(f: Any, mean: Any, cov: Any) -> tuple[Any, np.ndarray]:
    """Nodes and log weights for the second of two latent values, given the first."""
    nodes, log_weights = normal_rule(1)
    slope = cov[0, 1] / cov[0, 0]
    rest = jnp.maximum(cov[1, 1] - slope * cov[0, 1], 1e-14 * cov[1, 1])
    return mean[1] + slope * (f - mean[0]) + jnp.sqrt(rest) * nodes[:, 0], log_weights


def log_branch(b: Branch, y: Any, mean: Any, cov: Any) -> Any:
    """Log Z of one branch of one datum. Traceable."""
    at, spread = b.centre, b.variance
    if b.leaf is not None:
        at, spread = at + mean[b.leaf], spread + cov[b.leaf, b.leaf]
    value = b.log_weight + log_normal(y, at, spread)
    cross = [0.0 if b.leaf is None else cov[gate.latent, b.leaf] for gate in b.gates]
    # Mean and variance of u + bias + ε for each gate, given y.
    m = [mean[g.latent] + g.bias + c * (y - at) / spread for g, c in zip(b.gates, cross, strict=True)]
    v = [1 + cov[g.latent, g.latent] - c**2 / spread for g, c in zip(b.gates, cross, strict=True)]
    q = [g.sign * m_ / jnp.sqrt(v_) for g, m_, v_ in zip(b.gates, m, v, strict=True)]
    if len(q) == 1:
        return value + log_ndtr(q[0])
    first, second = b.gates  # no tree here is deeper
    c12 = cov[first.latent, second.latent] - cross[0] * cross[1] / spread
    return value + log_ndtr2(*q, first.sign * second.sign * c12 / jnp.sqrt(v[0] * v[1]))


def expected_log_branch(b: Branch, y: Any, mean: Any, cov: Any) -> Any:
    """E log of one branch of one datum under N(mean, cov). Traceable."""
    at, wide = b.centre, 0.0
    if b.leaf is not None:
        at, wide = at + mean[b.leaf], cov[b.leaf, b.leaf]
    value = b.log_weight + log_normal(y, at, b.variance) - 0.5 * wide / b.variance
    for gate in b.gates:
        size, at = jnp.sqrt(cov[gate.latent, gate.latent]), mean[gate.latent] + gate.bias
        value += jnp.sum(WEIGHTS * log_ndtr(gate.sign * (at + size * Z)))
    return value


def _log_sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = jnp.logaddexp(total, term)
    return total


@program
def _log_odds(likelihood: Gated, y: Any, mean: Any, cov: Any) -> Any:
    """Log of the odds that each target is an outlier."""

    def one(y, mean, cov):
        regular, wrong = (
            _log_sum([log_branch(b, y, mean, cov) for b in likelihood.branches() if b.outlier == kind])
            for kind in (False, True)
        )
        return wrong - regular

    return jax.vmap(one)(y, mean, cov)


def _rate(b: Branch, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Weight (n,) of a branch, averaged over its gates."""
    size = [np.sqrt(1 + cov[:, g.latent, g.latent]) for g in b.gates]
    t = [g.sign * (mean[:, g.latent] + float(g.bias)) / s for g, s in zip(b.gates, size, strict=True)]
    weight = np.exp(float(b.log_weight))
    if len(t) == 1:
        return weight * ndtr(t[0])
    first, second = b.gates
    rho = first.sign * second.sign * cov[:, first.latent, second.latent] / (size[0] * size[1])
    return weight * ndtr2(t[0], t[1], rho)


class _Part(NamedTuple):
    """A branch at n inputs, or a share: y = at + slope·Z + rest, of variance B, in the event sign·(Z + t) > 0.

    Z ~ N(0, 1) is the gate, standardised.
    """

    weight: np.ndarray
    sign: float
    t: np.ndarray
    at: np.ndarray
    B: np.ndarray
    slope: np.ndarray

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Integrals of y and y² over the event."""
        inside = self.weight * ndtr(self.sign * self.t)
        edge = self.weight * self.sign * np.exp(-0.5 * self.t**2) / np.sqrt(2 * np.pi) * self.slope
        return inside * self.at + edge, inside * (self.at**2 + self.B) + edge * (2 * self.at - self.slope * self.t)

    def cdf(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        t, at, size, slope = self.t[rows], self.at[rows], np.sqrt(self.B[rows]), self.slope[rows]
        return self.weight[rows] * ndtr2((y - at) / size, self.sign * t, -self.sign * slope / size)


class GatedPredictive(QuantilesFromCdf):
    """Targets of a mixture whose branches have one gate or two: density, cdf and moments.

    With t = (m_u + bias)/√(1 + V_uu) and ρ the correlation of target and gate, a branch of one gate has the weight
    Φ(±t) and adds Φ₂(z, ±t; ∓ρ) to the cdf. Of two gates the first is integrated over by a rule of Gauss and Legendre:
    given its value, the branch has one.
    """

    def __init__(self, likelihood: Gated, mean: np.ndarray, cov: np.ndarray):
        self.likelihood, self.latent_mean, self.latent_cov = likelihood, mean, cov
        self._parts = [part for b in likelihood.branches() for part in _parts(b, mean, cov)]
        first, second = np.sum([part.moments() for part in self._parts], axis=0)
        self.mean, self.std = first, np.sqrt(np.maximum(second - first**2, 0.0))

    def _cdf(self, y, rows):
        return np.clip(sum(part.cdf(y, rows) for part in self._parts), 0.0, 1.0)

    def log_density(self, y):
        return self.likelihood.log_density(self._targets(y), self.latent_mean, self.latent_cov)

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        size, axes = np.linalg.eigh(self.latent_cov)
        root = axes * np.sqrt(np.maximum(size, 0.0))[:, None, :]
        noise = rng.standard_normal((n_samples, *self.latent_mean.shape))
        return self.likelihood.conditional_sample(self.latent_mean + np.einsum("nij,snj->sni", root, noise), rng)


def _parts(b: Branch, mean: np.ndarray, cov: np.ndarray) -> list[_Part]:
    """A branch as parts with one gate: itself, or one for each node of the first of its two gates."""
    n, last = len(mean), b.gates[-1]
    at, B, leaf = np.full(n, float(b.centre)), np.full(n, float(b.variance)), np.zeros((n, mean.shape[1]))
    if b.leaf is not None:
        at, B, leaf = at + mean[:, b.leaf], B + cov[:, b.leaf, b.leaf], cov[:, b.leaf]
    weight = np.full(n, np.exp(float(b.log_weight)))
    m, v, c = mean[:, last.latent] + float(last.bias), 1 + cov[:, last.latent, last.latent], leaf[:, last.latent]
    if len(b.gates) == 1:
        return [_Part(weight, last.sign, m / np.sqrt(v), at, B, c / np.sqrt(v))]
    first = b.gates[0]
    size = np.sqrt(1 + cov[:, first.latent, first.latent])
    edge = np.clip(-(mean[:, first.latent] + float(first.bias)) / size, -EDGE, EDGE)  # beyond it the gate is open
    x, w = np.polynomial.legendre.leggauss(NODES)
    half = 0.5 * (EDGE - first.sign * edge)
    # Slopes of the target and of the second gate in the standardised first one, and what is left given its value z.
    slope, k = leaf[:, first.latent] / size, cov[:, first.latent, last.latent] / size
    rest = np.sqrt(v - k**2)
    parts = []
    for node, share in zip(x, w, strict=True):
        z = edge + first.sign * half * (1 + node)
        inside = weight * share * half * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        second = (m + k * z) / rest, at + slope * z, B - slope**2, (c - slope * k) / rest
        parts.append(_Part(inside, last.sign, *second))
    return parts
