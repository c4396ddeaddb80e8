"""Sine and cosine against NumPy, with their derivatives."""

import jax
import numpy as np
import pytest

from errorband import special
from errorband.precision import double_precision


@pytest.mark.parametrize("largest", [1.0, 30.0, 1e6, 1e12])
def test_sine_and_cosine_to_the_last_place_of_one(largest):
    x = np.concatenate([np.random.default_rng(0).uniform(-largest, largest, 10_000), [0.0, np.pi, -np.pi / 2]])
    with double_precision():
        for ours, exact in ((special.sin, np.sin), (special.cos, np.cos)):
            np.testing.assert_allclose(np.asarray(ours(x)), exact(x), rtol=0, atol=2**-52)


def test_derivatives_and_values_that_are_not_finite():
    x = np.array([0.3, 2.0, -40.0])
    with double_precision():
        second = jax.vmap(jax.grad(jax.grad(special.cos)))(x)
        np.testing.assert_allclose(second, -np.cos(x), rtol=0, atol=2**-51)
        assert np.array_equal(np.isnan(special.sin(np.array([np.nan, np.inf, 1.0]))), [True, True, False])
        assert special.sin(np.zeros((0, 2))).shape == (0, 2)
