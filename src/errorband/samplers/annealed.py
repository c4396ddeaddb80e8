"""Annealed importance sampling: the evidence, with an error bar."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from errorband.precision import in_double_precision
from errorband.samplers.run import blackjax

ENOUGH = 0.25  # of the runs must count, or the error bar itself is not to be trusted


@dataclasses.dataclass(frozen=True)
class Annealed:
    """An estimate of the log evidence.

    Attributes
    ----------
    log_evidence : float
        Logarithm of the average of the runs' weights.
    error : float
        Its standard error: relative, of that average.
    effective_runs : float
        (Σw)²/Σw²: where it is small the weights of the runs differ so much that neither number means much.
    runs : int
        All of them.
    """

    log_evidence: float
    error: float
    effective_runs: float
    runs: int

    @property
    def trustworthy(self) -> bool:
        """Whether at least a quarter of the runs are effective."""
        return self.effective_runs >= ENOUGH * self.runs


@in_double_precision
def anneal(
    log_likelihood: Callable[[Any], Any], size: int, *, runs: int, temperatures: int, seed: int = 0, growth: float = 4.0
) -> Annealed:
    """Log ∫ likelihood(x) N(x; 0, I) dx (Neal 2001), with elliptical slices as transitions.

    Each run begins with a draw of the prior and goes through tempered posteriors ∝ likelihood^β N(0, I), with β from
    0 to 1 in steps that grow; its weight is the product of the ratios of neighbouring densities. The average
    weight is unbiased whatever the transitions, so that the logarithm is too low on average, not too high.

    Parameters
    ----------
    log_likelihood : callable
        Of a vector (size,), traceable.
    size : int
    runs, temperatures : int
        Independent runs; steps of β in each.
    seed : int
    growth : float
        The k-th of T temperatures is β = (k/T)^growth. Where the likelihood is nearly constant, 1 is better.

    Examples
    --------
    >>> found = anneal(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), 3, runs=100, temperatures=100)
    >>> exact = -1.5 * np.log(2.0) - 3 * 0.25
    >>> bool(abs(found.log_evidence - exact) < 4 * found.error), found.trustworthy
    (True, True)
    """
    bj = blackjax()
    betas = jnp.linspace(0.0, 1.0, temperatures + 1) ** growth
    kernel = bj.mcmc.elliptical_slice.build_kernel(jnp.ones(size), jnp.zeros(size))
    init = bj.mcmc.elliptical_slice.init

    def run(key):
        first, key = jax.random.split(key)
        x = jax.random.normal(first, (size,))

        def step(carry, beta):
            x, log_w, key, last = carry
            log_w = log_w + (beta - last) * log_likelihood(x)
            key, move = jax.random.split(key)
            tempered = lambda x: beta * log_likelihood(x)  # noqa: E731
            state, _ = kernel(move, init(x, tempered), tempered)
            return (state.position, log_w, key, beta), None

        (_, log_w, _, _), _ = jax.lax.scan(step, (x, jnp.zeros(()), key, jnp.zeros(())), betas[1:])
        return log_w

    log_w = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(seed), runs)))
    w = np.exp(log_w - log_w.max())
    error = float(np.std(w, ddof=1) / np.mean(w) / np.sqrt(runs))
    return Annealed(float(logsumexp(log_w) - np.log(runs)), error, float(w.sum() ** 2 / np.sum(w**2)), runs)
