"""Answers of plain NumPy to draws with one latent function: dense algebra, integrals by sums over a grid.

Effective priors are those of Quiñonero-Candela & Rasmussen (2005). ``None`` stands for a draw that NumPy has no answer
to, because it is too badly conditioned for explicit inverses, too peaked for the grid, or does not settle.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

import dense_reference as dense
from errorband.linalg import INDUCING_JITTER
from errorband.precision import double_precision
from site_reference import GRID, marginals
from site_reference import predict as predict_from_sites

LARGEST_CONDITION = 1e8
STEP = 1e-3  # of differences
NEAR = 4.0  # a tilted mean further than so many deviations of the cavity is at the end of the grid
PEAKED = 0.1  # a tilted standard deviation below this part of the cavity's is too narrow for the grid


class Prior(NamedTuple):
    """Covariance (n, n) of what the sites act on, cross covariance (n, s), covariance (s, s) at new inputs.

    ``residual`` (n,) is the variance that the likelihood sees and the sites do not, of which ``share`` counts as noise.
    """

    S: np.ndarray
    cross: np.ndarray
    new: np.ndarray
    residual: np.ndarray
    share: float = 0.0


class Answer(NamedTuple):
    """Log evidence, and means and variances of the latent function at new inputs."""

    log_evidence: float
    mean: np.ndarray
    variance: np.ndarray


def effective_prior(approximation: Any, latent: Any, X: np.ndarray, new: np.ndarray) -> Prior | None:
    """What the approximation makes of the prior, from its definition."""
    name, kernel, none = type(approximation).__name__, latent.kernel, np.zeros(len(X))
    if name in ("Exact", "SubsetOfData", "IVM"):
        return Prior(kernel(X), kernel(X, new), kernel(new), none)
    if name not in ("SoR", "DTC", "FITC", "VFE", "PowerEP", "PITC"):
        return None
    Z = np.asarray(latent.features.inducing_inputs)
    K_uu = kernel(Z)
    K_uu = K_uu + INDUCING_JITTER * np.mean(np.diagonal(K_uu)) * np.eye(len(Z))
    if not np.linalg.cond(K_uu) < LARGEST_CONDITION:
        return None
    Q = lambda A, B: kernel(A, Z) @ np.linalg.solve(K_uu, kernel(Z, B))  # noqa: E731
    S, left = Q(X, X), kernel(X) - Q(X, X)
    new_cov = Q(new, new) if name == "SoR" else kernel(new)
    if name == "FITC":
        S = S + np.diag(np.diagonal(left))
    elif name == "PITC":
        block = np.argmin(np.sum((X[:, None] - np.asarray(approximation.centres)) ** 2, axis=2), axis=1)
        S = S + np.where(block[:, None] == block, left, 0.0)
    seen = name in ("VFE", "PowerEP")
    share = approximation.power if name == "PowerEP" else 0.0
    return Prior(S, Q(X, new), new_cov, np.diagonal(left) if seen else none, share)


def gaussian(prior: Prior, noise: float, y: np.ndarray) -> Answer | None:
    """In closed form; with the bounds of Titsias (2009) and Bui, Yan & Turner (2017) where a residual is left."""
    r, share = prior.residual, prior.share
    if np.any(r < 0):  # round-off
        return None
    seen = noise + share * r
    if not np.linalg.cond(prior.S + np.diag(seen)) < LARGEST_CONDITION:
        return None
    mean, cov = dense.predict(prior.S, prior.cross, prior.new, seen, y)
    extra = -0.5 * np.sum(r / noise) if share == 0 else -(1 - share) / (2 * share) * np.sum(np.log1p(share * r / noise))
    return Answer(dense.evidence(prior.S, seen, y) + extra, mean, np.diagonal(cov))


@functools.lru_cache(maxsize=1)
def _compiled(structure: Any) -> Any:
    each = jax.vmap(lambda likelihood, y, f: likelihood.log_prob(y, f), in_axes=(None, 0, 0))
    return jax.jit(jax.vmap(each, in_axes=(None, None, 0)))


def log_density(likelihood: Any, y: np.ndarray, size: int) -> Any:
    """The function f (G, n) → log p(y | f) (G, n), compiled for ``size`` targets and the grid."""
    compiled = _compiled(jax.tree.structure(likelihood))
    pad = size - len(y)
    targets = np.concatenate([y, np.full(pad, y[0])])

    def evaluate(f: np.ndarray) -> np.ndarray:
        padded = np.zeros((len(GRID), size))
        padded[: len(f), : len(y)] = f
        with double_precision():
            return np.asarray(compiled(likelihood, targets, padded))[: len(f), : len(y)]

    return evaluate


def by_sites(rule: str, power: float, prior: Prior, m: np.ndarray, new_mean: np.ndarray, log_p: Any) -> Answer | None:
    """Fixed point of a rule with sites, for a likelihood that is log-concave."""
    with np.errstate(all="ignore"):
        try:
            if rule == "Laplace":
                found = _laplace(prior.S, m, log_p)
            elif rule == "KL":
                found = _kl(prior.S, m, prior.residual, log_p)
            else:
                found = _ep(prior.S, m, prior.residual, log_p, power)
        except np.linalg.LinAlgError:
            return None
    if found is None:
        return None
    value, shift, precision = found
    system = np.eye(len(m)) + precision[:, None] * prior.S
    if not np.linalg.cond(system) < LARGEST_CONDITION:
        return None
    mean, cov = predict_from_sites(prior.S, prior.cross, prior.new, shift, precision)
    return Answer(value, new_mean + mean, np.diagonal(cov))


def _laplace(S: np.ndarray, m: np.ndarray, log_p: Any) -> Any:
    """Newton's method with halved steps, derivatives by differences."""

    def psi(a: np.ndarray) -> float:
        return float(np.sum(log_p((m + S @ a)[None])) - 0.5 * a @ S @ a)

    a = np.zeros(len(m))
    value = psi(a)
    for _ in range(60):
        f = S @ a
        below, at, above = log_p(m + f + np.array([[-STEP], [0.0], [STEP]]))
        gradient, W = (above - below) / (2 * STEP), (2 * at - above - below) / STEP**2
        step = np.linalg.solve(np.eye(len(m)) + W[:, None] * S, W * f + gradient) - a
        for halving in range(20):
            tried = psi(a + step / 2**halving)
            if tried >= value:
                break
        a, gain, value = a + step / 2**halving, tried - value, tried
        if abs(gain) < 1e-12 * (1 + abs(value)) and np.max(np.abs(S @ step)) < 1e-6:
            log_det = np.linalg.slogdet(np.eye(len(m)) + W[:, None] * S)[1]
            return (value - 0.5 * log_det, W * f + gradient, W) if np.isfinite(log_det) else None
    return None


