"""Laplace's approximation: a Gaussian at the mode of the posterior, with the curvature found there."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from errorband.arguments import check_number, check_whole
from errorband.inference.base import Inference
from errorband.inference.sites import Data, SiteInference, SiteRun, masked, per_datum
from errorband.model import PriorAtData
from errorband.structures import SimplexSites, Sites
from errorband.structures.sites import block_times, select


class Laplace(SiteInference):
    """Sites from gradient and curvature of log p(y | f) at the posterior mode (Williams & Barber 1998).

    Newton's method with W = −∇² log p: the step is the posterior mean under the sites Π = W, b = Wf + ∇ log p
    (Rasmussen & Williams 2006, eq. 3.18 and algorithm 3.1), which never inverts K and holds for several latents (§3.5
    there). Steps are halved until the objective log p(y | f) − ½ fᵀK⁻¹f rises. The evidence is
    log p(y | f̂) − ½ f̂ᵀK⁻¹f̂ − ½ log|I + KW| (eq. 3.32).

    Parameters
    ----------
    max_iter : int
        Newton steps.
    tolerance : float
        Stop when the gradient of the objective, in units of the prior's standard deviation, is below this.
    curvature : {"newton", "fisher"}
        For likelihoods that are not log-concave: the true curvature at the mode (negative for outliers; its positive
        part drives the search), or its positive part throughout.
    last_word : Inference or None
        Rule for evidence and posterior at the hyperparameters that a search by Laplace's evidence found, if it
        converges there. ``EP()`` is what ``inference="auto"`` takes where the posterior may have several modes: Laplace
        believes the outliers of whichever mode it came to, EP averages over the modes nearby.

    Notes
    -----
    The mode moves with the hyperparameters. With A the posterior covariance, s = −½ ∂ tr(AW)/∂f̂ and v = (I + WK)⁻¹s,
    the derivative of the evidence in K is ½(aaᵀ − (K + W⁻¹)⁻¹) + v aᵀ, a = K⁻¹f̂, and in the prior mean a + v.

    Examples
    --------
    >>> from errorband import GPClassifier
    >>> from errorband.kernels import SquaredExponential
    >>> kernel = SquaredExponential(1.0, 4.0)
    >>> model = GPClassifier(kernel, inference=Laplace(), optimizer=None, normalize=False).fit([[0.0], [100.0]], [0, 1])
    >>> round(model.log_evidence_, 4)  # 2 log ½ = −1.3863 is right: the labels know nothing of each other
    -1.4722
    """

    max_iter: int = eqx.field(default=100, static=True)
    tolerance: float = eqx.field(default=1e-10, static=True)
    curvature: str = eqx.field(default="newton", static=True)
    last_word: Inference | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    def __check_init__(self):
        if self.curvature not in ("newton", "fisher"):
            raise ValueError(f"curvature={self.curvature!r}: choose 'newton' or 'fisher'.")
        check_whole("Laplace", "max_iter", self.max_iter)
        check_number("Laplace", "tolerance", self.tolerance)

    def supports(self, model, data):
        """Needs a likelihood with curvature."""
        if not model.likelihood.smooth:
            return f"{type(model.likelihood).__name__} has no curvature; use inference=EP()."
        if self.last_word is not None and (reason := self.last_word.supports(model, data)) is not None:
            return reason
        return super().supports(model, data)

    def cold(self, prior):
        """No sites, of the kind that the likelihood's curvature has."""
        return (SimplexSites if prior.likelihood.simplex else Sites).zeros(*prior.mean.shape)

    def run(self, prior, data, start):
        """Newton's method from the mean under the old sites, then evidence and implicit derivatives."""
        f, a, steps, converged = self._find_mode(prior, data, start)
        terms = _Terms(prior, data)
        gradient = terms.gradient(prior.likelihood, f)
        # Negative curvature is kept if it is asked for and the posterior is proper with it.
        signed = prior.structure.condition(terms.sites(prior.likelihood, f))
        keep = jnp.asarray(True) if prior.likelihood.log_concave else signed.proper & (self.curvature == "newton")

        def curvature(likelihood, f):
            W = terms.curvature(likelihood, f)
            return W if likelihood.log_concave else jnp.where(keep, W, _positive_part(W))

        conditioned = signed
        if not prior.likelihood.log_concave:
            positive = prior.structure.condition(
                _sites(f, _positive_part(terms.curvature(prior.likelihood, f)), gradient)
            )
            conditioned = select(keep, signed, positive)
        log_prob = terms.log_prob(prior.likelihood, f)
        value = log_prob - 0.5 * jnp.sum(a * f) - 0.5 * conditioned.log_det
        _, A = conditioned.marginals()
        s = jax.grad(lambda f: -0.5 * jnp.sum(A * curvature(prior.likelihood, f)))(f)
        v = conditioned.solve(s)
        Kv = prior.structure.matvec(v)
        a = conditioned.weights

        def total(likelihood):  # f̂ moves with the likelihood's own parameters too: df̂ = (I + KW)⁻¹K ∂∇log p
            explicit = terms.log_prob(likelihood, f) - 0.5 * jnp.sum(A * curvature(likelihood, f))
            return explicit + jnp.sum(Kv * terms.gradient(likelihood, f))

        moving = jax.grad(lambda structure: jnp.sum(v * structure.matvec(a)))(prior.structure)
        structure_bar = jax.tree.map(jnp.add, conditioned.adjoint(), moving)
        adjoint = PriorAtData(structure_bar, jax.grad(total)(prior.likelihood), a + v)
        valid = conditioned.proper & jnp.isfinite(value)
        return SiteRun(conditioned.sites, value, adjoint, converged, steps, valid)

    def _find_mode(self, prior: PriorAtData, data: Data, start: Sites) -> tuple[Any, Any, Any, Any]:
        """f̂ and a = K⁻¹f̂ (both without the prior mean), number of steps, whether the gradient vanished."""
        terms = _Terms(prior, data)
        likelihood, structure = prior.likelihood, prior.structure
        scale = jnp.sqrt(structure.diagonal())

        def objective(f, a):
            return terms.log_prob(likelihood, f) - 0.5 * jnp.sum(a * f)

        def newton(state):
            f, a, value, step, _, _ = state
            if likelihood.log_concave:
                target = prior.structure.condition(terms.sites(likelihood, f))
            else:
                W = _positive_part(terms.curvature(likelihood, f))
                target = prior.structure.condition(_sites(f, W, terms.gradient(likelihood, f)))
            df, da = target.mean - f, target.weights - a

            def halve(search):
                size, _ = search
                return 0.5 * size, objective(f + 0.5 * size * df, a + 0.5 * size * da)

            def falling(search):
                size, new = search
                return ~(new >= value - 1e-12 * jnp.abs(value)) & (size > 1e-6)

            size, new = jax.lax.while_loop(falling, halve, (1.0, objective(f + df, a + da)))
            f, a = f + size * df, a + size * da
            residual = jnp.max(masked(scale * jnp.abs(a - terms.gradient(likelihood, f)), data.mask))
            stalled = (size <= 1e-6) | (jnp.abs(new - value) <= 1e-14 * jnp.abs(new))
            return f, a, new, step + 1, residual, stalled

        def going(state):
            _, _, _, step, residual, stalled = state
            return (step < self.max_iter) & ~(residual < self.tolerance) & ~stalled

        begin = structure.condition(start)  # all-zero sites: f = 0
        ok = begin.proper & jnp.all(jnp.isfinite(begin.weights))
        f0, a0 = (jnp.where(ok, x, 0.0) for x in (begin.mean, begin.weights))
        better = objective(f0, a0) > objective(0 * f0, 0 * a0)
        f0, a0 = (jnp.where(better, x, 0.0) for x in (f0, a0))
        state = (f0, a0, objective(f0, a0), 0, jnp.inf, False)
        f, a, _, steps, residual, stalled = jax.lax.while_loop(going, newton, state)
        if not likelihood.log_concave:
            f, a, residual = self._polished(prior, data, f, a)
        converged = (residual < self.tolerance) | (stalled & (residual < 1e3 * self.tolerance))
        return f, a, steps, converged

    def _polished(self, prior: PriorAtData, data: Data, f: Any, a: Any) -> tuple[Any, Any, Any]:
        """The mode to more digits, and the gradient left, in units as ``tolerance``.

        With the positive part of the curvature each step takes a share of what is left; near the mode, Newton's own,
        with the true curvature, take nearly all. As long as the gradient falls.
        """
        terms, scale = _Terms(prior, data), jnp.sqrt(prior.structure.diagonal())

        def residual(f, a):
            left = jnp.max(masked(scale * jnp.abs(a - terms.gradient(prior.likelihood, f)), data.mask))
            return jnp.where(jnp.isfinite(left), left, jnp.inf)

        def step(state):
            f, a, left, _, n = state
            target = prior.structure.condition(terms.sites(prior.likelihood, f))
            new = jnp.where(target.proper, residual(target.mean, target.weights), jnp.inf)
            better = new < 0.5 * left
            f, a = jnp.where(better, target.mean, f), jnp.where(better, target.weights, a)
            return f, a, jnp.where(better, new, left), better, n + 1

        state = (f, a, residual(f, a), True, 0)
        f, a, left, _, _ = jax.lax.while_loop(lambda s: s[3] & (s[4] < 10), step, state)
        return f, a, left


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
        """The expansion at f as sites, in the form that structures exploit where the likelihood has it."""
        general = _sites(f, self.curvature(likelihood, f), self.gradient(likelihood, f))
        if not likelihood.simplex:
            return general
        return SimplexSites.of(general.shift, self.data.weighted(jax.vmap(likelihood.share)(self.mean + f)))


def _one(likelihood):
    """Log p of one datum, with f a vector."""
    return likelihood.log_prob if likelihood.n_latents > 1 else lambda y, f: likelihood.log_prob(y, f[0])


def _sites(f: Any, W: Any, gradient: Any) -> Sites:
    """Log p to second order at f, as sites: the posterior mean under them is where the Newton step leads."""
    return Sites(block_times(W, f) + gradient, W)


def _positive_part(W: Any) -> Any:
    """Each block without its negative eigenvalues."""
    if W.shape[-1] == 1:
        return jnp.maximum(W, 0.0)
    values, vectors = jnp.linalg.eigh(W)
    return jnp.einsum("nij,nj,nkj->nik", vectors, jnp.maximum(values, 0.0), vectors)
