"""Expectation propagation: each site makes the marginal match the moments of the tilted distribution."""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.data import TrainingData
from errorband.inference.anderson import Memory
from errorband.inference.base import Conclusion
from errorband.inference.sites import (
    Data,
    SiteInference,
    SiteRun,
    cavity,
    masked,
    padded_data,
    parts,
    per_datum,
    run_rule,
    stationary_adjoint,
    widened,
)
from errorband.model import PriorAtData
from errorband.parameters.checks import check_number, check_whole
from errorband.rows import pad_zeros
from errorband.structures import Sites, State
from errorband.structures.sites import block_matmul, block_solve, block_times, select, symmetrise

# Step control of the parallel schedule. Heuristic: any values give the same fixed point, these reach it in few sweeps.
SHRINK = 0.7  # factor on the step if the mismatch of moments grows or the sites oscillate
SHRINK_IMPROPER = 0.5  # the same if the posterior or a cavity is improper
GROW = 1.15  # factor on the step otherwise, up to a step of one
LEAST_STEP = 1e-3
SHORT, STUCK = 1e-2, 5  # it gives up after so many sweeps in which a step shorter than this was too long
IDLE = 60  # it gives up after so many in a row without a mismatch below the least so far: it goes round in circles
FLOOR, STILL = 1e-4, 8  # it ends if so many in a row left a mismatch below this above the least so far: round-off
NEAR = 0.1  # sweeps are accelerated below this mismatch
GROWING = 2.0  # the mismatch grows if it exceeds this times the last one
OSCILLATING = 0.95  # the sites oscillate if they reverse direction and the mismatch exceeds this times the last one
FEW = 300  # rows: of more, sequential sweeps take minutes
LOOPED = 1000  # rows of a whole covariance: of more, the thousands of steps of a double loop take many minutes
# EP's evidence is used only where the mismatch is below this, far from a fixed point it is arbitrary; and only where
# its round-off is.
MEANINGFUL = 0.1


