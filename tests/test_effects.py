"""Relevance and partial dependence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from errorband import GPClassifier, GPRegressor, effects
from errorband.effects import dependence
from errorband.estimators.mixture import mixed
from errorband.kernels import Linear, Matern, Periodic, SquaredExponential
from errorband.likelihoods import Bernoulli


@pytest.fixture(scope="module")
def additive():
    """Inputs of different scales with a linear, a curved and no effect; the model sees a DataFrame."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(5, 10, 90), "b": rng.uniform(-2, 2, 90), "c": rng.normal(size=90)})
    y = 0.3 * X["a"] + X["b"] ** 2 + 0.1 * rng.normal(size=90)
    return GPRegressor().fit(X, y), X, y


def test_relevance_of_a_linear_function_is_slope_times_spread(additive):
    model, X, _ = additive
    a, b, c = effects.relevance(model)
    assert a == pytest.approx(0.3 * X["a"].std(), rel=0.15)
    assert b == pytest.approx(np.std(X["b"] ** 2), rel=0.15)
    assert c < 0.05 * b


def test_relevance_counts_interactions():
    # x0·x1 has flat partial-dependence curves, yet both inputs matter.
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], (80, 3)) + 0.1 * rng.normal(size=(80, 3))
    model = GPRegressor().fit(X, X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=80))
    first, second, third = effects.relevance(model)
    assert min(first, second) > 0.8
    assert third < 0.15
    flat = effects.partial_dependence(model, feature=0, grid=[-1.0, 1.0])
    assert np.ptp(flat.curve.mean) < 0.5


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        SquaredExponential(active_dims=[0]) + Matern(active_dims=[1]),
        SquaredExponential() * Periodic(period=2.0, active_dims=[0]),
    ],
    ids=["linear", "sum", "product"],
)
def test_relevance_works_for_composite_kernels(kernel):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    model = GPRegressor(kernel).fit(X, 2 * X[:, 0] + 0.1 * rng.normal(size=40))
    large, small = effects.relevance(model)
    assert large > 3 * small


def test_partial_dependence_is_the_average_prediction(additive):
    model, X, _ = additive
    effect = effects.partial_dependence(model, X, "b", n_rows=1000)
    assert (effect.input.name, effect.input.columns, effect.discrete, effect.n_rows) == ("b", (1,), False, 90)
    for value, mean in zip(effect.grid[::8], effect.curve.mean[::8], strict=True):
        assert mean == pytest.approx(model.predict(X.assign(b=value)).mean(), abs=1e-8)


def test_band_of_partial_dependence_is_the_posterior_of_the_average(additive):
    model, X, _ = additive
    effect = effects.partial_dependence(model, X, "b", grid=[-1.5, 1.0], n_rows=1000)
    for value, std in zip(effect.grid, effect.curve.std, strict=True):
        averages = effects.posterior_draws(model, X.assign(b=value).to_numpy(), 4000, 0).mean(axis=1)
        assert std == pytest.approx(averages.std(), rel=0.05)


def test_partial_dependence_of_few_values_shows_all_of_them():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 2, 50), rng.normal(size=50)])
    model = GPRegressor().fit(X, 3 * X[:, 0] + 0.1 * rng.normal(size=50))
    effect = effects.partial_dependence(model, X, 0)
    assert effect.discrete
    np.testing.assert_array_equal(effect.grid, [0.0, 1.0])
    assert np.diff(effect.curve.mean)[0] == pytest.approx(3.0, abs=0.2)


def test_draws_where_the_covariance_is_singular():
    # Without noise and with 300 close points a Cholesky factor fails; the draws pass through the data all the same.
    x = np.linspace(0, 6, 20)
    model = GPRegressor(SquaredExponential(2.0, 1.0), normalize=False, optimizer=None, likelihood=_tiny_noise())
    model.fit(x[:, None], np.sin(x))
    draws = effects.posterior_draws(model, np.linspace(0, 6, 300)[:, None], 5, 0)
    np.testing.assert_allclose(draws[:, [0, -1]], np.sin([[0.0, 6.0]] * 5), atol=1e-2)


def _tiny_noise():
    from errorband.likelihoods import Gaussian

    return Gaussian(1e-8)


def test_training_data_come_back_in_their_units(additive):
    model, X, y = additive
    found_X, found_y = model.training_data()
    np.testing.assert_allclose(found_X, X.to_numpy())
    np.testing.assert_allclose(found_y, y.to_numpy())


def test_no_warning_about_column_names(additive):
    model, X, _ = additive
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effects.relevance(model)
        effects.partial_dependence(model, X, "a")


def test_unknown_inputs_are_refused(additive):
    model, X, _ = additive
    with pytest.raises(ValueError, match=r"'z'.*'a', 'b', 'c'"):
        effects.partial_dependence(model, X, "z")
    with pytest.raises(ValueError, match="3 inputs, counted from 0"):
        effects.partial_dependence(model, X, 3)
    with pytest.raises(ValueError, match="X must have 3 columns"):
        effects.relevance(model, X[["a"]])


def test_bands_of_a_mixture_are_of_all_its_members():
    """Two members that are sure of opposite classes: a draw is of one or the other, each with its own bias."""
    X, labels = np.linspace(-1, 1, 8)[:, None], np.arange(8) % 2
    members = [
        GPClassifier(SquaredExponential(1.0, 1e-4), likelihood=Bernoulli(bias=bias), optimizer=None).fit(X, labels)
        for bias in (-2.0, 2.0)
    ]
    found = effects.class_dependence(mixed(members, np.array([0.7, 0.3])), X, 0, n_grid=9, n_rows=8)
    np.testing.assert_allclose(found.lower[:, 1], norm.cdf(-2.0), atol=0.02)
    np.testing.assert_allclose(found.upper[:, 1], norm.cdf(2.0), atol=0.02)
    np.testing.assert_allclose(found.share[:, 1], 0.7 * norm.cdf(-2.0) + 0.3 * norm.cdf(2.0), atol=0.01)


@pytest.mark.parametrize(("n_values", "n_rows"), [(25, 30), (1, 30), (7, 500), (12, 30), (13, 30)])
def test_parts_of_a_grid_are_of_one_size_and_leave_nothing_out(n_values, n_rows):
    parts = [list(part) for part in dependence._parts(n_values, n_rows)]
    assert set().union(*parts) == set(range(n_values))
    assert len({len(part) for part in parts}) == 1
    assert len(parts[0]) == 1 or len(parts[0]) * n_rows <= dependence.ROWS_AT_ONCE
