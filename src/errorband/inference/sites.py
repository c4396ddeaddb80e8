"""What Laplace, EP and KL have in common: sites on any structure, run compiled, warm-started, padded.

Each rule gives ``run``, which is traced: from the prior at the data to sites, log evidence and derivatives. At the
fixed point of EP and KL the sites may be held constant, and the derivative in the prior covariance is the same
expression for both, ½(ggᵀ − W): (7) of :class:`~errorband.inference.EP`.
"""

import abc
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from errorband.approximations import PIC
from errorband.inference.base import Evaluation, Inference, Status, TrainingData
from errorband.likelihoods import Likelihood
from errorband.model import Model, PriorAtData
from errorband.numerics import in_double_precision
from errorband.posterior import PICPosterior, SitePosterior
from errorband.structures import Conditioned, Predictor, Sites
from errorband.structures.sites import block_diag_of, block_matmul, block_solve, block_times, symmetrise


class SiteRun(eqx.Module):
    """Outcome of a run, as arrays."""

    sites: Sites
    log_evidence: Any
    adjoint: PriorAtData
    converged: Any
    sweeps: Any
    valid: Any


class Data(eqx.Module):
    """Targets with padding, the mask of what is not padding, and the power of each likelihood term (None: all one)."""

    y: Any
    mask: Any
    weights: Any = None

    def weighted(self, values: Any) -> Any:
        """Values per datum times the weights, zero for padding."""
        values = masked(values, self.mask)
        return values if self.weights is None else values * self.weights.reshape(-1, *(1,) * (values.ndim - 1))


def padded_data(data: TrainingData, size: int) -> Data:
    """The targets with padding up to so many rows."""
    n = len(data.y)
    y = np.concatenate([data.y, np.full(size - n, data.y[0])])
    weights = None if data.weights is None else np.concatenate([data.weights, np.ones(size - n)])
    return Data(y, np.arange(size) < n, weights)


class SiteAdjoint(eqx.Module):
    """Derivatives that are already laid out like the prior."""

    prior: Any

    def expand(self) -> Any:
        """As it is."""
        return self.prior


def site_posterior(model: Model, data: TrainingData, predictor: Predictor, jitter: float = 0.0) -> SitePosterior:
    """The posterior from what the structure kept for prediction."""
    return SitePosterior(
        kernel=model.kernel,
        mean=model.mean,
        approximation=model.approximation,
        n_latents=model.likelihood.n_latents,
        anchors=model.approximation.anchors(model.kernel, data.X),
        predictor=predictor,
        jitter=jitter,
    )