class EP(SiteInference):
    """Expectation propagation on any structure, with any number of latents per datum (Minka 2001).

    For each datum the site (b, Π) is divided out of the marginal N(h, A), which gives the cavity N(c, C). Derivatives
    of the integral Z of cavity × likelihood give the moments of that product, and the site is set so that the marginal
    has these moments. With t the ``power``, ρ = t unless rows have weights, m the prior mean, and g and W as in
    :class:`~errorband.structures.base.Conditioned`:

        cavity         C = A(I − ρΠA)⁻¹,   c = h + C(ρΠh − ρb)                                                (1)
        integral       Z = ∫ p(y | m + f)ᵗ N(f; c, C) df,   α = ∂ log Z/∂c,   ν = −∂² log Z/∂c²               (2)
        moments        h' = c + Cα,   A' = C − CνC                                                            (3)
        site           ρΠ' = ν(I − Cν)⁻¹,   ρb' = α + ρΠ'(c + Cα)                                             (4)
        posterior      A ← A − aᵀ(I + ΔAₙ)⁻¹Δa,   a the rows n of A, Δ = Π' − Π                               (5)
        evidence       log ∫ prior · sites + Σₙ (1/ρ) [log Zₙ + Φ(cₙ, Cₙ) − Φ(hₙ, Aₙ)],
                       Φ(h, A) = ½hᵀA⁻¹h + ½log|A|                                                            (6)
        derivatives    ½gᵀ(∂K)g − ½tr(W ∂K) + gᵀ∂m + Σₙ (1/ρ) ∂ log Zₙ, cavities constant                     (7)

    A row repeated w times has w sites, at the fixed point the same ones. So a row of weight w ≥ 1 has one site that
    stands for w, of which a cavity is without one, or a power t of one: ρ = t/w. It is the row w times, exactly. A
    weight w < 1 is a power of the likelihood, p(y | f)ʷ in (2), with ρ = t.

    These are eqs. 3.56–3.59, 3.70 and 3.65 of Rasmussen & Williams (2006), for any likelihood and several latents, and
    eqs. 1.11–1.17 of Naish-Guzman (*Sparse and robust kernel methods*, 2007), whose 1.11 has the product ΠA the wrong
    way round. With inducing points whose sites are functions of u alone
    (:class:`~errorband.approximations.PowerEP`), Z is evaluated at covariance C + r, where r is the variance of f
    given u.

    Parameters
    ----------
    mode : {"auto", "parallel", "sequential", "double_loop"}
        "parallel" updates all sites at once, with adaptive damping and, near the end, acceleration; if it has reached
        nothing where a fit ends, "auto" takes over, and if it has not settled with at most 300 rows, "sequential" is
        tried. "sequential" updates one site at a time in a random order drawn
        once. "double_loop" is slower and converges to a fixed point if there is one. "auto" runs in parallel; if the
        first run of a search over hyperparameters does not converge, it falls back on the double loop, with more than
        1000 rows and no inducing points on less power at once, and later points that do not converge are rejected.
    power : float in (0, 1]
        Fractional EP: the likelihood is raised to this power. In the limit 0 this is the variational (KL) solution,
        which always exists. With power 1 there may be no fixed point with a proper cavity for every row. If the double
        loop of a first run finds none, the run is repeated with half the power, a quarter, and so on. The status then
        says so, and the rest of the search, and ``inference_``, use that power.
    max_sweeps : int
        Largest number of sweeps.
    tolerance : float
        Stop when no tilted moment differs from that of the marginal by more than this, in units of the marginal's
        standard deviation; or by more than 1e-4, if the rest is round-off, as it may be where noise is tiny.
    damping : float in [0, 1)
        Fraction of the old site that is kept in the first sweep (parallel) or in all sweeps (sequential).
    seed : int
        Seed of the sequential order.

    Examples
    --------
    >>> from errorband import GPClassifier
    >>> from errorband.kernels import SquaredExponential
    >>> kernel = SquaredExponential(1.0, 4.0)
    >>> model = GPClassifier(kernel, inference=EP(), optimizer=None, normalize=False).fit([[0.0], [100.0]], [0, 1])
    >>> round(model.log_evidence_, 4)  # 2 log ½: the labels are independent, and EP of one label is exact
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
    def ep_power(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.power

    def run(self, prior, data, start):
        """Sweep until marginal and tilted moments match."""
        if self.mode == "sequential":
            last = self._sequential(prior, data, start)
            return self._finish(prior, data, last.sites, last.seen, last.sweeps)
        if self.mode == "double_loop":
            return self.finish(prior, data, start, jnp.zeros((), int))
        last = self._parallel(prior, data, start)
        run = self._finish(prior, data, last.good, last.seen, last.sweeps)
        round_off = last.still >= STILL  # is all that is left
        return dataclasses.replace(run, converged=run.converged | round_off)

    def finish(self, prior: PriorAtData, data: Data, sites: Sites, sweeps: Any) -> SiteRun:
        """Evidence and derivatives at given sites: (6) and (7)."""
        return self._finish(prior, data, sites, self.look(prior, data, sites).seen, sweeps)

    def run_conjugate(self, prior, data):
        """The run for Gaussian noise: its sites are the same whatever the cavities are, so that no sweep is needed."""
        cold = self.cold(prior)
        h, A = jnp.zeros_like(cold.shift), jnp.ones_like(cold.precision)  # any cavity will do
        return self.finish(prior, data, self._match(prior, data, h, A, h, A, cold)[0], jnp.zeros((), int))

    def _finish(self, prior: PriorAtData, data: Data, sites: Sites, now: "_Seen", sweeps: Any) -> SiteRun:
        """The same where all that the likelihood's integrals say of the sites is known."""

        def total(likelihood, residual):  # at fixed cavities
            log_z = self.log_tilted(likelihood, residual, data)(now.cavity_mean, now.cavity_cov)
            return jnp.sum(masked(log_z / self.share(data), data.mask))

        adjoint = stationary_adjoint(prior, prior.structure.condition(sites), total)
        valid = now.valid & jnp.isfinite(now.log_evidence) & (now.residual < MEANINGFUL)
        return SiteRun(sites, now.log_evidence, adjoint, now.residual < self.tolerance * data.slack, sweeps, valid)

    def settle(self, prior, data, state, slack=1.0):
        """From scratch, for a likelihood that is annealed: from the better of what that and its first sites lead to."""
        if state is None and prior.likelihood.annealed:
            ends = [run for run in self._from_afar(prior, data) if bool(run.valid)]
            state = max(ends, key=lambda run: float(run.log_evidence)).sites if ends else None
        return super().settle(prior, data, state, slack)

    def _from_afar(self, prior: PriorAtData, data: TrainingData) -> list[SiteRun]:
        """Runs from the likelihood's first sites, and from much noise that is lowered, each from the sites before."""
        rule, padded = dataclasses.replace(self, mode="parallel"), padded_data(data, len(prior.mean))
        n, size = len(data.y), len(prior.mean)
        first = prior.likelihood.first_sites(data.y, prior.mean[:n])
        guess = Sites(*(jnp.asarray(pad_zeros(np.asarray(a), size)) for a in first))
        sites = self.cold(prior)
        for likelihood in prior.likelihood.warm_up(data.y):
            run = run_rule(rule, dataclasses.replace(prior, likelihood=likelihood), padded, sites)
            sites = run.sites if bool(run.valid) else sites
        return [run_rule(rule, prior, padded, start) for start in (guess, sites)]

    def _after(self, run, prior, data, first):
        if bool(run.converged) or self.mode not in ("auto", "double_loop") or (self.mode == "auto" and not first):
            return self, run
        from errorband.inference.double_loop import double_loop, with_less_power  # imports this module

        if self.may_loop(prior):
            run = double_loop(self, prior, data, run.sites if bool(run.valid) else self.cold(prior))
        # PowerEP's residual variance is derived for one power, so the power cannot be changed.
        if bool(run.converged) or not first or prior.residual is not None:
            return self, run
        return with_less_power(self, prior, data) or (self, run)

    def may_loop(self, prior: PriorAtData) -> bool:
        """Whether a double loop is worth its time or has been asked for. Each of its steps takes as long as a sweep."""
        return self.mode == "double_loop" or prior.structure.n_data * prior.structure.order**2 <= LOOPED**3

    def conclude(self, model, data, state=None):
        """As other rules do; where parallel sweeps end nowhere, which a search can do without, by ``mode="auto"``.

        Where they only do not settle, of few rows one site after the other may: rows that repeat each other change
        their minds together in parallel, for ever.
        """
        try:
            found = super().conclude(model, data, state)
            return found if found.status.converged else self._one_by_one(model, data) or found
        except np.linalg.LinAlgError:
            if self.mode != "parallel" or model.likelihood.n_latents > 2:  # other powers of three latents take minutes
                raise
            found = dataclasses.replace(self, mode="auto").conclude(model, data)
            text = f"{self} found no proper posterior. {found.status.message}"
            return dataclasses.replace(found, status=dataclasses.replace(found.status, message=text, fell_back=True))

    def _one_by_one(self, model: Any, data: TrainingData) -> Conclusion | None:
        """What sequential sweeps come to in the place of parallel ones; None if that is no fixed point."""
        if self.mode != "parallel" or model.likelihood.n_latents > 2 or len(data.y) > FEW:
            return None
        rule = dataclasses.replace(self, mode="sequential", damping=max(self.damping, 0.5))
        try:
            found = rule.conclude(model, data)
        except np.linalg.LinAlgError:
            return None
        text = f"{self} reached no fixed point; {rule} did. {found.status.message}"
        status = dataclasses.replace(found.status, message=text, fell_back=True)
        return dataclasses.replace(found, status=status) if found.status.converged else None

    def _advice(self):
        if self.mode in ("parallel", "sequential"):
            return " Try mode='auto', which falls back on the double loop."
        return (
            " Neither damped sweeps nor, where they were tried, the double loop and smaller powers settled: at these "
            "hyperparameters there may be no sites that leave every row a proper cavity. Use inference=KL() or "
            "Laplace(), with inducing points those of FITC()."
        )

    # ------------------------------------------------------------------ evaluation at given sites
    def share(self, data: Data) -> Any:
        """Part of each datum's site that its cavity is without, ρ: a number, or one for each datum."""
        return self.power if data.weights is None else self.power / jnp.maximum(data.weights, 1.0)

    def log_tilted(self, likelihood: Any, residual: Any, data: Data) -> Any:
        """Function that maps cavity means (N, L) and covariances (N, L, L) to log Z of each datum, (N,)."""
        power = jnp.minimum(data.weights, 1.0) if data.fractional else None
        if self.power != 1.0:
            power = self.power * (jnp.ones(data.y.shape) if power is None else power)
        return log_tilted(likelihood, residual, data.y, power)

    def look(self, prior: PriorAtData, data: Data, sites: Sites) -> "_Look":
        """Posterior, evidence (6), new sites (4) and mismatch of moments at the given sites."""
        conditioned = prior.structure.condition(sites)
        h, A = conditioned.marginals()
        cavity_mean, cavity_cov, safe = cavity(h, A, sites, self.share(data))
        new, log_z, residual = self._match(prior, data, h, A, cavity_mean, cavity_cov, sites)
        # (6): log Z + Φ(cavity) − Φ(marginal) per datum.
        share = self.share(data)
        terms = masked((log_z + _phi_gained(h, A, sites, share, cavity_cov)) / share, data.mask)
        log_evidence = conditioned.log_partition + jnp.sum(terms)
        # Noise of 1e-20 makes both sums 1e20, and their difference round-off; nothing that is NaN passes either.
        size = jnp.abs(conditioned.log_partition) + jnp.sum(jnp.abs(terms))
        told = jnp.isfinite(residual) & (jnp.finfo(size.dtype).eps * size < MEANINGFUL)
        valid = conditioned.proper & jnp.all(jnp.where(data.mask, safe, True)) & told
        m = prior.mean + cavity_mean
        return _Look(h, A, new, _Seen(log_evidence, residual, valid, m, cavity_cov))

    def _match(self, prior, data, h, A, cavity_mean, cavity_cov, old) -> tuple[Sites, Any, Any]:
        """Sites that match the tilted moments, log Z of each datum, and the largest mismatch of moments."""
        log_tilted = self.log_tilted(prior.likelihood, prior.residual, data)
        log_z, alpha, nu = tilted_derivatives(log_tilted, prior.mean + cavity_mean, cavity_cov)
        mean = cavity_mean + block_times(cavity_cov, alpha)  # (3)
        cov = cavity_cov - block_matmul(block_matmul(cavity_cov, nu), cavity_cov)
        L = h.shape[1]
        precision = symmetrise(block_solve(jnp.eye(L) - block_matmul(nu, cavity_cov), nu))  # (4)
        shift = alpha + block_times(precision, mean)
        new = Sites(*parts(Sites(masked(shift, data.mask), masked(precision, data.mask)), 1.0 / self.share(data)))
        scale = jnp.sqrt(jnp.maximum(jnp.diagonal(A, axis1=1, axis2=2), 1e-300))
        off_mean = jnp.abs(mean - h) / scale
        off_cov = jnp.abs(cov - A) / (scale[:, :, None] * scale[:, None, :])
        residual = jnp.maximum(jnp.max(masked(off_mean, data.mask)), jnp.max(masked(off_cov, data.mask)))
        finite = jnp.isfinite(new.shift).all(1) & jnp.isfinite(new.precision).all((1, 2))
        keep = lambda a, b: jnp.where(finite.reshape(-1, *(1,) * (a.ndim - 1)), a, b)  # noqa: E731
        return jax.tree.map(keep, new, old), log_z, residual

    # ------------------------------------------------------------------ schedules
    def _parallel(self, prior: PriorAtData, data: Data, start: Sites) -> "_Parallel":
        """Update all sites at once, with an adaptive step."""
        zero = jax.tree.map(jnp.zeros_like, start)
        step = jnp.asarray(1.0 - self.damping)
        unseen = _Seen.nothing(start)
        first = _Parallel(start, zero, zero, unseen, step, jnp.inf, 0, 0, 0, 0, Memory.empty(start), False)

        def going(state):
            hopeful = (state.stuck < STUCK) & (state.idle < IDLE) & (state.still < STILL)
            return _going(self, data, state) & hopeful

        return jax.lax.while_loop(going, functools.partial(_parallel_sweep, self, prior, data), first)

    def _sequential(self, prior: PriorAtData, data: Data, start: Sites) -> "_Sequential":
        """Update one site at a time, in an order drawn once."""
        order = jnp.asarray(np.random.default_rng(self.seed).permutation(data.y.shape[0]))
        step = functools.partial(_sequential_sweep, self, prior, data, order)
        going = functools.partial(_going, self, data)
        return jax.lax.while_loop(going, step, _Sequential(start, _Seen.nothing(start), 0))


