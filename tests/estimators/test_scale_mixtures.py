"""Scale mixtures of normals: densities are what hyperpriors say, modes are modes, draws have the right moments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from errorband.estimators.scale_mixtures import (
    BesselPrior,
    LaplacePrior,
    NormalPrior,
    PowerLawPrior,
    StudentTPrior,
    posterior_draws,
    posterior_mode,
)

PRIORS = [LaplacePrior(0.7), StudentTPrior(1.5, 0.8), BesselPrior(0.6)]
every_prior = pytest.mark.parametrize("prior", [*PRIORS, NormalPrior(0.8)], ids=repr)
RNG = np.random.default_rng(0)
BASIS = RNG.normal(size=(30, 4))
Y = BASIS @ np.array([1.5, -1.0, 0.0, 0.0]) + 0.3 * RNG.normal(size=30)


@every_prior
def test_densities_are_normalised(prior):
    total = 2 * (
        quad(lambda w: np.exp(prior.log_density(w)), 0, 1)[0]
        + quad(lambda w: np.exp(prior.log_density(w)), 1, np.inf)[0]
    )
    assert_allclose(total, 1.0, rtol=1e-4)


@pytest.mark.parametrize("prior", [*PRIORS, PowerLawPrior(0.5), PowerLawPrior(1.2)], ids=repr)
@pytest.mark.parametrize("w", [0.3, 1.0, 2.5])
def test_the_hyperprior_mixes_normals_to_the_prior(prior, w):
    def at(log_tau):
        tau = np.exp(log_tau)
        return norm.pdf(w, scale=tau**-0.5) * np.exp(prior.log_hyperprior(tau)) * tau

    assert_allclose(quad(at, -30, 30, limit=400)[0], np.exp(prior.log_density(w)), rtol=1e-5)


@pytest.mark.parametrize("prior", [*PRIORS, NormalPrior(0.8), PowerLawPrior(1.2)], ids=repr)
def test_mean_precision_is_the_slope_of_the_density(prior):
    w, h = np.array([0.2, 1.0, 3.0]), 1e-5
    slope = (prior.log_density(w + h) - prior.log_density(w - h)) / (2 * h)
    assert_allclose(prior.mean_precision(w), -slope / w, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_draws_of_the_precision_have_its_mean(prior):
    draws = prior.sample_precision(np.full(40_000, 1.3), np.random.default_rng(0))
    assert_allclose(np.mean(draws), prior.mean_precision(1.3), rtol=0.05)


@pytest.mark.parametrize("prior", [*PRIORS, PowerLawPrior(0.7)], ids=repr)
def test_the_mode_of_the_log_precision(prior):
    """No other τ has a larger density of w and log τ, which is what ``log_joint`` says."""
    w, factors = 1.3, np.exp(np.linspace(-1, 1, 21))
    tau = prior.mode_precision(w) * factors
    log_p = norm.logpdf(w, scale=tau**-0.5) + prior.log_hyperprior(tau) + np.log(tau)
    assert np.argmax(log_p) == 10
    assert_allclose(np.max(log_p), prior.log_joint(w))


@pytest.mark.parametrize("joint", [False, True])
@every_prior
def test_the_density_never_falls_and_ends_at_a_mode(prior, joint):
    w, trace = posterior_mode(BASIS, Y, 0.09, prior, joint)
    assert np.all(np.diff(trace) > -1e-7)

    def value(w):
        return -0.5 * np.sum((Y - BASIS @ w) ** 2) / 0.09 + np.sum((prior.log_joint if joint else prior.log_density)(w))

    for step in 0.01 * np.random.default_rng(1).normal(size=(50, 4)):
        moved = np.where(np.abs(w) > 1e-3, w + step, w)  # along coefficients that are not at a peak
        assert value(moved) <= value(w) + 1e-6


def test_a_normal_prior_is_ridge_regression():
    expected = np.linalg.solve(BASIS.T @ BASIS / 0.09 + np.eye(4) / 0.64, BASIS.T @ Y / 0.09)
    assert_allclose(posterior_mode(BASIS, Y, 0.09, NormalPrior(0.8))[0], expected, rtol=1e-8)
    draws = posterior_draws(BASIS, Y, 0.09, NormalPrior(0.8), 4000, random_state=0)
    assert_allclose(draws.mean(axis=0), expected, atol=0.01)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_draws_agree_with_a_grid(prior):
    """One coefficient, whose posterior is a one-dimensional integral."""
    x, y = BASIS[:8, :1], Y[:8]
    grid = np.linspace(-4, 6, 4001)
    log_p = -0.5 * np.sum((y[:, None] - x * grid) ** 2, axis=0) / 0.5 + prior.log_density(grid)
    p = np.exp(log_p - log_p.max())
    mean = np.sum(p * grid) / np.sum(p)
    draws = posterior_draws(x, y, 0.5, prior, 3000, random_state=0)
    assert_allclose(draws.mean(), mean, atol=0.03)


def test_the_pitfall_of_the_mode_in_the_precision():
    """With the usual hyperprior the joint mode in τ is negative; that in log τ is the mean of τ given w."""
    prior, w = StudentTPrior(1e-4, 1e-4), 0.7
    in_tau, in_log_tau = ((prior.shape + s) / (prior.rate + w**2 / 2) for s in (-0.5, 0.5))
    assert in_tau < 0
    assert_allclose(in_log_tau, prior.mean_precision(w))


def test_a_power_law_is_a_limit_of_students_t_and_prunes():
    """Coefficients that are noise go to zero, and the others are hardly shrunk."""
    w, few = np.array([0.5, 2.0]), StudentTPrior(0.2, 1e-12)
    law = PowerLawPrior(0.7)  # (b + w²/2)^−(a + ½) with b near 0 is |w|^−2(a + ½)
    assert_allclose(np.diff(few.log_density(w)), np.diff(law.log_density(w)), rtol=1e-8)
    assert_allclose(few.mean_precision(w), law.mean_precision(w), rtol=1e-8)
    found, trace = posterior_mode(BASIS, Y, 0.09, law)
    assert np.all(np.diff(trace) > -1e-7)
    assert_allclose(found[:2], np.linalg.lstsq(BASIS[:, :2], Y, rcond=None)[0], atol=0.1)
    assert np.max(np.abs(found[2:])) < 1e-3


def test_refusals():
    with pytest.raises(ValueError, match="give a number above zero"):
        LaplacePrior(0.0)
