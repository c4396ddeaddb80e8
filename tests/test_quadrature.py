"""Rules of quadrature: what they integrate exactly, and how they find a narrow integrand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband.quadrature import (
    expectation,
    expectation_nd,
    gauss_hermite,
    log_integral,
    log_integral_nd,
    normal_rule,
    panel_rule,
    quasi_monte_carlo,
)

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("n_latents", [1, 2, 3, 5])
def test_moments_of_the_normal(n_latents):
    rules = [normal_rule(n_latents)] + ([gauss_hermite(8, n_latents)] if n_latents < 4 else [])
    for nodes, log_weights in rules:
        w = np.exp(log_weights)
        assert nodes.shape == (len(w), n_latents)
        assert_allclose(w.sum(), 1.0, rtol=1e-9)
        assert_allclose(w @ nodes, 0.0, atol=1e-9)
        assert_allclose((nodes * w[:, None]).T @ nodes, np.eye(n_latents), atol=1e-5 if n_latents == 3 else 1e-7)
    assert quasi_monte_carlo(5)[0] is quasi_monte_carlo(5)[0]  # the same points every time


def test_panels_refine_towards_each_anchor():
    centres, widths = np.array([-2.0, 3.0]), np.array([1e-4, 1e-3])
    x, w = panel_rule(centres, widths, -10.0, 10.0, xp=np)
    assert_allclose(w.sum(), 20.0)
    assert ((x >= -10) & (x <= 10)).all()
    for c, s, height in ((-2.0, 1e-4, 1.0), (3.0, 1e-3, 5.0)):
        g = height * np.exp(-0.5 * ((x - c) / s) ** 2)
        assert_allclose(w @ g, height * s * np.sqrt(2 * np.pi), rtol=1e-7)
    same, _ = panel_rule(jnp.asarray(centres), jnp.asarray(widths), -10.0, 10.0)
    assert_allclose(same, x)


def gaussian(precision, centre):
    return lambda f: -0.5 * precision * (f - centre) ** 2


@jax.jit
def gaussian_integral(precision, centre, mean, variance):
    g = gaussian(precision, centre)
    still = gaussian(*jax.lax.stop_gradient((precision, centre)))
    return log_integral(g, mean, variance, frozen=still, concave=True)


def test_a_gaussian_times_a_gaussian():
    """Whatever the widths and however far apart; with derivatives in everything."""
    for precision, centre, mean, variance in [
        (1.0, 0.0, 0.3, 2.0),
        (1e6, 5.0, 0.0, 1.0),
        (1e-6, 3.0, -2.0, 0.1),
        (4.0, 300.0, 0.0, 1.0),
        (1e4, 40.0, 0.0, 1e4),
    ]:
        right = lambda p, c, m, v: -0.5 * ((c - m) ** 2 / (v + 1 / p) + jnp.log1p(v * p))  # noqa: E731
        arguments = (precision, centre, mean, variance)
        assert_allclose(gaussian_integral(*arguments), right(*arguments), rtol=1e-7, atol=1e-7)
        found, expected = (jax.grad(f, (0, 1, 2, 3))(*arguments) for f in (gaussian_integral, right))
        assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    second = jax.grad(jax.grad(gaussian_integral, 2), 2)(1e6, 5.0, 0.0, 1.0)
    assert_allclose(second, -1 / (1 + 1e-6), rtol=1e-9)


def test_expectation_of_a_kink():
    log_g = lambda f: -jnp.abs(f - 0.7)  # noqa: E731
    found = jax.jit(lambda m, v: expectation(log_g, m, v, frozen=log_g, concave=True))(0.2, 4.0)
    z = 0.25
    right = 2 * 2 * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) + 0.5 * (2 * float(jax.scipy.special.ndtr(z)) - 1)
    assert_allclose(-found, right, rtol=1e-6)


@pytest.mark.parametrize("concave", [True, False])
def test_several_dimensions(concave):
    A = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    log_g = lambda f: -0.5 * f @ A @ f  # noqa: E731
    mean, cov = jnp.array([1.0, -0.5]), jnp.array([[1.0, 0.6], [0.6, 2.0]])

    def right(m):
        S = jnp.eye(2) + cov @ A
        return -0.5 * m @ A @ jnp.linalg.solve(S, m) - 0.5 * jnp.linalg.slogdet(S)[1]

    found = lambda m: log_integral_nd(log_g, m, cov, frozen=log_g, concave=concave)  # noqa: E731
    for f, g in ((jax.jit(found), right), (jax.jit(jax.hessian(found)), jax.hessian(right))):
        assert_allclose(f(mean), g(mean), rtol=1e-8, atol=1e-8)
    assert_allclose(expectation_nd(log_g, mean, cov), -0.5 * (mean @ A @ mean + jnp.trace(A @ cov)), rtol=1e-9)
