"""Every registered mean function keeps the contract: values, gradients, starting values, and what is integrated out."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband.means import MEANS, Constant, Linear, Mean, Zero, as_mean
from errorband.parameters import Change, plain
from errorband.precision import double_precision
from sparse_reference import KERNEL, fixed
from sparse_reference import NOISE as VARIANCE

DATA_X, DATA_Y, X_NEW = dense.formula_data()
X, Y = DATA_X[:20], DATA_Y[:20] + 3.0 - 2.0 * DATA_X[:20, 1]
NOISE = np.full(20, VARIANCE)


class Case(NamedTuple):
    """A mean function with its coefficients, and its basis in NumPy."""

    mean: Mean
    basis: Callable[[np.ndarray], np.ndarray]


# A newcomer adds itself here.
CASES = {
    "zero": Case(Zero(), lambda A: np.zeros((len(A), 0))),
    "constant": Case(Constant([0.7]), lambda A: np.ones((len(A), 1))),
    "linear": Case(Linear([0.7, -0.2, 0.4]), lambda A: np.column_stack([np.ones(len(A)), A])),
}
every_mean = pytest.mark.parametrize("name", CASES)


@every_mean
def test_the_same_mean_in_other_units(name, x64):
    mean = CASES[name].mean
    change = Change(np.array([0.5, 20.0]), np.array([3.0, -1.0]), y=7.0, y_origin=2.0 if name != "zero" else 0.0)
    there = change.x * X + change.x_origin
    assert_allclose(mean.in_units(change).evaluate(there), change.y * mean.evaluate(X) + change.y_origin, rtol=1e-9)


def model(mean):
    return fixed("exact", mean=mean)


def coefficients(name):
    return np.zeros(0) if name == "zero" else np.asarray(CASES[name].mean.coefficients)


def test_every_registered_mean_has_a_case():
    assert set(CASES) == set(MEANS), "add the new mean function to CASES"
    for name, case in CASES.items():
        assert type(case.mean) is MEANS[name]
        assert type(as_mean(name)) is MEANS[name]


@every_mean
def test_values_and_derivatives(name):
    mean, H = CASES[name].mean, CASES[name].basis(X)
    with double_precision():
        assert_allclose(mean.basis(X), H)
        assert_allclose(mean.evaluate(X), H @ coefficients(name), rtol=1e-14)
        if H.shape[1]:
            bar = np.cos(np.arange(20.0))
            gradient = jax.grad(lambda m: bar @ m.evaluate(X))(mean).coefficients
            assert_allclose(gradient, H.T @ bar, rtol=1e-12)


@every_mean
def test_model_with_it_against_numpy(name):
    """Values given, and a gradient in them."""
    case = CASES[name]
    found, t = model(case.mean).fit(X, Y), Y - case.basis(X) @ coefficients(name)
    assert_allclose(found.log_evidence_, dense.evidence(KERNEL(X), NOISE, t), rtol=1e-8)
    mean, _ = dense.predict(KERNEL(X), KERNEL(X, X_NEW), KERNEL(X_NEW), NOISE, t)
    assert_allclose(found.predict(X_NEW), mean + case.basis(X_NEW) @ coefficients(name), rtol=1e-7)
    objective = found.objective(X, Y)
    theta = objective.theta0
    assert len(theta) == 4 + case.basis(X).shape[1]
    _, gradient = objective.value_and_gradient(theta)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-5), rtol=1e-6, atol=1e-6)


@every_mean
def test_starting_values_are_least_squares(name):
    ready = plain(MEANS[name]().initialised(X, Y))
    H = CASES[name].basis(X)
    assert_allclose(ready.coefficients, np.linalg.lstsq(H, Y, rcond=None)[0])
    given = plain(CASES[name].mean.initialised(X, Y))
    assert_allclose(given.coefficients, coefficients(name))


@every_mean
def test_what_is_integrated_out(name):
    """The restricted likelihood of the basis; the mean itself is zero, and there is nothing to learn."""
    H = CASES[name].basis(X)
    flat = MEANS[name](marginalize=True)
    with double_precision():
        assert_allclose(flat.basis(X), H)
        assert_allclose(flat.initialised(X, Y).evaluate(X), np.zeros(20))
    found = model(flat).fit(X, Y)
    assert len(found.objective(X, Y).theta0) == 4
    assert_allclose(found.log_evidence_, dense.evidence(KERNEL(X), NOISE, Y, H), rtol=1e-8)
    inverse = np.linalg.inv(KERNEL(X) + np.diag(NOISE))
    beta = np.linalg.solve(H.T @ inverse @ H, H.T @ inverse @ Y)
    want = CASES[name].basis(X_NEW) @ beta + KERNEL(X_NEW, X) @ inverse @ (Y - H @ beta)
    assert_allclose(found.predict(X_NEW), want, rtol=1e-7)


def test_a_name_that_is_none_is_explained():
    with pytest.raises(ValueError, match="choose one of 'zero', 'constant', 'linear'"):
        as_mean("quadratic")
