"""The convergent way to EP's fixed point."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from errorband.inference.ep import EP, phi, tilted_derivatives
from errorband.inference.sites import Data, SiteRun, masked
from errorband.model import PriorAtData
from errorband.structures import Sites
from errorband.structures.sites import block_matmul, block_solve, block_times, second_moment, symmetrise

MAX_OUTER, MAX_INNER = 300, 200
HALVINGS = 6  # of the power, where it leads to no fixed point
NEAR = 1e-2  # from this mismatch on, sweeps are tried
FLOOR = 1e-4  # a mismatch below this that falls no further is due to round-off in F


def double_loop(rule: EP, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
    """EP's fixed point as a min-max problem (Opper & Winther 2005; Heskes & Zoeter 2002).

    With the natural parameters λ of the marginals held, the sites minimise

        F(sites) = log ∫ prior · sites + Σ_n (1/p) log ∫ p(y_n | f)^p exp(f's natural parameters λ_n − p·site_n) df,

    which is convex in the sites; its gradient is the mismatch of moments. The outer loop sets λ to the moments found,
    or goes as far towards them as leaves λ − p·site proper. Each outer step lowers EP's free energy. Near the fixed
    point damped sweeps usually close the gap, much faster than the outer loop does.

    The domain, proper λ − p·site, may end before the minimum: at this power there is no fixed point then.
    """
    if not bool(_finish(rule, prior, data, start, 0).valid):
        start = rule.cold(prior)
    sites, marginals = start, _marginals(prior, start)
    swift = EP("parallel", rule.power, rule.max_sweeps, rule.tolerance, damping=0.5)
    tolerance, residual = rule.tolerance, np.inf
    n = 0
    while n < MAX_OUTER:
        n += 1
        sites, before = _inner(rule, prior, data, marginals, sites), residual
        residual = float(_residual(rule, prior, data, sites))
        if residual < tolerance or residual == before or np.isnan(residual):
            break
        if residual < FLOOR and residual > 0.99 * before:
            tolerance = FLOOR
            break
        if residual < NEAR:
            polished = _polish(swift, prior, data, sites)
            if bool(polished.converged & polished.valid):
                return polished
        marginals = _towards(rule, marginals, _marginals(prior, sites), sites)
    done = EP("double_loop", rule.power, rule.max_sweeps, tolerance)
    return _finish(done, prior, data, sites, n)


def with_less_power(rule: EP, prior: PriorAtData, data: Data) -> tuple[EP, SiteRun] | None:
    """The largest of the powers p/2, p/4, … whose sweeps reach a fixed point, and that point.

    The smaller the power, the less of a site is taken out of its marginal: the domain of proper cavities grows until it
    is that of KL, all proper posteriors. The last of the powers gets a double loop as well.
    """
    for halving in range(1, HALVINGS + 1):
        less = dataclasses.replace(rule, power=rule.power / 2**halving)
        swift = dataclasses.replace(less, mode="parallel")
        run = _polish(swift, prior, data, rule.cold(prior))
        if not bool(run.converged & run.valid) and halving == HALVINGS:
            run = double_loop(less, prior, data, rule.cold(prior))
        if bool(run.converged & run.valid):
            return less, run
    return None


@jax.jit
def _polish(rule: EP, prior: PriorAtData, data: Data, sites: Sites) -> SiteRun:
    return rule.run(prior, data, sites)


@jax.jit
def _finish(rule: EP, prior: PriorAtData, data: Data, sites: Sites, sweeps: Any) -> SiteRun:
    return rule.finish(prior, data, sites, jnp.asarray(sweeps))


@jax.jit
def _residual(rule: EP, prior: PriorAtData, data: Data, sites: Sites) -> Any:
    return rule.look(prior, data, sites).residual


@jax.jit
def _marginals(prior: PriorAtData, sites: Sites) -> Sites:
    """Natural parameters of the marginals under these sites."""
    mean, cov = prior.structure.condition(sites).marginals()
    precision = _inverse(cov)
    return Sites(block_times(precision, mean), precision)


@jax.jit
def _towards(rule: EP, now: Sites, target: Sites, sites: Sites) -> Sites:
    """For each datum the largest of the steps 1, ½, ¼, … from ``now`` to ``target`` that leaves a proper cavity."""

    def cavity(step):
        return _least(_moved(now, target, step).precision - rule.power * sites.precision)

    none, whole = jnp.zeros(len(sites.shift)), jnp.ones(len(sites.shift))
    before, after = cavity(none), cavity(whole)
    enough = 0.1 * jnp.where(after > 0, jnp.minimum(before, after), before)

    def halve(step):
        return jnp.where(cavity(step) >= enough, step, 0.5 * step)

    step = jax.lax.while_loop(lambda step: jnp.any((cavity(step) < enough) & (step > 1e-6)), halve, whole)
    return _moved(now, target, step)


def _moved(now: Sites, target: Sites, step: Any) -> Sites:
    return jax.tree.map(lambda a, b: a + step.reshape(-1, *(1,) * (a.ndim - 1)) * (b - a), now, target)


def _least(blocks: Any) -> Any:
    return blocks[:, 0, 0] if blocks.shape[-1] == 1 else jnp.linalg.eigvalsh(blocks)[:, 0]


def _inner(rule: EP, prior: PriorAtData, data: Data, marginals: Sites, start: Sites) -> Sites:
    """Minimise F over the sites.

    The variables are Π and b − Πm in units of the marginals' standard deviations, m their means: the statistics f and
    (f − m)² that go with them are uncorrelated, so the search need not find that out.
    """
    rows = np.asarray(data.mask)
    mean, scale = (np.asarray(a)[rows] for a in _moments(marginals))
    L = mean.shape[1]
    upper = np.triu_indices(L)
    units = np.concatenate([1 / scale, 1 / (scale[:, upper[0]] * scale[:, upper[1]])], axis=1)
    twice = np.where(upper[0] == upper[1], 1.0, 2.0)  # an entry off the diagonal stands for two

    def pack(sites: Sites) -> np.ndarray:
        precision = np.asarray(sites.precision)[rows]
        shift = np.asarray(sites.shift)[rows] - np.einsum("nij,nj->ni", precision, mean)
        return (np.concatenate([shift, precision[:, upper[0], upper[1]]], axis=1) / units).ravel()

    def unpack(x: np.ndarray) -> Sites:
        x = x.reshape(units.shape) * units
        blocks = np.zeros((len(x), L, L))
        blocks[:, upper[0], upper[1]] = blocks[:, upper[1], upper[0]] = x[:, L:]
        shift, precision = np.zeros((len(rows), L)), np.zeros((len(rows), L, L))
        shift[rows] = x[:, :L] + np.einsum("nij,nj->ni", blocks, mean)
        precision[rows] = blocks
        return Sites(jnp.asarray(shift), jnp.asarray(precision))

    first = pack(start)
    best = (np.inf, first, np.zeros_like(first))  # value, place, gradient

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        value, shift_bar, precision_bar = (np.asarray(a) for a in _free_energy(rule, prior, data, marginals, unpack(x)))
        if not np.isfinite(value):
            # Beyond the domain: as much too high as the slope promised to go down, so that the line search takes a
            # quarter of the step. A huge value would make it stop.
            return best[0] + abs(float(best[2] @ (x - best[1]))), -best[2]
        shift_bar, precision_bar = shift_bar[rows], precision_bar[rows]
        outer = shift_bar[:, :, None] * mean[:, None, :]
        precision_bar = precision_bar + 0.5 * (outer + np.swapaxes(outer, 1, 2))
        gradient = np.concatenate([shift_bar, twice * precision_bar[:, upper[0], upper[1]]], axis=1)
        gradient = (gradient * units).ravel()
        if value < best[0]:
            best = float(value), x.copy(), gradient
        return float(value), gradient

    options = {"maxiter": MAX_INNER, "maxcor": 30, "gtol": 0.1 * rule.tolerance, "ftol": 0.0}
    if not np.isfinite(objective(first)[0]):
        return start
    scipy.optimize.minimize(objective, first, jac=True, method="L-BFGS-B", options=options)
    return unpack(best[1])


@jax.jit
def _moments(marginals: Sites) -> tuple[Any, Any]:
    """Means and standard deviations, each (N, L)."""
    cov = _inverse(marginals.precision)
    return block_times(cov, marginals.shift), jnp.sqrt(jnp.diagonal(cov, axis1=1, axis2=2))


@jax.jit
def _free_energy(rule: EP, prior: PriorAtData, data: Data, marginals: Sites, sites: Sites) -> tuple[Any, Any, Any]:
    """F and its derivatives in the sites: moments under prior · sites minus moments of the tilted distributions."""
    conditioned = prior.structure.condition(sites)
    h, A = conditioned.marginals()
    left = jax.tree.map(lambda m, s: m - rule.power * s, marginals, sites)
    safe = _least(left.precision) > 0
    cov = _inverse(jnp.where(safe[:, None, None], left.precision, jnp.eye(h.shape[1])))
    mean = block_times(cov, left.shift)
    log_tilted = rule.log_tilted(prior.likelihood, prior.residual, data)
    log_z, alpha, nu = tilted_derivatives(log_tilted, prior.mean + mean, cov)
    value = conditioned.log_partition + jnp.sum(masked(log_z + phi(mean, cov), data.mask)) / rule.power
    tilted_mean = mean + block_times(cov, alpha)
    tilted_cov = cov - block_matmul(block_matmul(cov, nu), cov)
    ok = conditioned.proper & jnp.all(safe | ~data.mask) & jnp.isfinite(value)
    second = second_moment(tilted_mean, tilted_cov) - second_moment(h, A)
    return jnp.where(ok, value, jnp.inf), masked(h - tilted_mean, data.mask), masked(0.5 * second, data.mask)


def _inverse(blocks: Any) -> Any:
    return symmetrise(block_solve(blocks, jnp.broadcast_to(jnp.eye(blocks.shape[-1]), blocks.shape)))
