"""What is particular to the low-rank structure: its limits and identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diagonal_sites import diagonal_sites
from errorband.structures import Dense, LowRank, Sites


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


@jax.jit
def everything(structure, sites, cross, prior):
    c = structure.condition(sites)
    found = c.proper, c.log_det, c.weights, c.log_partition, c.marginals(), c.predictor()(cross, prior)
    return found, c.adjoint()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_full_rank_equals_dense(sign):
    """M = N, Φ = chol(K), d = 0."""
    rng = np.random.default_rng(0)
    n, L, S = 8, 2, 3
    factor = rng.normal(size=(L, n + S, n + S))
    K = factor @ factor.swapaxes(1, 2) / n + 0.5 * np.eye(n + S)
    chol = np.linalg.cholesky(K[:, :n, :n])
    cross = K[:, n:, :n]
    whitened = np.linalg.solve(chol, cross.swapaxes(1, 2)).swapaxes(1, 2)
    prior = np.diagonal(K[:, n:, n:], axis1=1, axis2=2).T
    root = 0.3 * rng.normal(size=(n, L, L))
    precision = root @ root.swapaxes(1, 2)
    precision[1] *= 0.2 * sign
    sites = Sites(jnp.asarray(rng.normal(size=(n, L))), jnp.asarray(precision))

    got, low = everything(LowRank(jnp.zeros((L, n)), jnp.asarray(chol)), sites, whitened, prior)
    want, full = everything(Dense(jnp.asarray(K[:, :n, :n])), sites, cross, prior)
    assert got[0]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10), got, want)
    np.testing.assert_allclose(low.basis, 2.0 * full.K @ chol, rtol=1e-9, atol=1e-10)  # K = ΦΦᵀ
    np.testing.assert_allclose(low.diag, np.diagonal(full.K, axis1=1, axis2=2), rtol=1e-9, atol=1e-10)


def test_gaussian_sites_give_the_sparse_regression_formulas():
    """Against the formulas of inter-domain regression in their own arrangement (Lázaro-Gredilla 2010, app. D.4)."""
    rng = np.random.default_rng(1)
    n, m, s2 = 30, 6, 0.05
    V = rng.normal(size=(m, n)) / np.sqrt(m)
    d = rng.uniform(0.0, 0.5, size=n)
    y = rng.normal(size=n)
    Lam = (d + s2) / s2
    Phi_s, y_s = V / np.sqrt(Lam), y / np.sqrt(Lam)
    R = np.linalg.cholesky(Phi_s @ Phi_s.T + s2 * np.eye(m))
    H = np.linalg.solve(R, Phi_s)
    beta = H @ y_s
    evidence = -(
        (y_s @ y_s - beta @ beta) / (2 * s2)
        + np.sum(np.log(np.diag(R)))
        + (n - m) / 2 * np.log(s2)
        + 0.5 * np.sum(np.log(2 * np.pi * Lam))
    )
    v1 = rng.normal(size=(m, 4))
    v2 = np.linalg.solve(R, v1)

    structure = LowRank(jnp.asarray(d)[None], jnp.asarray(V.T)[None])
    prior = np.sum(v1**2, axis=0)[:, None] + 0.3
    (_, _, _, log_z, _, (mean, covariance)), _ = everything(
        structure, diagonal_sites(y / s2, np.full(n, 1.0 / s2)), v1.T[None], prior
    )
    np.testing.assert_allclose(log_z - 0.5 * y @ y / s2 - 0.5 * n * np.log(2 * np.pi * s2), evidence, rtol=1e-11)
    np.testing.assert_allclose(mean[:, 0], beta @ v2, rtol=1e-10)
    np.testing.assert_allclose(covariance[:, 0, 0], 0.3 + s2 * np.sum(v2**2, axis=0), rtol=1e-10)


def test_updates_move_weight_space_models():
    """With d = 0 the mean lives in γ alone; a factor d in its update would freeze it."""
    structure = LowRank(jnp.zeros((1, 3)), jnp.ones((1, 3, 1)))

    @jax.jit
    def after_one_site(structure):
        state = structure.condition(Sites.zeros(3)).state().update(0, jnp.ones(1), jnp.ones((1, 1)))
        return state.gamma, state.marginal(2)

    gamma, (mean, covariance) = after_one_site(structure)
    for value in (gamma, mean, covariance):
        np.testing.assert_allclose(value, 0.5, rtol=1e-14)


def test_negative_site_on_the_independent_part_is_flagged():
    """1 + dπ < 0 for two data; B by itself would look sound."""
    structure = LowRank(jnp.ones((1, 4)), 1e-3 * jnp.ones((1, 4, 1)))
    sites = diagonal_sites(jnp.zeros(4), jnp.array([-2.0, -2.0, 1.0, 1.0]))
    (proper, *_), _ = everything(structure, sites, structure.basis, structure.diagonal())
    assert not proper


def test_no_array_of_size_n_by_n():
    n, m = 50, 3
    structure = LowRank(jnp.ones((1, n)), jnp.ones((1, n, m)))
    sites = diagonal_sites(jnp.ones(n), jnp.ones(n))

    def run(structure, sites):
        c = structure.condition(sites)
        return c.marginals(), c.adjoint(), c.state(), c.predictor()(structure.basis, structure.diagonal())

    shapes = {
        variable.aval.shape for equation in jax.make_jaxpr(run)(structure, sites).eqns for variable in equation.outvars
    }
    assert max(int(np.prod(shape)) for shape in shapes) <= n * m
