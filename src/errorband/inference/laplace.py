"""Laplace's approximation: a Gaussian at the posterior mode, with the curvature at the mode."""

import contextlib
import functools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.inference.base import Inference
from errorband.inference.sites import Data, SiteInference, SiteRun, masked, per_datum
from errorband.model import PriorAtData
from errorband.parameters.checks import check_number, check_whole
from errorband.structures import SimplexSites, Sites
from errorband.structures.sites import block_times, select

LEAST_STEP = 1e-6  # the line search gives up below this
ROUND_OFF = 1e-12  # change of the objective that is not counted as one, relative to its size
FLOOR = 1e-4  # a gradient below this, in posterior standard deviations, is round-off if no step makes it smaller
MEANINGFUL = 1e-4  # relative round-off of a posterior variance that has digits left
ROUND = 8  # steps with the positive part of the curvature before those with the true one are tried
POLISHING = 10  # most Newton steps with the true curvature in a row


class Laplace(SiteInference):
    """Sites from gradient and curvature of log p(y | f) at the posterior mode (Williams & Barber 1998).

    Newton's method with Π = −∇² log p: a full step goes to the posterior mean under the sites (b, Π), b = Πf + ∇ log p
    (Rasmussen & Williams 2006, eq. 3.18 and algorithm 3.1). This never inverts K and holds for several latents (§3.5
    there). Steps are halved until the objective log p(y | f) − ½ fᵀK⁻¹f rises. The evidence is
    log p(y | f̂) − ½ f̂ᵀK⁻¹f̂ − ½ log|I + KΠ| (eq. 3.32).

    Parameters
    ----------
    max_iter : int
        Largest number of Newton steps.
    tolerance : float
        Stop when the gradient of the objective, times the prior's standard deviation, is below this; where noise is
        tiny it may be round-off before: then, times the posterior's, it must be below 1e-4.
    curvature : {"newton", "positive"}
        For likelihoods that are not log-concave. "newton": the sites have the true curvature at the mode, negative for
        outliers (the search for the mode uses its positive part). "positive": the sites have the positive part of the
        curvature, that is each Πₙ without its negative eigenvalues.
    last_word : Inference or None
        Rule that computes evidence and posterior at the hyperparameters found with Laplace's evidence, if it converges
        there. ``inference="auto"`` uses ``EP()`` where the posterior may have several modes: Laplace's approximation
        describes the one mode it reached, EP averages over neighbouring modes.

    Notes
    -----
    The mode moves with the hyperparameters. With A the posterior covariance, s = −½ ∂ tr(AΠ)/∂f̂ and v = (I + ΠK)⁻¹s,
    the derivative of the evidence in K is ½(aaᵀ − (K + Π⁻¹)⁻¹) + v aᵀ, a = K⁻¹f̂, and in the prior mean a + v.

    Examples
    --------
    >>> from errorband import GPClassifier
    >>> from errorband.kernels import SquaredExponential
    >>> kernel = SquaredExponential(1.0, 4.0)
    >>> model = GPClassifier(kernel, inference=Laplace(), optimizer=None, normalize=False).fit([[0.0], [100.0]], [0, 1])
    >>> round(model.log_evidence_, 4)  # the exact value is 2 log ½ = −1.3863: the labels are independent
    -1.4722
    """

    simplex_sites: ClassVar[bool] = True
    """Whether the sites of softmax keep their form, so that classes come apart in the algebra."""

    max_iter: int = eqx.field(default=100, static=True)
    tolerance: float = eqx.field(default=1e-10, static=True)
    curvature: str = eqx.field(default="newton", static=True)
    last_word: Inference | None = None

    def __check_init__(self):
        if self.curvature not in ("newton", "positive"):
            raise ValueError(f"curvature={self.curvature!r}: choose 'newton' or 'positive'.")
        check_whole("Laplace", "max_iter", self.max_iter)
        check_number("Laplace", "tolerance", self.tolerance)

    def supports(self, model, data):
        """Needs a likelihood with curvature."""
        if not model.likelihood.smooth:
            return f"{type(model.likelihood).__name__} has no curvature; use inference=EP()."
        if self.last_word is not None and (reason := self.last_word.supports(model, data)) is not None:
            return reason
        return super().supports(model, data)

    def conclude(self, model, data, state=None):
        """By the rule that has the last word, if it converges from where this one ended."""
        found = super().conclude(model, data, state)
        if self.last_word is not None:
            with contextlib.suppress(np.linalg.LinAlgError):
                if isinstance(self.last_word, SiteInference):
                    return self.last_word.conclude_from(model, data, found.state) or found
                return self.last_word.conclude(model, data)
        return found

    def cold(self, prior):
        """Zero sites of the type that this likelihood's curvature has."""
        return (SimplexSites if prior.likelihood.simplex else Sites).zeros(*prior.mean.shape)

    def run(self, prior, data, start):
        """Newton's method from the posterior mean under the old sites, then evidence and implicit derivatives."""
        terms, concave = _Terms(prior, data), prior.likelihood.log_concave
        last = self._find_mode(prior, terms, start)
        f, conditioned = last.at.f, last.posterior
        value = last.at.value - 0.5 * conditioned.log_det
        _, A = conditioned.marginals()

        def half_log_det(likelihood, f):
            W = terms.curvature(likelihood, f)
            return -0.5 * jnp.sum(A * (W if concave else jnp.where(last.positive, _positive_part(W), W)))

        by_curvature, s = jax.grad(half_log_det, (0, 1))(prior.likelihood, f)
        v = conditioned.solve(s)
        Kv = prior.structure.matvec(v)
        a = conditioned.weights

        def total(likelihood):  # f̂ moves with the likelihood's own parameters too: df̂ = (I + KΠ)⁻¹K ∂∇log p
            return terms.log_prob(likelihood, f) + jnp.sum(Kv * terms.gradient(likelihood, f))

        likelihood_bar = jax.tree.map(jnp.add, by_curvature, jax.grad(total)(prior.likelihood))
        moving = jax.grad(lambda structure: jnp.sum(v * structure.matvec(a)))(prior.structure)
        structure_bar = jax.tree.map(jnp.add, conditioned.adjoint(), moving)
        adjoint = PriorAtData(structure_bar, likelihood_bar, a + v)
        # Noise of some rows may vanish, and the evidence rise with it until factors of the posterior are round-off.
        sharpest = jnp.max(masked(prior.structure.diagonal() * self._own_curvature(last.at), data.mask))
        told = jnp.isfinite(value) & (jnp.finfo(value.dtype).eps * sharpest < MEANINGFUL)
        valid = conditioned.proper & told
        return SiteRun(conditioned.sites, value, adjoint, self._converged(prior, terms, last), last.steps, valid)

    def _find_mode(self, prior: PriorAtData, terms: "_Terms", start: Sites) -> "_Newton":
        """The mode, and the posterior with the curvature there.

        Negative curvature is used if "newton" is asked for and the posterior is proper with it.
        """
        f = jnp.zeros_like(prior.mean)
        value, nothing = terms.log_prob(prior.likelihood, f), jnp.zeros((*f.shape, f.shape[1]))
        at = _Point(f, f, value, f, nothing, jnp.inf)
        blank = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(prior.structure.condition, start))
        state = _Newton(at, start, False, blank, BEGIN, 0, 0, False)
        going = lambda s: s.phase != DONE  # noqa: E731
        return jax.lax.while_loop(going, functools.partial(_step, self, prior, terms), state)

    def _own_curvature(self, at: "_Point") -> Any:
        """Of each latent value by itself, (N, L); zero where it is negative."""
        return jnp.maximum(jnp.diagonal(at.curvature, axis1=1, axis2=2), 0.0)

    def _converged(self, prior: PriorAtData, terms: "_Terms", last: "_Newton") -> Any:
        """Whether the gradient vanished, or all that is left of it is round-off."""
        at, k = last.at, prior.structure.diagonal()
        left = masked(jnp.abs(at.a - at.gradient) * jnp.sqrt(k / (1.0 + k * self._own_curvature(at))), terms.data.mask)
        return (at.residual < self.tolerance) | (last.stalled & jnp.all(left < FLOOR))


