"""Settings that are no hyperparameters: what is refused, and that all classes agree about it."""

import re

import numpy as np
import pytest

from errorband import GPRegressor
from errorband.approximations import FITC, IVM, PITC, SubsetOfData
from errorband.arguments import check_number, check_whole
from errorband.kernels import Polynomial
from errorband.likelihoods import Binomial, Ordinal, Softmax

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
    "GPRegressor(n_restarts": lambda n: GPRegressor(n_restarts=n).fit(np.eye(3), np.arange(3.0)),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bad", [-1, 2.5, True, "some", None])
def test_counts_are_whole_numbers_everywhere(name, bad):
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}={bad!r}): give a whole number, ')}"):
        COUNTS[name](bad)
    COUNTS[name](np.int64(2))


def test_the_least_number_is_allowed():
    for least in (0, 1, 2):
        check_whole("Some", "count", least, least)
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
