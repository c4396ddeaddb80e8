"""The sites of softmax: the short way gives what the general way gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband.structures import Dense, SimplexSites, Sites

N, C, S = 9, 3, 4


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


@jax.jit
def everything(structure, sites, cross, prior):
    c = structure.condition(sites)
    solved = c.solve(jnp.cos(jnp.arange(N * C, dtype=float)).reshape(N, C))
    new = c.state().update(2, jnp.full(C, 0.1), jnp.zeros((C, C)))
    return (
        c.weights,
        c.mean,
        c.log_det,
        c.log_partition,
        solved,
        *c.marginals(),
        c.adjoint().K,
        *c.predictor()(cross, prior),
        new.marginal(3),
    )


@pytest.mark.slow
def test_simplex_sites_against_general_sites():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(C, N + S, N + S)) / 3
    K = jnp.asarray(factor @ factor.swapaxes(1, 2))
    share = rng.dirichlet(np.ones(C), size=N) * rng.uniform(0.5, 2.0, size=(N, 1))  # of weighted rows
    share[4] = 0.0  # a padded row
    sites = SimplexSites.of(jnp.asarray(rng.normal(size=(N, C))) * (share.sum(1) > 0)[:, None], jnp.asarray(share))
    general = Sites(sites.shift, sites.precision)
    inputs = K[:, N:, :N], jnp.diagonal(K[:, N:, N:], axis1=1, axis2=2).T
    ours, theirs = (everything(Dense(K[:, :N, :N]), s, *inputs) for s in (sites, general))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-11)


def test_no_array_over_all_pairs_of_latents():
    K = jnp.broadcast_to(jnp.eye(N), (C, N, N))
    text = str(jax.make_jaxpr(lambda s: Dense(K).condition(s).marginals())(SimplexSites.zeros(N, C)))
    assert f"f64[{N * C},{N * C}]" not in text
