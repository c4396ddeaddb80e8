"""A few hundred of the random draws of ``make fuzz``, each block with programs of its own."""

import equinox as eqx
import numpy as np
import pytest

from errorband import GPClassifier, GPRegressor
from errorband.approximations import PITC, VFE
from errorband.kernels import SquaredExponential
from errorband.likelihoods import DoubleExponential, Gaussian, Poisson
from fuzz import arguments, models, predictives
from fuzz.outcome import Wrong, outcome
from fuzz.run import BLOCK, draw


def draws(first, number):
    for n in range(first, first + number):
        kind, _, told = draw(n)
        assert not told, f"draw {n}, {kind}: {told}"


@pytest.mark.parametrize("block", [2, 4, 5, 7])  # two of models, moments of a likelihood, arguments
def test_draws_of_some_blocks(block):
    draws(block * BLOCK, 30)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8, 40))
def test_draws_of_many_blocks(block):
    draws(block * BLOCK, 10)


def test_arguments():
    for number in range(150):
        _, told = outcome(lambda n=number: arguments.draw(np.random.default_rng([7, n])))
        assert not told, f"{number}: {told}"


@pytest.mark.slow
@pytest.mark.parametrize("example", models.LIKELIHOODS, ids=lambda e: type(e.likelihood).__name__)
def test_moments(example):
    for number in range(5):
        _, told = outcome(lambda n=number: predictives.draw(example, np.random.default_rng([8, n])))
        assert not told, f"{number}: {told}"


def test_a_draw_that_goes_wrong_is_a_failure():
    def wrong():
        raise Wrong("a probability of two")

    def foreign():
        return [][1]

    def foreign_value():
        return int("x")

    for bad in (wrong, foreign, foreign_value):
        assert outcome(bad)[0] == "failure"


X = np.linspace(-2, 2, models.ROWS)[:, None]
NOISY = np.sin(2 * X[:, 0]) + 0.1 * np.cos(30 * X[:, 0])
KERNEL = SquaredExponential(0.8, 1.5)
COMPARED = {
    "closed form": GPRegressor(KERNEL, likelihood=Gaussian(0.3)),
    "VFE": GPRegressor(KERNEL, likelihood=Gaussian(0.3), approximation=VFE(3)),
    "PITC": GPRegressor(KERNEL, likelihood=Gaussian(0.3), approximation=PITC(3, block_size=8)),
    "EP": GPClassifier(KERNEL, likelihood="logit", inference="ep"),
    "KL": GPRegressor(KERNEL, likelihood=DoubleExponential(0.4), inference="kl"),
    "Laplace": GPRegressor(KERNEL, likelihood=Poisson(), inference="laplace"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_numpy_agrees_and_sees_what_is_wrong(name):
    model = COMPARED[name].set_params(optimizer=None, random_state=0)
    model.fit(X, NOISY > 0 if name == "EP" else np.round(3 + 2 * NOISY) if name == "Laplace" else NOISY)
    assert models.check_reference(model, X)
    model.log_evidence_ += 0.1
    with pytest.raises(Wrong, match="log evidence"):
        models.check_reference(model, X)
    if name in ("EP", "KL", "Laplace"):
        model.log_evidence_ -= 0.1
        model._state = eqx.tree_at(lambda s: s.shift, model._state, replace_fn=lambda b: 1.5 * b)  # no fixed point
        with pytest.raises(Wrong, match=r"means|variances|log evidence"):
            models.check_reference(model, X)
