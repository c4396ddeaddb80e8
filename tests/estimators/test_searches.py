"""Searches that are not trapped: scouts, tied length-scales, results that are doubted."""

import dataclasses
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import errorband
from errorband import LBFGS, GPClassifier, GPRegressor, Parameter
from errorband.approximations import VFE
from errorband.data import TrainingData
from errorband.estimators import base
from errorband.estimators.spec import Spec
from errorband.features import SparseSpectrum
from errorband.inference import Laplace
from errorband.kernels import Linear, Matern, SquaredExponential
from errorband.likelihoods import Gaussian, OutlierMixture
from errorband.parameters import value_of
from errorband.training import STRATEGIES, Problem, Settings, Start
from errorband.training.challenge import price
from errorband.training.reference import linear_log_evidence
from errorband.training.starts import lifted, other_starts
from errorband.training.strategy import further_starts, value_at


def arm(n, n_inputs, rng):
    """A simulated robot arm: the distance of its hand, of four of the inputs; the others do not matter."""
    X = rng.uniform(-1, 1, (n, n_inputs))
    a, b = np.pi / 2 * X[:, 0], np.pi / 2 * X[:, 1]
    lengths = 1 + 0.5 * X[:, 2], 1 + 0.5 * X[:, 3]
    hand = lengths[0] * np.cos(a) + lengths[1] * np.cos(a + b), lengths[0] * np.sin(a) + lengths[1] * np.sin(a + b)
    return X, np.hypot(*hand) + 0.05 * rng.normal(size=n)


def test_repeated_rows_without_noise_are_followed():
    """One start ends with noise in the place of a function that turns quickly."""
    x = np.repeat(np.linspace(0, 10, 40), 3)
    y = np.sin(3 * x)
    model = GPRegressor(random_state=0).fit(x[:, None], y)
    mean, std = model.predict([[5.1]], return_std=True)
    assert abs(mean[0] - np.sin(15.3)) < 0.05
    assert std[0] < 0.1


@pytest.mark.parametrize(("n", "n_inputs"), [(20, 30), (60, 100)])
def test_few_rows_and_many_inputs_do_not_deny_noise(n, n_inputs):
    """Noise alone: lines of so many inputs go through all targets, and no band is as wide as nothing."""
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-2, 2, (n + 200, n_inputs)), rng.normal(size=n + 200)
        model = GPRegressor(random_state=0).fit(X[:n], y[:n])
        assert model.likelihood_.noise_variance > 1e-3 * np.var(y[:n])
        lower, upper = model.predict_interval(X[n:], level=0.95)
        inside.append(np.mean((lower <= y[n:]) & (y[n:] <= upper)))
    assert np.mean(inside) > 0.75  # 0.47 and 0.53 without a prior of the noise


def test_equal_length_scales_stay_equal_where_a_smoother_function_is_taken():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-2, 2, (60, 100)), rng.normal(size=60)
    model = GPRegressor(random_state=0, likelihood=Gaussian(Parameter(None, bounds=(0.0, None)))).fit(X, y)
    assert model.fit_result_.tied
    assert "smoother" in model.fit_result_.challenged
    assert np.ptp(np.log(model.kernel_.left.lengthscale / model.scaling_.x_scale)) < 1e-6


def test_rows_that_repeat_others_are_told_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    with pytest.warns(UserWarning, match="60 of 90 rows repeat"):
        GPRegressor("se", random_state=0).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*rows repeat")
        GPRegressor("se", random_state=0).fit(X, y)
        GPRegressor("se", random_state=0).fit(np.tile(X.round(), (3, 1)), np.tile(y.round(), 3))  # no wonder


def test_starts_are_moved_only_if_they_were_left_out():
    data = TrainingData(np.linspace(-1, 1, 10)[:, None], np.zeros(10))
    for kernel, likelihood, number in (
        (SquaredExponential(), Gaussian(), 5),  # three length-scales, two noises, less the start itself
        (SquaredExponential(), Gaussian(Parameter(0.1, fixed=True)), 2),
        (SquaredExponential(lengthscale=2.0), Gaussian(), 0),
    ):
        spec = Spec.of(likelihood, kernel, "zero", None, 1)
        model = spec.model(data, errorband.approximations.Exact(), 0)
        assert len(other_starts(model, spec.left_out(model))) == number


