"""A double loop that converges to EP's fixed point where there is one."""

import contextlib
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from errorband import interrupts
from errorband.inference.ep import EP, phi, tilted_derivatives
from errorband.inference.sites import Data, SiteRun, masked, parts, run_rule
from errorband.model import PriorAtData
from errorband.programs import program
from errorband.structures import Sites
from errorband.structures.sites import block_matmul, block_solve, block_times, second_moment, symmetrise

MAX_OUTER, MAX_INNER = 100, 200
HALVINGS = 6  # powers t/2 … t/64 are tried if there is no fixed point at power t
NEWTON = 1.0  # Newton's method is tried below this mismatch of moments
NEAR = 1e-2  # parallel sweeps are tried once the mismatch of moments is below this
FLOOR = 1e-4  # a mismatch below this that no longer falls is due to round-off in F
STILL_FALLING = 0.99  # the mismatch falls if it is below this times the last one
NEWTON_STEPS = 15
FAR = 1e6  # stands for a change of sites outside the domain, from which Newton's steps are shortened
MARGIN = 0.1  # an outer step leaves at least this fraction of the least eigenvalue of each cavity precision
LEAST_STEP = 1e-6  # of the outer loop


def double_loop(rule: EP, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
    """EP's fixed point as a min-max problem (Opper & Winther 2005; Heskes & Zoeter 2002).

    With the natural parameters λ of the marginals fixed, the sites minimise

        F(sites) = log ∫ prior · sites + Σ_n (1/ρ) log ∫ p(y_n | f)^t exp(λ_n − ρ·site_n) df,

    where λ_n and site_n stand for the exponents bᵀf − ½fᵀΠf with these natural parameters, t is the power, and ρ = t
    unless rows have weights (:class:`EP`). F is convex in the sites, and its gradient is the mismatch of moments. The
    outer loop sets λ to the moments found, or goes as far towards them as leaves λ − ρ·site proper. Each outer step
    lowers EP's free energy. Near the fixed point damped parallel sweeps usually converge, much faster than the outer
    loop does.

    The outer loop creeps where a cavity is nearly improper, while the evidence has long settled: there Newton's method
    on the mismatch of sites, tried now and then, gets to the fixed point in a few steps.

    The domain, proper λ − ρ·site, may end before the minimum. Then there is no fixed point at this power.
    """
    if not bool(_finish(rule, prior, data, start, 0).valid):
        start = rule.cold(prior)
    sweeping = EP("parallel", rule.power, rule.max_sweeps, rule.tolerance, damping=0.5)
    state, tolerance, next_try = _Outer(start, _marginals(prior, start), np.inf, 0), rule.tolerance, 0
    while state.steps < MAX_OUTER:
        interrupts.safe_point()
        last, state = state, _minimised(rule, prior, data, state)
        if state.residual < tolerance or state.residual == last.residual or np.isnan(state.residual):
            break
        if state.residual < FLOOR and state.residual > STILL_FALLING * last.residual:
            tolerance = FLOOR
            break
        if state.residual < NEAR:
            swept = run_rule(sweeping, prior, data, state.sites)
            if bool(swept.converged & swept.valid):
                return swept
        if state.residual < NEWTON and state.steps >= next_try:
            next_try = int(1.25 * state.steps) + 2
            found = _finish(rule, prior, data, _newton(rule, prior, data, state.sites), state.steps)
            if bool(found.converged & found.valid):
                return found
        marginals = _towards(rule, data, state.marginals, _marginals(prior, state.sites), state.sites)
        state = state._replace(marginals=marginals)
    done = EP("double_loop", rule.power, rule.max_sweeps, tolerance)
    return _finish(done, prior, data, state.sites, state.steps)


class _Outer(NamedTuple):
    """State of the outer loop."""

    sites: Sites
    marginals: Sites  # natural parameters λ of the marginals
    residual: float  # mismatch of moments
    steps: int


def _minimised(rule: EP, prior: PriorAtData, data: Data, state: _Outer) -> _Outer:
    """The inner loop: sites that minimise F at the current λ."""
    sites = _inner(rule, prior, data, state.marginals, state.sites)
    return _Outer(sites, state.marginals, float(_residual(rule, prior, data, sites)), state.steps + 1)


def with_less_power(rule: EP, prior: PriorAtData, data: Data) -> tuple[EP, SiteRun] | None:
    """The largest of the powers t/2, t/4, … at which parallel sweeps reach a fixed point, and that fixed point.

    The smaller the power, the smaller the part of a site that is divided out of its marginal: the domain of proper
    cavities grows until, in the limit of KL, it contains all proper posteriors. The smallest power is also tried with
    the double loop, if rows are not too many for that.
    """
    for halving in range(1, HALVINGS + 1):
        interrupts.safe_point()
        less = dataclasses.replace(rule, power=rule.power / 2**halving)
        run = run_rule(dataclasses.replace(less, mode="parallel"), prior, data, rule.cold(prior))
        if not bool(run.converged & run.valid) and halving == HALVINGS and rule.may_loop(prior):
            run = double_loop(less, prior, data, rule.cold(prior))
        if bool(run.converged & run.valid):
            return less, run
    return None


@program
def _finish(rule: EP, prior: PriorAtData, data: Data, sites: Sites, sweeps: Any) -> SiteRun:
    return rule.finish(prior, data, sites, jnp.asarray(sweeps))


@program
def _residual(rule: EP, prior: PriorAtData, data: Data, sites: Sites) -> Any:
    return rule.look(prior, data, sites).seen.residual


@program
def _swept(rule: EP, prior: PriorAtData, data: Data, sites: Sites) -> tuple[Sites, Any, Any]:
    """Sites that match the tilted moments, the mismatch of moments, and whether all cavities are proper."""
    now = rule.look(prior, data, sites)
    return now.new, now.seen.residual, now.seen.valid


@program
def _marginals(prior: PriorAtData, sites: Sites) -> Sites:
    """Natural parameters of the marginals under these sites."""
    mean, cov = prior.structure.condition(sites).marginals()
    precision = _inverse(cov)
    return Sites(block_times(precision, mean), precision)


@program
def _towards(rule: EP, data: Data, now: Sites, target: Sites, sites: Sites) -> Sites:
    """For each datum the largest of the steps 1, ½, ¼, … from ``now`` to ``target`` that leaves a proper cavity."""
    taken_out = parts(sites, rule.share(data))[1]

    def least_eigenvalue(step):  # of the cavity precision of each datum
        return _least(_moved(now, target, step).precision - taken_out)

    none, whole = jnp.zeros(len(sites.shift)), jnp.ones(len(sites.shift))
    before, after = least_eigenvalue(none), least_eigenvalue(whole)
    enough = MARGIN * jnp.where(after > 0, jnp.minimum(before, after), before)

    def too_long(step):
        return jnp.any((least_eigenvalue(step) < enough) & (step > LEAST_STEP))

    def halve(step):
        return jnp.where(least_eigenvalue(step) >= enough, step, 0.5 * step)

    return _moved(now, target, jax.lax.while_loop(too_long, halve, whole))


def _moved(now: Sites, target: Sites, step: Any) -> Sites:
    return jax.tree.map(lambda a, b: a + step.reshape(-1, *(1,) * (a.ndim - 1)) * (b - a), now, target)


def _least(blocks: Any) -> Any:
    return blocks[:, 0, 0] if blocks.shape[-1] == 1 else jnp.linalg.eigvalsh(blocks)[:, 0]


def _inner(rule: EP, prior: PriorAtData, data: Data, marginals: Sites, start: Sites) -> Sites:
    """Minimise F over the sites, by L-BFGS-B."""
    objective = _FreeEnergy(rule, prior, data, marginals)
    first = objective.coordinates.pack(start)
    objective(first)
    if objective.best is None:  # the start is outside the domain
        return start
    options = {"maxiter": MAX_INNER, "maxcor": 30, "gtol": 0.1 * rule.tolerance, "ftol": 0.0}
    scipy.optimize.minimize(objective, first, jac=True, method="L-BFGS-B", options=options)
    return objective.coordinates.unpack(objective.best.x)


def _newton(rule: EP, prior: PriorAtData, data: Data, start: Sites) -> Sites:
    """Where the sites that match the tilted moments are the sites themselves, by Newton's method with Krylov steps."""
    mismatch = _Mismatch(rule, prior, data, start)
    with contextlib.suppress(_Settled, scipy.optimize.NoConvergence, ValueError):
        scipy.optimize.newton_krylov(mismatch, mismatch.best, maxiter=NEWTON_STEPS, f_tol=0.0)
    return mismatch.coordinates.unpack(mismatch.best)


class _Settled(Exception):
    """The mismatch is within tolerance."""


class _Mismatch:
    """Change of the sites in a sweep as a function of a flat vector; remembers the best point, and stops there."""

    def __init__(self, rule: EP, prior: PriorAtData, data: Data, start: Sites):
        self.arguments, self.tolerance = (rule, prior, data), rule.tolerance
        self.coordinates = _Coordinates(np.asarray(data.mask), *_moments(_marginals(prior, start)))
        self.best, self.least = self.coordinates.pack(start), np.inf

    def __call__(self, x: np.ndarray) -> np.ndarray:
        new, residual, valid = _swept(*self.arguments, self.coordinates.unpack(x))
        change = self.coordinates.pack(new) - x
        if not (bool(valid) and np.all(np.isfinite(change))):
            return np.full_like(x, FAR)
        if residual < self.least:
            self.best, self.least = x.copy(), float(residual)
        if residual < self.tolerance:
            raise _Settled
        return change


class _Best(NamedTuple):
    """The least value of F so far."""

    value: float
    x: np.ndarray
    gradient: np.ndarray


class _FreeEnergy:
    """F and its gradient as functions of a flat vector; remembers the best point."""

    def __init__(self, rule: EP, prior: PriorAtData, data: Data, marginals: Sites):
        self.arguments = rule, prior, data, marginals
        self.coordinates = _Coordinates(np.asarray(data.mask), *_moments(marginals))
        self.best: _Best | None = None

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, shift_bar, precision_bar = _free_energy(*self.arguments, self.coordinates.unpack(x))
        if not np.isfinite(value):
            if self.best is None:
                return np.inf, np.zeros_like(x)
            # Outside the domain. The value is above the best one by as much as the slope promised to go down, so that
            # the line search shortens its step to a quarter. A huge value would make it stop.
            return self.best.value + abs(float(self.best.gradient @ (x - self.best.x))), -self.best.gradient
        gradient = self.coordinates.pull_back(np.asarray(shift_bar), np.asarray(precision_bar))
        if self.best is None or value < self.best.value:
            self.best = _Best(float(value), x.copy(), gradient)
        return float(value), gradient


class _Coordinates:
    """Sites of the rows that are not padding as a flat vector.

    The coordinates are Π and b − Πm in units of the marginals' standard deviations, m their means. The corresponding
    statistics (f − m)² and f are uncorrelated under the marginals, so that F is well scaled.
    """

    def __init__(self, rows: np.ndarray, mean: Any, scale: Any):
        self.rows, self.mean = rows, np.asarray(mean)[rows]
        scale = np.maximum(np.asarray(scale)[rows], 1e-125)  # zero where a value is known, and its site does nothing
        self.upper = i, j = np.triu_indices(self.mean.shape[1])
        self.units = np.concatenate([1 / scale, 1 / (scale[:, i] * scale[:, j])], axis=1)
        self.twice = np.where(i == j, 1.0, 2.0)  # an entry above the diagonal stands for two

    def pack(self, sites: Sites) -> np.ndarray:
        precision = np.asarray(sites.precision)[self.rows]
        shift = np.asarray(sites.shift)[self.rows] - np.einsum("nij,nj->ni", precision, self.mean)
        return (np.concatenate([shift, precision[:, *self.upper]], axis=1) / self.units).ravel()

    def unpack(self, x: np.ndarray) -> Sites:
        x = x.reshape(self.units.shape) * self.units
        L, n, (i, j) = self.mean.shape[1], len(self.rows), self.upper
        blocks = np.zeros((len(x), L, L))
        blocks[:, i, j] = blocks[:, j, i] = x[:, L:]
        shift, precision = np.zeros((n, L)), np.zeros((n, L, L))
        shift[self.rows] = x[:, :L] + np.einsum("nij,nj->ni", blocks, self.mean)
        precision[self.rows] = blocks
        return Sites(jnp.asarray(shift), jnp.asarray(precision))

    def pull_back(self, shift_bar: np.ndarray, precision_bar: np.ndarray) -> np.ndarray:
        """Gradient in the coordinates, from derivatives in the shifts (N, L) and precisions (N, L, L)."""
        shift_bar, precision_bar = shift_bar[self.rows], precision_bar[self.rows]
        outer = shift_bar[:, :, None] * self.mean[:, None, :]
        precision_bar = precision_bar + 0.5 * (outer + np.swapaxes(outer, 1, 2))
        gradient = np.concatenate([shift_bar, self.twice * precision_bar[:, *self.upper]], axis=1)
        return (gradient * self.units).ravel()


@program
def _moments(marginals: Sites) -> tuple[Any, Any]:
    """Means and standard deviations, each (N, L)."""
    cov = _inverse(marginals.precision)
    return block_times(cov, marginals.shift), jnp.sqrt(jnp.diagonal(cov, axis1=1, axis2=2))


@program
def _free_energy(rule: EP, prior: PriorAtData, data: Data, marginals: Sites, sites: Sites) -> tuple[Any, Any, Any]:
    """F and its derivatives in the sites: moments under prior · sites minus moments of the tilted distributions."""
    conditioned = prior.structure.condition(sites)
    h, A = conditioned.marginals()
    share = rule.share(data)
    left = jax.tree.map(jnp.subtract, marginals, Sites(*parts(sites, share)))
    safe = _least(left.precision) > 0
    cov = _inverse(jnp.where(safe[:, None, None], left.precision, jnp.eye(h.shape[1])))
    mean = block_times(cov, left.shift)
    log_tilted = rule.log_tilted(prior.likelihood, prior.residual, data)
    log_z, alpha, nu = tilted_derivatives(log_tilted, prior.mean + mean, cov)
    value = conditioned.log_partition + jnp.sum(masked((log_z + phi(mean, cov)) / share, data.mask))
    tilted_mean = mean + block_times(cov, alpha)
    tilted_cov = cov - block_matmul(block_matmul(cov, nu), cov)
    ok = conditioned.proper & jnp.all(safe | ~data.mask) & jnp.isfinite(value)
    second = second_moment(tilted_mean, tilted_cov) - second_moment(h, A)
    return jnp.where(ok, value, jnp.inf), masked(h - tilted_mean, data.mask), masked(0.5 * second, data.mask)


def _inverse(blocks: Any) -> Any:
    return symmetrise(block_solve(blocks, jnp.broadcast_to(jnp.eye(blocks.shape[-1]), blocks.shape)))
