"""Gates: integrals against fine grids, limits that are other models, distributions of targets."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import block_diag
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from errorband.likelihoods import CompoundOutliers, Gaussian, Ignorance, OutlierMixture, Triplet, Twinned, TwoExperts
from errorband.likelihoods.bivariate import log_ndtr2, ndtr2

pytestmark = pytest.mark.usefixtures("x64")


# ----------------------------------------------------------------------------------------- the bivariate normal
POINTS = [(h, k, rho) for h in (-6.0, -0.3, 2.0) for k in (-5.0, 0.0, 1.5) for rho in (-0.95, -0.4, 0.0, 0.6, 0.99)]


@pytest.mark.parametrize("function", [ndtr2, lambda *p: np.exp(jax.jit(jax.vmap(log_ndtr2))(*p))])
def test_bivariate_distribution_function(function):
    h, k, rho = np.array(POINTS).T
    x, w = np.polynomial.legendre.leggauss(400)

    def by_hand(h, k, rho):  # ∫ φ(x) Φ((k − ρx)/s) dx up to h
        low = h - 12.0
        t = 0.5 * (h + low) + 0.5 * (h - low) * x
        inner = ndtr((k - rho * t) / np.sqrt(1 - rho**2))
        return 0.5 * (h - low) * np.sum(w * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi) * inner)

    right = [by_hand(*p) for p in POINTS]
    assert_allclose(
        function(h, k, rho), right, rtol=0 if function is ndtr2 else 1e-10, atol=2e-13 if function is ndtr2 else 0
    )


def test_bivariate_derivatives_hold_in_the_tails():
    at = np.array([[-25.0, -20.0, 0.3], [-8.0, 3.0, -0.7], [0.4, -0.2, 0.5], [5.0, 6.0, -0.2]])
    both = jax.jit(jax.vmap(jax.value_and_grad(lambda p: log_ndtr2(*p))))
    value, gradient = (lambda p: np.asarray(both(p)[0])), (lambda p: np.asarray(both(p)[1]))
    hessian = jax.jit(jax.vmap(jax.hessian(lambda p: log_ndtr2(*p))))(at)
    for i in range(3):
        step = 1e-4 * np.eye(3)[i]
        central = lambda f: (8 * (f(at + step) - f(at - step)) - f(at + 2 * step) + f(at - 2 * step)) / (12e-4)  # noqa: B023, E731
        assert_allclose(gradient(at)[:, i], central(value), rtol=1e-7, atol=1e-9)
        assert_allclose(hessian[:, i], central(gradient), rtol=1e-6, atol=1e-8)


# ------------------------------------------------------------------------------------------------------- moments
CASES = [  # y, mean, covariance: near, far out, gate far to either side, strongly correlated, wide
    (0.3, [0.1, 0.5], [[0.2, 0.05], [0.05, 0.6]]),
    (4.0, [0.0, 1.0], [[0.1, -0.15], [-0.15, 0.9]]),
    (0.2, [0.0, -9.0], [[0.3, 0.2], [0.2, 0.5]]),
    (-3.0, [0.5, 8.0], [[0.4, -0.3], [-0.3, 0.6]]),
    (12.0, [-1.0, 4.0], [[2.0, 1.9], [1.9, 2.0]]),
    (1.0, [0.0, 0.0], [[9.0, 0.0], [0.0, 16.0]]),
]


def by_grid(likelihood, y, mean, cov):
    """Log Z, gradient and Hessian in the mean by a grid over both latents, in logarithms."""
    root = np.linalg.cholesky(cov)
    inverse = np.linalg.inv(cov)
    t = np.linspace(-14.0, 14.0, 701)
    a, b = np.meshgrid(t, t, indexing="ij")
    white = np.stack([a.ravel(), b.ravel()], axis=1)
    top = white[np.argmax(_log_p(likelihood, y, np.asarray(mean) + white @ root.T) - 0.5 * np.sum(white**2, 1))]
    white = white * 0.75 + top  # around the mode of the integrand
    off = white @ root.T
    log_w = _log_p(likelihood, y, np.asarray(mean) + off) - 0.5 * np.sum(white**2, axis=1)
    peak = log_w.max()
    p = np.exp(log_w - peak)
    total = p.sum()
    log_z = peak + np.log(total * (0.75 * (t[1] - t[0])) ** 2 / (2 * np.pi))
    p /= total
    g = inverse @ (p @ off)
    second = (off * p[:, None]).T @ off
    return log_z, g, inverse @ second @ inverse - inverse - np.outer(g, g)


def _log_p(likelihood, y, f):
    """The density as written, in NumPy."""
    s2, u = float(likelihood.noise_variance), f[:, 1] + float(likelihood.bias)
    log_n = lambda v: -0.5 * ((y - f[:, 0]) ** 2 / v + np.log(2 * np.pi * v))  # noqa: E731
    return np.logaddexp(log_ndtr(u) + log_n(s2), log_ndtr(-u) + log_n(s2 * float(likelihood.variance_ratio)))


@jax.jit
def moments(likelihood, y, mean, cov):
    """Log Z, gradient and Hessian in the mean."""
    log_z = lambda m: likelihood.log_tilted(y, m, cov)  # noqa: E731
    return *jax.value_and_grad(log_z)(mean), jax.hessian(log_z)(mean)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_moments_against_a_grid(case):
    likelihood = Twinned(0.3, 20.0, 0.4)
    y, mean, cov = CASES[case]
    mean, cov = np.array(mean), np.array(cov)
    right, found = by_grid(likelihood, y, mean, cov), moments(likelihood, y, mean, cov)
    assert_allclose(found[0], right[0], rtol=1e-10, atol=1e-10)
    assert_allclose(found[1], right[1], rtol=1e-9, atol=1e-10)
    assert_allclose(found[2], right[2], rtol=1e-9, atol=1e-10)


# ---------------------------------------------------------------------------------------- the variational bound
GATED = [
    Twinned(0.3, 20.0, 0.4),
    Ignorance(0.3, 0.5, 4.0, 0.4),
    CompoundOutliers(0.3, [2.0, -1.0], [3.0, 6.0], [0.4, -0.4], 0.4),
    Triplet(0.3, 10.0, 8.0, 0.4, -0.2),
    TwoExperts(0.3, 2.0, 0.4),
]
BOUND = jax.jit(lambda likelihood, *at: likelihood.variational_term(*at))
EXPECTED = jax.jit(lambda likelihood, *at: likelihood.expected_log_prob(*at))


@pytest.mark.parametrize("likelihood", GATED, ids=lambda l: type(l).__name__)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_bound_is_below_the_expectation(likelihood, case):
    y, mean, cov = CASES[case]
    if likelihood.n_latents == 3:
        mean, cov = [*mean, 0.3], block_diag(cov, 0.5)
    at = y, np.array(mean), np.array(cov)
    bound, expected = BOUND(likelihood, *at), EXPECTED(likelihood, *at)
    assert bound <= expected + 1e-6 * abs(expected)
    assert np.isfinite(bound)


def test_where_the_bound_is_the_expectation():
    y, mean, known = 1.3, np.array([0.2, 0.6]), np.diag([1e-14, 1e-14])
    assert_allclose(BOUND(GATED[0], y, mean, known), GATED[0].log_prob(y, mean), rtol=1e-6)  # nothing to average
    sure, wide = np.diag([0.5, 1e-14]), np.diag([0.5, 2.0])
    gaussian = Gaussian(0.3).expected_log_prob(y, 0.2, 0.5)
    assert_allclose(BOUND(Twinned(0.3, 20.0, 30.0), y, mean, wide), gaussian, rtol=1e-12)  # one branch
    assert_allclose(BOUND(Twinned(0.3, 1.0, 0.5), y, mean, sure), gaussian, rtol=1e-6)  # equal variances
    assert BOUND(Twinned(0.3, 1.0, 0.5), y, mean, wide) < gaussian  # a gate that says nothing costs something
    noise, ratio, bias = 0.3, 20.0, 0.4  # against the formula, with SciPy's integral of log Φ
    each = []
    for sign, variance in ((1, noise), (-1, noise * ratio)):
        log_phi = quad(lambda u: norm.pdf(u, 0.6 + bias, np.sqrt(2.0)) * log_ndtr(sign * u), -20, 20, epsabs=1e-13)[0]  # noqa: B023
        each.append(log_phi + norm.logpdf(y, 0.2, np.sqrt(variance)) - 0.5 * 0.5 / variance)
    assert_allclose(BOUND(Twinned(noise, ratio, bias), y, mean, wide), np.logaddexp(*each), rtol=1e-11)


# -------------------------------------------------------------------------------------------------------- limits
def test_limits_are_other_models():
    y, mean, cov = 1.3, np.array([0.2, 0.0]), np.diag([0.5, 1e-14])
    gaussian = Gaussian(0.3).log_tilted(y, 0.2, 0.5)
    assert_allclose(Twinned(0.3, 50.0, 30.0).log_tilted(y, mean, cov), gaussian, rtol=1e-12)  # Φ(u) → 1
    assert_allclose(Twinned(0.3, 1.0, 0.5).log_tilted(y, mean, cov), gaussian, rtol=1e-12)  # equal variances
    mixture = OutlierMixture(0.3, 50.0, float(ndtr(-1.2)))
    assert_allclose(Twinned(0.3, 50.0, 1.2).log_tilted(y, mean, cov), mixture.log_tilted(y, 0.2, 0.5), rtol=1e-10)
    wide = np.diag([0.5, 3.0])  # a gate of its own for each row is integrated out: Φ(bias/√(1 + v))
    assert_allclose(Twinned(0.3, 50.0, 2.4).log_tilted(y, mean, wide), mixture.log_tilted(y, 0.2, 0.5), rtol=1e-12)


def test_outliers_given_and_not_given_the_target():
    likelihood, mixture = Twinned(0.01, 100.0, 1.2), OutlierMixture(0.01, 100.0, float(ndtr(-1.2)))
    mean, cov = np.zeros((3, 2)), np.diag([0.01, 1e-14])[None] * np.ones((3, 1, 1))
    y = np.array([0.05, 0.4, 2.0])
    right = mixture.outlier_probability(y, mean[:, 0], cov[:, 0, 0])
    assert_allclose(likelihood.outlier_probability(y, mean, cov), right, rtol=1e-9)
    assert_allclose(likelihood.outlier_rate(mean, cov), ndtr(-1.2), rtol=1e-12)
    # a gate that is correlated with the function: shares of draws with a target near y
    V, rng = np.array([[0.4, 0.3], [0.3, 0.8]]), np.random.default_rng(0)
    f, u = np.linalg.cholesky(V) @ rng.normal(size=(2, 2_000_000))
    wrong = u + 1.2 + rng.normal(size=f.size) < 0
    target = f + np.sqrt(np.where(wrong, 1.0, 0.01)) * rng.normal(size=f.size)
    near = np.abs(target - 0.5) < 0.02
    p = likelihood.outlier_probability(np.array([0.5]), np.zeros((1, 2)), V[None])
    assert_allclose(p, wrong[near].mean(), atol=5 * np.sqrt(0.25 / near.sum()))
