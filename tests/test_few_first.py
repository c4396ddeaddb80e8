"""Searches whose evaluations are dear begin on few rows, which may also decide whether inputs have length-scales."""

import dataclasses

import numpy as np
import pytest

from errorband import GPClassifier, GPRegressor
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Poisson
from errorband.training import LBFGS
from errorband.training.tie import Tied, price


@pytest.fixture
def searches(monkeypatch):
    """Forty rows are few; and a list of (rows, numbers) of each search."""
    monkeypatch.setattr("errorband.training.few_first.ROWS", 40)
    found, train = [], LBFGS.train

    def told(self, objective, theta0, **options):
        found.append((len(objective.data.y), len(theta0)))
        return train(self, objective, theta0, **options)

    monkeypatch.setattr(LBFGS, "train", told)
    return found


def labels(relevant, n_inputs, rng):
    """Two classes by the sum of some inputs, with noise."""
    X = rng.normal(size=(120, n_inputs))
    return X, X[:, relevant].sum(axis=1) + 0.3 * rng.normal(size=120) > 0


def test_few_rows_know_that_one_length_scale_will_do(searches):
    X, y = labels([0, 1, 2, 3, 4, 5], 6, np.random.default_rng(0))
    model = GPClassifier(random_state=0).fit(X, y)
    assert model.fit_result_.tied
    # Length-scale, variance and bias; with a length-scale for each input only on few rows.
    assert searches == [(40, 3), (40, 8), (120, 3)]
    assert np.ptp(model.kernel_.lengthscale / model.scaling_.x_scale) < 1e-9


def test_few_rows_know_that_inputs_differ(searches):
    """Of four inputs one matters, and counts say so."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 4))
    y = rng.poisson(np.exp(3 + np.sin(3 * X[:, 0])))
    model = GPRegressor(SquaredExponential(), likelihood="poisson", random_state=0).fit(X, y)
    assert not model.fit_result_.tied
    assert searches == [(40, 2), (40, 5), (120, 5)]
    assert np.argmin(model.kernel_.lengthscale) == 0


@pytest.mark.parametrize(("gain", "searched"), [(1.0, [(120, 2)]), (2.0, [(120, 2), (120, 4)]), (9.0, [(120, 4)])])
def test_where_few_rows_cannot_tell_all_of_them_decide(searches, monkeypatch, gain, searched):
    """Without a prior two further numbers gain one nat by chance; 1.6 nats on forty rows are worth their price on all.

    Of a likelihood that has no prior of length-scales, as its posterior may have several modes.
    """
    monkeypatch.setattr(Poisson, "log_concave", False)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 3))
    y = rng.poisson(np.exp(1 + np.sin(X[:, 0])))
    train = LBFGS.train

    def lifted(self, objective, theta0, **options):
        found = train(self, objective, theta0, **options)
        if (len(objective.data.y), len(theta0)) == (40, 4):
            tied = dataclasses.replace(found.result, value=values[-1] + gain)
            found = found._replace(result=tied)
        values.append(found.result.value)
        return found

    values = []
    monkeypatch.setattr(LBFGS, "train", lifted)
    GPRegressor(SquaredExponential(), likelihood="poisson", inference="laplace", random_state=0).fit(X, y)
    assert searches == [(40, 2), (40, 4), *searched]


def test_counts_with_one_input_have_nothing_to_tie(searches):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (100, 1))
    GPRegressor(likelihood="poisson", random_state=0).fit(X, rng.poisson(np.exp(np.sin(X[:, 0]))))
    assert [rows for rows, _ in searches] == [40, 100]


def test_fewer_than_twice_as_many_rows_are_searched_at_once(searches):
    X, y = labels([0, 1], 2, np.random.default_rng(0))
    GPClassifier(random_state=0).fit(X[:79], y[:79])
    assert {rows for rows, _ in searches} == {79}


def test_price_is_half_log_n_for_each_further_number():
    assert price(np.array([0, 0, 0, 1, 2]), 100) == pytest.approx(np.log(100))
    assert price(np.arange(4), 100) == 0.0


@pytest.mark.parametrize("normalize", [True, False])
def test_tied_length_scales_are_equal_wherever_the_search_begins(normalize):
    """Values that another search found are no units; those of inputs as they come are."""
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 1.0, 1e4]
    kernel = SquaredExponential([0.05, 40.0, 1e4])
    objective = GPClassifier(kernel, normalize=normalize).objective(X, X[:, 0] > 0)
    tied = Tied(objective, np.array([0, 0, 0, 1, 2]))
    scales = objective.model_at(tied.whole(tied.theta0)).latent.kernel.lengthscale
    ranges = np.ones(3) if normalize else np.ptp(X, axis=0)
    np.testing.assert_allclose(scales / ranges, scales[0] / ranges[0], rtol=1e-12)


def test_between_points_of_a_search_sites_are_nearly_exact(monkeypatch):
    """Fewer sweeps, the same evidence; where a fit ends they are exact."""
    X, y = labels([0, 1], 2, np.random.default_rng(1))
    objective = GPClassifier(random_state=0).objective(X, y)
    theta = objective.theta0 + 0.1
    warm = objective.evaluate(objective.theta0).warm
    rough = objective.evaluate(theta, warm)
    monkeypatch.setattr("errorband.inference.sites.SLACK", 1.0)
    strict = objective.evaluate(theta, warm)
    assert rough.status.sweeps < strict.status.sweeps
    assert rough.value == pytest.approx(strict.value, abs=1e-6)
    assert rough.gradient == pytest.approx(strict.gradient, abs=1e-3)
    last, afresh = (objective.conclude(theta, start)[1].log_evidence for start in (rough.warm, None))
    assert last == pytest.approx(afresh, abs=1e-9)
