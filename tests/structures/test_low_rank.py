"""What is particular to the low-rank structure: its limits and identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errorband.structures import Dense, LowRank, Sites


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_full_rank_equals_dense(sign):
    """M = N, Φ = chol(K), d = 0."""
    rng = np.random.default_rng(0)
    n, L, S = 8, 2, 3
    factor = rng.normal(size=(L, n + S, n + S))
    K = factor @ factor.swapaxes(1, 2) / n + 0.5 * np.eye(n + S)
    chol = np.linalg.cholesky(K[:, :n, :n])
    low = LowRank(jnp.zeros((L, n)), jnp.asarray(chol))
    full = Dense(jnp.asarray(K[:, :n, :n]))
    root = rng.normal(size=(n, L, L)) * 0.3
    precision = jnp.asarray(root @ root.swapaxes(1, 2)).at[1].multiply(sign * 0.2)
    sites = Sites(jnp.asarray(rng.normal(size=(n, L))), precision)

    a, b = low.condition(sites), full.condition(sites)
    assert a.proper
    assert b.proper
    for got, want in (
        (a.log_det, b.log_det),
        (a.weights, b.weights),
        (a.log_partition, b.log_partition),
        (a.marginals()[1], b.marginals()[1]),
        (a.adjoint().basis, 2.0 * b.adjoint().K @ chol),  # K = ΦΦᵀ
        (a.adjoint().diag, jnp.diagonal(b.adjoint().K, axis1=1, axis2=2)),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
    cross = K[:, n:, :n]
    prior = jnp.asarray(np.diagonal(K[:, n:, n:], axis1=1, axis2=2).T)
    whitened = jnp.asarray(np.linalg.solve(chol, cross.swapaxes(1, 2)).swapaxes(1, 2))
    for got, want in zip(a.predict(whitened, prior), b.predict(jnp.asarray(cross), prior), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_gaussian_sites_give_the_sparse_regression_formulas():
    """Against the formulas of inter-domain regression (§2.5) in their own arrangement."""
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

    c = LowRank(jnp.asarray(d)[None], jnp.asarray(V.T)[None]).condition(
        Sites.diagonal(jnp.asarray(y / s2), jnp.full(n, 1.0 / s2))
    )
    np.testing.assert_allclose(
        c.log_partition - 0.5 * y @ y / s2 - 0.5 * n * np.log(2 * np.pi * s2), evidence, rtol=1e-11
    )
    prior = jnp.asarray(np.sum(v1**2, axis=0) + 0.3)[:, None]
    mean, covariance = c.predict(jnp.asarray(v1.T)[None], prior)
    np.testing.assert_allclose(mean[:, 0], beta @ v2, rtol=1e-10)
    np.testing.assert_allclose(covariance[:, 0, 0], 0.3 + s2 * np.sum(v2**2, axis=0), rtol=1e-10)


def test_updates_move_weight_space_models():
    """With d = 0 the mean lives in γ alone; a factor d in its update would freeze it (§2.7)."""
    structure = LowRank(jnp.zeros((1, 3)), jnp.ones((1, 3, 1)))
    state = structure.condition(Sites.zeros(3)).state()
    state = state.update(0, jnp.array([1.0]), jnp.array([[1.0]]))
    np.testing.assert_allclose(state.gamma, [[0.5]], rtol=1e-15)
    np.testing.assert_allclose(state.marginal(2)[1], [[0.5]], rtol=1e-15)


def test_negative_site_on_the_independent_part_is_flagged():
    """1 + dπ < 0 for two data: B alone would look sound."""
    structure = LowRank(jnp.ones((1, 4)), 1e-3 * jnp.ones((1, 4, 1)))
    assert not structure.condition(Sites.diagonal(jnp.zeros(4), jnp.array([-2.0, -2.0, 1.0, 1.0]))).proper


def test_no_array_of_size_n_by_n():
    n, m = 50, 3
    structure = LowRank(jnp.ones((1, n)), jnp.ones((1, n, m)))
    sites = Sites.diagonal(jnp.ones(n), jnp.ones(n))

    def run(structure, sites):
        c = structure.condition(sites)
        return c.marginals(), c.adjoint(), c.state(), c.predict(structure.basis, structure.diagonal())

    shapes = {
        variable.aval.shape
        for equation in jax.make_jaxpr(run)(structure, sites).eqns
        for variable in equation.outvars
    }
    assert max(int(np.prod(shape)) for shape in shapes) <= n * m
