r"""Sparse greedy approximation: which rows, and how far from the exact model.

*Gaussian noise.* With t = y − m(X), the mean of the exact model is Ka with a = (K + σ²I)⁻¹t, the minimiser of both

    Q(a) = −tᵀKa + ½ aᵀ(σ²K + K²)a       and       Q*(a) = −tᵀa + ½ aᵀ(σ²I + K)a,

and min Q + σ² min Q* = −½‖t‖². So for any a and a*, Q(a) + σ²Q*(a*) + ½‖t‖² ≥ 0 is at least what Q(a) has above its
minimum; divided by σ² it is in nats (Smola & Bartlett 2001). Both are minimised over growing sets of rows.

*Other log-concave likelihoods.* With c = −log p(y | f) and f = Φb, Φ = K_·n L⁻ᵀ over the chosen rows n, Newton's method
minimises c(Φb) + ½‖b‖². Over all rows the objective has the curvature of the prior at least, so its minimum is at most

    ½ c'ᵀK̃c' + ½‖Φᵀc' + b‖²,      K̃ = K − ΦΦᵀ,

below the value reached; the next row is the one of largest K̃_ii c'_i².
"""

import dataclasses
from typing import Any

import jax
import numpy as np
from sklearn.utils import check_random_state

from errorband import linalg, parameters
from errorband.approximations import Exact
from errorband.data import TrainingData
from errorband.kernels.padded import diagonal, gram
from errorband.likelihoods.base import in_rows
from errorband.model import Model
from errorband.posterior.base import prior_mean
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.training.strategy import Problem, Strategy

FLAT = 1e-10  # share of a row's curvature that must be its own for the row to be added
NEWTON = 50  # steps, at most
WHOLE = 5000  # rows up to which c'ᵀK̃c' is computed; for more it is bounded by the diagonal
CHECKED = 10  # rows added between two computations of it


@dataclasses.dataclass(frozen=True)
class GreedyCertificate:
    """How near the posterior mode over chosen rows is to that over all rows.

    Attributes
    ----------
    rows : array (n,)
        The chosen rows, in order.
    gap : float
        Nats by which the log posterior at the mode may be below that of the exact model, at most.
    relative_gap : float
        Twice the gap over the sum of the values that bound the objective.
    trace : array
        The gap after each step at which it was computed.
    converged : bool
        Whether the tolerance was reached before the number of rows.
    """

    rows: np.ndarray
    gap: float
    relative_gap: float
    trace: np.ndarray
    converged: bool

    def __str__(self) -> str:
        return f"{len(self.rows)} rows: within {self.gap:.3g} nats of the exact posterior mode."


class Greedy(Strategy):
    """Hyperparameters from the exact model of some rows, then kernel functions of chosen rows of all."""

    @in_double_precision
    def run(self, problem, settings):
        approximation: Any = problem.model.approximation
        data, rng = problem.data, check_random_state(settings.random_state)
        if problem.model.likelihood.n_latents > 1:  # of classes, which share a prior
            raise ValueError("SparseGreedy is for one latent function; use FITC or VFE, or multi_class='one_vs_rest'.")
        if not problem.model.likelihood.log_concave:
            raise ValueError("SparseGreedy needs a log-concave likelihood; use FITC or VFE.")
        if data.noise_variance is not None or data.offset is not None:
            raise ValueError("SparseGreedy knows no noise_variance or exposure of each row; use FITC or VFE.")
        some = data.rows(np.sort(rng.permutation(len(data.y))[: approximation.n_rows]))
        first = self.inner.run(Problem(problem.model.without_features(Exact()), problem.rule, some), settings)
        fitted = first.objective.model_at(first.theta)
        certificate = chosen_rows(fitted, data, approximation, rng)
        Z = np.asarray(data.X)[certificate.rows]
        features = problem.model.latent.features.at(parameters.Parameter(Z, fixed=True))
        values = {e.path: e.value for e in parameters.entries(fitted)}
        model = parameters.replace_values(problem.model.with_features([features]), values)
        objective = Problem(model, problem.rule, data).objective()
        return dataclasses.replace(
            first, objective=objective, theta=objective.theta0, warm=None, certificate=certificate
        )