# ------------------------------------------------------------------------------------------------ the search
# What a step is for. All are one piece of the program: conditioning on sites, with which each begins, takes long to
# compile.
BEGIN = 0  # go to the mean under the old sites, if that is better than the prior mean
POLISH = 1  # a step with the true curvature
CLIMB = 2  # a step with the positive part of the curvature, halved until the objective does not fall
LOOK = 3  # no step: the posterior with the curvature at the mode, if it is proper
GIVE = 4  # no step: the posterior with the positive part of the curvature at the mode
DONE = 5


class _Point(NamedTuple):
    """Latent values, and what is known of the objective there."""

    f: Any  # without the prior mean
    a: Any  # K⁻¹f
    value: Any  # log p(y | f) − ½ fᵀK⁻¹f
    gradient: Any  # of log p(y | f), (N, L)
    curvature: Any  # minus its second derivatives, (N, L, L)
    residual: Any  # largest entry of ∇ log p(y | f) − K⁻¹f, times the prior's standard deviation


class _Newton(NamedTuple):
    """State of the search for the mode."""

    at: _Point
    sites: Sites  # the next step conditions on
    positive: Any  # whether these have the positive part of the curvature in the place of the true one
    posterior: Any  # under the sites of the last step
    phase: Any
    count: Any  # of steps in this phase
    steps: Any
    stalled: Any  # whether the objective rises no more, and the gradient falls no more


