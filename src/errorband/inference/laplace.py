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
ROUND_OFF = 1e-12  # relative fall of the objective that is not counted as one
STALLED = 1e-14  # relative rise of the objective below which the search stops
ALMOST = 1e3  # a search that stalls counts as converged if its gradient is below this times the tolerance
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
        Stop when the gradient of the objective, times the prior's standard deviation, is below this.
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
                # With a state, a rule leaves out its slow ways to a fixed point.
                last = self.last_word.evaluate(model, data, found.state)
                if last.status.converged:
                    return self.last_word.conclude(model, data, last.state)
        return found

    def cold(self, prior):
        """Zero sites of the type that this likelihood's curvature has."""
        return (SimplexSites if prior.likelihood.simplex else Sites).zeros(*prior.mean.shape)

    def run(self, prior, data, start):
        """Newton's method from the posterior mean under the old sites, then evidence and implicit derivatives."""
        f, a, steps, converged = self._find_mode(prior, data, start)
        terms, concave = _Terms(prior, data), prior.likelihood.log_concave
        conditioned, keep = self._conditioned(prior, terms, f)
        value = terms.log_prob(prior.likelihood, f) - 0.5 * jnp.sum(a * f) - 0.5 * conditioned.log_det
        _, A = conditioned.marginals()

        def half_log_det(likelihood, f):
            W = terms.curvature(likelihood, f)
            return -0.5 * jnp.sum(A * (W if concave else jnp.where(keep, W, _positive_part(W))))

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
        valid = conditioned.proper & jnp.isfinite(value)
        return SiteRun(conditioned.sites, value, adjoint, converged, steps, valid)

    def _conditioned(self, prior: PriorAtData, terms: "_Terms", f: Any) -> tuple[Any, Any]:
        """The posterior at the mode, and whether it is the one with the true curvature.

        Negative curvature is used if "newton" is asked for and the posterior is proper with it.
        """
        true = terms.sites(prior.likelihood, f)
        if prior.likelihood.log_concave:
            return prior.structure.condition(true), True
        positive = _sites(f, _positive_part(true.precision), terms.gradient(prior.likelihood, f))
        signed = prior.structure.condition(true)
        keep = signed.proper & (self.curvature == "newton")
        return select(keep, signed, prior.structure.condition(positive)), keep

    def _find_mode(self, prior: PriorAtData, data: Data, start: Sites) -> tuple[Any, Any, Any, Any]:
        """f̂ and a = K⁻¹f̂ (both without the prior mean), number of steps, whether the gradient vanished."""
        terms, structure = _Terms(prior, data), prior.structure
        objective = functools.partial(_objective, terms, prior.likelihood)
        begin = structure.condition(start)  # all-zero sites: f = 0
        ok = begin.proper & jnp.all(jnp.isfinite(begin.weights))
        f, a = (jnp.where(ok, x, 0.0) for x in (begin.mean, begin.weights))
        better = objective(f, a) > objective(0 * f, 0 * a)
        f, a = (jnp.where(better, x, 0.0) for x in (f, a))
        state = _Newton(f, a, objective(f, a), 0, jnp.inf, False)
        step = functools.partial(_newton_step, prior, terms)
        if not prior.likelihood.log_concave:
            step = functools.partial(_round, self, prior, terms)
        last = jax.lax.while_loop(functools.partial(_going, self), step, state)
        converged = (last.residual < self.tolerance) | (last.stalled & (last.residual < ALMOST * self.tolerance))
        return last.f, last.a, last.steps, converged


# ------------------------------------------------------------------------------------------------ loops
class _Newton(NamedTuple):
    """State of the search for the mode."""

    f: Any
    a: Any  # K⁻¹f
    value: Any  # log p(y | f) − ½ fᵀK⁻¹f
    steps: Any
    residual: Any  # largest entry of the gradient, as in ``tolerance``
    stalled: Any  # whether the value rises no more


class _Polish(NamedTuple):
    """State of the last steps towards the mode, with the true curvature."""

    f: Any
    a: Any
    value: Any
    residual: Any
    better: Any  # whether the last step halved the gradient
    steps: Any


class _Search(NamedTuple):
    """State of the line search."""

    step: Any
    value: Any


