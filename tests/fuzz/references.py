"""Answers of plain NumPy to draws with one latent function: dense algebra, integrals by sums over a grid.

Effective priors are those of Quiñonero-Candela & Rasmussen (2005). ``None`` stands for a draw that NumPy has no answer
to, because it is too badly conditioned for explicit inverses, or grids do not agree.
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
STEP = 3e-3  # of differences, in standard deviations of the posterior
ALIKE = 1e-4  # integrals on two grids that differ by more are not trusted
X_0, X_1, X_2 = 1.0, GRID[:, None], GRID[:, None] ** 2 - 1.0


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


def by_sites(rule: str, power: float, prior: Prior, m: np.ndarray, new_mean: np.ndarray, log_p: Any, sites: Any) -> Any:
    """Evidence at the sites that a rule ended with, and predictions after one more step of it, which leads nowhere.

    The sites are shifts and precisions (n,). Any fixed point will do, so the likelihood need not be log-concave.
    """
    step = {"Laplace": _laplace, "KL": _kl, "EP": functools.partial(_ep, power=power)}[rule]
    with np.errstate(all="ignore"):
        try:
            found = step(prior.S, m, prior.residual, log_p, *sites)
        except np.linalg.LinAlgError:
            return None
    if found is None or not np.all(np.isfinite(np.concatenate(found[1:]))):
        return None
    value, shift, precision = found
    system = np.eye(len(m)) + precision[:, None] * prior.S
    if not np.linalg.cond(system) < LARGEST_CONDITION:
        return None
    mean, cov = predict_from_sites(prior.S, prior.cross, prior.new, shift, precision)
    return Answer(value, new_mean + mean, np.diagonal(cov))


def _laplace(S: np.ndarray, m: np.ndarray, r: np.ndarray, log_p: Any, shift: np.ndarray, precision: np.ndarray) -> Any:
    """Newton's step, derivatives by differences on the scale of the posterior."""
    h, A, _ = marginals(S, shift, precision)
    if not np.all(np.diagonal(A) > 0):
        return None
    step = STEP * np.sqrt(np.diagonal(A)) + 1e-8 * np.abs(m + h)
    below, at, above = log_p(m + h + step * np.array([[-1.0], [0.0], [1.0]]))
    gradient, W = (above - below) / (2 * step), (2 * at - above - below) / step**2
    if np.any(8 * np.finfo(float).eps * np.abs(at) / step**2 * np.diagonal(S) > ALIKE):  # rounding of differences
        return None
    sign, log_det = np.linalg.slogdet(np.eye(len(m)) + W[:, None] * S)
    value = np.sum(at) - 0.5 * h @ (shift - precision * h) - 0.5 * log_det
    return (value, W * h + gradient, W) if sign > 0 else None


def _kl(S: np.ndarray, m: np.ndarray, r: np.ndarray, log_p: Any, shift: np.ndarray, precision: np.ndarray) -> Any:
    """Derivatives of E log p in mean and variance by parts: E[x log p]/s and E[(x² − 1) log p]/s² of x = (f − m)/s."""
    h, A, log_partition = marginals(S, shift, precision)
    v = np.diagonal(A)
    wide = v + r
    if not np.all(wide > 0):
        return None
    values = log_p(m + h + np.sqrt(wide) * GRID[:, None])
    of = [np.stack([_expectation(values * of_x, every) for of_x in (X_0, X_1, X_2)]) for every in (1, 2)]
    if not np.allclose(*of, rtol=ALIKE, atol=ALIKE):  # a grid of half the points is as good
        return None
    expected, gradient, W = of[0][0], of[0][1] / np.sqrt(wide), -of[0][2] / wide
    divergence = np.sum(shift * h - 0.5 * precision * (h**2 + v)) - log_partition
    return np.sum(expected) - divergence, gradient + W * h, W


def _ep(
    S: np.ndarray, m: np.ndarray, r: np.ndarray, log_p: Any, shift: np.ndarray, precision: np.ndarray, power: float
) -> Any:
    """All sites of power EP anew, from their cavities."""
    h, A, log_partition = marginals(S, shift, precision)
    v = np.diagonal(A)
    cavity_v = 1.0 / (1.0 / v - power * precision)
    cavity_m = cavity_v * (h / v - power * shift)
    wide = cavity_v + r
    if not (np.all(v > 0) and np.all(cavity_v > 0)):
        return None
    tilted = _tilted(log_p, power, m + cavity_m, wide)
    if tilted is None:
        return None
    log_Z, first, second = tilted
    g, nu = (first - m - cavity_m) / wide, (wide - second) / wide**2
    left = r / wide + cavity_v * second / wide**2  # 1 − cavity_v·nu
    normaliser = lambda mean, variance: 0.5 * mean**2 / variance + 0.5 * np.log(variance)  # noqa: E731
    each = log_Z + normaliser(cavity_m, cavity_v) - normaliser(h, v)
    return log_partition + np.sum(each) / power, (g + nu * cavity_m) / left / power, nu / left / power


def _tilted(log_p: Any, power: float, centre: np.ndarray, variance: np.ndarray) -> Any:
    """Log normaliser, means and variances of p(y | f)^power N(f; centre, variance), on grids that follow them."""
    at, size, last = centre, np.sqrt(variance), None
    for _ in range(6):
        f = at + size * GRID[:, None]
        values = power * log_p(f) - 0.5 * (f - centre) ** 2 / variance
        top = np.max(values, axis=0)
        p = np.exp(values - top)
        total = p.sum(axis=0)
        first = np.sum(p * f, axis=0) / total
        second = np.sum(p * (f - first) ** 2, axis=0) / total
        log_Z = top + np.log(total * size * (GRID[1] - GRID[0])) - 0.5 * np.log(2 * np.pi * variance)
        moved = np.inf if last is None else [log_Z - last[0], (first - last[1]) / size, np.log(second / last[2])]
        if np.all(np.abs(moved) < ALIKE):
            return log_Z, first, second
        at, size, last = first, np.sqrt(second), (log_Z, first, second)
    return None


def _expectation(values: np.ndarray, every: int) -> np.ndarray:
    weights = np.exp(-0.5 * GRID[::every] ** 2)
    return weights @ values[::every] / weights.sum()