class _Search(NamedTuple):
    """State of the line search."""

    step: Any  # tried next
    best: Any  # step so far
    value: Any  # of the objective there
    going: Any


def _step(rule: Laplace, prior: PriorAtData, terms: "_Terms", state: _Newton) -> _Newton:
    """One step of Newton's method, or what goes before the first or comes after the last.

    Steps with the true curvature are taken as long as they help, then some with its positive part. Near the mode the
    first converge quadratically. The others never fail, but converge linearly, and slowly where tails are heavy.
    """
    at, phase = state.at, state.phase
    target = prior.structure.condition(state.sites)
    df, da = target.mean - at.f, target.weights - at.a
    size = ROUND_OFF * (jnp.abs(at.value) + len(df))  # a row is worth about one

    def tried(search):
        f, a, step = at.f + search.step * df, at.a + search.step * da, search.step
        value = terms.log_prob(prior.likelihood, f) - 0.5 * jnp.sum(a * f)
        better, falls = value > search.value, ~(value >= at.value - size)
        shorter, longer = falls & (step > LEAST_STEP), last & better & (step >= 1.0)
        best, value = select(better, (step, value), (search.best, search.value))
        return _Search(jnp.where(longer, 2.0, 0.5) * step, best, value, (phase == CLIMB) & (shorter | longer))

    # The last of a round is as long as it can be: in a long valley steps are short, each as long as the one before.
    last = (state.count == ROUND - 1) & (not prior.likelihood.log_concave)
    found = jax.lax.while_loop(lambda search: search.going, tried, _Search(1.0, 1.0, -jnp.inf, True))
    stays = (phase == BEGIN) & ~(target.proper & (found.value > at.value))
    moved = at.f + found.best * df, at.a + found.best * da, found.value
    new = _point(prior, terms, *select(stays, (at.f, at.a, at.value), moved))
    rises, halves = found.value >= at.value - size, new.residual < 0.5 * at.residual
    taken = (phase == BEGIN) | (rises & jnp.where(phase == POLISH, target.proper & halves, phase == CLIMB))
    no_more = ~taken | (found.best <= LEAST_STEP) | ((found.value - at.value <= size) & ~halves)
    stalled = jnp.where(phase == CLIMB, no_more, state.stalled & ~taken)
    at, count = select(taken, new, at), state.count + 1
    steps = state.steps + ((phase == POLISH) | (phase == CLIMB))
    over = (phase < LOOK) & ((at.residual < rule.tolerance) | (steps >= rule.max_iter))
    if prior.likelihood.log_concave:
        following = jnp.where(over | stalled, LOOK, CLIMB)
        following, positive = jnp.where(phase == LOOK, DONE, following), False
        sites = terms.sites(prior.likelihood, at)
    else:
        end = LOOK if rule.curvature == "newton" else GIVE
        again = taken & (count < POLISHING)
        following = jnp.stack([
            POLISH,
            jnp.where(again, POLISH, jnp.where(stalled, end, CLIMB)),
            jnp.where(stalled | (count >= ROUND), POLISH, CLIMB),
            jnp.where(target.proper, DONE, GIVE),
            DONE,
        ])[phase]  # fmt: skip
        following = jnp.where(over, end, following)
        positive = (following == CLIMB) | (following == GIVE) | (phase == GIVE)
        sites = _sites(at.f, jnp.where(positive, _positive_part(at.curvature), at.curvature), at.gradient)
    count = jnp.where(following == phase, count, 0)
    return _Newton(at, sites, positive, target, following, count, steps, stalled)