@in_double_precision
def chosen_rows(model: Model, data: TrainingData, approximation: Any, rng: Any) -> GreedyCertificate:
    """Choose rows at given hyperparameters."""
    X = np.asarray(data.X)
    t = data.y - prior_mean(model.latent.mean, X)
    likelihood: Any = model.likelihood
    if likelihood.conjugate and data.weights is None:
        return _regression(model.latent.kernel, X, t, float(likelihood.noise_variance), approximation, rng)
    return _newton(model, X, data, approximation, rng)


class Quadratic:
    """Minimum of −lᵀb + ½ bᵀAb over a growing number of coordinates, by a Cholesky factor that is bordered."""

    def __init__(self, most: int):
        self.L, self.l, self.n = np.zeros((most, most)), np.zeros(most), 0

    def border(self, h: np.ndarray, own: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of candidates with products h (n, k) with the coordinates, own curvature and linear term (k,).

        Returns what adding each lowers the minimum by, L⁻¹h and the curvature that is its own.
        """
        V = linalg.solve_lower(self.L[: self.n, : self.n], h) if self.n else np.zeros((0, h.shape[1]))
        left = own - np.sum(V**2, axis=0)
        half = linalg.solve_lower(self.L[: self.n, : self.n], self.l[: self.n]) if self.n else np.zeros(0)
        g = slope - V.T @ half
        return g**2 / (2 * left), V, left

    def add(self, V: np.ndarray, left: Any, slope: Any) -> None:
        """One coordinate more."""
        n = self.n
        self.L[n, :n], self.L[n, n], self.l[n] = V, np.sqrt(left), slope
        self.n = n + 1

    def solution(self) -> tuple[np.ndarray, float]:
        """The minimiser and the minimum."""
        L = self.L[: self.n, : self.n]
        half = linalg.solve_lower(L, self.l[: self.n])
        return linalg.solve_lower(L, half, transposed=True), -0.5 * float(half @ half)


def _regression(
    kernel: Any, X: np.ndarray, t: np.ndarray, noise: float, approximation: Any, rng: Any
) -> GreedyCertificate:
    """Rows for Q, in the coordinates of a pivoted Cholesky factorisation: ½‖t − Φb‖² + ½σ²‖b‖² − ½‖t‖²; and for Q*."""
    n, most = len(t), min(approximation.n_inducing, len(t))
    primal, dual, value = Quadratic(most), Quadratic(most), 0.0
    Phi, K_dual = np.zeros((n, most), order="F"), np.zeros((n, most), order="F")
    own = diagonal(kernel, X)
    f, left = np.zeros(n), own.copy()  # fit, and prior variance that the chosen rows leave open
    rows, rows_dual, trace, gap, relative = [], [], [], np.inf, np.inf
    while max(len(rows), len(rows_dual)) < most:
        m, k = len(rows), len(rows_dual)
        pool = _drawn(n, approximation.candidates, sorted(set(rows) & set(rows_dual)), rng)
        columns = gram(kernel, X, X[pool])
        possible = (left[pool] > FLAT * own[pool]) & ~np.isin(pool, rows)
        if np.any(possible):
            inside = pool[possible]
            phi = (columns[:, possible] - Phi[:, :m] @ Phi[inside, :m].T) / np.sqrt(left[inside])
            curvature, slope = np.sum(phi**2, axis=0) + noise, phi.T @ t
            gain, V, own_part = primal.border(Phi[:, :m].T @ phi, curvature, slope)
            score = _score(approximation.selection, gain, phi, curvature, t - f, left[inside], inside, rng)
            best = int(np.argmax(score))
            primal.add(V[:, best], own_part[best], slope[best])
            rows.append(int(inside[best]))
            Phi[:, m] = phi[:, best]
            left = np.maximum(left - Phi[:, m] ** 2, 0.0)
            b, value = primal.solution()
            f = Phi[:, : m + 1] @ b
        # The dual has a set of its own, for which the same candidates serve, and needs more rows than the primal.
        possible_dual = ~np.isin(pool, rows_dual)
        if np.any(possible_dual):
            inside = pool[possible_dual]
            gain, V, own_part = dual.border(K_dual[inside, :k].T, noise + own[inside], t[inside])
            best = int(np.argmax(gain))
            dual.add(V[:, best], own_part[best], t[inside[best]])
            rows_dual.append(int(inside[best]))
            K_dual[:, k] = columns[:, possible_dual][:, best]
        elif not np.any(possible):
            break
        gap, relative = _gap(value, dual.solution()[1], noise, t)
        trace.append(gap)
        if relative < approximation.tolerance:
            break
    return GreedyCertificate(np.array(rows), gap, relative, np.array(trace), bool(relative < approximation.tolerance))


def _score(
    selection: str,
    gain: np.ndarray,
    phi: np.ndarray,
    curvature: np.ndarray,
    residual: np.ndarray,
    left: np.ndarray,
    rows: np.ndarray,
    rng: Any,
) -> np.ndarray:
    """How good each candidate is."""
    if selection == "greedy":
        return gain
    if selection == "matching_pursuit":
        return (phi.T @ residual) ** 2 / curvature
    if selection == "residual":
        return np.abs(residual)[rows]
    return left if selection == "information" else rng.rand(len(rows))


def _gap(primal: float, dual: float, noise: float, t: np.ndarray) -> tuple[float, float]:
    """Nats between the log posterior and a bound of the best, and twice that over the sum of the two values."""
    lower = -noise * dual - 0.5 * float(t @ t)
    gap = max(primal - lower, 0.0)
    return gap / noise, 2 * gap / (abs(primal) + abs(lower))


def _drawn(n: int, number: int | None, taken: list[int], rng: Any) -> np.ndarray:
    """Rows to look at."""
    free = np.setdiff1d(np.arange(n), taken) if number is None or n < 4 * number else None
    if number is None:
        assert free is not None
        return free
    if free is not None:
        return np.sort(rng.permutation(free)[:number])
    drawn = rng.choice(n, number + len(taken), replace=False)
    return np.sort(drawn[~np.isin(drawn, taken)][:number])


@in_double_precision
def variance_bounds(kernel: Any, X: np.ndarray, rows: np.ndarray, noise: float, new: np.ndarray) -> Any:
    """Lower and upper bounds (s,) of the exact model's variance of the function at new inputs, from chosen rows.

    The explained part k*ᵀ(K + σ²I)⁻¹k* is −2 min Q* with k* for the targets, and (‖k*‖² + 2 min Q)/σ²: minimised over
    the chosen rows the first is too small and the second too large.
    """
    K, cross, eye = gram(kernel, X, X[rows]), gram(kernel, X, new), np.eye(len(rows))
    chol = linalg.cholesky(linalg.regularised(K[rows]))
    Phi = linalg.solve_lower(chol.factor, np.asfortranarray(K.T)).T
    primal, dual = noise * eye + Phi.T @ Phi, noise * eye + K[rows]
    l_p, l_d = Phi.T @ cross, cross[rows]
    low = np.sum(l_d * np.linalg.solve(dual, l_d), axis=0)
    high = (np.sum(cross**2, axis=0) - np.sum(l_p * np.linalg.solve(primal, l_p), axis=0)) / noise
    prior = diagonal(kernel, new)
    return np.maximum(prior - high, 0.0), prior - low


# ---------------------------------------------------------------------------------- other log-concave likelihoods
def _newton(model: Model, X: np.ndarray, data: TrainingData, approximation: Any, rng: Any) -> GreedyCertificate:
    kernel, n = model.latent.kernel, len(data.y)
    most = min(approximation.n_inducing, n)
    Phi, left = np.zeros((n, most), order="F"), diagonal(kernel, X).copy()
    offset, power = prior_mean(model.latent.mean, X), np.ones(n) if data.weights is None else data.weights
    b, rows, trace, gap, relative = np.zeros(0), [], [], np.inf, np.inf
    first, _ = _derivatives(model, data.y, offset, power)
    while len(rows) < most:
        m = len(rows)
        pool = _drawn(n, approximation.candidates, rows, rng)
        score = {"random": rng.rand(len(pool)), "residual": np.abs(first[pool]), "information": left[pool]}.get(
            approximation.selection, left[pool] * first[pool] ** 2
        )
        i = int(pool[np.argmax(np.where(left[pool] > FLAT * np.max(left), score, -np.inf))])
        if not left[i] > FLAT * np.max(left):
            break
        Phi[:, m] = (gram(kernel, X, X[i : i + 1])[:, 0] - Phi[:, :m] @ Phi[i, :m]) / np.sqrt(left[i])
        left = np.maximum(left - Phi[:, m] ** 2, 0.0)
        rows.append(i)
        b, first = _mode(model, data.y, offset, power, Phi[:, : m + 1], np.append(b, 0.0))
        if (m + 1) % CHECKED == 0 or m + 1 == most:
            gap, relative = _lemma(model, data.y, offset, power, kernel, X, Phi[:, : m + 1], b, first, left)
            trace.append(gap)
            if relative < approximation.tolerance:
                break
    if not trace:
        gap, relative = _lemma(model, data.y, offset, power, kernel, X, Phi[:, : len(rows)], b, first, left)
    return GreedyCertificate(np.array(rows), gap, relative, np.array(trace), bool(relative < approximation.tolerance))


def _lemma(model, y, offset, power, kernel, X, Phi, b, first, left) -> tuple[float, float]:
    """The certificate in nats, and relative to the objective."""
    if len(y) <= WHOLE:
        rest = float(first @ (gram(kernel, X, X) @ first)) - float(np.sum((Phi.T @ first) ** 2))
    else:
        rest = float(np.sum(np.sqrt(left) * np.abs(first))) ** 2
    gap = 0.5 * max(rest, 0.0) + 0.5 * float(np.sum((Phi.T @ first + b) ** 2))
    value = _objective(model, y, offset, power, Phi, b)
    return gap, 2 * gap / (abs(value) + abs(value - gap))


def _mode(model, y, offset, power, Phi, b) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method with steps that are halved: (ΦᵀC''Φ + I)⁻¹(Φᵀc' + b)."""
    value = _objective(model, y, offset, power, Phi, b)
    first, second = _derivatives(model, y, offset + Phi @ b, power)
    for _ in range(NEWTON):
        gradient = Phi.T @ first + b
        H = linalg.cholesky(Phi.T @ (np.maximum(second, 0.0)[:, None] * Phi) + np.eye(len(b)))
        step, size = linalg.solve_cholesky(H.factor, gradient), 1.0
        while (new := _objective(model, y, offset, power, Phi, b - size * step)) > value and size > 1e-6:
            size /= 2
        if new > value:
            break
        b, drop, value = b - size * step, value - new, new
        first, second = _derivatives(model, y, offset + Phi @ b, power)
        if drop < 1e-10 * (1 + abs(value)):
            break
    return b, first


def _objective(model, y, offset, power, Phi, b) -> float:
    log_p = in_rows(_values, model.likelihood, y, offset + Phi @ b)
    return -float(power @ log_p) + 0.5 * float(b @ b)


def _derivatives(model, y, f, power) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of −log p at each row, times its weight."""
    found = in_rows(_slopes, model.likelihood, y, f)
    return -power * found[:, 0], -power * found[:, 1]


@program
def _values(likelihood: Any, y: Any, f: Any) -> Any:
    return jax.vmap(likelihood.log_prob)(y, f)


@program
def _slopes(likelihood: Any, y: Any, f: Any) -> Any:
    first = jax.grad(likelihood.log_prob, argnums=1)
    return jax.numpy.stack([jax.vmap(first)(y, f), jax.vmap(jax.grad(first, argnums=1))(y, f)], axis=1)
