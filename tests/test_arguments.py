"""Settings that are no hyperparameters: what is refused, and that all classes agree about it."""

import functools
import re

import numpy as np
import pytest

from errorband import LBFGS, GPRegressor
from errorband.approximations import FITC, IVM, PITC, SubsetOfData
from errorband.inference import EP, KL, Laplace
from errorband.kernels import Polynomial, heat
from errorband.likelihoods import Binomial, Ordinal, Softmax
from errorband.parameters.checks import check_number, check_whole, generator


@functools.cache
def fitted():
    return GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])


COUNTS = {
    "FITC(n_inducing": FITC,
    "PITC(block_size": lambda n: PITC(block_size=n),
    "SubsetOfData(n_rows": SubsetOfData,
    "IVM(n_rows": IVM,
    "IVM(rounds": lambda n: IVM(rounds=n),
    "Softmax(n_classes": Softmax,
    "Ordinal(n_classes": Ordinal,
    "Binomial(n_trials": Binomial,
    "Polynomial(degree": lambda n: Polynomial(degree=n),
    "sample_prior(n_samples": lambda n: fitted().sample_prior([[0.0]], n),
    "sample_posterior(n_samples": lambda n: fitted().sample_posterior([[0.0]], n),
    "GPRegressor(n_restarts": lambda n: GPRegressor(n_restarts=n).fit(np.eye(3), np.arange(3.0)),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bad", [-1, 2.5, True, "some", None])
def test_counts_are_whole_numbers_everywhere(name, bad):
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}={bad!r}): give a whole number, ')}"):
        COUNTS[name](bad)
    COUNTS[name](2)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: LBFGS(max_iter=0), "LBFGS(max_iter=0): give a whole number, one or more."),
        (lambda: LBFGS(tolerance=-1e-9), "LBFGS(tolerance=-1e-09): give a number, zero or more."),
        (lambda: LBFGS(gradient_tolerance=np.nan), "LBFGS(gradient_tolerance=nan): give a number, zero or more."),
        (lambda: LBFGS(max_seconds=-1), "LBFGS(max_seconds=-1): give seconds, zero or more, or None."),
        (lambda: LBFGS(max_seconds="60"), "LBFGS(max_seconds='60'): give seconds, zero or more, or None."),
        (lambda: Laplace(max_iter=2.5), "Laplace(max_iter=2.5): give a whole number, one or more."),
        (lambda: Laplace(tolerance=0.0), "Laplace(tolerance=0.0): give a number above zero."),
        (lambda: KL(max_sweeps=-3), "KL(max_sweeps=-3): give a whole number, one or more."),
        (lambda: KL(tolerance=-1.0), "KL(tolerance=-1.0): give a number above zero."),
        (lambda: EP(max_sweeps=True), "EP(max_sweeps=True): give a whole number, one or more."),
        (lambda: EP(tolerance=np.inf), "EP(tolerance=inf): give a number above zero."),
        (lambda: heat(-0.5), "heat(time=-0.5): give a number above zero."),
        (lambda: heat(0.5, 0), "heat(n_features=0): give a whole number, one or more."),
    ],
)
def test_settings_of_searches_and_rules(make, told):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        make()


def test_the_least_number_is_allowed():
    for least in (0, 1, 2):
        check_whole("Some", "count", np.int64(least), least)
        with pytest.raises(ValueError, match="or more"):
            check_whole("Some", "count", least - 1, least)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, True, "1", None])
def test_numbers_are_finite_and_positive(bad):
    with pytest.raises(ValueError, match=r"Some\(time=.*\): give seconds"):
        check_number("Some", "time", bad, "seconds")


@pytest.mark.parametrize("good", [1e-300, 2, np.float64(3.0), np.int64(4)])
def test_numbers_that_are_good(good):
    check_number("Some", "time", good)
    check_number("Some", "time", 0.0, zero=True)


@pytest.mark.parametrize("bad", ["today", -1, 2.5, {"f": 1}])
def test_seeds(bad):
    with pytest.raises(ValueError, match="give a whole number, zero or more, a Generator, or None"):
        generator(bad)
    for good in (None, 3, np.random.default_rng(0), np.random.RandomState(0)):
        generator(good)
