"""What is particular to low rank plus blocks: its limits, rows that share a place, rows left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diagonal_sites import diagonal_sites
from errorband.structures import Dense, LowRank, LowRankBlocks, Sites
from errorband.structures.sites import block_diag_of

N, M = 9, 3


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


@jax.jit
def everything(structure, sites):
    c = structure.condition(sites)
    return c.proper, c.log_det, c.weights, c.mean, c.solve(1.0 + sites.shift), c.marginals(), c.adjoint()


def some_sites(rng, L, sign=1.0):
    root = 0.5 * rng.normal(size=(N, L, L))
    precision = root @ root.swapaxes(1, 2)
    precision[2] *= 0.3 * sign
    return Sites(jnp.asarray(rng.normal(size=(N, L))), jnp.asarray(precision))


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_blocks_of_one_row_equal_low_rank_plus_diagonal(sign):
    rng, L = np.random.default_rng(0), 2
    basis, diag = rng.normal(size=(L, N, M)), rng.uniform(0.1, 1.0, size=(L, N))
    blocks = LowRankBlocks(jnp.asarray(diag)[..., None, None], jnp.asarray(basis)[:, :, None], jnp.arange(float(N)))
    sites = some_sites(rng, L, sign)
    *got, got_bar = everything(blocks, sites)
    *want, want_bar = everything(LowRank(jnp.asarray(diag), jnp.asarray(basis)), sites)
    assert got[0]
    jax.tree.map(close, got, want)
    close(got_bar.rest[..., 0, 0], want_bar.diag)
    close(got_bar.basis[:, :, 0], want_bar.basis)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_block_is_the_dense_structure(sign):
    rng = np.random.default_rng(1)
    L = 2
    basis, half = rng.normal(size=(L, N, M)), rng.normal(size=(L, N, N))
    rest = half @ half.swapaxes(1, 2) / N
    structure = LowRankBlocks(jnp.asarray(rest)[:, None], jnp.asarray(basis)[:, None], jnp.arange(float(N)))
    sites = some_sites(rng, L, sign)
    *got, got_bar = everything(structure, sites)
    *want, want_bar = everything(Dense(jnp.asarray(rest + basis @ basis.swapaxes(1, 2))), sites)
    assert got[0]
    jax.tree.map(close, got, want)
    close(got_bar.rest[:, 0], want_bar.K)
    close(got_bar.basis[:, 0], 2.0 * want_bar.K @ basis)


def structure_of_three(rng, L, local=False):
    half = rng.normal(size=(L, 3, 4, 4))
    rest = half @ half.swapaxes(2, 3) / 4
    rest[..., 3, :] = rest[..., :, 3] = 0.0  # three rows in each of three blocks, the fourth place is empty
    basis = rng.normal(size=(L, 3, 4, M))
    basis[:, :, 3] = 0.0
    place = rng.permutation(12)
    place = place[place % 4 < 3]
    return LowRankBlocks(jnp.asarray(rest), jnp.asarray(basis), jnp.asarray(place, float), local)


def test_rows_that_share_a_place_may_all_have_sites():
    """Copies of a row with sites of their own are one row with the sum of them."""
    rng = np.random.default_rng(2)
    structure, sites = structure_of_three(rng, 2), some_sites(rng, 2)
    copies = LowRankBlocks(structure.rest, structure.basis, structure.place[np.r_[:N, 4]])
    more = jax.tree.map(lambda a: jnp.concatenate([a, 0.3 * a[4:5]]).at[4].multiply(0.7), sites)

    @jax.jit
    def posterior(structure, sites):
        c = structure.condition(sites)
        return c.log_det, c.mean, c.weights

    log_det, mean, weights = posterior(copies, more)
    want_log_det, want_mean, _ = posterior(structure, sites)
    close(log_det, want_log_det)
    close(mean, want_mean[np.r_[:N, 4]])
    close(weights, more.shift - more.times(mean))


def test_prediction_without_the_own_site():
    """By taking each site away in turn, and predicting the row from w."""
    rng, L = np.random.default_rng(3), 2
    structure, sites = structure_of_three(rng, L), some_sites(rng, L)
    got_mean, got_cov = jax.jit(lambda a, s: a.condition(s).predicted_without_own_site())(structure, sites)
    basis = np.moveaxis(np.asarray(structure.to_rows(jnp.moveaxis(structure.basis, 0, 2))), 1, 0)  # (L, N, M)

    @jax.jit
    def prediction(structure, sites):
        return structure.condition(sites).predictor()(jnp.asarray(basis), structure.diagonal())

    for n in range(N):
        rest = Sites(sites.shift.at[n].set(0.0), sites.precision.at[n].set(0.0))
        mean, cov = prediction(structure, rest)
        close(got_mean[n], mean[n])
        close(got_cov[n], cov[n])


def test_where_blocks_predict_a_row_left_out_is_itself():
    rng = np.random.default_rng(4)
    found = [
        jax.eval_shape(lambda a, s: a.condition(s).predicted_without_own_site(), structure, some_sites(rng, 1))
        for structure in (structure_of_three(rng, 1, local=True), Dense(jnp.eye(N)[None]))
    ]
    assert found == [None, None]


def test_a_negative_site_on_what_is_left_out_is_flagged():
    """I + ΛΠ is indefinite in two blocks; B by itself would look sound."""
    structure = LowRankBlocks(jnp.ones((1, 2, 2, 2)), 1e-3 * jnp.ones((1, 2, 2, 1)), jnp.arange(4.0))
    sites = diagonal_sites(jnp.zeros(4), jnp.array([-2.0, 0.1, -2.0, 0.1]))
    proper = jax.jit(lambda a, s: a.condition(s).proper)
    assert not proper(structure, sites)
    assert proper(structure, Sites(sites.shift, -0.1 * sites.precision))


def test_no_array_larger_than_the_blocks():
    blocks, B, m = 25, 4, 3
    structure = LowRankBlocks(
        jnp.broadcast_to(jnp.eye(B), (1, blocks, B, B)), jnp.ones((1, blocks, B, m)), jnp.arange(100.0)
    )
    sites = diagonal_sites(jnp.ones(100), jnp.ones(100))

    def run(structure, sites):
        c = structure.condition(sites)
        return c.marginals(), c.adjoint(), c.state(), block_diag_of(structure.diagonal())

    shapes = {
        variable.aval.shape for equation in jax.make_jaxpr(run)(structure, sites).eqns for variable in equation.outvars
    }
    assert max(int(np.prod(shape)) for shape in shapes) <= 100 * B