@pytest.mark.filterwarnings("ignore:The search for hyper")
def test_a_lower_bound_of_the_noise_is_no_trap():
    """An exact scout leaves the noise at its bound; few sinusoids, for which there is more, must get away from it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (400, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1])
    settings: Any = {"approximation": SparseSpectrum(8), "random_state": 0, "optimizer": LBFGS(max_iter=30)}
    free = GPRegressor(**settings).fit(X, y)
    bounded = GPRegressor(likelihood=Gaussian(min_noise_variance=1e-4), **settings).fit(X, y)
    assert free.likelihood_.noise_variance > 1e-2
    assert bounded.log_evidence_ > free.log_evidence_ - 10.0
    assert not bounded.fit_result_.challenged


def test_noise_is_lifted_from_its_bound_and_nothing_else():
    data = TrainingData(np.linspace(-1, 1, 10)[:, None], np.arange(10.0))
    for likelihood, found in (
        (Gaussian(2.001, min_noise_variance=2.0), 3.0),
        (Gaussian(5.0, min_noise_variance=2.0), 5.0),
        (Gaussian(Parameter(2.001, bounds=(2.0, 2.5))), 2.001),  # there is no room
        (Gaussian(Parameter(2.001, fixed=True), min_noise_variance=2.0), 2.001),
        (Gaussian(1e-9), 1e-9),
    ):
        model = Spec.of(likelihood, SquaredExponential(1.0, 1.0), "zero", None, 1).model(
            data, errorband.approximations.Exact(), 0
        )
        noise: Any = lifted(model).likelihood
        assert float(value_of(noise.noise_variance)) == pytest.approx(found)


def test_further_starts_leave_alone_what_was_given():
    data = TrainingData(np.linspace(-1, 1, 10)[:, None], np.arange(10.0))
    for kernel, likelihood, number in (
        (SquaredExponential(), OutlierMixture(), 2),  # long length-scales, and these with less noise
        (SquaredExponential(lengthscale=2.0), OutlierMixture(), 1),
        (SquaredExponential(lengthscale=2.0), OutlierMixture(0.1), 0),
    ):
        spec = Spec.of(likelihood, kernel, "zero", None, 1)
        model = spec.model(data, errorband.approximations.Exact(), 0)
        assert len(further_starts(Problem(model, Laplace(), data, spec.left_out(model)))) == number


def test_values_that_were_given_do_not_keep_a_search_in_a_trap():
    """Long length-scales and much noise lead to "all is noise", which is doubted."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    given = GPRegressor(SquaredExponential([50.0, 50.0], 1e-3), likelihood=Gaussian(5.0), random_state=0).fit(X, y)
    free = GPRegressor("se", random_state=0).fit(X, y)
    assert "noise explains all" in given.fit_result_.challenged
    assert given.log_evidence_ > free.log_evidence_ - 0.01


def test_length_scales_are_equal_unless_the_evidence_pays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    alike = GPRegressor("se", random_state=0).fit(X, np.sin(X.sum(axis=1) / 2) + 0.1 * rng.normal(size=60))
    assert alike.fit_result_.tied
    assert "equal" in alike.fit_result_.message
    assert np.ptp(alike.kernel_.lengthscale / alike.scaling_.x_scale) < 1e-12  # as the model sees them
    one = GPRegressor("se", random_state=0).fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60))
    assert not one.fit_result_.tied
    assert one.kernel_.lengthscale.argmin() == 0
    given = GPRegressor(SquaredExponential(np.ones(6)), random_state=0).fit(X, np.sin(X.sum(axis=1) / 2))
    assert not given.fit_result_.tied


def test_noise_that_explains_all_is_doubted_and_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    told = GPRegressor(random_state=0).fit(X, y).fit_result_
    assert told.converged
    assert "noise explains all" in told.challenged
    assert "nothing better was found" in told.message


