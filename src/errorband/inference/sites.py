"""What Laplace, EP and KL have in common: sites on any structure, run compiled, warm-started, padded.

Each rule gives ``run``, which is traced: from the prior at the data to sites, log evidence and derivatives. At the
fixed point of EP and KL the sites may be held constant, and the derivative in the prior covariance is the same
expression for both, ½(ggᵀ − W): (7) of :class:`~errorband.inference.EP`.
"""

import abc
import contextlib
import dataclasses
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband import linalg
from errorband.conjugate.base import gradient
from errorband.data import TrainingData
from errorband.inference.base import Conclusion, Evaluation, Inference, Status
from errorband.likelihoods import Likelihood
from errorband.model import Model, PriorAtData
from errorband.posterior import Posterior
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.structures import Conditioned, Sites
from errorband.structures.sites import block_diag_of, block_eigh, block_matmul, block_solve, block_times, symmetrise

KNOWN = 1e-250  # a variance below is none: derivatives of its square root are no numbers

# Between two points of a search sites need not be exact: the evidence is stationary in them, so that a mismatch of 1e-4
# changes it in the eighth place. What a fit ends with is computed with the tolerance of the rule.
SLACK = 100.0


class SiteRun(eqx.Module):
    """Outcome of a run, as arrays."""

    sites: Sites
    log_evidence: Any
    adjoint: PriorAtData
    converged: Any
    sweeps: Any
    valid: Any


class Data(eqx.Module):
    """Targets with padding, the mask of what is not padding, and the power of each likelihood term (None: all one).

    ``fractional``: some weights are below one. ``slack``: factor on the tolerance of a rule that can do with less.
    """

    y: Any
    mask: Any
    weights: Any = None
    slack: Any = 1.0
    fractional: bool = eqx.field(default=False, static=True)

    def weighted(self, values: Any) -> Any:
        """Values per datum times the weights, zero for padding."""
        values = masked(values, self.mask)
        return values if self.weights is None else values * self.weights.reshape(-1, *(1,) * (values.ndim - 1))


def padded_data(data: TrainingData, size: int, slack: float = 1.0) -> Data:
    """The targets with padding up to so many rows."""
    n = len(data.y)
    y = np.concatenate([data.y, np.full(size - n, data.y[0])])
    if data.weights is None:
        return Data(y, np.arange(size) < n, slack=slack)
    weights = np.concatenate([data.weights, np.ones(size - n)])
    return Data(y, np.arange(size) < n, weights, slack, bool(np.any(weights < 1)))