# ------------------------------------------------------------------------------------------------ loops
class _Seen(NamedTuple):
    """What a look at some sites says of them. Loops keep it: the program has the likelihood's integrals once."""

    log_evidence: Any
    residual: Any  # largest mismatch of moments
    valid: Any  # posterior and all cavities are proper
    cavity_mean: Any  # plus the prior mean
    cavity_cov: Any

    @classmethod
    def nothing(cls, sites: Sites) -> "_Seen":
        """Before the first look."""
        return cls(-jnp.inf, jnp.inf, False, jnp.zeros_like(sites.shift), jnp.zeros_like(sites.precision))


class _Parallel(NamedTuple):
    """State of the parallel schedule."""

    sites: Sites  # tried in the next sweep
    good: Sites  # the last sites with a proper posterior and proper cavities
    direction: Sites  # from the good sites to those that match their tilted moments
    seen: _Seen  # at the good sites
    step: Any  # length of the step along the direction
    least: Any  # mismatch so far
    sweeps: Any
    stuck: Any  # sweeps in which even a short step was too long
    idle: Any  # sweeps in a row that did not lower the least mismatch
    still: Any  # of these, in a row, those that ended in round-off
    memory: Memory
    accelerated: Any  # whether the sites to be tried are


class _Sequential(NamedTuple):
    """State of the sequential schedule."""

    sites: Sites
    seen: _Seen
    sweeps: Any


