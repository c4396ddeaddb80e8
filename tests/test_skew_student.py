"""Student's distribution made skew, against SciPy and numerical integrals."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from errorband.predictive import StudentPredictive
from errorband.skew_student import SkewStudent

SHAPES = [(3.0, 1.5), (8.0, 0.7), (1e6, 1.3), (5.0, 1.0)]


@pytest.mark.parametrize(("df", "skew"), SHAPES)
def test_density_moments_and_cdf_agree(df, skew):
    shape = SkewStudent(df, skew)

    def integral(function, upto=np.inf):
        pieces = [-np.inf, -shape.shift, min(upto, 1e9)] if upto > -shape.shift else [-np.inf, upto]
        both = itertools.pairwise(pieces)
        of = lambda x: function(x) * np.exp(shape.log_density(np.array(x)))  # noqa: E731
        return sum(integrate.quad(of, a, np.inf if b == 1e9 else b, limit=200)[0] for a, b in both)

    assert integral(lambda x: 1.0) == pytest.approx(1, rel=1e-7)
    assert integral(lambda x: x) == pytest.approx(0, abs=1e-6)
    assert integral(lambda x: x**2) == pytest.approx(shape.std**2, rel=1e-4)
    for x in (-2.0, 0.3, 4.0):
        assert integral(lambda _: 1.0, x) == pytest.approx(float(shape.cdf(np.array(x))), abs=1e-8)


@pytest.mark.parametrize(("df", "skew"), SHAPES)
def test_quantiles_invert_the_cdf_and_draws_follow_them(df, skew):
    shape, q = SkewStudent(df, skew), np.array([1e-6, 0.025, 0.4, 0.5, 0.9, 1 - 1e-6])
    assert np.allclose(shape.cdf(shape.quantile(q)), q, rtol=1e-9)
    draws = shape.sample(np.random.default_rng(0), (100_000,))
    assert stats.kstest(draws, lambda x: shape.cdf(x)).pvalue > 1e-3
    mapped = shape.of_symmetric(stats.t.ppf(q, df))
    assert np.allclose(mapped, shape.quantile(q), rtol=1e-6)


def test_without_skew_it_is_students():
    x = np.linspace(-4, 4, 9)
    shape, predictive = SkewStudent(4.0), StudentPredictive(np.full(9, 0.5), np.full(9, 2.0), 4.0)
    assert np.allclose(shape.log_density(x), stats.t.logpdf(x, 4.0))
    assert np.allclose(shape.cdf(x), stats.t.cdf(x, 4.0))
    assert np.allclose(predictive.log_density(x), stats.t.logpdf(x, 4.0, 0.5, 2.0))