class SiteInference(Inference):
    """Base of the rules that replace likelihood terms by Gaussian sites."""

    @abc.abstractmethod
    def run(self, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
        """Go to the fixed point from these sites. Traced."""

    def cold(self, prior: PriorAtData) -> Sites:
        """Where a first run starts: sites that leave the prior as it is."""
        return Sites.zeros(*prior.mean.shape)

    def run_conjugate(self, prior: PriorAtData, data: "Data") -> "SiteRun":
        """The run for Gaussian noise."""
        return self.run(prior, data, self.cold(prior))

    def supports(self, model, data):
        """Sites work with every likelihood; known noise per row and flat priors on the mean need a closed form."""
        if data.noise_variance is not None:
            return "noise_variance per row needs a Gaussian likelihood with inference='auto'."
        approximation = model.approximation
        name, power = type(approximation).__name__, approximation.site_power
        if not approximation.engine.sites:
            return f"{name} is for a Gaussian likelihood with inference='auto'; FITC goes with every likelihood."
        if power is not None and power != self.ep_power:
            rule = f"EP(power={power:g})" if power else "KL()"
            return f"{name} goes with inference={rule}, which 'auto' takes; FITC goes with every rule."
        if any(latent.mean.marginalize for latent in model.latents):
            return "A marginalised mean needs a Gaussian likelihood with inference='auto'; use marginalize=False."
        return None

    @in_double_precision
    def evaluate(self, model, data, state=None):
        """Run compiled, from the sites of the last run if there are any."""
        key = (jax.tree.structure(model), tuple(np.shape(leaf) for leaf in jax.tree.leaves(model)))
        memory = data.spare.take(key) or _empty_prior(model, data)
        prior = with_offset(_prior_at(model, data.padded, data.layout, memory), data)
        with linalg.blas_threads(prior.structure.order):
            rule, run = self.settle(prior, data, state, 1.0 if state is None else SLACK)
            gradient = jax.block_until_ready(_pull_back(model, data.padded, data.layout, run.adjoint))
        data.spare.give(key, prior)
        return Evaluation(float(run.log_evidence), gradient, run.sites, self._told(rule, run), rule)

    @in_double_precision
    def conclude(self, model, data, state=None):
        """Condition the structure on the sites found: from ``state`` and, where that leads nowhere, from scratch.

        A rule may have slower ways to its fixed point that it keeps for runs from scratch.
        """
        prior = with_offset(_prior(model, data.padded, data.layout), data)
        with linalg.blas_threads(prior.structure.order):
            found = None
            if state is not None:
                with contextlib.suppress(np.linalg.LinAlgError):
                    found = self.settle(prior, data, state)
            if found is None:
                found = self.settle(prior, data, None)
            elif not bool(found[1].converged):
                with contextlib.suppress(np.linalg.LinAlgError):  # from scratch there may be no answer at all
                    afresh = self.settle(prior, data, None)
                    # Where neither converges, as with hardly any noise, the worse may be far from everything.
                    if bool(afresh[1].converged) or afresh[1].log_evidence > found[1].log_evidence:
                        found = afresh
            return self._concluded(model, prior, data, *found)

    @in_double_precision
    def conclude_from(self, model: Model, data: TrainingData, state: Any) -> Conclusion | None:
        """The same from these sites, by quick ways alone; None if they do not converge."""
        prior = with_offset(_prior(model, data.padded, data.layout), data)
        with linalg.blas_threads(prior.structure.order):
            rule, run = self.settle(prior, data, state)
            return self._concluded(model, prior, data, rule, run) if bool(run.converged) else None

    def _concluded(
        self, model: Model, prior: PriorAtData, data: TrainingData, rule: "SiteInference", run: SiteRun
    ) -> Conclusion:
        posterior = site_posterior(model, prior, data, run.sites)
        return Conclusion(float(run.log_evidence), posterior, run.sites, self._told(rule, run), rule)

    def settle(
        self, prior: PriorAtData, data: TrainingData, state: Any, slack: float = 1.0
    ) -> "tuple[SiteInference, SiteRun]":
        """The rule that had success, this one or one to fall back on, and its run."""
        padded = padded_data(data, len(prior.mean), slack)
        cold = self.cold(prior)
        start = cold if state is None else _like(state, cold)
        run = run_rule(self, prior, padded, start)
        if not bool(run.valid) and state is not None:  # the old sites led nowhere: begin afresh
            run = run_rule(self, prior, padded, cold)
        rule, run = self._after(run, prior, padded, first=state is None)
        if not bool(run.valid):
            raise np.linalg.LinAlgError(f"{type(self).__name__} found no proper posterior.{self._advice()}")
        return rule, run

    def _after(self, run: SiteRun, prior: PriorAtData, data: Data, first: bool) -> "tuple[SiteInference, SiteRun]":
        """A chance to fall back on something slower when a run did not converge; ``first``: no run went before.

        Returns the rule that had success and its run.
        """
        return self, run

    def _told(self, rule: "SiteInference", run: SiteRun) -> Status:
        status = rule._status(run)
        if rule is self:
            return status
        text = f"{self} reached no fixed point; {rule} did. {status.message}"
        return Status(status.converged, status.sweeps, text, fell_back=True)

    def _status(self, run: SiteRun) -> Status:
        name, sweeps = type(self).__name__, int(run.sweeps)
        if bool(run.converged):
            return Status(True, sweeps, f"{name} converged in {sweeps} sweeps.")
        return Status(False, sweeps, f"{name} did not converge in {sweeps} sweeps.{self._advice()}")

    def _advice(self) -> str:
        """What to do where it does not converge, as a sentence with a space before it."""
        return " Check the scale of the data and of the values given, or use another rule, such as inference='ep'."

    def leave_one_out(self, model, data, state=None):
        """Predict from the cavities."""
        return model.likelihood.predictive(*self.cavities(model, data, state))

    @in_double_precision
    def cavities(self, model: Model, data: TrainingData, state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean (n, L) and covariance of each datum without its own site, (1) of EP, as it would be predicted."""
        prior = with_offset(_prior(model, data.padded, data.layout), data)
        with linalg.blas_threads(prior.structure.order):
            sites = self.settle(prior, data, None)[1].sites if state is None else state
            found = _cavities(prior, sites, _unseen(model, data.padded))
            mean, cov, safe = (np.asarray(x)[: len(data.y)] for x in found)
        if not np.all(safe):
            warnings.warn(
                f"{np.sum(~safe)} of {len(safe)} rows leave no proper distribution when their site is taken out; the "
                "posterior with the row stands in for the one without it.",
                RuntimeWarning,
                stacklevel=2,
            )
        return mean, cov


def _like(sites: Sites, cold: Sites) -> Sites:
    """Sites of another rule as this one keeps them."""
    if type(sites) is type(cold):
        return sites
    return Sites(sites.shift, sites.precision) if type(cold) is Sites else cold


def site_posterior(model: Model, prior: PriorAtData, data: TrainingData, sites: Sites) -> Posterior:
    """The posterior under these sites."""
    conditioned = jax.tree.map(np.asarray, _conditioned(prior, sites))
    posterior = model.approximation.engine.site_posterior(model.approximation, model.latents, data, conditioned)
    return jax.tree.map(np.asarray, posterior)


@program
def _prior(model: Model, X: Any, layout: Any) -> PriorAtData:
    return model.prior(X, layout)


@program(donate_argnums=3, keep_unused=True)
def _prior_at(model: Model, X: Any, layout: Any, memory: Any) -> PriorAtData:
    """The prior at the data; it may take the memory given."""
    return _prior(model, X, layout)


def with_offset(prior: PriorAtData, data: TrainingData) -> PriorAtData:
    """With what is known of the first latent function at the rows added to its mean."""
    if data.offset is None:
        return prior
    offset = np.zeros(prior.mean.shape)
    offset[: len(data.offset), 0] = data.offset
    return dataclasses.replace(prior, mean=prior.mean + offset)


def _empty_prior(model: Model, data: TrainingData) -> Any:
    shapes = jax.eval_shape(_prior, model, data.padded, data.layout)
    return jax.tree.map(lambda array: jax.device_put(np.empty(array.shape, array.dtype)), shapes)


@program
def _pull_back(model: Model, X: Any, layout: Any, adjoint: PriorAtData) -> Model:
    """From derivatives in the prior at the data to derivatives in the model: the prior is computed again, in blocks."""
    return gradient(lambda m: m.inner(X, layout, adjoint), model)


@program(lapack=True)
def run_rule(rule: SiteInference, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
    """Run a rule, compiled, from these sites."""
    return rule.run(prior, data, start)


@program(lapack=True)
def _conditioned(prior: PriorAtData, sites: Sites) -> Any:
    return prior.structure.condition(sites)


@program
def _unseen(model: Model, X: Any) -> Any:
    """Variance (N, L) of new inputs equal to the rows beyond that of the rows; None if none."""
    approximation = model.approximation
    each = [approximation.engine.unseen_variance(approximation, latent, X) for latent in model.latents]
    if each[0] is None:
        return None
    return jnp.broadcast_to(jnp.stack(each, axis=1), (len(X), model.likelihood.n_latents))


@program(lapack=True)
def _cavities(prior: PriorAtData, sites: Sites, unseen: Any) -> tuple[Any, Any, Any]:
    conditioned = prior.structure.condition(sites)
    mean, cov, safe = cavity(*conditioned.marginals(), sites)
    predicted = conditioned.predicted_without_own_site()
    if predicted is not None:
        mean, cov = jnp.where(safe[:, None], predicted[0], mean), jnp.where(safe[:, None, None], predicted[1], cov)
    return prior.mean + mean, widened(widened(cov, prior.residual), unseen), safe


def cavity(h: Any, A: Any, sites: Sites, share: Any = 1.0) -> tuple[Any, Any, Any]:
    """Divide a share (of each, or one of all) of the sites out of the marginals: mean, covariance, whether it is one.

    (1) of :class:`~errorband.inference.EP`. Where it is none, the marginal stands in, so that the numbers stay finite.
    """
    L = h.shape[1]
    shift, precision = parts(sites, share)
    factor = jnp.eye(L) - block_matmul(precision, A)
    cov = symmetrise(jnp.swapaxes(block_solve(jnp.swapaxes(factor, 1, 2), jnp.swapaxes(A, 1, 2)), 1, 2))
    if L == 1:
        safe = (factor[:, 0, 0] > 0) & (A[:, 0, 0] >= 0)
    else:
        least = jnp.min(block_eigh(jnp.where(jnp.isfinite(cov), cov, -1.0))[0], axis=1)
        safe = least >= -1e-13 * jnp.trace(A, axis1=1, axis2=2)  # zero but for rounding, if the marginal is
    cov = jnp.where(safe[:, None, None], cov, A)
    mean = h + block_times(cov, block_times(precision, h) - shift)
    return jnp.where(safe[:, None], mean, h), cov, safe


def parts(sites: Sites, share: Any) -> tuple[Any, Any]:
    """A share of the shifts and precisions: one number, or one for each datum."""
    share = jnp.asarray(share)
    return share[..., None] * sites.shift, share[..., None, None] * sites.precision


# ------------------------------------------------------------------------------------------------- likelihood terms
def per_datum(likelihood: Likelihood, method: str) -> Any:
    """A method of the likelihood over all data, with latents as vectors (N, L) and (N, L, L) even for L = 1."""
    function = getattr(likelihood, method)
    if likelihood.n_latents > 1:
        return jax.vmap(function)
    if method == "log_prob":
        return jax.vmap(lambda y, f: function(y, f[0]))

    def averaged(y, m, V, *power):
        # Where only features count and they say nothing of a value, it is known: its average is the term itself.
        known = V[0, 0] < KNOWN
        exact = likelihood.log_prob(y, jnp.where(known, m[0], 0.0)) * (power[0] if power else 1.0)
        return jnp.where(known, exact, function(y, m[0], jnp.where(known, 1.0, V[0, 0]), *power))

    return jax.vmap(averaged)


def masked(values: Any, mask: Any) -> Any:
    """Zero where there is only padding."""
    return jnp.where(mask.reshape(mask.shape + (1,) * (values.ndim - 1)), values, 0.0)


def widened(cov: Any, residual: Any) -> Any:
    """Covariances (N, L, L) as the likelihood sees them: with the variance (N, L) that the structure leaves out."""
    return cov if residual is None else cov + block_diag_of(residual)


def stationary_adjoint(prior: PriorAtData, conditioned: Conditioned, total: Any) -> PriorAtData:
    """Derivatives where the sites are stationary: ½(ggᵀ − W) in the covariance, g in the mean.

    ``total(likelihood, residual)`` is what the evidence has of these two, marginals or cavities held.
    """
    likelihood_bar, residual_bar = jax.grad(total, argnums=(0, 1))(prior.likelihood, prior.residual)
    return PriorAtData(conditioned.adjoint(), likelihood_bar, conditioned.weights, residual_bar)