class _Visits(NamedTuple):
    """State within one sequential sweep: the sites, and the posterior under them."""

    sites: Sites
    posterior: State


def _going(rule: EP, data: Data, state: "_Parallel | _Sequential") -> Any:
    return (state.sweeps < rule.max_sweeps) & ~(state.seen.residual < rule.tolerance * data.slack)


def _parallel_sweep(rule: EP, prior: PriorAtData, data: Data, state: _Parallel) -> _Parallel:
    """One sweep over all sites. The step shrinks if the posterior or a cavity is improper or the mismatch grows.

    If an accelerated step makes the mismatch grow, it is taken back, the memory is emptied, and a plain one is taken,
    as long as the last plain one was: were it longer each time, the two could take turns for ever.
    """
    look = rule.look(prior, data, state.sites)
    now, before = look.seen, state.seen
    ahead = jax.tree.map(jnp.subtract, look.new, state.sites)
    # Parallel updates may oscillate: the direction reverses and the mismatch stays about the same.
    reversed_ = jnp.vdot(ahead.shift, state.direction.shift) < 0
    oscillates = reversed_ & (now.residual > OSCILLATING * before.residual)
    grows = ~now.valid | (now.residual > GROWING * before.residual)
    worse, back = ~state.accelerated & (grows | oscillates), state.accelerated & grows
    shrunk = jnp.where(now.valid, SHRINK * state.step, SHRINK_IMPROPER * state.step)
    step = jnp.where(worse, jnp.maximum(shrunk, LEAST_STEP), jnp.minimum(1.0, GROW * state.step))
    step = jnp.where(state.accelerated, state.step, step)
    # If the posterior is improper, return to the last good sites and take a shorter step in the same direction.
    taken = now.valid & ~back
    good = select(taken, state.sites, state.good)
    direction = select(taken, ahead, state.direction)
    seen = select(taken, now, before)
    residual = seen.residual
    memory = select(taken, state.memory.kept(good, direction), state.memory)
    memory = memory._replace(count=jnp.where(back, 0, memory.count))
    scale = jnp.sqrt(jnp.maximum(jnp.diagonal(look.cov, axis1=1, axis2=2), 1e-300))
    mixed = memory.mixed(good, direction, look.mean, scale)
    finite = jnp.all(jnp.isfinite(mixed[0].precision)) & jnp.all(jnp.isfinite(mixed[1].precision))
    accelerated = taken & (memory.count > 1) & (residual < NEAR) & finite
    proposal = jax.tree.map(lambda s, d: s + step * d, *select(accelerated, mixed, (good, direction)))
    done = taken & (residual < rule.tolerance * data.slack)
    stuck = state.stuck + (worse & (state.step < SHORT))
    idle = jnp.where(residual < state.least, 0, state.idle + 1)
    still = jnp.where((residual < FLOOR) & (residual >= state.least), state.still + 1, 0)
    return _Parallel(
        sites=select(done, state.sites, proposal),
        good=good,
        direction=direction,
        seen=seen,
        step=step,
        least=jnp.minimum(state.least, residual),
        sweeps=state.sweeps + 1,
        stuck=stuck,
        idle=idle,
        still=still,
        memory=memory,
        accelerated=accelerated,
    )


