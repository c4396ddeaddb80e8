"""What is given and what is shown is in the units of the data, whether or not the model sees them standardised."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from errorband import GPClassifier, GPRegressor, Parameter
from errorband.approximations import FITC
from errorband.features import MultiScale
from errorband.kernels import HalfSpace, Linear, Matern, Periodic, Polynomial, Projection, SquaredExponential
from errorband.likelihoods import Gaussian, HeteroscedasticGaussian, OutlierMixture, Poisson, StudentT
from errorband.means import Constant
from errorband.means import Linear as LinearMean
from errorband.priors import LogNormal, Normal

# Three inputs of very different scales; inputs and targets have mean zero, so that standardising does not move them.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)) * [0.02, 1.0, 300.0]
X -= X.mean(axis=0)
Y = 40.0 * np.sin(X[:, 1]) + 0.1 * X[:, 2] + 5.0 * RNG.normal(size=24)
Y -= Y.mean()
X_NEW = X[:5] * 0.9
EACH = [0.03, 1.2, 500.0]
SMOOTH = SquaredExponential(EACH, 1600.0)
PLACES = 0.9 * X[::4]

GIVEN = {
    "one length-scale each": {"kernel": SMOOTH},
    "one length-scale for all": {"kernel": Matern(100.0, 900.0, nu=2.5)},
    "period": {"kernel": SMOOTH + Periodic(0.8, 400.0, period=1.5, active_dims=[1])},
    "product": {
        "kernel": Periodic(0.8, 400.0, period=1.5, active_dims=[1]) * SquaredExponential(2.0, 1.0, active_dims=1)
    },
    "linear": {"kernel": 2.0 * Linear([1e5, 200.0, 0.02])},
    "polynomial": {"kernel": Polynomial(1e-4, 2.0e4, degree=2) + SMOOTH},
    "half-space": {"kernel": HalfSpace(800.0, 900.0)},
    "projection": {"kernel": Projection(SquaredExponential(1.0, 900.0), 1, [[20.0], [1.0], [0.002]])},
    "constant mean": {"kernel": SMOOTH, "mean": Constant([12.0])},
    "linear mean": {"kernel": SMOOTH, "mean": LinearMean([3.0, 100.0, 20.0, 0.05])},
    "inducing inputs": {"kernel": SMOOTH, "approximation": FITC(inducing_inputs=PLACES)},
    "windows": {"kernel": SMOOTH, "approximation": FITC(features=MultiScale(PLACES, np.full((6, 3), 0.2)))},
    "Student-t": {"kernel": SMOOTH, "likelihood": StudentT(4.0, 6.0)},
    "outliers": {"kernel": SMOOTH, "likelihood": OutlierMixture(25.0, 50.0, 0.1)},
    "two functions": {
        "kernel": {"mean": SMOOTH, "log_noise": SquaredExponential(EACH, 0.3)},
        "likelihood": HeteroscedasticGaussian(25.0),
    },
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("given", GIVEN.values(), ids=list(GIVEN))
def test_standardised_or_not_the_model_is_the_same(given):
    given = {"likelihood": Gaussian(25.0), "optimizer": None} | given
    plain, scaled = (GPRegressor(**given, normalize=normalize).fit(X, Y) for normalize in (False, True))
    assert scaled.scaling_.y_scale != 1
    assert_allclose(scaled.log_evidence_, plain.log_evidence_, rtol=1e-6)
    for a, b in zip(scaled.predict(X_NEW, return_std=True), plain.predict(X_NEW, return_std=True), strict=True):
        assert_allclose(a, b, rtol=1e-5, atol=1e-6 * Y.std())
    for a, b in zip(scaled.hyperparameters(), plain.hyperparameters(), strict=True):
        assert (a.name, a.unit) == (b.name, b.unit)
        assert_allclose(a.value, b.value, rtol=1e-9)


def test_counts_keep_their_scale():
    y = np.arange(24) % 5
    models = [
        GPRegressor(SquaredExponential(EACH, 0.5), likelihood=Poisson(), optimizer=None, normalize=normalize).fit(X, y)
        for normalize in (False, True)
    ]
    assert_allclose(models[0].log_evidence_, models[1].log_evidence_, rtol=1e-6)


def test_what_was_fitted_can_be_given_again():
    model = GPRegressor(approximation=FITC(6, optimize_inputs=False), random_state=0).fit(1e3 + X, 77.0 + Y)
    parts = {name: getattr(model, f"{name}_") for name in ("kernel", "likelihood", "approximation")}
    again = GPRegressor(**parts, optimizer=None).fit(1e3 + X, 77.0 + Y)
    assert_allclose(again.log_evidence_, model.log_evidence_, rtol=1e-6)
    assert_allclose(again.predict(1e3 + X_NEW), model.predict(1e3 + X_NEW), rtol=1e-6)
    assert np.all(np.abs(model.approximation_.inducing_inputs[:, 0] - 1e3) < 1)


@pytest.mark.parametrize("kernel", [Polynomial(), HalfSpace(), SquaredExponential(ard=False)], ids=repr)
def test_a_kernel_of_all_inputs_is_shown_in_their_units(kernel):
    model = GPRegressor(kernel, likelihood=Gaussian(25.0), optimizer=None).fit(X, Y)
    again = GPRegressor(model.kernel_, likelihood=Gaussian(25.0), optimizer=None, normalize=False).fit(X, Y)
    assert_allclose(again.log_evidence_, model.log_evidence_, rtol=1e-9)


def test_bounds_priors_and_least_noise_are_in_the_units_of_the_data():
    kernel = SquaredExponential(
        Parameter(prior=LogNormal(np.log(2.0), 0.1)), Parameter(400.0, bounds=(100.0, 900.0)), active_dims=[1]
    )
    likelihood = Gaussian(min_noise_variance=36.0)
    plain, scaled = (
        GPRegressor(kernel, likelihood=likelihood, mean=Constant([0.0]), normalize=normalize).fit(X, Y)
        for normalize in (False, True)
    )
    assert_allclose(scaled.log_evidence_, plain.log_evidence_, rtol=1e-5)
    assert_allclose(scaled.kernel_.lengthscale, plain.kernel_.lengthscale, rtol=1e-3)
    assert 100.0 <= scaled.kernel_.variance <= 900.0
    assert scaled.likelihood_.noise_variance >= scaled.likelihood_.min_noise_variance == pytest.approx(36.0)


def test_a_period_of_a_year_is_a_year():
    year = np.linspace(1990, 2010, 40)[:, None]
    y = 300 + np.sin(2 * np.pi * year[:, 0])
    model = GPRegressor(Periodic(period=1.0), likelihood=Gaussian(1e-4), optimizer=None).fit(year, y)
    assert_allclose(model.kernel_.period, 1.0)
    assert_allclose(model.predict([[2010.25], [2030.25]]), 301.0, atol=0.02)
    assert "period of x0" in repr(model.hyperparameters())


def test_what_has_no_common_unit_is_refused():
    level = Constant(Parameter([1.0], prior=Normal(0.0, 1.0)))
    GPRegressor(mean=level, optimizer=None).fit(X, Y)
    for given, words in [
        ({"mean": LinearMean(Parameter([0.0] * 4, prior=Normal(0.0, 1.0)))}, "Linear mean"),
        ({"mean": Constant(Parameter([1.0], prior=LogNormal(0.0, 1.0)))}, "Normal"),
        ({"approximation": FITC(inducing_inputs=Parameter(PLACES, bounds=(-1.0, 1.0)))}, "normalize=False"),
    ]:
        with pytest.raises(ValueError, match=words):
            GPRegressor(optimizer=None, **given).fit(1.0 + X, 1.0 + Y)


def test_classifier_shows_length_scales_of_the_data():
    model = GPClassifier(SquaredExponential(EACH), optimizer=None).fit(X, Y > 0)
    assert_allclose(model.kernel_.lengthscale, EACH)
    assert [h.value for h in model.hyperparameters() if h.kind == "lengthscale"] == pytest.approx(EACH)
