"""Values that are given are used, whatever they are; a search may start at any of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband import GPRegressor, Parameter
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian, OutlierMixture
from errorband.parameters import POSITIVE, GreaterThan, Interval, Ordered

rng = np.random.default_rng(0)
X = rng.uniform(0, 5, (60, 1))
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


def in_units(s, likelihood=None, optimizer=None):
    likelihood = Gaussian(0.01 * s**2) if likelihood is None else likelihood
    kernel = SquaredExponential(1.0, s**2)
    return GPRegressor(kernel, likelihood=likelihood, normalize=False, optimizer=optimizer).fit(X, s * Y)


@pytest.mark.parametrize("s", [1e-12, 1e12, 1e-40, 1e40])
def test_values_without_a_search_are_kept_in_any_units(s):
    """Targets in SI units, 10⁻¹² F: variances beyond e^±40 were once clamped, and bands 2000 times too wide."""
    one, other = in_units(1.0), in_units(s)
    assert float(other.kernel_.variance) == s**2  # to the last bit
    assert_allclose(other.predict(X, return_std=True)[1] / s, one.predict(X, return_std=True)[1], rtol=1e-9)
    assert_allclose(other.loo().predictive.std / s, one.loo().predictive.std, rtol=1e-9)
    assert other.log_evidence_ == pytest.approx(one.log_evidence_ - 60 * np.log(s), rel=1e-9)


@pytest.mark.parametrize("s", [1e-12, 1e12])
def test_what_follows_a_search_uses_what_it_found(s):
    one, other = (GPRegressor(normalize=False).fit(X, scale * Y) for scale in (1.0, s))
    assert_allclose(other.loo().predictive.std / s, one.loo().predictive.std, rtol=1e-3)
    assert_allclose(other.predict(X, return_std=True)[1] / s, one.predict(X, return_std=True)[1], rtol=1e-3)


def test_outlier_probabilities_use_the_values_given():
    one, other = (in_units(s, OutlierMixture(0.01 * s**2, 100.0, 0.05)) for s in (1.0, 1e-12))
    assert_allclose(other.outlier_probability_, one.outlier_probability_, rtol=1e-6)


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (POSITIVE, [1e-300, 1e-24, 1.0, 1e24, 1e300]),
        (GreaterThan(2.0), [2.0 + 1e-12, 1e200]),
        (Interval(0.0, 1.0), [1e-200, 1e-30, 0.5]),
        (Ordered(), [-1.0, -1.0 + 1e-9, 1e250]),
    ],
)
def test_maps_to_the_line_and_back_keep_every_size(constraint, value, x64):
    assert_allclose(constraint.forward(constraint.inverse(np.array(value))), value, rtol=1e-12)


def test_a_value_on_its_bound_has_a_place_to_start_from():
    assert np.isfinite(GreaterThan(0.0, strict=False).inverse(np.array(0.0)))
    assert np.all(np.isfinite(Interval(0.0, 1.0, strict=False).inverse(np.array([0.0, 1.0]))))
    model = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(Parameter(0.25, bounds=(0.25, None))))
    shown = model.set_params(optimizer=None).fit(X, Y).likelihood_.noise_variance
    assert shown == pytest.approx(0.25, rel=1e-15)  # there and back again through the units the model sees


@pytest.mark.parametrize("noise", [1e-11, 1e-12])
def test_a_search_may_start_at_any_finite_evidence(noise):
    """Noise of variance 10⁻¹² makes the log evidence −10¹¹ and less; the search leads away from there."""
    start = GPRegressor("se", likelihood=Gaussian(noise), optimizer=None).fit(X, Y)
    assert start.log_evidence_ < -1e10
    likelihoods = Gaussian(noise), Gaussian(0.25)  # values given are where the one search starts
    found, usual = (GPRegressor("se", likelihood=likelihood).fit(X, Y) for likelihood in likelihoods)
    assert found.fit_result_.converged
    assert found.log_evidence_ == pytest.approx(usual.log_evidence_, abs=0.01)


def test_large_targets_as_they_are():
    """Evidence of the default start is below −10¹⁰ where targets of size 10¹⁴ are not scaled."""
    found, usual = GPRegressor(normalize=False).fit(X, 1e14 * Y), GPRegressor(normalize=False).fit(X, Y)
    assert found.log_evidence_ == pytest.approx(usual.log_evidence_ - 60 * np.log(1e14), abs=0.5)
