"""Programs are compiled with the effort that their size deserves, alone or inside one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errorband import programs


@programs.program
def doubled(x):
    return 2 * x


@programs.program
def doubled_and_summed(x):
    return jnp.sum(doubled(x))


@pytest.mark.parametrize("n", [3, 40_000])
def test_alone_inside_another_and_under_transformations(n):
    x = np.ones(n, np.float32)
    np.testing.assert_array_equal(doubled(x), 2 * x)
    assert float(doubled_and_summed(x)) == 2 * n
    np.testing.assert_array_equal(jax.grad(doubled_and_summed)(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(doubled)(x[None])[0], 2 * x)


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setitem(programs.EFFORTS, 7.0, {"xla_of_another_time": True})
    understood = programs._understood.__wrapped__
    assert understood(7.0) is None
    assert all(understood(size) == options for size, options in programs.EFFORTS.items() if size != 7.0)


def test_a_level_in_xla_flags_decides(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert programs._understood.__wrapped__(35_000) is None


def test_static_arguments():
    @programs.program(static_argnums=1)
    def first(x, n):
        return x[:n]

    assert first(np.arange(5), 2).shape == (2,)


def test_effort_by_what_comes_out(monkeypatch):
    """A program whose arguments are small and whose result is not says so."""
    asked = []
    monkeypatch.setattr(programs, "_understood", lambda size: asked.append(size))
    table = programs.program(lambda x, z: x[:, None] * z, numbers=lambda x, z: len(x) * len(z))
    for n in (3, 300):
        assert table(np.ones(n), np.ones(n)).shape == (n, n)
    assert asked == [35_000, 200_000]


def test_what_only_calls_lapack_is_not_worth_the_greatest_effort(monkeypatch):
    asked = []
    monkeypatch.setattr(programs, "_understood", lambda size: asked.append(size))
    factor = programs.program(lapack=True)(jnp.linalg.cholesky)
    for n in (3, 500):
        assert factor(np.eye(n)).shape == (n, n)
    assert asked == [35_000, 200_000]
