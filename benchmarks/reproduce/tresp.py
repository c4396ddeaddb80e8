"""Tresp's mixture of Gaussian processes (2001), sampled, as a comparator."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband import GPRegressor
from errorband.kernels import SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian
from errorband.predictive import GaussianMixturePredictive
from errorband.samplers import Chains, no_u_turns

CHAINS, WARMUP, DRAWS, KEPT = 4, 500, 500, 200
GATE = 4.0  # prior variance of a gate's function
JITTER = 1e-6


class SampledMixture:
    """M experts, each with a process for its mean, one for its log standard deviation and one for its gate.

        p(y | x) = Σ_i softmax(z(x))_i N(y; m_i(x), exp(2 s_i(x)))

    The values of all 3M functions at the rows are sampled by NUTS, f = Lξ, LLᵀ = K, ξ ~ N(0, I). Kernels are those that
    a heteroscedastic model finds (gates have the length-scale of its noise), the same for all experts, and are held.
    """

    def __init__(self, experts: int = 2, seed: int = 0):
        self.experts, self.seed = experts, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SampledMixture":
        first = GPRegressor(SquaredExponential(), likelihood=HeteroscedasticGaussian(), random_state=0).fit(X, y)
        self.X, self.centre, M = X, float(np.mean(y)), self.experts
        mean, log_noise = (latent.kernel for latent in first.latents_.values())
        # Half of the log variance, whose mean is that of the noise where its function is zero.
        self.level = 0.5 * np.log(float(first.likelihood_.noise_variance))
        spread = SquaredExponential(log_noise.lengthscale, 0.25 * float(log_noise.variance))
        self.kernels = mean, spread, SquaredExponential(log_noise.lengthscale, GATE)
        self.factors = [np.linalg.cholesky(k(X) + JITTER * float(k.variance) * np.eye(len(X))) for k in self.kernels]
        L, r = [jnp.asarray(factor) for factor in self.factors], jnp.asarray(y - self.centre)

        def functions(vector: Any) -> Any:
            return [factor @ part for factor, part in zip(L, vector.reshape(3, len(y), M), strict=True)]

        def log_density(vector: Any) -> Any:
            m, s, z = functions(vector)
            terms = -0.5 * ((r[:, None] - m) * jnp.exp(-self.level - s)) ** 2 - self.level - s
            rows = jax.scipy.special.logsumexp(jax.nn.log_softmax(z, axis=1) + terms, axis=1)
            return jnp.sum(rows) - 0.5 * vector @ vector

        starts = 0.3 * np.random.default_rng(self.seed).standard_normal((CHAINS, 3 * M * len(y)))
        chains = no_u_turns(log_density, starts, warmup=WARMUP, draws=DRAWS, seed=self.seed)
        self.draws = chains.thinned(KEPT).reshape(-1, 3, len(y), M)
        # Experts may change places: judged by what does not depend on their order.
        whole = chains.draws.reshape(-1, 3, len(y), M)
        m, _, z = (np.einsum("nk,dkm->dnm", factor, whole[:, i]) for i, factor in enumerate(self.factors))
        average = np.sum(np.asarray(jax.nn.softmax(z, axis=2)) * m, axis=2)
        self.mixed_ = Chains(average.reshape(*chains.draws.shape[:2], len(y))).mixed
        return self

    def predictive(self, X: np.ndarray) -> GaussianMixturePredictive:
        """Distribution of targets at new inputs: for each draw one of the functions there, given those at the rows."""
        rng, found = np.random.default_rng(self.seed), []
        for i, (kernel, factor) in enumerate(zip(self.kernels, self.factors, strict=True)):
            W = np.linalg.solve(factor, kernel(self.X, X))  # L⁻¹K_x*
            left = np.sqrt(np.maximum(np.asarray(kernel.diag(X)) - np.sum(W**2, axis=0), 0.0))
            at = np.einsum("kn,dkm->dnm", W, self.draws[:, i])
            found.append(at + left[:, None] * rng.standard_normal(at.shape))
        m, s, z = (np.moveaxis(f, 1, 0).reshape(len(X), -1) for f in (found[0], found[1], jax.nn.softmax(found[2], 2)))
        return GaussianMixturePredictive(z / len(self.draws), self.centre + m, np.exp(self.level + s))
