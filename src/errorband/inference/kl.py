"""Variational Gaussian inference: sites from expectations under the posterior itself."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from errorband.arguments import check_number, check_whole
from errorband.inference.sites import SiteInference, SiteRun, masked, per_datum, stationary_adjoint, widened
from errorband.structures import Sites
from errorband.structures.sites import block_times, second_moment, select, symmetrise


class KL(SiteInference):
    """Gaussian q(f) of least KL(q ‖ posterior), by natural gradients on the sites (Khan & Lin 2017).

    With E_n(h, A) = E log p(y_n | f_n) under the marginal, the sites of the optimum are Π = −2 ∂E/∂A, b = ∂E/∂h + Πh.
    Each step moves the sites towards these; it is shortened until the bound

        log p(y) ≥ Σ_n E_n − KL(q ‖ p) = Σ_n [E_n − b_nᵀh_n + ½ tr Π_n(A_n + h_nh_nᵀ)] + log ∫ prior · sites

    rises. What is reported as ``log_evidence_`` is the bound. With inducing points the expectations are taken at
    variances A + r, r being what the points leave out (:class:`~errorband.approximations.VFE`): the bound of Hensman,
    Matthews & Ghahramani (2015) at its optimum in q(u).

    Parameters
    ----------
    max_sweeps : int
        Steps before giving up.
    tolerance : float
        Stop when no site asks for a change (δ, Δ) larger than this. It is measured by the marginal N(h, A), √A|δ − Δh|
        and A|Δ|: about the moves of mean and variance, in standard deviations. A run that ends earlier, after
        ``max_sweeps`` or where no step raises the bound, counts as converged if that is below 1e-6 or the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y, kernel = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5]), SquaredExponential(1.0, 1.0)
    >>> settings = dict(likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> bound = GPRegressor(kernel, inference=KL(), **settings).fit(X, y).log_evidence_
    >>> exact = GPRegressor(kernel, inference="exact", **settings).fit(X, y).log_evidence_
    >>> bool(np.isclose(bound, exact))  # the posterior is Gaussian here: the bound is reached
    True
    """

    max_sweeps: int = eqx.field(default=300, static=True)
    tolerance: float = eqx.field(default=1e-7, static=True)

    def __check_init__(self):
        check_whole("KL", "max_sweeps", self.max_sweeps)
        check_number("KL", "tolerance", self.tolerance)

    @property
    def ep_power(self) -> float | None:
        return 0.0

    def run(self, prior, data, start):
        """Natural-gradient ascent of the bound."""

        def expected(likelihood, residual, h, A):
            terms = per_datum(likelihood, "expected_log_prob")
            return data.weighted(terms(data.y, prior.mean + h, widened(A, residual)))

        def look(sites):
            conditioned = prior.structure.condition(sites)
            h, A = conditioned.marginals()
            E, pull = jax.vjp(lambda h, A: expected(prior.likelihood, prior.residual, h, A), h, A)
            dh, dA = pull(jnp.ones_like(E))
            dA = symmetrise(dA)
            quadratic = jnp.sum(sites.precision * second_moment(h, A), (1, 2))
            terms = E - jnp.sum(sites.shift * h, 1) + 0.5 * quadratic
            bound = conditioned.log_partition + jnp.sum(masked(terms, data.mask))
            target = Sites(dh - 2.0 * block_times(dA, h), -2.0 * dA)
            target = jax.tree.map(lambda t: masked(t, data.mask), target)
            # The step in the marginal means and variances that the site changes ask for, in standard deviations.
            scale = jnp.sqrt(jnp.diagonal(A, axis1=1, axis2=2))
            change = jax.tree.map(jnp.subtract, target, sites)
            off = jnp.maximum(
                jnp.max(scale * jnp.abs(change.shift - block_times(change.precision, h))),
                jnp.max(scale[:, :, None] * scale[:, None, :] * jnp.abs(change.precision)),
            )
            valid = conditioned.proper & jnp.isfinite(bound)
            return conditioned, target, jnp.where(valid, bound, -jnp.inf), off

        def sweep(state):
            sites, bound, target, off, step, n, _ = state

            def move(size):
                trial = jax.tree.map(lambda s, t: s + size * (t - s), sites, target)
                _, new_target, new_bound, new_off = look(trial)
                return trial, new_bound, new_target, new_off

            def shorten(search):
                size, _ = search
                return 0.5 * size, move(0.5 * size)

            def falling(search):
                size, (_, new_bound, _, _) = search
                return ~(new_bound >= bound - 1e-12 * jnp.abs(bound)) & (size > 1e-6)

            size, moved = jax.lax.while_loop(falling, shorten, (step, move(step)))
            stuck = size <= 1e-6
            return *select(stuck, (sites, bound, target, off), moved), jnp.minimum(1.0, 1.5 * size), n + 1, stuck

        def going(state):
            return (state[5] < self.max_sweeps) & ~(state[3] < self.tolerance) & ~state[6]

        _, _, bound0, _ = look(start)
        start = jax.tree.map(lambda s: jnp.where(jnp.isfinite(bound0), s, 0.0), start)
        _, target, bound0, off = look(start)
        state = (start, bound0, target, off, jnp.asarray(1.0), 0, False)
        sites, bound, _, off, _, sweeps, _ = jax.lax.while_loop(going, sweep, state)
        conditioned = prior.structure.condition(sites)
        h, A = conditioned.marginals()
        adjoint = stationary_adjoint(prior, conditioned, lambda p, r: jnp.sum(expected(p, r, h, A)))
        converged: Any = off < jnp.maximum(self.tolerance, 1e-6)
        return SiteRun(sites, bound, adjoint, converged, sweeps, jnp.isfinite(bound))
