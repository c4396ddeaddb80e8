"""Which rows say most about the function: the selection of the informative vector machine."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from errorband.data import TrainingData
from errorband.inference.ep import log_tilted, tilted_derivatives
from errorband.inference.sites import Data, padded_data
from errorband.model import Model
from errorband.parameters import plain
from errorband.precision import in_double_precision
from errorband.programs import program
from errorband.rows import pad_rows, padded_size
from errorband.structures import Sites
from errorband.structures.sites import block_matmul, block_solve, block_times, symmetrise

TIE = 1e-10  # rows whose scores differ by less, as all do at first under a stationary kernel, are taken in order


@in_double_precision
def informative_rows(model: Model, data: TrainingData, n_rows: int) -> tuple[np.ndarray, Sites]:
    """Rows one after the other, each the one that lowers the entropy of the posterior most, and their sites.

    Assumed-density filtering (Lawrence, Seeger & Herbrich 2003): the row's site is that of EP with the posterior so far
    for a cavity, and is not looked at again. With N(h, A) that posterior at all rows, Zₙ = ∫ p(yₙ | f) N(f; hₙ, Aₙ) df,
    α = ∂ log Zₙ/∂h and ν = −∂² log Zₙ/∂h², taking in row n changes the entropy, and the posterior, by

        −½ log(1/|I − νAₙ|),        h ← h + aα,    A ← A − aνaᵀ,    a = A_{·n}.

    A itself is never made: its diagonal is kept, and column n is K_{·n} less one term for each row taken in before. The
    cost is O(N·n_rows²) and N integrals for each row taken in; memory is O(N·n_rows).

    Returns
    -------
    rows : array (n_rows,)
        In the order in which they were taken in.
    sites : Sites
        Theirs, in the same order.
    """
    n, size = len(data.y), padded_size(len(data.y))
    # Known noise of a target is as good as variance of its latent value that no site takes away.
    noise = None if data.noise_variance is None else np.append(data.noise_variance, np.zeros(size - n))[:, None]
    offset = 0.0 if data.offset is None else np.append(data.offset, np.zeros(size - n))[:, None]
    rows = pad_rows(data.X, size), padded_data(data, size)
    order, sites = _select(plain(model), *rows, noise, offset, min(n_rows, n))
    return np.asarray(order), sites


@program(static_argnums=5)
def _select(model: Model, X: Any, data: Data, noise: Any, offset: Any, n_rows: int) -> tuple[Any, Sites]:
    prior_mean = model.mean_at(X)
    N, L = prior_mean.shape
    prior_mean += offset * jnp.eye(1, L)
    tilted = log_tilted(model.likelihood, noise, data.y, data.weights)
    eye = jnp.eye(L)

    def take_in(i, state):
        h, V, free, columns, spans, order, sites = state
        _, alpha, nu = tilted_derivatives(tilted, prior_mean + h, V)
        left = eye - block_matmul(nu, V)
        log_det = jnp.log(left[:, 0, 0]) if L == 1 else jnp.linalg.slogdet(left)[1]
        score = jnp.where(free, -0.5 * log_det, -jnp.inf)
        n = jnp.argmax(score >= jnp.max(score) - TIE)
        # a = A_{·n} = K_{·n} − Σ_j a_j ν_j a_jₙᵀ, (N, L, L)
        known = jnp.einsum("jnkl,jlm,jpm->nkp", columns, spans, columns[:, n])
        a = _each_latent(model, lambda kernel: kernel.gram(X, X[n][None])[:, 0]) - known
        precision = symmetrise(block_solve(left[n], nu[n]))
        shift = alpha[n] + block_times(precision, h[n] + block_times(V[n], alpha[n]))
        return (
            h + block_times(a, alpha[n]),
            symmetrise(V - block_matmul(block_matmul(a, nu[n]), jnp.swapaxes(a, 1, 2))),
            free.at[n].set(False),
            columns.at[i].set(a),
            spans.at[i].set(nu[n]),
            order.at[i].set(n),
            Sites(sites.shift.at[i].set(shift), sites.precision.at[i].set(precision)),
        )

    start = (
        jnp.zeros((N, L)),
        _each_latent(model, lambda kernel: kernel.gram_diag(X)),
        jnp.asarray(data.mask),
        jnp.zeros((n_rows, N, L, L)),
        jnp.zeros((n_rows, L, L)),
        jnp.zeros(n_rows, int),
        Sites.zeros(n_rows, L),
    )
    *_, order, sites = jax.lax.fori_loop(0, n_rows, take_in, start)
    return order, sites


def _each_latent(model: Model, function: Any) -> Any:
    """Diagonal blocks (N, L, L) from a function of each latent's kernel that returns (N,)."""
    values = jnp.stack([function(latent.kernel) for latent in model.latents], axis=1)
    L = model.likelihood.n_latents
    return jnp.broadcast_to(values, (len(values), L))[:, :, None] * jnp.eye(L)
