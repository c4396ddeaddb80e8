"""Expectation propagation: each site makes the marginal match the moments of the tilted distribution."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.arguments import check_number, check_whole
from errorband.inference.sites import (
    Data,
    SiteInference,
    SiteRun,
    cavity,
    masked,
    per_datum,
    stationary_adjoint,
    widened,
)
from errorband.model import PriorAtData
from errorband.structures import Sites
from errorband.structures.sites import block_matmul, block_solve, block_times, select, symmetrise


class EP(SiteInference):
    """Expectation propagation on any structure, with any number of latents per datum (Minka 2001).

    For each datum the site (b, Π) is divided out of the marginal N(h, A); the moments of cavity × likelihood follow
    from derivatives of its integral Z; and the site is set so that the marginal has them. With t the ``power``, m
    the prior mean, and g and W those of :class:`~errorband.structures.base.Conditioned`:

        cavity         C = A(I − tΠA)⁻¹,   c = h + C(tΠh − tb)                                                (1)
        integral       Z = ∫ p(y | m + f)ᵗ N(f; c, C) df,   α = ∂ log Z/∂c,   ν = −∂² log Z/∂c²               (2)
        moments        h' = c + Cα,   A' = C − CνC                                                            (3)
        site           tΠ' = ν(I − Cν)⁻¹,   tb' = α + tΠ'(c + Cα)                                             (4)
        posterior      A ← A − aᵀ(I + ΔAₙ)⁻¹Δa,   a the rows n of A, Δ = Π' − Π                               (5)
        evidence       log ∫ prior · sites + (1/t) Σₙ [log Zₙ + Φ(cₙ, Cₙ) − Φ(hₙ, Aₙ)],
                       Φ(h, A) = ½hᵀA⁻¹h + ½log|A|                                                            (6)
        derivatives    ½gᵀ(∂K)g − ½tr(W ∂K) + gᵀ∂m + (1/t) Σₙ ∂ log Zₙ, cavities held                         (7)

    These are eqs. 3.56–3.59, 3.70 and 3.65 of Rasmussen & Williams (2006), for any likelihood and several latents, and
    eqs. 1.11–1.17 of Naish-Guzman (*Sparse and robust kernel methods*, 2007), whose 1.11 has the product ΠA the wrong
    way round. With inducing points whose sites are functions of u alone
    (:class:`~errorband.approximations.PowerEP`), Z is taken at covariance C + r, r being what the points leave out.

    Parameters
    ----------
    mode : {"auto", "parallel", "sequential", "double_loop"}
        Update all sites at once with adaptive damping; one at a time in a random order drawn once; or by the convergent
        double loop, slower but certain to reach a fixed point where there is one. "auto" goes in parallel and, when a
        first run does not converge that way, falls back on the double loop; later in a search for hyperparameters such
        a point is refused.
    power : float in (0, 1]
        Fractional EP: the likelihood is raised to this power. Towards 0 it becomes the variational (KL) solution, which
        always exists; with power 1 there may be no sites that leave every row a proper cavity. So a first run whose
        double loop ends without a fixed point is repeated with half the power, a quarter, and so on: the status says
        so, the whole search goes on with that power, and ``inference_`` has it.
    max_sweeps : int
        Sweeps before giving up.
    tolerance : float
        Stop when no tilted moment differs from the marginal by more, in units of the marginal's standard deviation.
    damping : float in [0, 1)
        Share of the old site that is kept, to begin with.
    seed : int
        Of the sequential order.

    Examples
    --------
    >>> from errorband import GPClassifier
    >>> from errorband.kernels import SquaredExponential
    >>> kernel = SquaredExponential(1.0, 4.0)
    >>> model = GPClassifier(kernel, inference=EP(), optimizer=None, normalize=False).fit([[0.0], [100.0]], [0, 1])
    >>> round(model.log_evidence_, 4)  # 2 log ½: the labels know nothing of each other, and EP of one label is exact
    -1.3863
    """

    mode: str = eqx.field(default="auto", static=True)
    power: float = eqx.field(default=1.0, static=True)
    max_sweeps: int = eqx.field(default=200, static=True)
    tolerance: float = eqx.field(default=1e-6, static=True)
    damping: float = eqx.field(default=0.0, static=True)
    seed: int = eqx.field(default=0, static=True)

    def __check_init__(self):
        modes = ("auto", "parallel", "sequential", "double_loop")
        if self.mode not in modes:
            raise ValueError(f"mode={self.mode!r}: choose one of {', '.join(map(repr, modes))}.")
        if not 0 < self.power <= 1:
            raise ValueError(f"power={self.power!r} must lie in (0, 1].")
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping={self.damping!r} must lie in [0, 1).")
        check_whole("EP", "max_sweeps", self.max_sweeps)
        check_number("EP", "tolerance", self.tolerance)

    @property
    def ep_power(self) -> float | None:
        return self.power

    def run(self, prior, data, start):
        """Sweep until the moments match."""
        if self.mode == "sequential":
            sites, sweeps = self._sequential(prior, data, start)
        elif self.mode == "double_loop":
            sites, sweeps = start, jnp.zeros((), int)
        else:
            sites, sweeps = self._parallel(prior, data, start)
        return self.finish(prior, data, sites, sweeps)

    def finish(self, prior: PriorAtData, data: Data, sites: Sites, sweeps: Any) -> SiteRun:
        """Evidence and derivatives at given sites: (6) and (7)."""
        now = self.look(prior, data, sites)

        def total(likelihood, residual):  # at fixed cavities
            log_z = self.log_tilted(likelihood, residual, data)(now.cavity_mean, now.cavity_cov)
            return jnp.sum(masked(log_z, data.mask)) / self.power

        adjoint = stationary_adjoint(prior, now.conditioned, total)
        # Far from a fixed point EP's evidence means nothing, however large it is.
        valid = now.valid & jnp.isfinite(now.log_evidence) & (now.residual < 0.1)
        return SiteRun(sites, now.log_evidence, adjoint, now.residual < self.tolerance, sweeps, valid)

    def _after(self, run, prior, data, first):
        if bool(run.converged) or self.mode not in ("auto", "double_loop") or (self.mode == "auto" and not first):
            return self, run
        from errorband.inference.double_loop import double_loop, with_less_power  # they build on this module

        run = double_loop(self, prior, data, run.sites if bool(run.valid) else self.cold(prior))
        # The variance that inducing points leave out goes with one power.
        if bool(run.converged) or not first or prior.residual is not None:
            return self, run
        return with_less_power(self, prior, data) or (self, run)

    def _advice(self):
        if self.mode in ("parallel", "sequential"):
            return " Try mode='auto', which falls back on the double loop."
        return (
            " Neither damped sweeps nor, where they were tried, the double loop and smaller powers settled: at these "
            "hyperparameters there may be no sites that leave every row a proper cavity. Use inference=KL() or "
            "Laplace(), with inducing points those of FITC()."
        )

    # ------------------------------------------------------------------ one look at the current sites
    def log_tilted(self, likelihood: Any, residual: Any, data: Data) -> Any:
        """Log Z per datum as a function of cavity means and covariances."""
        if self.power == 1.0 and data.weights is None:
            return lambda m, V: per_datum(likelihood, "log_tilted")(data.y, m, widened(V, residual))
        power = self.power * (jnp.ones(data.y.shape) if data.weights is None else data.weights)
        return lambda m, V: per_datum(likelihood, "log_tilted_power")(data.y, m, widened(V, residual), power)

    def look(self, prior: PriorAtData, data: Data, sites: Sites) -> "_Look":
        conditioned = prior.structure.condition(sites)
        h, A = conditioned.marginals()
        cavity_mean, cavity_cov, safe = cavity(h, A, sites, self.power)
        new, log_z, residual = self._match(prior, data, h, A, cavity_mean, cavity_cov, sites)
        # (6): log Z + Φ(cavity) − Φ(marginal) per datum.
        terms = masked(log_z + _phi_gained(h, A, sites, self.power, cavity_cov), data.mask)
        log_evidence = conditioned.log_partition + jnp.sum(terms) / self.power
        valid = conditioned.proper & jnp.all(jnp.where(data.mask, safe, True)) & jnp.isfinite(log_evidence)
        m = prior.mean + cavity_mean
        return _Look(conditioned, new, log_evidence, residual, valid, m, cavity_cov)

    def _match(self, prior, data, h, A, cavity_mean, cavity_cov, old) -> tuple[Sites, Any, Any]:
        """Sites that match the tilted moments, log Z per datum, and how far the marginals are from those moments."""
        log_tilted = self.log_tilted(prior.likelihood, prior.residual, data)
        log_z, alpha, nu = tilted_derivatives(log_tilted, prior.mean + cavity_mean, cavity_cov)
        mean = cavity_mean + block_times(cavity_cov, alpha)  # (3)
        cov = cavity_cov - block_matmul(block_matmul(cavity_cov, nu), cavity_cov)
        L = h.shape[1]
        precision = symmetrise(block_solve(jnp.eye(L) - block_matmul(nu, cavity_cov), nu))  # (4)
        shift = alpha + block_times(precision, mean)
        new = Sites(masked(shift, data.mask) / self.power, masked(precision, data.mask) / self.power)
        scale = jnp.sqrt(jnp.maximum(jnp.diagonal(A, axis1=1, axis2=2), 1e-300))
        off_mean = jnp.abs(mean - h) / scale
        off_cov = jnp.abs(cov - A) / (scale[:, :, None] * scale[:, None, :])
        residual = jnp.maximum(jnp.max(masked(off_mean, data.mask)), jnp.max(masked(off_cov, data.mask)))
        finite = jnp.isfinite(new.shift).all(1) & jnp.isfinite(new.precision).all((1, 2))
        keep = lambda a, b: jnp.where(finite.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
        return jax.tree.map(keep, new, old), log_z, residual

    # ------------------------------------------------------------------ schedules
    def _parallel(self, prior: PriorAtData, data: Data, start: Sites) -> tuple[Sites, Any]:
        """All sites at once; the step shrinks when the posterior or a cavity breaks or the mismatch grows."""

        def sweep(state):
            sites, good, direction, step, residual, n = state
            now = self.look(prior, data, sites)
            ahead = jax.tree.map(jnp.subtract, now.new, sites)
            # All sites at once may go round in a cycle, in which the mismatch neither grows nor shrinks.
            turned = (jnp.vdot(ahead.shift, direction.shift) < 0) & (now.residual > 0.95 * residual)
            worse = ~now.valid | (now.residual > 2.0 * residual) | turned
            shrink = jnp.where(now.valid, 0.7 * step, 0.5 * step)
            step = jnp.where(worse, jnp.maximum(shrink, 1e-3), jnp.minimum(1.0, 1.15 * step))
            # Where the posterior is broken go back to the last good sites and take less of the same direction.
            base = select(now.valid, sites, good)
            direction = select(now.valid, ahead, direction)
            residual = jnp.where(now.valid, now.residual, residual)
            proposal = jax.tree.map(lambda s, d: s + step * d, base, direction)
            done = now.valid & (now.residual < self.tolerance)
            return select(done, sites, proposal), base, direction, step, residual, n + 1

        def going(state):
            return (state[-1] < self.max_sweeps) & ~(state[-2] < self.tolerance)

        zero = jax.tree.map(jnp.zeros_like, start)
        state = (start, zero, zero, jnp.asarray(1.0 - self.damping), jnp.inf, 0)
        sites, good, _, _, residual, sweeps = jax.lax.while_loop(going, sweep, state)
        return select(residual < self.tolerance, sites, good), sweeps

    def _sequential(self, prior: PriorAtData, data: Data, start: Sites) -> tuple[Sites, Any]:
        """One site after the other, in an order that is drawn once and kept; the posterior is refreshed every sweep."""
        size = data.y.shape[0]
        order = jnp.asarray(np.random.default_rng(self.seed).permutation(size))
        step = 1.0 - self.damping

        def visit(i, carry):
            sites, state = carry
            n = order[i]
            h, A = (x[None] for x in state.marginal(n))
            site = jax.tree.map(lambda x: x[n][None], sites)
            cavity_mean, cavity_cov, safe = cavity(h, A, site, self.power)
            one = jax.tree.map(lambda x: x[n][None], data)
            mean, residual = jax.tree.map(lambda x: x[n][None], (prior.mean, prior.residual))
            part = PriorAtData(prior.structure, prior.likelihood, mean, residual)
            new, _, _ = self._match(part, one, h, A, cavity_mean, cavity_cov, site)
            change = jax.tree.map(lambda a, b: step * (a - b)[0], new, site)
            ok = data.mask[n] & safe[0] & state.admits(n, change.precision)
            change = jax.tree.map(lambda c: jnp.where(ok, c, 0.0), change)
            sites = Sites(sites.shift.at[n].add(change.shift), sites.precision.at[n].add(change.precision))
            return sites, state.update(n, change.shift, change.precision)

        def sweep(state):
            sites, _, n = state
            sites, _ = jax.lax.fori_loop(0, size, visit, (sites, prior.structure.condition(sites).state()))
            return sites, self.look(prior, data, sites).residual, n + 1

        def going(state):
            return (state[2] < self.max_sweeps) & ~(state[1] < self.tolerance)

        sites, _, sweeps = jax.lax.while_loop(going, sweep, (start, jnp.inf, 0))
        return sites, sweeps


class _Look(eqx.Module):
    """What the current sites imply."""

    conditioned: Any
    new: Sites
    log_evidence: Any
    residual: Any
    valid: Any
    cavity_mean: Any  # with the prior mean
    cavity_cov: Any


def tilted_derivatives(log_tilted: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Log Z, α = ∂ log Z/∂mean and ν = −∂² log Z/∂mean² for all data: (2) of :class:`EP`.

    Each datum's log Z depends on its own mean only, so one derivative of the sum along each latent gives all.
    """

    def gradient(mean):
        value, pull = jax.vjp(lambda m: log_tilted(m, cov), mean)
        return pull(jnp.ones_like(value))[0], value

    directions = jnp.eye(mean.shape[1], dtype=mean.dtype)
    alpha, columns, log_z = jax.vmap(
        lambda e: jax.jvp(gradient, (mean,), (jnp.broadcast_to(e, mean.shape),), has_aux=True), out_axes=(None, 2, None)
    )(directions)
    return log_z, alpha, -columns


