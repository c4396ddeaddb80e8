"""Functions of the normal and gamma distributions, far in the tails too."""

import jax
import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose

from errorband.special import exp_linear, log_exponential_tail, log_gamma_ratio, log_ndtr, log_ndtr_between

pytestmark = pytest.mark.usefixtures("x64")


@jax.jit
def log_ndtr_derivatives(x):
    first = jax.grad(log_ndtr)
    return jax.vmap(lambda x: (log_ndtr(x), first(x), jax.grad(first)(x), jax.grad(jax.grad(first))(x)))(x)


def test_log_ndtr_and_its_derivatives():
    x = np.concatenate([np.linspace(-40, 9, 400), [0.0, -1e-9, -60.0, 40.0]])
    value, first, second, third = log_ndtr_derivatives(x)
    assert_allclose(value, scipy.special.log_ndtr(x), rtol=1e-13)
    hazard = np.sqrt(2 / np.pi) / scipy.special.erfcx(-np.minimum(x, 25) / np.sqrt(2))
    near = x < 25
    assert_allclose(first[near], hazard[near], rtol=1e-13)
    assert_allclose(second[near], (-hazard * (hazard + x))[near], rtol=1e-9)
    right = hazard * (2 * hazard**2 + 3 * hazard * x + x**2 - 1)  # loses digits where x is large
    assert_allclose(third[near], right[near], rtol=1e-6, atol=1e-9)
    assert np.isfinite(third).all()


def test_log_ndtr_beyond_any_reason():
    x = np.array([-1e3, -1e6, -1e10])
    value, first, second, third = log_ndtr_derivatives(x)
    assert_allclose(value, -0.5 * x**2, rtol=1e-4)
    assert_allclose(first, -x + -1 / x, rtol=1e-9)
    assert_allclose(second, -1.0, rtol=1e-5)
    assert_allclose(third, 0.0, atol=1e-5)


def test_log_ndtr_between():
    pairs = [(-1.0, 0.5), (-40.0, -39.0), (39.0, 40.0), (-1e10, 2.0), (3.0, 1e10), (5.0, 5.0 + 1e-6)]
    for a, b in pairs:
        low, high = (a, b) if a + b < 0 else (-b, -a)
        right = scipy.special.log_ndtr(high) + np.log1p(
            -np.exp(scipy.special.log_ndtr(low) - scipy.special.log_ndtr(high))
        )
        assert_allclose(log_ndtr_between(a, b), right, rtol=1e-9)


def test_log_exponential_tail():
    for rate, mean, variance in [(1.0, 0.3, 0.5), (3.0, -2.0, 4.0), (0.1, 5.0, 0.01)]:
        t = np.linspace(0, max(mean, 0) + 14 * np.sqrt(variance), 200001)
        density = np.exp(-rate * t - 0.5 * (t - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
        assert_allclose(log_exponential_tail(rate, mean, variance), np.log(np.trapezoid(density, t)), rtol=1e-8)
    # rate·std enormous: the density at zero over the rate
    assert_allclose(log_exponential_tail(1e8, 0.5, 1.0), -0.125 - 0.5 * np.log(2 * np.pi) - np.log(1e8), rtol=1e-8)


def test_log_gamma_ratio():
    for x in (0.3, 2.0, 19.9, 20.1, 300.0):
        for step in (0.0, 0.5, 7.0, 100.0):
            right = scipy.special.gammaln(x + step) - scipy.special.gammaln(x)
            assert_allclose(log_gamma_ratio(x, step), right, rtol=1e-12, atol=1e-12)
    assert_allclose(log_gamma_ratio(1e17, 0.5), 0.5 * np.log(1e17), rtol=1e-14)


def test_exp_linear():
    value, slope, curvature = exp_linear, jax.grad(exp_linear), jax.grad(jax.grad(exp_linear))
    assert_allclose([f(3.0) for f in (value, slope, curvature)], np.exp(3.0))
    assert_allclose(value(1e4), np.exp(200.0) * (1 + 1e4 - 200))
    assert np.isfinite(float(slope(1e100)))
