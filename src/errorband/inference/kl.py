"""Variational Gaussian inference: sites from expectations under the posterior itself."""

import contextlib
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.inference.ep import EP
from errorband.inference.sites import Data, SiteInference, SiteRun, masked, per_datum, stationary_adjoint, widened
from errorband.model import PriorAtData
from errorband.parameters.checks import check_number, check_whole
from errorband.structures import Sites
from errorband.structures.sites import block_times, second_moment, select, symmetrise

LEAST_STEP = 1e-6  # the line search gives up below this
GROW = 1.5  # factor on the step after each sweep, up to a step of one
ROUND_OFF = 1e-12  # relative fall of the bound that is not counted as one
CLOSE_ENOUGH = 1e-6  # a run that stops early counts as converged if its residual is below this


class KL(SiteInference):
    """Variational inference: the Gaussian q(f) that minimises KL(q ‖ posterior).

    The sites are found by natural-gradient ascent (Khan & Lin 2017). With E_n(h, A) = E log p(y_n | f_n) under the
    marginal N(h, A), the optimal sites are Π = −2 ∂E/∂A, b = ∂E/∂h + Πh. Each step moves the sites towards these values
    and is shortened until the bound

        log p(y) ≥ Σ_n E_n − KL(q ‖ p) = Σ_n [E_n − b_nᵀh_n + ½ tr Π_n(A_n + h_nh_nᵀ)] + log ∫ prior · sites

    rises. ``log_evidence_`` is the bound. With inducing variables u (:class:`~errorband.approximations.VFE`) the
    expectations are taken at variances A + r, where r is the variance of f given u: the bound of Hensman, Matthews &
    Ghahramani (2015) at its optimum in q(u). Mixtures with gates, such as
    :class:`~errorband.likelihoods.Twinned`, have a factor for the branch of each row in q, which makes E_n a lower
    bound of that expectation without two-dimensional integrals.

    Parameters
    ----------
    max_sweeps : int
        Largest number of steps.
    tolerance : float
        Stop when the difference (δ, Δ) between each site and its optimal value is below this, measured in units of the
        marginal N(h, A) as √A|δ − Δh| and A|Δ|: roughly the change of mean and variance in standard deviations. A run
        that ends for another reason (``max_sweeps``, or no step raises the bound) counts as converged if the difference
        is below 1e-6 or the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> bound = GPRegressor(kernel, inference=KL(), **settings).fit(X, y).log_evidence_
    >>> exact = GPRegressor(kernel, **settings).fit(X, y).log_evidence_
    >>> bool(np.isclose(bound, exact))  # the posterior is Gaussian here: the bound is reached
    True
    """

    max_sweeps: int = eqx.field(default=300, static=True)
    tolerance: float = eqx.field(default=1e-7, static=True)

    def __check_init__(self):
        check_whole("KL", "max_sweeps", self.max_sweeps)
        check_number("KL", "tolerance", self.tolerance)

    @property
    def ep_power(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 0.0

    def settle(self, prior, data, state, slack=1.0):
        """From scratch, for mixtures: from the sites of EP, if it finds any. Under the prior all rows are outliers."""
        likelihood = prior.likelihood
        if state is None and likelihood.closed_tilted and not likelihood.log_concave:
            with contextlib.suppress(np.linalg.LinAlgError):
                state = EP(mode="parallel").settle(prior, data, None)[1].sites
        return super().settle(prior, data, state, slack)

    def run(self, prior, data, start):
        """Natural-gradient ascent of the bound."""
        # As if zero sites came before, with the given ones as their target: a warm start is the first step.
        zero = jax.tree.map(jnp.zeros_like, start)
        nowhere = _Look(zero, jnp.asarray(-jnp.inf), start, jnp.asarray(jnp.inf))
        step = functools.partial(_step, prior, data)
        last = jax.lax.while_loop(functools.partial(_going, self), step, _State(nowhere, start, 1.0, -1, False))
        sites, bound = last.at.sites, last.at.bound
        conditioned = prior.structure.condition(sites)
        h, A = conditioned.marginals()
        adjoint = stationary_adjoint(prior, conditioned, lambda p, r: jnp.sum(_expected(prior, data, p, r, h, A)))
        converged: Any = last.at.residual < jnp.maximum(self.tolerance, CLOSE_ENOUGH)
        return SiteRun(sites, bound, adjoint, converged, last.sweeps, jnp.isfinite(bound))


def rule_of_power(power: float) -> SiteInference:
    """The rule that goes with sites of this power of EP; 0 is KL."""
    return EP(power=power) if power > 0 else KL()


# ------------------------------------------------------------------------------------------------ loops
class _Look(NamedTuple):
    """The bound at some sites and the sites that maximise it to first order."""

    sites: Sites
    bound: Any  # −∞ if the posterior is improper
    target: Sites  # Π = −2 ∂E/∂A, b = ∂E/∂h + Πh at the current marginals
    residual: Any  # largest change that the target asks for, as in ``tolerance``


class _State(NamedTuple):
    """State of the ascent."""

    at: _Look  # where the bound is highest so far
    trial: Sites  # to be looked at next
    step: Any  # how far the trial is on the way from these sites to their target
    sweeps: Any  # steps that were taken
    stuck: Any  # whether no step raises the bound


def _expected(prior: PriorAtData, data: Data, likelihood: Any, residual: Any, h: Any, A: Any) -> Any:
    """E log p(y_n | f_n) under the marginals, (N,), or what the likelihood puts below it."""
    terms = per_datum(likelihood, "variational_term")
    return data.weighted(terms(data.y, prior.mean + h, widened(A, residual)))


def _look(prior: PriorAtData, data: Data, sites: Sites) -> _Look:
    conditioned = prior.structure.condition(sites)
    h, A = conditioned.marginals()
    E, pull = jax.vjp(lambda h, A: _expected(prior, data, prior.likelihood, prior.residual, h, A), h, A)
    dh, dA = pull(jnp.ones_like(E))
    dA = symmetrise(dA)
    quadratic = jnp.sum(sites.precision * second_moment(h, A), (1, 2))
    terms = E - jnp.sum(sites.shift * h, 1) + 0.5 * quadratic
    bound = conditioned.log_partition + jnp.sum(masked(terms, data.mask))
    target = Sites(dh - 2.0 * block_times(dA, h), -2.0 * dA)
    target = jax.tree.map(lambda t: masked(t, data.mask), target)
    # Change of the marginal means and variances that the change of the sites causes, in standard deviations.
    scale = jnp.sqrt(jnp.diagonal(A, axis1=1, axis2=2))
    change = jax.tree.map(jnp.subtract, target, sites)
    residual = jnp.maximum(
        jnp.max(scale * jnp.abs(change.shift - block_times(change.precision, h))),
        jnp.max(scale[:, :, None] * scale[:, None, :] * jnp.abs(change.precision)),
    )
    valid = conditioned.proper & jnp.isfinite(bound)
    return _Look(sites, jnp.where(valid, bound, -jnp.inf), target, residual)


def _going(rule: KL, state: _State) -> Any:
    return (state.sweeps < rule.max_sweeps) & ~(state.at.residual < rule.tolerance) & ~state.stuck


def _step(prior: PriorAtData, data: Data, state: _State) -> _State:
    """Look at the trial: go there and try a longer step if the bound does not fall, else try one half as long.

    If the sites to begin with are of no use, the first step is one of length zero. Each round looks at one place, so
    that the program has the integrals of the likelihood once.
    """
    here, before = _look(prior, data, state.trial), state.at
    begun = jnp.isfinite(before.bound)
    taken = jnp.isfinite(here.bound) & (here.bound >= before.bound - ROUND_OFF * jnp.abs(before.bound))
    at = select(taken, here, before)
    longer, shorter = jnp.minimum(1.0, GROW * state.step), 0.5 * state.step
    step = jnp.where(taken, jnp.where(begun, longer, 1.0), jnp.where(begun, shorter, 0.0))
    trial = jax.tree.map(lambda s, t: s + step * (t - s), at.sites, at.target)
    return _State(at, trial, step, state.sweeps + taken, ~taken & (state.step <= LEAST_STEP))