def phi(h: Any, A: Any) -> Any:
    """Φ(h, A) = ½hᵀA⁻¹h + ½log|A| per datum, of (6) of :class:`EP`."""
    quadratic = jnp.sum(h * block_solve(A, h[..., None])[..., 0], axis=-1)
    log_det = jnp.log(A[:, 0, 0]) if A.shape[-1] == 1 else jnp.linalg.slogdet(A)[1]
    return 0.5 * (quadratic + log_det)


def _phi_gained(h: Any, A: Any, sites: Sites, power: float, cavity_cov: Any) -> Any:
    """Φ(cavity) − Φ(marginal) per datum = log ∫ N(f; h, A) exp(½fᵀPf − pᵀf) df, (p, P) the power of the site.

    With C the cavity's covariance and u = Ph − p it is ½(h·u − p·h + uᵀCu − log|I − PA|), which needs no inverse: a
    marginal may be known for certain, as that of a row far from all inducing inputs.
    """
    shift, precision = power * sites.shift, power * sites.precision
    u = block_times(precision, h) - shift
    quadratic = jnp.sum(h * (u - shift) + u * block_times(cavity_cov, u), axis=-1)
    ratio = block_matmul(precision, A)
    log_det = jnp.log1p(-ratio[:, 0, 0]) if A.shape[-1] == 1 else jnp.linalg.slogdet(jnp.eye(A.shape[-1]) - ratio)[1]
    return 0.5 * (quadratic - log_det)
