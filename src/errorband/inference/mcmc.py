"""Inference by sampling: draws of the latent values in place of a Gaussian."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from errorband import linalg
from errorband.data import TrainingData
from errorband.inference.base import Conclusion, Inference, Status
from errorband.inference.ep import EP
from errorband.inference.laplace import Laplace
from errorband.inference.sites import per_datum
from errorband.kernels.padded import gram
from errorband.model import Model
from errorband.parameters.checks import check_whole
from errorband.posterior import DrawsPosterior, Posterior
from errorband.posterior.base import latent_of, prior_mean
from errorband.precision import in_double_precision
from errorband.samplers import Annealed, Chains, anneal, elliptical_slices, gibbs_indicators, no_u_turns

SPREAD = 0.3  # how far from the Gaussian approximation chains start, in standard deviations of the prior
WIDER = 1.05  # standard deviations from which runs of annealing begin, in units of those of the posterior given
LEAST = 1e-8  # variance of a whitened value below which the rest is rounding


class MCMC(Inference):
    """Draws of the latent values from their exact posterior, for small data and as a judge of the other rules.

    The values f at the training inputs are written f = m + Lz, LLᵀ = K, and z is sampled: its prior is N(0, I).
    Hyperparameters are searched with another rule, whose evidence is ``log_evidence_``;
    :func:`~errorband.inference.annealed_evidence` estimates it by sampling. ``inference_status_`` says whether the
    chains have mixed, ``posterior_`` has R̂ and the effective number of draws of each latent value. Needs BlackJAX
    (``pip install "errorband[mcmc]"``).

    Parameters
    ----------
    sampler : {"elliptical", "nuts", "gibbs"}
        Elliptical slices need no gradient and no tuning; NUTS takes dearer steps that go further. "gibbs", for
        ``Twinned``, draws which rows are outliers with the function integrated out, and needs no BlackJAX.
    chains, warmup, draws : int
        Chains in parallel, and for each how many transitions are forgotten and how many draws are made.
    thin : int
        Elliptical slices for each draw.
    keep : int
        How many of all draws predictions average over.
    seed : int
        The same seed gives the same draws.
    search : Inference or None
        The rule for the hyperparameters. None: EP, or Laplace where EP's integrals have no closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> from errorband.kernels import SquaredExponential
    >>> from errorband.likelihoods import Gaussian
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.5])
    >>> settings = dict(kernel=SquaredExponential(1.0, 1.0), likelihood=Gaussian(0.1), optimizer=None, normalize=False)
    >>> sampled = GPRegressor(inference=MCMC(), **settings).fit(X, y)
    >>> exact = GPRegressor(**settings).fit(X, y)
    >>> bool(np.all(np.abs(sampled.predict(X) - exact.predict(X)) < 0.05))
    True
    """

    sampler: str = eqx.field(default="elliptical", static=True)
    chains: int = eqx.field(default=4, static=True)
    warmup: int = eqx.field(default=1000, static=True)
    draws: int = eqx.field(default=500, static=True)
    thin: int = eqx.field(default=5, static=True)
    keep: int = eqx.field(default=100, static=True)
    seed: int = eqx.field(default=0, static=True)
    search: Inference | None = None

    def __check_init__(self):
        if self.sampler not in ("elliptical", "nuts", "gibbs"):
            raise ValueError(f"sampler={self.sampler!r}: choose 'elliptical', 'nuts' or 'gibbs'.")
        for name in ("chains", "draws", "thin", "keep"):
            check_whole("MCMC", name, getattr(self, name))
        check_whole("MCMC", "warmup", self.warmup, least=0)

    def supports(self, model, data):
        """The whole covariance."""
        if any(latent.features is not None for latent in model.latents):
            return "MCMC needs the whole covariance: approximation='exact', or SubsetOfData(...) for many rows."
        if self.sampler == "gibbs" and model.likelihood.indicators is None:
            return "MCMC(sampler='gibbs') is for likelihood=Twinned(); sampler='elliptical' goes with every likelihood."
        return self._rule(model).supports(model, data)

    def evaluate(self, model, data, state=None):
        """By the rule of the search."""
        return dataclasses.replace(self._rule(model).evaluate(model, data, state), rule=self)

    @in_double_precision
    def conclude(self, model, data, state=None):
        first = self._rule(model).conclude(model, data, state)
        whitened = Whitened(model, data)
        chains = self._sample(whitened, first.posterior)
        posterior = whitened.posterior(chains, self.keep)
        status = Status(chains.mixed, chains.draws.shape[1], f"MCMC: {chains.message}")
        return Conclusion(first.log_evidence, posterior, first.state, status, self)

    def _sample(self, whitened: "Whitened", near: Posterior) -> Chains:
        """Draws of the latent values without their means; chains start around what another posterior says."""
        settings: dict[str, Any] = {"warmup": self.warmup, "draws": self.draws, "seed": self.seed}
        if self.sampler == "gibbs":
            regular, outliers, bias = whitened.model.likelihood.indicators
            r = whitened.data.y - whitened.mean[:, 0]
            gate = whitened.mean[:, 1] + bias
            return gibbs_indicators(whitened.factors, r, gate, (regular, outliers), chains=self.chains, **settings)
        mean, _ = near.marginals(whitened.X, variance=False)
        centre = whitened.inverse(mean)
        noise = np.random.default_rng(self.seed).standard_normal((self.chains, len(centre)))
        settings["keep"] = whitened.values
        if self.sampler == "elliptical":
            return elliptical_slices(whitened.log_likelihood, centre + SPREAD * noise, thin=self.thin, **settings)
        return no_u_turns(whitened.log_density, centre + SPREAD * noise, **settings)

    def leave_one_out(self, model, data, state=None):
        """By the rule of the search, at its sites."""
        return self._rule(model).leave_one_out(model, data, state)

    def cavities(self, model: Model, data: TrainingData, state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Those of the rule of the search."""
        return self._rule(model).cavities(model, data, state)

    def _rule(self, model: Model) -> Any:
        if self.search is not None:
            return self.search
        likelihood = model.likelihood
        return EP() if likelihood.n_latents == 1 or likelihood.closed_tilted else Laplace()


