"""Hyperparameters in the units of the data, and what a reader is warned of."""

import numpy as np
import pytest

from errorband import LBFGS, GPRegressor, Parameter
from errorband.estimators.hyperparameters import hyperparameters
from errorband.kernels import Constant, Linear, Matern, Periodic, SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.means import Linear as LinearMean
from errorband.reporting.regression.build import build_regression


# ------------------------------------------------------------------------------------------------ hyperparameters
def test_hyperparameters_in_data_units_make_the_same_model(frame):
    """A model built by hand from the values of the table, without standardising, predicts the same."""
    model = GPRegressor("se", calibrate=False).fit(frame.X_train, frame.y_train)
    rows = hyperparameters(model, "yield")
    scales = [r.value for r in rows if r.kind == "lengthscale"]
    (spread,), (noise,) = ([r.value for r in rows if r.kind == kind] for kind in ("variance", "noise_variance"))
    by_hand = GPRegressor(
        SquaredExponential(scales, spread**2), likelihood=Gaussian(noise**2), normalize=False, optimizer=None
    )
    centre = frame.y_train.mean()
    by_hand.fit(frame.X_train, frame.y_train - centre)
    mean, std = model.predict(frame.X_test, return_std=True)
    again, std_again = by_hand.predict(frame.X_test, return_std=True)
    np.testing.assert_allclose(again + centre, mean, rtol=1e-6)
    np.testing.assert_allclose(std_again, std, rtol=1e-6)


def test_hyperparameters_of_composite_kernels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(0, [1.0, 10.0], (30, 2)), rng.normal(0, 5.0, 30)
    kernel = (
        SquaredExponential(20.0, 25.0, active_dims=[1])
        + Matern(1.0, 9.0, active_dims=[0]) * Periodic(0.7, 1.0, period=3.0, active_dims=[1])
        + Linear([4.0, 0.25])
        + Constant(1.0)
    )
    model = GPRegressor(kernel, mean=LinearMean([0.5, 1.0, 2.0]), optimizer=None).fit(X, y)
    found = {(r.part, r.name): (pytest.approx(r.value), r.unit) for r in hyperparameters(model, "y")}
    assert found["SquaredExponential", "length-scale of x1"] == (20.0, "x1")
    assert found["SquaredExponential", "prior standard deviation"] == (5.0, "y")
    assert found["Matern", "length-scale of x0"] == (1.0, "x0")
    assert found["Matern", "prior standard deviation"] == (3.0, "y")  # the left factor has the unit
    assert found["Periodic", "variance"] == (1.0, "")
    assert found["Periodic", "roughness of x1"] == (0.7, "")
    assert found["Periodic", "period of x1"] == (3.0, "x1")
    assert found["Linear", "prior spread of the slope of x1"] == (0.5, "y per x1")
    assert found["Linear mean", "slope of x1"] == (2.0, "y per x1")
    assert found["Linear mean", "level"] == (0.5, "y")


# ------------------------------------------------------------------------------------------------------- findings
def _titles(content):
    return [f.title for f in content.findings]


def test_quiet_when_nothing_is_wrong(sinc):
    assert _titles(build_regression(sinc.model, sinc.X_test, sinc.y_test)) == []


def test_findings_about_the_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    with pytest.warns(match="did not converge"):
        model = GPRegressor(
            SquaredExponential(variance=Parameter(0.01, bounds=(0.01, 0.1))), optimizer=LBFGS(max_iter=2)
        ).fit(X, y)
    model.jitter_ = 1e-8
    content = build_regression(model, X[:20], y[:20], baselines=False)
    titles = _titles(content)
    assert "The search for hyperparameters did not converge" in titles
    assert "Jitter was added" in titles
    assert "The search ended on a bound of variance;" in next(f.text for f in content.findings if "bounds" in f.title)
    assert "Few held-out rows" in titles
    assert "Training rows among the held-out rows" in titles
    assert titles.index("Jitter was added") < titles.index("Few held-out rows")  # warnings before notes


def test_findings_about_noise():
    x = np.linspace(0, 6, 40)[:, None]
    exact = GPRegressor(SquaredExponential(1.0, 1.0), likelihood=Gaussian(1e-8), optimizer=None).fit(x, np.sin(x[:, 0]))
    assert "Almost no noise was found" in _titles(build_regression(exact, x + 0.05, np.sin(x[:, 0] + 0.05)))
    y = np.random.default_rng(0).normal(size=40)
    noisy = GPRegressor(SquaredExponential(1.0, 1e-4), likelihood=Gaussian(np.var(y)), optimizer=None).fit(x, y)
    content = build_regression(noisy, x + 0.05, y)
    assert "Almost everything is noise" in _titles(content)
    assert "Hyperparameters were not learned" in _titles(content)
    floor = GPRegressor(likelihood=Gaussian(0.2001, min_noise_variance=0.2), optimizer=None).fit(x, y)
    assert "Noise at its bound" in _titles(build_regression(floor, x, y))


def test_findings_about_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    X[10] = X[11]
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    y[0] += 50
    model = GPRegressor(SquaredExponential([1.0, 500.0], 50.0), likelihood=Gaussian(2.5), optimizer=None).fit(X, y)
    found = {f.title: f.text for f in build_regression(model, X + 3, y, baselines=False).findings}
    assert "2 training rows" in found["Duplicate inputs"]
    assert found["Inputs without effect"].startswith("Predictions hardly change with x1")
    assert "outside the range" in found["Extrapolation"]
    assert found["Outliers"].startswith("1 training row ")
    X[10] = X[11] + 1e-9
    near = GPRegressor(SquaredExponential(1.0, 50.0), likelihood=Gaussian(2.5), optimizer=None).fit(X, y)
    assert "Near-duplicate inputs" in _titles(build_regression(near, X, y, baselines=False))


def test_bands_that_do_not_hold_are_reported(frame):
    y = frame.y_test + 10 * np.random.default_rng(0).normal(size=len(frame.y_test))
    content = build_regression(frame.model, frame.X_test, y, baselines=False)
    assert "Bands too narrow" in _titles(content)
    assert "overconfident" in content.verdict[-1]