def _sequential_sweep(rule: EP, prior: PriorAtData, data: Data, order: Any, state: _Sequential) -> _Sequential:
    """One visit to every site. The posterior is computed afresh at the beginning, which removes round-off."""
    visit = functools.partial(_visit, rule, prior, data, order)
    first = _Visits(state.sites, prior.structure.condition(state.sites).state())
    sites = jax.lax.fori_loop(0, len(order), visit, first).sites
    return _Sequential(sites, rule.look(prior, data, sites).seen, state.sweeps + 1)


def _visit(rule: EP, prior: PriorAtData, data: Data, order: Any, i: Any, state: _Visits) -> _Visits:
    """Update the site of datum order[i], unless its cavity or the new posterior would be improper."""
    sites, posterior = state
    n = order[i]
    h, A = (x[None] for x in posterior.marginal(n))
    site = jax.tree.map(lambda x: x[n][None], sites)
    one = jax.tree.map(lambda x: x[n][None], dataclasses.replace(data, slack=None))
    cavity_mean, cavity_cov, safe = cavity(h, A, site, rule.share(one))
    mean, residual = jax.tree.map(lambda x: x[n][None], (prior.mean, prior.residual))
    part = PriorAtData(prior.structure, prior.likelihood, mean, residual)
    new, _, _ = rule._match(part, one, h, A, cavity_mean, cavity_cov, site)
    change = jax.tree.map(lambda a, b: (1.0 - rule.damping) * (a - b)[0], new, site)
    ok = data.mask[n] & safe[0] & posterior.admits(n, change.precision)
    change = jax.tree.map(lambda c: jnp.where(ok, c, 0.0), change)
    sites = Sites(sites.shift.at[n].add(change.shift), sites.precision.at[n].add(change.precision))
    return _Visits(sites, posterior.update(n, change.shift, change.precision))


