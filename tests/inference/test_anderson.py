"""Acceleration of fixed points."""

import jax
import jax.numpy as jnp
import numpy as np

from errorband import GPClassifier
from errorband.inference import EP
from errorband.inference.anderson import Memory
from errorband.kernels import SquaredExponential
from errorband.precision import in_double_precision
from errorband.structures import Sites


@jax.jit
def step(memory, *pair):
    memory = memory.kept(*pair)
    begin, go = memory.mixed(*pair, jnp.array([[0.3]]), jnp.array([[2.0]]))
    return memory, jnp.stack([(begin.shift + go.shift)[0, 0], (begin.precision + go.precision)[0, 0, 0]])


@in_double_precision
def test_a_linear_map_of_two_numbers_is_solved_in_four_steps():
    """Where plain steps, x ← x + f, come nearer by a tenth each and would need a hundred."""
    goal, slow = np.array([0.7, 2.0]), np.array([[0.1, 0.05], [0.0, 0.3]])
    x, memory = np.zeros(2), Memory.empty(Sites.zeros(1))
    for _ in range(4):
        change = slow @ (goal - x)
        pair = [Sites(v[:1, None], v[1:, None, None]) for v in (np.asarray(x), change)]
        memory, x = step(memory, *pair)
    np.testing.assert_allclose(x, goal, rtol=1e-5)


def test_acceleration_that_fails_again_and_again_does_not_keep_plain_steps_long():
    """Two classes that a point separates: steps that grew while sweeps were accelerated threw them back for ever."""
    x = np.random.default_rng(0).normal(size=(480, 1))
    rule = EP(mode="parallel")
    model = GPClassifier(SquaredExponential(0.6, 100.0), inference=rule, optimizer=None, normalize=False)
    status = model.fit(x, x[:, 0] > 0).inference_status_
    assert status.converged
    assert status.sweeps < 100