class SiteInference(Inference):
    """Base of the rules that replace likelihood terms by Gaussian sites."""

    @property
    def ep_power(self) -> float | None:
        """Exponent of EP that the rule amounts to, 0 for KL; None if it is of another kind."""
        return None

    @abc.abstractmethod
    def run(self, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
        """Go to the fixed point from these sites. Traced."""

    def cold(self, prior: PriorAtData) -> Sites:
        """Where a first run starts: sites that leave the prior as it is."""
        return Sites.zeros(*prior.mean.shape)

    def supports(self, model, data):
        """Sites work with every likelihood; known noise per row and flat priors on the mean need exact inference."""
        if data.noise_variance is not None:
            return "noise_variance per row needs a Gaussian likelihood with inference='exact'."
        name, power = type(model.approximation).__name__, model.approximation.ep_power
        if not model.approximation.has_structure:
            return f"{name} is for a Gaussian likelihood with inference='auto'; FITC goes with every likelihood."
        if power is not None and power != self.ep_power:
            rule = f"EP(power={power:g})" if power else "KL()"
            return f"{name} goes with inference={rule}, which 'auto' takes; FITC goes with every rule."
        if model.mean.marginalize:
            return "A marginalised mean needs a Gaussian likelihood with inference='exact'; use marginalize=False."
        return None

    def evaluate(self, prior, data, basis, state=None):
        """Run compiled, from the sites of the last run if there are any."""
        padded = padded_data(data, len(prior.mean))
        cold = self.cold(prior)
        run = _run(self, prior, padded, cold if state is None else state)
        if not bool(run.valid) and state is not None:  # the old sites led nowhere: begin afresh
            run = _run(self, prior, padded, cold)
        rule, run = self._after(run, prior, padded, first=state is None)
        if not bool(run.valid):
            raise np.linalg.LinAlgError(f"{type(self).__name__} found no proper posterior.{self._advice()}")
        adjoint, status = SiteAdjoint(run.adjoint), rule._status(run)
        if rule is self:
            return Evaluation(float(run.log_evidence), adjoint, run.sites, status)
        told = Status(status.converged, status.sweeps, f"{self} reached no fixed point; {rule} did. {status.message}")
        return Evaluation(float(run.log_evidence), adjoint, run.sites, told, rule)

    def _after(self, run: SiteRun, prior: PriorAtData, data: Data, first: bool) -> "tuple[SiteInference, SiteRun]":
        """A chance to fall back on something slower when a run did not converge; ``first``: no run went before.

        The rule that had success comes with its run.
        """
        return self, run

    def _status(self, run: SiteRun) -> Status:
        name, sweeps = type(self).__name__, int(run.sweeps)
        if bool(run.converged):
            return Status(True, sweeps, f"{name} converged in {sweeps} sweeps.")
        return Status(False, sweeps, f"{name} did not converge in {sweeps} sweeps.{self._advice()}")

    def _advice(self) -> str:
        """What to do where it does not converge, as a sentence with a space before it."""
        return ""

    def posterior(self, model, prior, data, basis, state=None):
        """Condition the structure on the sites."""
        if state is None:
            state = self.evaluate(prior, data, basis).state
        if isinstance(model.approximation, PIC):
            conditioned = jax.tree.map(np.asarray, _conditioned(prior, state))
            return PICPosterior.from_sites(model.kernel, model.mean, model.approximation, data.X, conditioned)
        return site_posterior(model, data, jax.tree.map(np.asarray, _predictor(prior, state)))

    def leave_one_out(self, prior, data, basis, state=None):
        """Predict from the cavities."""
        return prior.likelihood.predictive(*self.cavities(prior, data, basis, state))

    @in_double_precision
    def cavities(
        self, prior: PriorAtData, data: Any, basis: np.ndarray, state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean (n, L) and covariance of each datum without its own site, (1) of EP, as it would be predicted."""
        sites = self.evaluate(prior, data, basis).state if state is None else state
        mean, cov, safe = (np.asarray(x)[: len(data.y)] for x in _cavities(prior, sites))
        if not np.all(safe):
            warnings.warn(
                f"{np.sum(~safe)} of {len(safe)} rows leave no proper distribution when their site is taken out; the "
                "posterior with the row stands in for the one without it.",
                RuntimeWarning,
                stacklevel=2,
            )
        return mean, cov


@jax.jit
def _run(rule: SiteInference, prior: PriorAtData, data: Data, start: Sites) -> SiteRun:
    return rule.run(prior, data, start)


@jax.jit
def _conditioned(prior: PriorAtData, sites: Sites) -> Any:
    return prior.structure.condition(sites)


@jax.jit
def _predictor(prior: PriorAtData, sites: Sites) -> Any:
    return prior.structure.condition(sites).predictor()


@jax.jit
def _cavities(prior: PriorAtData, sites: Sites) -> tuple[Any, Any, Any]:
    conditioned = prior.structure.condition(sites)
    mean, cov, safe = cavity(*conditioned.marginals(), sites)
    predicted = conditioned.predicted_without_own_site()
    if predicted is not None:
        mean, cov = jnp.where(safe[:, None], predicted[0], mean), jnp.where(safe[:, None, None], predicted[1], cov)
    return prior.mean + mean, widened(cov, prior.residual), safe


def cavity(h: Any, A: Any, sites: Sites, power: float = 1.0) -> tuple[Any, Any, Any]:
    """Divide (a power of) each site out of its marginal: mean, covariance, and whether the covariance is one.

    (1) of :class:`~errorband.inference.EP`. Where it is none, the marginal stands in, so that the numbers stay finite.
    """
    L = h.shape[1]
    precision, shift = power * sites.precision, power * sites.shift
    factor = jnp.eye(L) - block_matmul(precision, A)
    cov = symmetrise(jnp.swapaxes(block_solve(jnp.swapaxes(factor, 1, 2), jnp.swapaxes(A, 1, 2)), 1, 2))
    if L == 1:
        safe = (factor[:, 0, 0] > 0) & (A[:, 0, 0] >= 0)
    else:
        least = jnp.linalg.eigvalsh(jnp.where(jnp.isfinite(cov), cov, -1.0))[:, 0]
        safe = least >= -1e-13 * jnp.trace(A, axis1=1, axis2=2)  # zero but for rounding, if the marginal is
    cov = jnp.where(safe[:, None, None], cov, A)
    mean = h + block_times(cov, block_times(precision, h) - shift)
    return jnp.where(safe[:, None], mean, h), cov, safe


# ------------------------------------------------------------------------------------------------- likelihood terms
def per_datum(likelihood: Likelihood, method: str) -> Any:
    """A method of the likelihood over all data, with latents as vectors (N, L) and (N, L, L) even for L = 1."""
    function = getattr(likelihood, method)
    if likelihood.n_latents > 1:
        return jax.vmap(function)
    if method == "log_prob":
        return jax.vmap(lambda y, f: function(y, f[0]))
    return jax.vmap(lambda y, m, V, *rest: function(y, m[0], V[0, 0], *rest))


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