@in_double_precision
def annealed_evidence(
    model: Model,
    data: TrainingData,
    near: Posterior | None = None,
    *,
    runs: int = 100,
    temperatures: int = 1000,
    seed: int = 0,
) -> Annealed:
    """Log evidence of a model with plain values, by annealed importance sampling, with its standard error.

    Parameters
    ----------
    model : Model
        On the whole covariance.
    data : TrainingData
    near : Posterior or None
        Runs begin with draws of a Gaussian that is a little wider than this posterior; None: with draws of the prior.
        Either is unbiased. From near the posterior the way is short and the error small.
    runs, temperatures : int
        Independent runs, and steps to the posterior in each.
    seed : int
    """
    check_whole("annealed_evidence", "runs", runs, least=2)  # one has no error
    check_whole("annealed_evidence", "temperatures", temperatures)
    whitened = Whitened(model, data)
    given: dict[str, Any] = {"runs": runs, "temperatures": temperatures, "seed": seed}
    if near is None:
        return anneal(whitened.log_likelihood, whitened.size, **given)
    centre, root = whitened.gaussian(near)
    root = WIDER * root
    log_det = np.linalg.slogdet(root)[1]

    def log_ratio(e):  # of the posterior and the Gaussian at z = centre + root e, e ~ N(0, I)
        return whitened.log_density(centre + root @ e) + 0.5 * jnp.sum(e**2) + log_det

    return anneal(log_ratio, whitened.size, growth=1.0, **given)