def _objective(terms: "_Terms", likelihood: Any, f: Any, a: Any) -> Any:
    return terms.log_prob(likelihood, f) - 0.5 * jnp.sum(a * f)


def _gradient_left(prior: PriorAtData, terms: "_Terms", f: Any, a: Any) -> Any:
    """Largest entry of ∇ log p(y | f) − K⁻¹f, times the prior's standard deviation."""
    scale = jnp.sqrt(prior.structure.diagonal())
    return jnp.max(masked(scale * jnp.abs(a - terms.gradient(prior.likelihood, f)), terms.data.mask))


def _going(rule: Laplace, state: _Newton) -> Any:
    return (state.steps < rule.max_iter) & ~(state.residual < rule.tolerance) & ~state.stalled


def _newton_step(prior: PriorAtData, terms: "_Terms", state: _Newton) -> _Newton:
    """One Newton step with the positive part of the curvature, halved until the objective does not fall."""
    likelihood = prior.likelihood
    f, a, value = state.f, state.a, state.value
    if likelihood.log_concave:
        target = prior.structure.condition(terms.sites(likelihood, f))
    else:
        W = _positive_part(terms.curvature(likelihood, f))
        target = prior.structure.condition(_sites(f, W, terms.gradient(likelihood, f)))
    df, da = target.mean - f, target.weights - a

    def moved(step):
        return _Search(step, _objective(terms, likelihood, f + step * df, a + step * da))

    def falling(search):
        return ~(search.value >= value - ROUND_OFF * jnp.abs(value)) & (search.step > LEAST_STEP)

    found = jax.lax.while_loop(falling, lambda search: moved(0.5 * search.step), moved(1.0))
    f, a = f + found.step * df, a + found.step * da
    stalled = (found.step <= LEAST_STEP) | (jnp.abs(found.value - value) <= STALLED * jnp.abs(found.value))
    return _Newton(f, a, found.value, state.steps + 1, _gradient_left(prior, terms, f, a), stalled)


def _round(rule: Laplace, prior: PriorAtData, terms: "_Terms", state: _Newton) -> _Newton:
    """Steps with the true curvature as long as they help, then some with its positive part.

    Near the mode the first converge quadratically. The others never fail, but converge linearly, and slowly where tails
    are heavy.
    """
    residual = _finite_or_inf(_gradient_left(prior, terms, state.f, state.a))
    first = _Polish(state.f, state.a, state.value, residual, True, 0)
    helping = lambda s: s.better & (s.steps < POLISHING) & ~(s.residual < rule.tolerance)  # noqa: E731
    last = jax.lax.while_loop(helping, functools.partial(_polish_step, prior, terms), first)
    stalled = state.stalled & (last.steps <= 1)  # the first step with the true curvature did not help either
    state = _Newton(last.f, last.a, last.value, state.steps + last.steps, last.residual, stalled)
    end = state.steps + ROUND
    going = lambda s: _going(rule, s) & (s.steps < end)  # noqa: E731
    return jax.lax.while_loop(going, functools.partial(_newton_step, prior, terms), state)


def _polish_step(prior: PriorAtData, terms: "_Terms", state: _Polish) -> _Polish:
    """A Newton step with the true curvature, taken if it halves the gradient and the objective does not fall."""
    target = prior.structure.condition(terms.sites(prior.likelihood, state.f))
    residual = _finite_or_inf(_gradient_left(prior, terms, target.mean, target.weights))
    value = _objective(terms, prior.likelihood, target.mean, target.weights)
    rises = value >= state.value - ROUND_OFF * jnp.abs(state.value)
    better = target.proper & (residual < 0.5 * state.residual) & rises
    moved = _Polish(target.mean, target.weights, value, residual, better, state.steps)
    return select(better, moved, state._replace(better=better))._replace(steps=state.steps + 1)


def _finite_or_inf(value: Any) -> Any:
    return jnp.where(jnp.isfinite(value), value, jnp.inf)


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

    def sites(self, likelihood, f):
        """Second-order expansion of log p at f, as sites; `SimplexSites` if the likelihood has that curvature."""
        general = _sites(f, self.curvature(likelihood, f), self.gradient(likelihood, f))
        if not likelihood.simplex:
            return general
        return SimplexSites.of(general.shift, self.data.weighted(jax.vmap(likelihood.share)(self.mean + f)))


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