def _expectation(values: np.ndarray) -> np.ndarray:
    weights = np.exp(-0.5 * GRID**2)
    return weights @ values / weights.sum()


def _settled(S: np.ndarray, old: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether shifts and precisions hardly move, in units of the prior."""
    size = np.max(np.diagonal(S))
    units = np.sqrt(size), size
    return all(
        np.max(np.abs(a - b)) * unit < 1e-7 * (1e-3 + np.max(np.abs(b)) * unit)
        for a, b, unit in zip(old, new, units, strict=True)
    )


def _kl(S: np.ndarray, m: np.ndarray, r: np.ndarray, log_p: Any) -> Any:
    """Derivatives of E log p in mean and variance by parts: E[x log p]/s and E[(x² − 1) log p]/s² of x = (f − m)/s."""
    shift, precision = np.zeros(len(m)), np.zeros(len(m))
    for _ in range(150):
        h, A, log_partition = marginals(S, shift, precision)
        v = np.diagonal(A)
        wide = v + r
        if not np.all(wide > 0):
            return None
        values = log_p(m + h + np.sqrt(wide) * GRID[:, None])
        if not np.all(np.isfinite(values)):
            return None
        gradient = _expectation(values * GRID[:, None]) / np.sqrt(wide)
        W = -_expectation(values * (GRID[:, None] ** 2 - 1)) / wide
        new = 0.5 * shift + 0.5 * (gradient + W * h), 0.5 * precision + 0.5 * W
        if _settled(S, (shift, precision), new):
            divergence = np.sum(shift * h - 0.5 * precision * (h**2 + v)) - log_partition
            return np.sum(_expectation(values)) - divergence, *new
        shift, precision = new
    return None


def _ep(S: np.ndarray, m: np.ndarray, r: np.ndarray, log_p: Any, power: float) -> Any:
    """Power EP with half steps."""
    shift, precision = np.zeros(len(m)), np.zeros(len(m))
    for _ in range(150):
        h, A, log_partition = marginals(S, shift, precision)
        v = np.diagonal(A)
        cavity_v = 1.0 / (1.0 / v - power * precision)
        cavity_m = cavity_v * (h / v - power * shift)
        wide = cavity_v + r
        if not (np.all(v > 0) and np.all(cavity_v > 0)):
            return None
        x = np.sqrt(wide) * GRID[:, None]
        values = power * log_p(m + cavity_m + x)
        top = np.max(values, axis=0)
        tilted = np.exp(values - top)
        Z = _expectation(tilted)
        first = _expectation(tilted * x) / Z
        second = _expectation(tilted * (x - first) ** 2) / Z
        if not np.all((second > PEAKED**2 * wide) & (np.abs(first) < NEAR * np.sqrt(wide))):
            return None
        g, nu = first / wide, (1.0 - second / wide) / wide
        left = 1.0 - cavity_v * nu
        new = (
            0.5 * shift + 0.5 * (g + nu * cavity_m) / left / power,
            0.5 * precision + 0.5 * nu / left / power,
        )
        if _settled(S, (shift, precision), new):
            normaliser = lambda mean, variance: 0.5 * mean**2 / variance + 0.5 * np.log(variance)  # noqa: E731
            each = np.log(Z) + top + normaliser(cavity_m, cavity_v) - normaliser(h, v)
            return log_partition + np.sum(each) / power, *new
        shift, precision = new
    return None
