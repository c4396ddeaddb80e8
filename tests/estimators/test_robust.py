"""Regression when some targets are wrong."""

import numpy as np
import pytest

from errorband import LBFGS, GPRegressor
from errorband.inference import EP, Laplace
from errorband.likelihoods import DoubleExponential, OutlierMixture, StudentT

OUTLIERS = np.arange(5, 80, 9)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (80, 1)), axis=0)
    f = np.sin(2 * X[:, 0])
    y = f + 0.1 * rng.normal(size=80)
    y[OUTLIERS] += rng.choice([-4.0, 4.0], len(OUTLIERS))
    return X, y, f


def rmse(model, X, f):
    return np.sqrt(np.mean((model.predict(X) - f) ** 2))


@pytest.fixture(scope="module")
def mixture(data):
    X, y, _ = data
    return GPRegressor(likelihood=OutlierMixture()).fit(X, y)


@pytest.mark.parametrize(
    ("likelihood", "rule"), [(StudentT(), Laplace), (OutlierMixture(), Laplace), (DoubleExponential(), EP)]
)
def test_outliers_do_less_harm_than_to_gaussian_noise(likelihood, rule, data, mixture):
    X, y, f = data
    if isinstance(likelihood, OutlierMixture):
        model = mixture
    else:
        model = GPRegressor(likelihood=likelihood, optimizer=LBFGS(max_iter=30)).fit(X, y)
    assert isinstance(model.inference_, rule)  # what "auto" picks
    assert rmse(model, X, f) < 0.7 * rmse(GPRegressor().fit(X, y), X, f)


def test_outliers_are_named(data, mixture):
    p = mixture.outlier_probability_
    assert p.shape == (80,)
    assert set(np.argsort(p)[-len(OUTLIERS) :]) == set(OUTLIERS)
    assert np.min(p[OUTLIERS]) > 0.9
    assert np.mean(np.delete(p, OUTLIERS)) < 0.05


def test_other_likelihoods_have_no_outlier_probability(data):
    X, y, _ = data
    model = GPRegressor(optimizer=None).fit(X, y)
    assert not hasattr(model, "outlier_probability_")
    with pytest.raises(AttributeError, match="OutlierMixture"):
        model.outlier_probability_  # noqa: B018
