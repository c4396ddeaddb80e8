"""The shapes in the annotations of structures are checked at run time, by tracing (nothing is compiled)."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError, install_import_hook

N, M, S = 6, 3, 4
PACKAGE = "errorband.structures"


@pytest.fixture(scope="module")
def checked() -> Iterator[ModuleType]:
    """A second copy of the package, in which every call checks its shapes."""
    ours = lambda: [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]  # noqa: E731
    original = {name: sys.modules.pop(name) for name in ours()}
    try:
        with install_import_hook(PACKAGE, "beartype.beartype"), jax.enable_x64(True):
            yield importlib.import_module(PACKAGE)
    finally:
        for name in ours():
            del sys.modules[name]
        sys.modules.update(original)


def build(structures, name, L):
    """A structure of L latents and what prediction needs: cross (L, S, K)."""
    if name == "dense":
        return structures.Dense(jnp.ones((L, N, N))), jnp.ones((L, S, N))
    if name == "low_rank_blocks":
        return structures.LowRankBlocks(jnp.ones((L, 2, 5, 5)), jnp.ones((L, 2, 5, M)), jnp.arange(0.0, N)), jnp.ones(
            (L, S, M)
        )
    own = 1 if name == "shared" else L
    shared_by = L if name == "shared" else 1
    return structures.LowRank(jnp.ones((own, N)), jnp.ones((own, N, M)), shared_by), jnp.ones((L, S, M))


def everything(structure, sites, cross):
    L = structure.n_latents
    c = structure.condition(sites)
    predictor = c.predictor()
    state = c.state().update(0, jnp.ones(L), jnp.eye(L))
    one = structure.latent(0)
    adjoint = c.adjoint()
    return (
        structure.dense(),
        structure.diagonal(),
        structure.matvec(sites.shift),
        (c.log_partition, c.solve(sites.shift), c.marginals(), c.predicted_without_own_site()),
        (adjoint, adjoint.summed(), one.repeated(3), type(structure).stacked([one, one]), adjoint.latent(0)),
        (state.marginal(1), state.admits(1, jnp.eye(L))),
        (predictor.mean_weights, predictor(cross, jnp.ones((S, L))), predictor.joint(cross[0], jnp.eye(S), L - 1)),
    )


@pytest.mark.parametrize("kind", ["general", "simplex"])
@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("name", ["dense", "low_rank", "shared", "low_rank_blocks"])
def test_shapes_are_as_annotated(checked, name, L, kind):
    structure, cross = build(checked, name, L)
    zeros = (checked.Sites if kind == "general" else checked.SimplexSites).zeros(N, L)
    jax.eval_shape(everything, structure, zeros, cross)


def test_wrong_shapes_are_reported(checked):
    with pytest.raises(TypeCheckError):
        checked.Dense(jnp.ones((1, N, N + 1)))
    with pytest.raises(TypeCheckError):
        checked.LowRank(jnp.ones((1, N)), jnp.ones((1, N + 1, M)))
    with pytest.raises(TypeCheckError):
        checked.Dense(jnp.ones((1, N, N))).matvec(jnp.ones(N))