class Whitened:
    """The latent values at the training inputs as functions of a vector z ~ N(0, I), z = (z₁, …, z_L)."""

    def __init__(self, model: Model, data: TrainingData):
        self.model, self.data, self.X = model, data, np.asarray(data.X)
        found = [linalg.cholesky(linalg.regularised(gram(l.kernel, self.X, self.X))) for l in model.latents]
        self.factors = tuple(np.tril(f.factor) for f in found)
        self.L = model.likelihood.n_latents
        means = [prior_mean(l.mean, self.X) for l in model.latents]
        self.mean = np.broadcast_to(np.stack(means, axis=1), (len(self.X), self.L))
        self.offset = np.zeros(self.mean.shape)  # known beside the prior mean: the log of an exposure
        self.offset[:, 0] = 0.0 if data.offset is None else data.offset
        self.roots = jnp.asarray(np.broadcast_to(np.stack(self.factors), (self.L, *self.factors[0].shape)))
        self.log_prob: Callable[..., Any] = per_datum(model.likelihood, "log_prob")

    @property
    def size(self) -> int:
        """Length of z."""
        return self.L * len(self.X)

    def values(self, z: Any) -> Any:
        """F − m, as a vector (nL,). Traceable."""
        return jnp.einsum("lnm,lm->nl", self.roots, z.reshape(self.L, -1)).ravel()

    def log_likelihood(self, z: Any) -> Any:
        """Log p(y | f). Traceable."""
        f = jnp.asarray(self.mean + self.offset) + self.values(z).reshape(self.mean.shape)
        terms = self.log_prob(jnp.asarray(self.data.y), f)
        return jnp.sum(terms if self.data.weights is None else self.data.weights * terms)

    def log_density(self, z: Any) -> Any:
        """Log of the posterior density of z, up to a constant. Traceable."""
        return self.log_likelihood(z) - 0.5 * jnp.sum(z**2)

    def inverse(self, f: np.ndarray) -> np.ndarray:
        """The z of latent values (n, L)."""
        off = np.asfortranarray(f - self.mean)
        return np.concatenate([linalg.solve_lower(self._factor(l), off[:, l]) for l in range(self.L)])

    def gaussian(self, near: Posterior) -> tuple[np.ndarray, np.ndarray]:
        """Mean of z and a root of its covariance under a posterior, in which latent functions count as independent."""
        means, roots = [], []
        for l in range(self.L):
            mean, cov = near.joint(self.X, l)
            means.append(mean)
            factor = self._factor(l)
            # What the data took off the prior covariance, so that directions they say nothing of keep variance one.
            learned = gram(latent_of(self.model.latents, l).kernel, self.X, self.X) - cov
            half = linalg.solve_lower(factor, np.asfortranarray(learned))
            values, vectors = np.linalg.eigh(linalg.solve_lower(factor, np.asfortranarray(half.T)))
            roots.append(vectors * np.sqrt(np.clip(1.0 - values, LEAST, 1.0)))
        return self.inverse(np.stack(means, axis=1)), np.asarray(scipy.linalg.block_diag(*roots))

    def posterior(self, chains: Chains, keep: int) -> DrawsPosterior:
        """What prediction needs of the draws of :meth:`values`."""
        kept = chains.thinned(keep).reshape(-1, *self.mean.shape)
        halves = [linalg.solve_lower(self._factor(l), np.asfortranarray(kept[:, :, l].T)) for l in range(self.L)]
        weights = [linalg.solve_lower(self._factor(l), half, transposed=True).T for l, half in enumerate(halves)]
        latents = jax.tree.map(np.asarray, self.model.latents)
        shape = self.mean.shape
        return DrawsPosterior(
            latents=latents, X=self.X, weights=np.stack(weights, axis=1), factors=self.factors,
            rhat=chains.rhat.reshape(shape), effective=chains.effective.reshape(shape),
        )  # fmt: skip

    def _factor(self, l: int) -> np.ndarray:
        return self.factors[l if len(self.factors) > 1 else 0]
