"""The search for the mode: where round-off ends it, and where the way to it leads along a valley."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband import GPRegressor
from errorband.inference import Laplace
from errorband.kernels import SquaredExponential
from errorband.likelihoods import HeteroscedasticGaussian, OutlierMixture


def fitted(kernel, likelihood, X, y):
    options = {"inference": Laplace(), "optimizer": None, "normalize": False}
    return GPRegressor(kernel, likelihood=likelihood, **options).fit(X, y)


@pytest.mark.parametrize("noise", [1e-2, 1e-3])
def test_round_off_ends_the_search_where_noise_is_tiny(noise):
    """The gradient in units of the prior is a difference of numbers of the size of the function over the variance."""
    X = np.linspace(0.0, 6.0, 60)[:, None]
    y = 10 * np.sin(X[:, 0]) + noise * np.random.default_rng(0).normal(size=60)
    kernel = {"mean": SquaredExponential(1.0, 100.0), "log_noise": SquaredExponential(2.0, 4.0)}
    model = fitted(kernel, HeteroscedasticGaussian(100 * noise**2), X, y)
    assert model.inference_status_.converged
    assert model.inference_status_.sweeps < 60
    assert_allclose(model.predict(X), y, atol=5 * noise)


def test_the_search_goes_on_through_a_valley():
    """Rows that know nothing of one another, some of which have just lost one of two modes."""
    y = np.linspace(0.0, 3.0, 400)
    model = fitted(SquaredExponential(1.0, 1.0), OutlierMixture(0.01, 100.0, 0.3), 100 * np.arange(400)[:, None], y)
    assert model.inference_status_.converged
    assert model.inference_status_.sweeps < 60
