"""Length-scales that may differ and have a prior by which they are alike."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from errorband import GPClassifier, GPRegressor
from errorband.estimators.candidates import AUTO
from errorband.estimators.defaults import class_kernels
from errorband.kernels import Hamming, SquaredExponential
from errorband.training import LBFGS
from errorband.training.alike import NATS_EACH, SPREAD, Alike, cost, learned, worth
from errorband.training.starts import started_like

GROUPS = np.array([0, 0, 0, 1, 2, 2])  # three of one kernel, one number that is alone, two of another kernel


def labels(n=80, n_inputs=3, seed=0):
    """Of some inputs the first matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_inputs))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0


def test_prior_is_normal_around_the_mean_of_each_group():
    rng = np.random.default_rng(0)
    alike, theta = Alike(GROUPS, rng.normal(size=6)), rng.normal(size=6)
    value, gradient = alike.log_prior(theta)
    moved = theta - alike.offset
    apart = np.concatenate([moved[:3] - moved[:3].mean(), moved[4:] - moved[4:].mean()])
    assert value == pytest.approx(-0.5 * np.sum(apart**2) / SPREAD**2)
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda t: alike.log_prior(t)[0]), atol=1e-6)
    assert alike.log_prior(alike.offset + np.array([2.0, 2.0, 2.0, 9.0, -1.0, -1.0]))[0] == pytest.approx(0.0)


def test_objective_has_the_prior():
    X, y = labels()
    plain = GPClassifier(random_state=0).objective(X, y)
    alike = Alike(np.array([0, 0, 0, 1, 2]), np.zeros(5))
    theta = plain.theta0 + np.array([0.3, -0.2, 0.5, 0.1, 0.0])
    with_prior, without = (o.evaluate(theta) for o in (dataclasses.replace(plain, alike=alike), plain))
    value, gradient = alike.log_prior(theta)
    assert with_prior.value == pytest.approx(without.value + value)
    np.testing.assert_allclose(with_prior.gradient, without.gradient + gradient)


def test_strengths_are_eigenvalues_of_the_curvature():
    """Against second differences of values, in the directions that leave the mean of the group where it is."""
    X, y = labels()
    alike = Alike(np.array([0, 0, 0, 1, 2]), np.zeros(5))
    objective = dataclasses.replace(GPClassifier(random_state=0).objective(X, y), alike=alike)
    theta = LBFGS().train(objective, objective.theta0).result.theta
    plain, h = dataclasses.replace(objective, alike=None), 0.05

    def second(a, b):
        value = lambda i, j: plain.evaluate(theta + h * (i * a + j * b)).value  # noqa: E731
        return (value(1, 1) - value(1, -1) - value(-1, 1) + value(-1, -1)) / (4 * h * h)

    axes = np.zeros((2, 5))  # orthonormal, of sum zero
    axes[0, :3], axes[1, :3] = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    H = -np.array([[second(a, b) for b in axes] for a in axes])
    expected = np.linalg.eigvalsh(SPREAD**2 * H)
    found = alike.strengths(objective, theta)
    np.testing.assert_allclose(np.sort(found)[-2:], expected, rtol=0.1, atol=0.05)
    assert np.sort(found)[0] == pytest.approx(0.0, abs=1e-9)  # the mean has no prior
    assert cost(found) == pytest.approx(0.5 * np.linalg.slogdet(np.eye(2) + SPREAD**2 * H)[1], rel=0.1)
    assert 0.0 < learned(found) < 2.0


def test_what_is_gained_by_chance_does_not_grow_with_the_rows():
    strengths = np.array([3.0, 1.0])
    least = cost(strengths) + 100 * NATS_EACH
    assert not worth(least - 0.01, strengths, 100)
    assert worth(least + 0.01, strengths, 100)
    by_chance = 0.5 * learned(strengths)
    assert not worth(by_chance + 0.01, strengths, 100, times=10.0)
    assert worth(by_chance + 1.0, strengths, 100, times=10.0)