def _point(prior: PriorAtData, terms: "_Terms", f: Any, a: Any, value: Any) -> _Point:
    gradient, curvature = terms.expansion(prior.likelihood, f)
    scale = jnp.sqrt(prior.structure.diagonal())
    residual = jnp.max(masked(scale * jnp.abs(a - gradient), terms.data.mask))
    return _Point(f, a, value, gradient, curvature, jnp.where(jnp.isfinite(residual), residual, jnp.inf))


class _Terms:
    """log p(y | m + f) summed over the data, its gradient (N, L) and −Hessian (N, L, L), zero for padding."""

    def __init__(self, prior: PriorAtData, data: Data):
        self.mean, self.data = prior.mean, data

    def log_prob(self, likelihood, f):
        return jnp.sum(self.data.weighted(per_datum(likelihood, "log_prob")(self.data.y, self.mean + f)))

    def gradient(self, likelihood, f):
        return self.data.weighted(jax.vmap(jax.grad(_one(likelihood), 1))(self.data.y, self.mean + f))

    def curvature(self, likelihood, f):
        return self.data.weighted(-jax.vmap(jax.hessian(_one(likelihood), 1))(self.data.y, self.mean + f))

    def expansion(self, likelihood, f):
        """Gradient and −Hessian at once."""

        def gradient(y, f):
            found = jax.grad(_one(likelihood), 1)(y, f)
            return found, found

        hessian, found = jax.vmap(jax.jacfwd(gradient, 1, has_aux=True))(self.data.y, self.mean + f)
        return self.data.weighted(found), self.data.weighted(-hessian)

    def sites(self, likelihood, at):
        """Second-order expansion of log p, as sites; `SimplexSites` if the likelihood has that curvature."""
        general = _sites(at.f, at.curvature, at.gradient)
        if not likelihood.simplex:
            return general
        return SimplexSites.of(general.shift, self.data.weighted(jax.vmap(likelihood.share)(self.mean + at.f)))


def _one(likelihood):
    """Log p of one datum as a function of a vector f of length L."""
    return likelihood.log_prob if likelihood.n_latents > 1 else lambda y, f: likelihood.log_prob(y, f[0])


def _sites(f: Any, W: Any, gradient: Any) -> Sites:
    """Second-order expansion of log p at f, as sites: the posterior mean under them is the full Newton step."""
    return Sites(block_times(W, f) + gradient, W)


def _positive_part(W: Any) -> Any:
    """Each block without its negative eigenvalues."""
    if W.shape[-1] == 1:
        return jnp.maximum(W, 0.0)
    values, vectors = jnp.linalg.eigh(W)
    return jnp.einsum("nij,nj,nkj->nik", vectors, jnp.maximum(values, 0.0), vectors)