def test_a_trapped_search_is_led_out():
    """From a start at which all is noise the search ends there; the challenge finds the function."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(-3, 3, 60))
    y = np.sin(4 * x) + 0.05 * rng.normal(size=60)
    trap = SquaredExponential(1.5, 1.0)
    model = GPRegressor(trap, likelihood=Gaussian(1.0), random_state=0)
    spec, data, _ = model._training(x[:, None], y, None, None)
    problem, _, _ = model._problem(spec, data)
    left_out = frozenset(e.path for e in errorband.parameters.entries(problem.model))
    problem = dataclasses.replace(problem, left_out=left_out)
    found = STRATEGIES["challenge"](_Stay()).run(problem, Settings(LBFGS(), random_state=0))
    assert "noise explains all" in found.result.challenged
    assert "rose by" in found.result.challenged
    assert found.result.value > linear_log_evidence(data) + 20


def test_a_function_that_predicts_nothing_must_pay_for_its_numbers():
    """A length-scale so short that rows have no neighbours, and little noise: a smooth one takes its place."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-3, 3, 60), rng.normal(size=60)
    model = GPRegressor(SquaredExponential(1e-3, 1.0), likelihood=Gaussian(0.05), random_state=0)
    problem, _, _ = model._problem(*model._training(x[:, None], y, None, None)[:2])
    found = STRATEGIES["challenge"](_Stay()).run(problem, Settings(LBFGS(), random_state=0))
    assert "was taken" in found.result.challenged
    assert found.objective.model_at(found.theta).latent.kernel.lengthscale > 0.1


def test_a_function_beside_a_trend_is_not_taken_for_noise():
    """A trend explains nearly all of the targets, and a short length-scale the rest: noise takes its place."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = 3.0 * X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=80)
    given = Matern(0.1, 0.25) + Linear()
    model = GPRegressor(given, likelihood=Gaussian(0.01), random_state=0).fit(X, y)
    assert "was taken" in model.fit_result_.challenged
    assert 0.15 < model.likelihood_.noise_variance < 0.35


class _Stay(Start):
    """A search that does not leave the start."""

    def run(self, problem, settings):
        found = super().run(problem, settings)
        result, warm = LBFGS(max_iter=1, max_seconds=0.0).train(found.objective, found.theta)
        return dataclasses.replace(found, theta=result.theta, result=result, warm=warm)


@pytest.mark.slow
def test_the_robot_arm_is_no_trap():
    """32 inputs of which four matter: a variational bound with few inducing inputs likes to call it all noise."""
    X, y = arm(5500, 32, np.random.default_rng(0))
    model = GPRegressor(approximation=VFE(100), optimizer=LBFGS(max_iter=60), random_state=0).fit(X[:5000], y[:5000])
    error = np.mean((model.predict(X[5000:]) - y[5000:]) ** 2) / np.var(y[5000:])
    assert error < 0.2
    assert model.log_evidence_ > linear_log_evidence(TrainingData(X[:5000] / X.std(), y[:5000] - y.mean()))


def test_where_inference_has_no_answer_a_start_is_worth_nothing():
    """As one may be that was found for another kernel: the search then goes on from elsewhere."""
    answers = {0.0: 1.5, 1.0: np.nan, 2.0: None}

    def evaluate(theta, warm):
        if answers[theta] is None:
            raise np.linalg.LinAlgError("no posterior")
        return SimpleNamespace(value=answers[theta])

    found: Any = SimpleNamespace(evaluate=evaluate)
    assert [value_at(found, theta) for theta in answers] == [1.5, -np.inf, -np.inf]


@pytest.mark.parametrize(
    ("model", "rows", "settle"),
    [
        (GPClassifier(), 40, 10),
        (GPClassifier(optimizer=LBFGS(max_iter=9)), 40, 10),
        (GPClassifier(optimizer=LBFGS(max_iter=9, tolerance=1e-12)), 40, None),
        (GPClassifier(optimizer=LBFGS(max_iter=9, settle=3)), 40, 3),
        (GPRegressor("se"), 40, None),
        (GPRegressor("se"), 60, 30),
    ],
)
def test_searches_end_when_they_creep(model, rows, settle, monkeypatch):
    """With a limit of iterations too; but not where a precision was asked for."""
    monkeypatch.setattr(base, "MANY", 50)
    used, maximise = [], LBFGS.maximise
    monkeypatch.setattr(LBFGS, "maximise", lambda self, *a, **k: used.append(self.settle) or maximise(self, *a, **k))
    x = np.linspace(-2, 2, rows)[:, None]
    y = np.sin(2 * x[:, 0])
    model.fit(x, y > 0 if isinstance(model, GPClassifier) else y)
    assert set(used) == {settle}


def test_equal_length_scales_are_one_number_to_pay_for():
    objective = GPRegressor("se").objective(np.eye(5), np.arange(5.0))
    assert price(objective) == pytest.approx(0.5 * 6 * np.log(5))
    assert price(objective, tied=True) == pytest.approx(0.5 * 2 * np.log(5))