class _Look(NamedTuple):
    """Result of `EP.look`."""

    mean: Any  # of the marginals, without the prior mean
    cov: Any
    new: Sites  # that match the tilted moments
    seen: _Seen


def log_tilted(likelihood: Any, residual: Any, y: Any, power: Any = None) -> Any:
    """Function that maps means (N, L) and covariances (N, L, L) to log ∫ pᵖᵒʷᵉʳ N of each datum; None is 1."""
    if power is None:
        return lambda m, V: per_datum(likelihood, "log_tilted")(y, m, widened(V, residual))
    return lambda m, V: per_datum(likelihood, "log_tilted_power")(y, m, widened(V, residual), power)


def tilted_derivatives(log_tilted: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Log Z, α = ∂ log Z/∂mean and ν = −∂² log Z/∂mean² for all data: (2) of :class:`EP`.

    log Z of a datum depends on its own mean only, so L directional derivatives of the sum give all second derivatives.
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


def _phi_gained(h: Any, A: Any, sites: Sites, share: Any, cavity_cov: Any) -> Any:
    """Φ(cavity) − Φ(marginal) per datum = log ∫ N(f; h, A) exp(½fᵀPf − pᵀf) df, where p = ρb and P = ρΠ.

    With C the cavity's covariance and u = Ph − p this is ½(h·u − p·h + uᵀCu − log|I − PA|). It needs no inverse of A,
    which may be zero, as it is for a row far from all inducing inputs.
    """
    shift, precision = parts(sites, share)
    u = block_times(precision, h) - shift
    quadratic = jnp.sum(h * (u - shift) + u * block_times(cavity_cov, u), axis=-1)
    ratio = block_matmul(precision, A)
    log_det = jnp.log1p(-ratio[:, 0, 0]) if A.shape[-1] == 1 else jnp.linalg.slogdet(jnp.eye(A.shape[-1]) - ratio)[1]
    return 0.5 * (quadratic - log_det)
