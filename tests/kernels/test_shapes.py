"""The shapes in the annotations of kernels are checked at run time, by tracing (nothing is compiled)."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError, install_import_hook

N, M, D = 5, 3, 2
PACKAGE = "errorband.kernels"


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


EXAMPLES = {
    "Additive": lambda k: k.Additive(1.0, 1.0),
    "ArcSine": lambda k: k.ArcSine(1.0, 1.0, 1.0),
    "BSpline": lambda k: k.BSpline(1.0, 1.0),
    "Categorical": lambda k: k.Categorical(1.0, 1.0),
    "Constant": lambda k: k.Constant(1.0),
    "Diffusion": lambda k: k.Diffusion(jnp.ones((4, 4)), 1.0, 1.0, active_dims=0),
    "HalfSpace": lambda k: k.HalfSpace(10.0, 1.0),
    "Hamming": lambda k: k.Hamming(1.0, 1.0),
    "Laplacian": lambda k: k.Laplacian(1.0, 1.0),
    "Linear": lambda k: k.Linear(1.0),
    "LowRankCategorical": lambda k: k.LowRankCategorical(1, jnp.ones((D, 1)), jnp.ones(D)),
    "Matern": lambda k: k.Matern(1.0, 1.0),
    "Periodic": lambda k: k.Periodic(1.0, 1.0, period=2.0),
    "Polynomial": lambda k: k.Polynomial(1.0, 1.0),
    "PoweredExponential": lambda k: k.PoweredExponential(1.0, 1.0, power=1.0),
    "Product": lambda k: k.Linear(1.0) * k.Matern(1.0, 1.0, active_dims=[1]),
    "Projection": lambda k: k.Projection(k.Matern(1.0, 1.0), 1, [[1.0], [2.0]]),
    "RationalQuadratic": lambda k: k.RationalQuadratic(1.0, 1.0, alpha=1.0),
    "Scaled": lambda k: 2.0 * k.Matern(1.0, 1.0),
    "SquaredExponential": lambda k: k.SquaredExponential(jnp.ones(D), 1.0),
    "Sum": lambda k: k.Linear(1.0) + k.Constant(1.0),
    "Unskewed": lambda k: k.Unskewed(k.Matern(1.0, 1.0), *jnp.ones((4, D))),
    "White": lambda k: k.White(1.0),
}


def test_every_kernel_is_checked(checked):
    assert set(EXAMPLES) == set(checked.KERNELS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_shapes_are_as_annotated(checked, name):
    kernel = EXAMPLES[name](checked)
    matrix, diagonal = jax.eval_shape(lambda X, Z: (kernel.gram(X, Z), kernel.gram_diag(X)), *inputs(D))
    assert matrix.shape == (N, M)
    assert diagonal.shape == (N,)


def inputs(columns):
    return jnp.zeros((N, D)), jnp.zeros((M, columns))


def test_wrong_shapes_are_reported(checked):
    with pytest.raises(TypeCheckError):
        jax.eval_shape(checked.Matern(1.0, 1.0).gram, *inputs(D + 1))
