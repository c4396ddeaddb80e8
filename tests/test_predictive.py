"""Predictive distributions that stand by themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from errorband import predictive
from errorband.likelihoods import Beta
from errorband.likelihoods.numerical import TabulatedPredictive
from errorband.predictive import (
    CategoricalPredictive,
    GaussianMixturePredictive,
    GaussianPredictive,
    MixturePredictive,
    RescaledPredictive,
)

LEVELS = [1e-6, 0.02, 0.5, 0.9, 1 - 1e-6]


def check_distribution(p, accuracy=1e-9):
    """Quantiles and cdf are inverse, the interval and draws agree with both."""
    found = p.quantile(LEVELS)
    assert found.shape == (len(p), len(LEVELS))
    assert (np.diff(found, axis=1) > 0).all()
    for level, column in zip(LEVELS, found.T, strict=True):
        assert_allclose(p.cdf(column), level, rtol=1e-4, atol=accuracy)
    low, high = p.interval(0.88)
    assert_allclose(p.cdf(high) - p.cdf(low), 0.88, atol=2 * accuracy)
    draws = p.sample(4000, random_state=0)
    assert draws.shape == (4000, len(p))
    assert_allclose(np.mean(draws < p.quantile(0.3), axis=0), 0.3, atol=0.04)
    assert_allclose(draws, p.sample(4000, random_state=0))
    step = 1e-4 * (found[:, 3] - found[:, 1])
    slope = (p.cdf(found[:, 2] + step) - p.cdf(found[:, 2] - step)) / (2 * step)
    assert_allclose(np.log(slope), p.log_density(found[:, 2]), atol=1e-3)


def mixture():
    return GaussianMixturePredictive([[0.7, 0.3], [0.01, 0.99]], [[0.0, 3.0], [-100.0, 0.0]], [[1.0, 0.1], [1.0, 2.0]])


def test_normal():
    check_distribution(GaussianPredictive([0.0, 1e6], [1.0, 1e-3]), accuracy=1e-7)


def test_mixture_of_normals():
    p = mixture()
    check_distribution(p)
    y = np.array([0.5, -99.0])
    w, m, s = p.weights, p.means, p.stds
    assert_allclose(p.log_density(y), np.log(np.sum(w * stats.norm.pdf(y[:, None], m, s), axis=1)))
    draws = p.sample(40000, random_state=1)
    assert_allclose(draws.mean(0), p.mean, atol=0.2)
    assert_allclose(draws.std(0), p.std, rtol=0.05)


def test_mixture_of_very_unequal_widths():
    """A log noise that is hardly known makes one: each quantile is where the cdf says, whatever its power of ten."""
    p = GaussianMixturePredictive([[0.4, 0.3, 0.3]], [[0.0, 1.0, 2.0]], [[1e-5, 1.0, 1e200]])
    levels = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
    found = p.quantile(levels)[0]
    assert_allclose([p.cdf(y)[0] for y in found], levels, rtol=1e-6)
    assert np.all(np.diff(found) > 0)
    beyond = GaussianMixturePredictive([[0.5, 0.5]], [[0.0, 0.0]], [[1.0, np.inf]])
    assert beyond.quantile(0.975)[0] > 1e299


def test_quantiles_are_in_order_where_the_distribution_is_narrower_than_numbers_are_apart():
    means = -2.34775621e19 - 4096.0 * np.arange(50)[:, None]
    p = GaussianMixturePredictive([[0.876, 0.124]], means, [[0.763, 1.9]])
    low, high, middle = p.quantile([0.025, 0.975, 0.5]).T
    assert np.all(low <= middle)
    assert np.all(middle <= high)


def test_rescaled():
    p = mixture()
    q = p.rescaled(3.0, -2.0).rescaled(0.5, 1.0)
    assert isinstance(q, RescaledPredictive)
    assert q.base is p
    check_distribution(q)
    assert_allclose(q.mean, 0.5 * (3 * p.mean - 2) + 1)
    assert_allclose(q.variance, 2.25 * p.variance)
    assert_allclose(q.quantile(0.7), 0.5 * (3 * p.quantile(0.7) - 2) + 1)
    assert p.rescaled(1.0, 0.0) is p


def test_categorical():
    p = CategoricalPredictive([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]], [0, 1, 2])
    assert_allclose(p.mean, [1.1, 2.0])
    assert_allclose(p.variance, [0.49, 0.0])
    assert_allclose(p.cdf(1), [0.7, 0.0])
    assert_allclose(p.quantile([0.2, 0.21, 0.71]), [[0, 1, 2], [2, 2, 2]])
    assert_allclose(np.exp(p.log_density([1, 1])), [0.5, 0.0])
    draws = p.sample(20000, random_state=0)
    assert_allclose([np.mean(draws[:, 0] == c) for c in range(3)], [0.2, 0.5, 0.3], atol=0.02)


def test_mixture_of_distributions():
    parts = mixture()
    members = [GaussianPredictive(m, s) for m, s in zip(parts.means.T, parts.stds.T, strict=True)]
    weights = np.array([0.7, 0.3])
    p = MixturePredictive(2 * weights, [*members])
    same = GaussianMixturePredictive(weights, parts.means, parts.stds)
    check_distribution(p)
    y = np.array([0.5, -99.0])
    for name in ("mean", "std"):
        assert_allclose(getattr(p, name), getattr(same, name))
    assert_allclose(p.cdf(y), same.cdf(y))
    assert_allclose(p.log_density(y), same.log_density(y))
    assert_allclose(p.quantile(LEVELS), same.quantile(LEVELS), rtol=1e-8)
    rescaled = p.rescaled(2.0, 1.0)
    check_distribution(rescaled)
    assert_allclose(rescaled.quantile(0.7), 2 * p.quantile(0.7) + 1)
    assert_allclose(rescaled.std, 2 * p.std)
    assert p.rescaled(1.0, 0.0) is p


def test_mixture_of_distant_narrow_peaks():
    p = MixturePredictive([0.5, 0.5], [GaussianPredictive([-1e6], [1e-3]), GaussianPredictive([1e6], [1e-3])])
    assert_allclose(p.quantile([0.25, 0.75]), [[-1e6, 1e6]], rtol=1e-9)


def test_quantiles_beyond_all_numbers_are_the_largest_that_are_given():
    tails = GaussianMixturePredictive([[0.5, 0.5]], [[0.0, 0.0]], [[1.0, 1e299]]).rescaled(1e20, 3.0)
    assert_allclose(tails.quantile([0.1, 0.5, 0.9]), [[-1e300, 3.0, 1e300]])


def test_mixture_of_counts():
    rates = np.array([[0.5, 30.0], [4.0, 90.0]])
    tables = [
        TabulatedPredictive(lambda y, r=r: stats.poisson.logpmf(y, r[:, None]), np.zeros(2), np.ones(2), "count")
        for r in rates
    ]
    p = MixturePredictive([0.25, 0.75], tables)
    weights = np.array([0.25, 0.75])
    assert_allclose(p.mean, weights @ rates)
    assert_allclose(p.variance, weights @ (rates + rates**2) - p.mean**2)
    assert_allclose(p.cdf(3.0), weights @ stats.poisson.cdf(3, rates))
    for level in (0.01, 0.3, 0.9, 0.999):
        found = p.quantile(level)
        assert (p.cdf(found) >= level).all()
        assert (p.cdf(found - 1) < level).all()
    assert_allclose(p.sample(20000, random_state=0).mean(0), p.mean, rtol=0.05)


def test_mixture_of_probabilities():
    first, second = (CategoricalPredictive([row, row[::-1]], [0, 1, 2]) for row in ([0.2, 0.5, 0.3], [1.0, 0.0, 0.0]))
    p = MixturePredictive([1.0, 3.0], [first, second])
    assert_allclose(p.probabilities, [[0.8, 0.125, 0.075], [0.075, 0.125, 0.8]])
    assert_allclose(p.values, [0, 1, 2])
    same = CategoricalPredictive(p.probabilities, p.values)
    assert_allclose(p.quantile([0.1, 0.85]), same.quantile([0.1, 0.85]))
    assert_allclose(p.std, same.std)
    assert_allclose(p.cdf(1.0), same.cdf(1.0))
    assert_allclose(p.log_density(1.0), same.log_density(1.0))
    assert_allclose(p.sample(20000, random_state=0).mean(0), p.mean, atol=0.02)
    with pytest.raises(AttributeError, match="Only a mixture of categorical"):
        _ = MixturePredictive([1.0], [GaussianPredictive([0.0], [1.0])]).probabilities
    with pytest.raises(AttributeError, match="different values"):
        _ = MixturePredictive([0.5, 0.5], [first, CategoricalPredictive(first.probabilities, [0, 1, 3])]).values


def test_wrong_mixtures():
    member = GaussianPredictive([0.0], [1.0])
    for weights in ([1.0], [-1.0, 2.0], [0.0, 0.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match="needs as many weights"):
            MixturePredictive(weights, [member, member])
    with pytest.raises(ValueError, match=r"\[1, 2\] inputs"):
        MixturePredictive([0.5, 0.5], [member, GaussianPredictive([0.0, 1.0], [1.0, 1.0])])
    assert MixturePredictive([1.0, 0.0], [member, member]).members == (member,)


@pytest.mark.parametrize(
    ("support", "distributions"),
    [
        ("real", [stats.norm(1e3, 1e-3), stats.cauchy(-5, 10), stats.laplace(0.3, 0.1)]),
        ("positive", [stats.gamma(0.7, scale=3.0), stats.lognorm(0.1, scale=1e-5), stats.expon(scale=2.0)]),
        ("unit", [stats.beta(2.0, 30.0), stats.beta(0.6, 0.6), stats.beta(300.0, 200.0)]),
    ],
)
def test_known_by_its_density_only(support, distributions):
    def log_density(y):
        return np.stack([d.logpdf(row) for d, row in zip(distributions, y, strict=True)])

    p = TabulatedPredictive(log_density, np.zeros(3), np.ones(3), support)
    for level in (0.001, 0.3, 0.5, 0.99):
        right = [d.ppf(level) for d in distributions]
        assert_allclose(p.cdf(np.array(right)), level, atol=2e-4)  # the cdf of one with a kink is the least accurate
        assert_allclose(p.quantile(level), right, rtol=2e-3)
    finite = [i for i, d in enumerate(distributions) if np.isfinite(d.var())]
    assert_allclose(p.mean[finite], [distributions[i].mean() for i in finite], rtol=1e-3)
    assert_allclose(p.std[finite], [distributions[i].std() for i in finite], rtol=1e-3)
    assert p.sample(5, random_state=0).shape == (5, 3)


def test_counts_known_by_their_probabilities_only():
    rates = np.array([0.5, 300.0])
    p = TabulatedPredictive(lambda y: stats.poisson.logpmf(y, rates[:, None]), np.zeros(2), np.ones(2), "count")
    assert_allclose(p.mean, rates)
    assert_allclose(p.variance, rates)
    assert_allclose(p.quantile(0.9), stats.poisson.ppf(0.9, rates))
    assert_allclose(p.cdf(3.5), stats.poisson.cdf(3, rates), atol=1e-12)
    with pytest.raises(ValueError, match="should sum to one"):
        TabulatedPredictive(lambda y: stats.poisson.logpmf(y, 1e6) + 0 * y, np.zeros(1), np.ones(1), "count")
    with pytest.raises(ValueError, match="not a density"):
        TabulatedPredictive(lambda y: np.full(y.shape, -np.inf), np.zeros(1), np.ones(1), "real")


def test_wrong_arguments():
    p = mixture()
    for q in (0.0, 1.0, [[0.5]], np.nan):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            p.quantile(q)
    with pytest.raises(ValueError, match="One y per input"):
        p.cdf([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="level"):
        p.interval(95)


def test_quantiles_of_all_levels_are_those_of_each():
    """Searches for several levels share nothing but the time they take; levels may come in any order, or be none."""
    p = MixturePredictive([0.5, 0.5], [mixture(), GaussianPredictive([0.0, 5.0], [1.0, 1e-3])])
    levels = [0.9, 1e-6, 0.5]
    assert_allclose(p.quantile(levels), np.stack([p.quantile(level) for level in levels], axis=1), rtol=1e-9)
    assert p.quantile([]).shape == (2, 0)


def test_many_quantiles_come_in_pieces(monkeypatch):
    whole = mixture().quantile(LEVELS)
    monkeypatch.setattr(predictive, "AT_ONCE", 3)
    assert_allclose(mixture().quantile(LEVELS), whole, rtol=1e-12)


def test_quantiles_where_the_centre_is_an_end_of_the_range():
    """Fractions whose latent mean is so large that they round to one, found by random draws."""
    mean, cov = np.array([[800.0], [-800.0], [0.0]]), np.full((3, 1, 1), 1e-4)
    found = Beta(2.0).predictive(mean, cov).quantile([0.1, 0.9])
    assert_allclose(found[:2], [[1.0, 1.0], [0.0, 0.0]], atol=1e-12)
    assert_allclose(found[2], stats.beta.ppf([0.1, 0.9], 1.0, 1.0), atol=1e-3)