def test_few_labels_find_the_input_that_matters():
    """The data determine some of seven further numbers, and only these cost something."""
    X, y = labels(60, 8, seed=3)
    model = GPClassifier(random_state=0, calibrate=False).fit(X, y)
    result = model.fit_result_
    assert not result.tied
    assert np.argmin(model.kernel_.lengthscale) == 0
    assert 0.0 < result.n_alike < 7.0
    assert result.n_numbers == pytest.approx(3 + result.n_alike)  # length-scale, variance and bias
    assert result.spent(60) == pytest.approx(result.cost + 1.5 * np.log(60))
    assert "alike" in result.message
    equal = GPClassifier(SquaredExponential(ard=False), random_state=0, calibrate=False).fit(X, y)
    gain = model.log_evidence_ - equal.log_evidence_
    assert gain > result.cost
    X_new, y_new = labels(1000, 8, seed=4)
    loss = [-np.mean(np.log(m.predict_proba(X_new)[np.arange(1000), y_new.astype(int)])) for m in (model, equal)]
    assert loss[0] < loss[1] - 0.02


def test_numbers_that_are_measured_have_no_such_prior():
    X, _ = labels(60, 4)
    result = GPRegressor("se", random_state=0).fit(X, np.sin(2 * X[:, 0])).fit_result_
    assert not result.tied
    assert result.cost == 0.0


# ------------------------------------------------------------------------------------------ kernels for such inputs
def test_which_kernels_are_tried_depends_on_the_inputs():
    rng = np.random.default_rng(0)
    assert class_kernels(rng.normal(size=(300, 2))) == ("se", "linear", "matern12")
    assert "unskewed" in class_kernels(np.exp(rng.normal(size=(300, 2))))
    assert class_kernels(rng.integers(0, 2, (300, 30)).astype(float))[3:] == ("additive", "polynomial")  # two values
    assert class_kernels(rng.integers(0, 4, (300, 3)).astype(float))[3:] == ("hamming",)


def test_labels_that_lie_between_others_are_no_numbers():
    """A class that is one of three letters: no smooth function of their codes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 4)).astype(float)
    y = (X[:, 0] == 1) ^ (X[:, 1] == 1)
    model = GPClassifier(AUTO, random_state=0).fit(X[:100], y[:100])
    assert model.candidates_.winners() == {"kernel": "hamming"}
    assert model.score(X[100:], y[100:]) > 0.95


def test_length_scales_of_labels_are_no_start_for_lengths():
    X, y = labels(40, 3)
    smooth, hamming = (GPClassifier(k, random_state=0).objective(X, y).model for k in (SquaredExponential(), Hamming()))
    assert started_like(hamming, [smooth]) is None
    assert started_like(smooth, [hamming, smooth]) is not None


def test_tails_that_are_drawn_in_keep_the_units_of_the_data():
    """What is shown, given again, makes the same model; and other units make the same predictions."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(80, 2)))
    y = np.log(X[:, 0]) > np.log(X[:, 1])
    model = GPClassifier("unskewed", random_state=0, calibrate=False).fit(X, y)
    given = dict(likelihood=model.likelihood_, optimizer=None, calibrate=False)
    again = GPClassifier(model.kernel_, **given).fit(X, y)
    assert again.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-9)
    assert again.kernel_.power == pytest.approx(model.kernel_.power)
    other = GPClassifier("unskewed", random_state=0, calibrate=False).fit(1000 * X + 5, y)
    np.testing.assert_allclose(other.predict_proba(1000 * X + 5), model.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(other.kernel_.scale, 1000 * model.kernel_.scale, rtol=1e-6)
    units = {h.name: h.unit for h in model.hyperparameters()}
    assert units["scale of x0"] == "x0"
    assert units["length-scale of x0"] == ""
    assert model.log_evidence_ > GPClassifier("se", random_state=0, calibrate=False).fit(X, y).log_evidence_


def test_a_column_that_never_changes_or_has_two_values_is_left_as_it_is():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(50), rng.integers(0, 2, 50), np.exp(3 * rng.normal(size=50))])
    kernel = GPClassifier("unskewed", random_state=0).fit(X, X[:, 2] > 1).kernel_
    assert list(kernel.power[:2]) == [1.0, 1.0]
    assert kernel.power[2] < 0.5
