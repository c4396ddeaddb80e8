"""A few hundred of the random draws of ``make fuzz``, each block with programs of its own."""

import numpy as np
import pytest

from fuzz import arguments, models, predictives
from fuzz.outcome import Wrong, outcome
from fuzz.run import BLOCK, draw


def draws(first, number):
    for n in range(first, first + number):
        kind, word, told = draw(n)
        assert word in ("fitted", "refused"), f"draw {n}, {kind}: {told}"


@pytest.mark.parametrize("first", range(0, 5 * BLOCK, BLOCK))
def test_draws_of_some_blocks(first):
    draws(first, 30)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5 * BLOCK, 30 * BLOCK, BLOCK))
def test_draws_of_many_blocks(first):
    draws(first, 10)


def test_arguments():
    for number in range(150):
        word, told = outcome(lambda n=number: arguments.draw(np.random.default_rng([7, n])))
        assert word in ("fitted", "refused"), f"{number}: {told}"


@pytest.mark.slow
@pytest.mark.parametrize("example", models.LIKELIHOODS, ids=lambda e: type(e.likelihood).__name__)
def test_moments(example):
    for number in range(5):
        word, told = outcome(lambda n=number: predictives.draw(example, np.random.default_rng([8, n])))
        assert word in ("fitted", "refused"), f"{number}: {told}"


def test_a_draw_that_goes_wrong_is_a_failure():
    def wrong():
        raise Wrong("a probability of two")

    def foreign():
        return [][1]

    def foreign_value():
        return int("x")

    for bad in (wrong, foreign, foreign_value):
        assert outcome(bad)[0] == "failure"
