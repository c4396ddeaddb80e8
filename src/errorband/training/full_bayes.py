"""The trainer that samples: hyperparameters from their posterior, by the no-U-turn sampler."""

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from errorband import parameters
from errorband.conjugate.base import gradient, sum_of_products
from errorband.inference import rule_of_power
from errorband.inference.sites import SiteInference, padded_data, with_offset
from errorband.parameters.checks import check_number, check_whole
from errorband.precision import in_double_precision
from errorband.samplers import no_u_turns
from errorband.training.lbfgs import LBFGS
from errorband.training.objective import Objective
from errorband.training.result import Stop, Trained

SCATTER = 0.1  # of the chains around the best point, in the units of the unconstrained vector


@dataclasses.dataclass(frozen=True)
class FullBayes:
    """Sample the hyperparameters: predictions average over them, as ``GPRegressor(optimizer=FullBayes())``.

    The best point is searched first (``LBFGS()``), and chains of the no-U-turn sampler start around it. Their density
    is evidence times prior. Hyperparameters without a prior of their own get one: their unconstrained numbers
    (logarithms of scales) are normal around the starting values. ``fit_result_.chains`` has all draws, R̂ and effective
    numbers of draws; fitted hyperparameters are those of the best point. Needs BlackJAX
    (``pip install "errorband[mcmc]"``).

    Parameters
    ----------
    chains, warmup, draws : int
        Chains in parallel, and for each how many transitions are forgotten and how many draws are made.
    members : int
        How many of all draws predictions average over. Each is a fitted model.
    spread : float
        Standard deviation of that normal prior.
    seed : int
        The same seed gives the same draws.
    max_seconds : float or None
        Stop after this time with the draws so far; half of it is for the search.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 5, 15)
    >>> model = GPRegressor(optimizer=FullBayes(chains=2, warmup=100, draws=50, members=10))
    >>> model = model.fit(x[:, None], np.sin(x) + 0.1 * np.cos(9 * x))  # doctest: +SKIP
    >>> model.fit_result_.draws.shape  # doctest: +SKIP
    (10, 3)
    """

    chains: int = 4
    warmup: int = 300
    draws: int = 300
    members: int = 40
    spread: float = 2.0
    seed: int = 0
    max_seconds: float | None = None

    def __post_init__(self):
        for name in ("chains", "warmup", "draws", "members"):
            check_whole("FullBayes", name, getattr(self, name))
        check_number("FullBayes", "spread", self.spread)
        if self.max_seconds is not None:
            check_number("FullBayes", "max_seconds", self.max_seconds, "seconds, zero or more, or None", zero=True)

    @property
    def seconds(self) -> float:
        """The time limit; infinity if there is none."""
        return np.inf if self.max_seconds is None else self.max_seconds

    def within(self, seconds: float) -> "FullBayes":
        """The same with another time limit."""
        return dataclasses.replace(self, max_seconds=max(seconds, 0.0) if np.isfinite(seconds) else None)

    def train(
        self, objective: Objective, theta0: np.ndarray, *, restarts: Any = (), verbose: int = 0, label: str = "fit"
    ) -> Trained:
        """Search the best point, then sample around it."""
        began = time.perf_counter()
        found = (
            LBFGS().within(0.5 * self.seconds).train(objective, theta0, restarts=restarts, verbose=verbose, label=label)
        )
        best = found.result
        if best.interrupted or len(theta0) == 0:
            return found
        rng = np.random.default_rng(self.seed)
        starts = best.theta + SCATTER * rng.standard_normal((self.chains, len(theta0)))
        starts[0] = best.theta
        chains = no_u_turns(
            log_target(objective, theta0, self.spread),
            starts,
            warmup=self.warmup,
            draws=self.draws,
            seed=self.seed,
            names=tuple(parameters.vector_names(objective.model)),
            seconds=self.seconds - (time.perf_counter() - began),
        )
        if not chains.mixed:
            warnings.warn(f"FullBayes: {chains.message} See fit_result_.chains.", ConvergenceWarning, stacklevel=6)
        stop = Stop.INTERRUPTED if chains.interrupted else best.stop
        result = dataclasses.replace(
            best, draws=chains.thinned(self.members), chains=chains, stop=stop, seconds=time.perf_counter() - began
        )
        return Trained(result, found.warm)


def log_target(objective: Objective, theta0: np.ndarray, spread: float) -> Callable[[Any], Any]:
    """Log posterior density of the unconstrained vector, up to a constant. Traceable and differentiable.

    The objective's own ``evaluate`` leaves JAX, which a compiled chain cannot. Here everything stays inside: the rule
    runs from scratch, and its derivatives at the fixed point are handed to JAX as they are. Gaussian noise goes
    through a rule that is exact for it: EP, whose sites are known then without a sweep. Points where the rule reaches
    nothing have density zero.
    """
    model, data = objective.model, objective._prepared
    conjugate, power = model.likelihood.conjugate, model.approximation.site_power
    rule = rule_of_power(1.0 if power is None else power) if conjugate else objective.inference
    if not isinstance(rule, SiteInference) or (refusal := rule.supports(model, data)) is not None:
        raise ValueError(
            f"FullBayes cannot sample this model: {refusal if isinstance(rule, SiteInference) else 'choose a rule'}"
        )
    if conjugate and power and data.weights is not None:  # whose copies of a row share what its features leave out
        raise ValueError("FullBayes cannot sample PowerEP with sample_weight; use FITC or VFE.")
    padded = padded_data(data, len(data.padded))

    def value_and_gradient(theta):
        at = parameters.unpack(model, theta)
        prior = with_offset(at.prior(data.padded, data.layout), data)
        run = rule.run_conjugate(prior, padded) if conjugate else rule.run(prior, padded, rule.cold(prior))
        bar = gradient(lambda m: m.inner(data.padded, data.layout, run.adjoint), at)
        slope = jax.grad(lambda t: sum_of_products(bar, parameters.unpack(model, t)))(theta)
        usable = run.valid & jnp.isfinite(run.log_evidence) & jnp.all(jnp.isfinite(slope))
        return jnp.where(usable, run.log_evidence, -jnp.inf), jnp.where(usable, slope, 0.0)

    @jax.custom_vjp
    def log_evidence(theta):
        return value_and_gradient(theta)[0]

    log_evidence.defvjp(value_and_gradient, lambda slope, bar: (bar * slope,))
    return in_double_precision(lambda theta: log_evidence(theta) + log_prior(model, theta, theta0, spread))


def log_prior(model: Any, theta: Any, theta0: np.ndarray, spread: float) -> Any:
    """Log prior density of the unconstrained vector. Traceable.

    A prior of a value is carried over with the derivative of the map to it; a vector without one is normal around
    ``theta0``.
    """
    total, start = jnp.zeros(()), 0
    values = {e.path: e.value for e in parameters.entries(parameters.unpack(model, theta))}
    for e in parameters.entries(model):
        if e.fixed:
            continue
        size = int(np.sum(e.free))
        raw, first = theta[start : start + size], theta0[start : start + size]
        start += size
        if e.prior is None:
            total += -0.5 * jnp.sum(((raw - first) / spread) ** 2)
        else:
            jacobian = jax.jacfwd(e.constraint.forward)(raw)
            total += jnp.sum(e.prior.log_density(values[e.path])) + jnp.linalg.slogdet(jacobian)[1]
    return total
