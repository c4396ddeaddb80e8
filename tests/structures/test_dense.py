"""What is particular to the dense structure: nearly singular covariances, small noise, no cost for the general case."""

from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diagonal_sites import diagonal_sites
from errorband.structures import Dense, Sites
from errorband.structures.paired import uncoupled
from errorband.structures.sites import block_eigh


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


N = 30


@jax.jit
def evaluate(K, sites):
    c = Dense(K).condition(sites)
    return c, c.log_partition, c.marginals()[1], c.adjoint().K


def smooth_covariance(lengthscale, n=N):
    x = np.linspace(0.0, 1.0, n)
    return jnp.asarray(np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2))[None]


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-8])
def test_small_noise_keeps_its_digits(noise):
    """Weights of exact regression, (K + σ²I)⁻¹y, without the digits that b − WKb would lose."""
    K = smooth_covariance(0.02)  # well conditioned, so that any loss is the formula's own
    y = np.random.default_rng(0).normal(size=N)
    want = np.linalg.solve(np.asarray(K[0]) + noise * np.eye(N), y)
    c, *_ = evaluate(K, diagonal_sites(y / noise, np.full(N, 1.0 / noise)))
    np.testing.assert_allclose(c.weights[:, 0], want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


def test_singular_covariance():
    """Repeated inputs and a covariance of numerical rank far below N need no jitter."""
    K = smooth_covariance(5.0)
    K = K.at[:, 1].set(K[:, 0]).at[:, :, 1].set(K[:, :, 0])
    y = np.random.default_rng(1).normal(size=N)
    c, _, covariance, _ = evaluate(K, diagonal_sites(y / 0.1, np.full(N, 10.0)))
    assert c.proper
    np.testing.assert_allclose(c.log_det, np.linalg.slogdet(np.asarray(K[0]) / 0.1 + np.eye(N))[1], rtol=1e-10)
    assert np.all(covariance > 0.0)


def test_site_with_a_shift_but_no_precision():
    """exp(b f) alone tilts the prior: h = K b, log Z = ½ bᵀKb."""
    K = smooth_covariance(0.3)
    b = np.linspace(-1.0, 2.0, N)
    c, log_z, *_ = evaluate(K, diagonal_sites(b, np.zeros(N)))
    np.testing.assert_allclose(c.mean[:, 0], K[0] @ b, rtol=1e-13)
    np.testing.assert_allclose(log_z, 0.5 * b @ K[0] @ b, rtol=1e-13)


def test_uncoupled_latents_are_separate_problems():
    rng = np.random.default_rng(2)
    K = jnp.concatenate([smooth_covariance(0.1), smooth_covariance(0.4)])
    shift, precision = rng.normal(size=(N, 2)), rng.uniform(-0.02, 2.0, size=(N, 2))
    joint, log_z, covariance, adjoint = evaluate(
        K, Sites(jnp.asarray(shift), jnp.asarray(precision[..., None] * np.eye(2)))
    )
    assert joint.proper
    total = 0.0
    for l in range(2):
        alone, part, variance, gradient = evaluate(K[l : l + 1], diagonal_sites(shift[:, l], precision[:, l]))
        total += part
        np.testing.assert_allclose(joint.mean[:, l], alone.mean[:, 0], rtol=1e-10)
        np.testing.assert_allclose(covariance[:, l, l], variance[:, 0, 0], rtol=1e-10)
        np.testing.assert_allclose(adjoint[l], gradient[0], atol=1e-11)
    np.testing.assert_allclose(log_z, total, rtol=1e-11)
    np.testing.assert_allclose(covariance[:, 0, 1], 0.0, atol=1e-14)


def test_one_latent_pays_nothing_for_the_general_case():
    """No eigenvalue problems, and the second factorisation is behind a branch that nonnegative sites do not take."""
    sites = diagonal_sites(jnp.ones(8), jnp.ones(8))
    jaxpr = jax.make_jaxpr(lambda s: Dense(smooth_covariance(0.1, 8)).condition(s))(sites)
    assert "eigh" not in str(jaxpr)
    assert [equation.primitive.name for equation in jaxpr.eqns].count("cond") == 1
    outside = [str(equation) for equation in jaxpr.eqns if equation.primitive.name != "cond"]
    assert not any("cholesky" in text for text in outside)


def test_singular_sites_are_not_taken_for_negative_ones():
    """Softmax curvature diag(p) − ppᵀ: positive semi-definite, whatever the signs of its round-off."""
    p = np.random.default_rng(3).dirichlet(0.3 * np.ones(3), size=N)
    precision = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    assert np.any(np.linalg.eigvalsh(precision) < 0.0)
    K = jnp.concatenate([smooth_covariance(0.1)] * 3)
    c, *_ = evaluate(K, Sites(jnp.zeros((N, 3)), jnp.asarray(precision)))
    assert np.all(c.root.signs == 1.0)


def test_single_precision_stays_single():
    K = smooth_covariance(0.1, 5).astype(jnp.float32)
    sites = diagonal_sites(jnp.ones(5, jnp.float32), jnp.asarray([1, 1, -0.1, 0, 1], jnp.float32))

    def run(K):
        c = Dense(K).condition(sites)
        return c.mean, c.log_det, c.marginals(), c.adjoint(), c.state(), c.predictor()(K, jnp.diagonal(K, 0, 1, 2).T)

    assert {leaf.dtype for leaf in jax.tree.leaves(jax.eval_shape(run, K))} == {jnp.dtype("float32")}


@pytest.mark.parametrize("kind", ["coupled", "uncoupled", "negative definite"])
def test_two_latents_agree_with_the_general_algebra(kind):
    """Sites of every sign, of which some are split into a negative diagonal, or into one entry only."""
    rng = np.random.default_rng(3)
    K = jnp.concatenate([smooth_covariance(0.1), 2.0 * smooth_covariance(0.4)])
    precision = rng.normal(size=(N, 2, 2))
    precision = precision @ np.swapaxes(precision, 1, 2) * 10.0 ** rng.uniform(-3, 3, size=(N, 1, 1))
    if kind == "uncoupled":
        precision *= np.eye(2)
        precision[3, 1, 1], precision[7, 0, 0] = -0.02, -0.02
    elif kind == "negative definite":
        precision[::9] = -0.02 * np.array([[1.0, 0.5], [0.5, 0.8]])
    precision[5] = 0.0
    sites = Sites(jnp.asarray(rng.normal(size=(N, 2))), jnp.asarray(precision))
    c, log_z, covariance, adjoint = evaluate(K, sites)
    general, general_log_z, general_covariance, general_adjoint = generally(K, sites)
    assert bool(c.proper)
    np.testing.assert_allclose(log_z, general_log_z, rtol=1e-10)
    np.testing.assert_allclose(c.weights, general.weights, atol=1e-9 * np.abs(general.weights).max())
    np.testing.assert_allclose(covariance, general_covariance, atol=1e-12)
    np.testing.assert_allclose(adjoint, general_adjoint, atol=1e-9 * np.abs(adjoint).max())


def test_diagonals_of_two_latents_are_negative_only_where_they_must_be():
    """Not by rounding: sites of EP are indefinite more often than not, and signs cost another factorisation."""
    rng = np.random.default_rng(4)
    precision = rng.normal(size=(1000, 2, 2)) * 10.0 ** rng.uniform(-3, 6, size=(1000, 1, 1))
    precision = precision + np.swapaxes(precision, 1, 2)
    precision[:100] *= np.eye(2)
    diagonal, v = (np.asarray(a) for a in uncoupled(jnp.asarray(precision), jnp.ones((1000, 2))))
    definite = np.linalg.eigvalsh(precision)[:, 1] < 0
    assert np.all(diagonal[:, 0] >= 0)
    np.testing.assert_array_equal(diagonal[:, 1] < 0, definite)
    split = diagonal[:, :, None] * np.eye(2) - v[:, :, None] * v[:, None, :]
    off, size = np.max(np.abs(split - precision), axis=(1, 2)), np.max(np.abs(diagonal) + v**2, axis=1)
    assert np.all(off <= 1e-15 * size)


def test_eigenvalues_of_two_by_two_blocks_are_accurate_however_unequal():
    rng = np.random.default_rng(5)
    size = 10.0 ** rng.uniform(-8, 8, size=(1000, 2))
    blocks = rng.uniform(-0.5, 0.5, size=(1000, 2, 2))
    blocks = (blocks + np.swapaxes(blocks, 1, 2) + np.eye(2)) * np.sqrt(size[:, :, None] * size[:, None, :])
    blocks[:10] *= np.eye(2)
    blocks[10] = 0.0
    values, vectors = (np.asarray(a) for a in block_eigh(jnp.asarray(blocks)))
    np.testing.assert_allclose(
        vectors @ np.swapaxes(vectors, 1, 2), np.broadcast_to(np.eye(2), blocks.shape), atol=1e-15
    )
    again = vectors * values[:, None] @ np.swapaxes(vectors, 1, 2)
    assert np.all(np.abs(again - blocks) <= 1e-15 * np.max(np.abs(blocks), axis=(1, 2), keepdims=True))
    exact = [np.prod(v) for v in values], [decimal_determinant(b) for b in blocks]
    np.testing.assert_allclose(*exact, rtol=1e-12)


def decimal_determinant(block):
    a, b, c = (Decimal(float(x)) for x in (block[0, 0], block[1, 1], block[0, 1]))
    return float(a * b - c * c)


@jax.jit
def generally(K, sites):
    c = Dense(K).signed(sites)
    return c, c.log_partition, c.marginals()[1], c.adjoint().K


@pytest.mark.parametrize(("n_latents", "order"), [(1, N), (2, N), (3, 3 * N)])
def test_order_is_that_of_the_largest_factor(n_latents, order):
    """Two latent functions need factors of the size of one: threads of BLAS would wait for one another there."""
    assert Dense(smooth_covariance(0.1)).repeated(n_latents).order == order
