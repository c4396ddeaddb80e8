"""Priors: normalised, sampled from the density they state."""

import pickle

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from errorband.priors import (
    PRIORS,
    Gamma,
    HalfCauchy,
    HalfNormal,
    Hypoexponential,
    InverseGamma,
    LogNormal,
    Normal,
    Prior,
)


class TwoExponentials(stats.rv_continuous):
    """The sum of two exponential numbers, by their means: the convolution."""

    def _pdf(self, x, low, high):
        return (np.exp(-x / high) - np.exp(-x / low)) / (high - low)

    def _cdf(self, x, low, high):
        return 1 - (high * np.exp(-x / high) - low * np.exp(-x / low)) / (high - low)


# prior -> the same distribution in SciPy
CASES = [
    (LogNormal(0.3, 0.6), stats.lognorm(0.6, scale=np.exp(0.3))),
    (LogNormal(0.3, 0.6, lower=0.2), stats.lognorm(0.6, loc=0.2, scale=np.exp(0.3))),
    (Gamma(2.5, 1.7), stats.gamma(2.5, scale=1 / 1.7)),
    (Gamma(0.7, 0.5), stats.gamma(0.7, scale=2.0)),
    (InverseGamma(4.5, 2.0), stats.invgamma(4.5, scale=2.0)),
    (HalfNormal(1.4), stats.halfnorm(scale=1.4)),
    (HalfCauchy(1.4), stats.halfcauchy(scale=1.4)),
    (Hypoexponential(0.5, 3.0), TwoExponentials(a=0.0)(low=0.5, high=3.0)),
    (Normal(-0.5, 2.0), stats.norm(-0.5, 2.0)),
]
every_case = pytest.mark.parametrize(("prior", "reference"), CASES, ids=[repr(p) for p, _ in CASES])


def test_every_registered_prior_is_here():
    assert {type(p) for p, _ in CASES} == set(PRIORS.values())
    assert all(issubclass(cls, Prior) and cls.__name__ == name for name, cls in PRIORS.items())


@every_case
def test_the_same_belief_in_other_units(prior, reference, x64):
    values = reference.ppf([0.1, 0.5, 0.9])
    other = prior.rescaled(7.0)
    assert_allclose(other.log_density(7.0 * values), prior.log_density(values) - np.log(7.0), rtol=1e-12)


@every_case
def test_log_density(prior, reference, x64):
    values = reference.ppf([0.01, 0.2, 0.5, 0.9, 0.999])
    assert_allclose(prior.log_density(values), reference.logpdf(values), rtol=1e-10)
    slope = jax.vmap(jax.grad(prior.log_density))(values)
    step = 1e-6
    expected = (reference.logpdf(values + step) - reference.logpdf(values - step)) / (2 * step)
    assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)


@every_case
def test_density_integrates_to_one(prior, reference, x64):
    log_density = jax.jit(prior.log_density)
    lower, upper = reference.ppf([1e-9, 1 - 1e-9])
    points = reference.ppf([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6])
    total, _ = integrate.quad(lambda v: np.exp(float(log_density(v))), lower, upper, points=points, limit=200)
    assert total == pytest.approx(1, abs=1e-6)


@every_case
def test_is_a_value(prior, reference):
    assert pickle.loads(pickle.dumps(prior)) == prior
    assert hash(prior) == hash(pickle.loads(pickle.dumps(prior)))
    assert eval(repr(prior), dict(PRIORS)) == prior


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LogNormal(0.0, 0.0), "scale of LogNormal"),
        (lambda: Gamma(-1.0, 1.0), "shape of Gamma"),
        (lambda: Gamma(1.0, float("nan")), "rate of Gamma"),
        (lambda: InverseGamma(1.0, -2.0), "scale of InverseGamma"),
        (lambda: HalfNormal(0.0), "scale of HalfNormal"),
        (lambda: Hypoexponential(2.0, 1.0), "low of Hypoexponential must be below"),
    ],
)
def test_impossible_priors_are_refused(make, name):
    with pytest.raises(ValueError, match=name):
        make()
