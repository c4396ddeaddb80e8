"""Every registered kernel keeps the contract: a covariance, differentiable, float64, a well-behaved pytree."""

import copy
import functools
import pickle
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from errorband import precision
from errorband.kernels import (
    KERNELS,
    Additive,
    ArcSine,
    BSpline,
    Categorical,
    Constant,
    Diffusion,
    HalfSpace,
    Hamming,
    Laplacian,
    Linear,
    LowRankCategorical,
    Matern,
    Periodic,
    Polynomial,
    PoweredExponential,
    Projection,
    RationalQuadratic,
    SquaredExponential,
    Unskewed,
    White,
)
from errorband.kernels.base import Kernel, compiled_gram
from errorband.parameters import Change, Parameter, check, entries, pack, replace_values, unpack, vector_names
from errorband.precision import double_precision

N = 6  # rows of X and of Z: always the same, so that compiled code is shared
GRAPH = np.array([[0, 1, 0, 2], [1, 0, 1, 0], [0, 1, 0, 0.5], [2, 0, 0.5, 0]])
PROJECTION = [[1.0, 0.2], [-0.5, 0.8], [0.3, -0.4]]

# A newcomer adds itself here: kernels with all values set, and the number of inputs to try each on.
EXAMPLES: dict[str, list[tuple[Kernel, int]]] = {
    "ArcSine": [(ArcSine(0.7, 1.3, 2.0), 1), (ArcSine([0.5, 1.0, 2.0], 0.8, 1.5), 3)],
    "BSpline": [(BSpline([1.5, 0.8], 0.7, degree=p), 2) for p in (1, 3)],
    "Categorical": [(Categorical(0.7, 1.5), 1), (Categorical(1.3, 0.5, active_dims=[0, 2]), 3)],
    "Constant": [(Constant(0.5), 2)],
    "Diffusion": [(Diffusion(GRAPH, 0.7, 1.5), 1), (Diffusion(GRAPH, 0.3, 2.0, active_dims=1), 2)],
    "HalfSpace": [(HalfSpace(2.5, 1.5), 1), (HalfSpace(2.5, 0.8), 2), (HalfSpace(3.0, 1.0), 3)],
    "Hamming": [(Hamming(0.7, 1.3), 1), (Hamming([0.5, 1.0, 2.0], 2.0), 3)],
    "Additive": [(Additive(0.7, 1.3), 1), (Additive([0.5, 1.0, 2.0], 2.0), 3)],
    "Laplacian": [(Laplacian(0.7, 1.3), 1), (Laplacian([0.5, 1.0, 2.0], 2.0), 3)],
    "Linear": [(Linear(0.5), 1), (Linear([0.5, 2.0]), 2)],
    "LowRankCategorical": [
        (LowRankCategorical(1, [[0.7], [-0.4], [1.1]], [0.2, 0.5, 0.3]), 3),
        (LowRankCategorical(2, [[0.7, 0.1], [-0.4, 0.6]], 0.4, active_dims=[0, 2]), 3),
    ],
    "Matern": [(Matern([0.7, 1.5], 1.2, nu=nu), 2) for nu in (0.5, 1.5, 2.5)],
    "Periodic": [(Periodic(0.8, 1.3, 1.7), 1), (Periodic([0.8, 1.2], 0.7, [1.5, 2.5]), 2)],
    "Polynomial": [(Polynomial(0.7, 0.5, degree=3), 2)],
    "PoweredExponential": [(PoweredExponential([0.7, 1.5], 1.2, p), 2) for p in (0.5, 1.0, 1.7)],
    "Product": [(SquaredExponential(0.8, 1.5) * Linear([0.5, 1.5]), 2)],
    "Projection": [(Projection(SquaredExponential([0.8, 1.3], 1.2), 2, PROJECTION), 3)],
    "RationalQuadratic": [(RationalQuadratic([0.7, 1.5], 1.2, 0.8), 2)],
    "Scaled": [(2.5 * Matern(0.8, 1.5, nu=2.5), 1)],
    "SquaredExponential": [(SquaredExponential(0.8, 1.5), 1), (SquaredExponential([0.5, 1.0, 2.0], 0.7), 3)],
    "Sum": [(SquaredExponential(0.8, 1.5, active_dims=0) + Periodic(0.9, 1.1, 2.0, active_dims=[1]), 2)],
    "Unskewed": [(Unskewed(Matern([0.7, 1.3], 1.2), [0.3, 1.8], [0.1, -0.2], [1.5, 0.8], [0.9, 1.1]), 2)],
    "White": [(White(0.7), 2)],
}


class Example(NamedTuple):
    """A kernel with all values set and the number of inputs to try it on."""

    kernel: Kernel
    n_features: int

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs in the kernel's domain: real numbers, nodes of the graph, or at most a single 1 in a row."""
        if isinstance(self.kernel, LowRankCategorical):
            return np.eye(self.n_features)[np.argmax(X, axis=1)]
        return np.floor(np.abs(X)) % len(GRAPH) if isinstance(self.kernel, Diffusion) else X

    def random_inputs(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Generic X and Z, (N, D)."""
        X = np.random.default_rng(seed).normal(size=(2 * N, self.n_features))
        return self.inputs(X[:N]), self.inputs(X[N:])

    def bare(self) -> Kernel:
        """The kernel with no value given."""
        return replace_values(self.kernel, {e.path: None for e in entries(self.kernel)})


ALL = [
    pytest.param(Example(*pair), id=name + (f"-{i}" if i else ""))
    for name, pairs in EXAMPLES.items()
    for i, pair in enumerate(pairs)
]
every_example = pytest.mark.parametrize("example", ALL)


def test_every_registered_kernel_has_an_example():
    assert set(EXAMPLES) == set(KERNELS), "add an example of the new kernel to EXAMPLES"
    for name, pairs in EXAMPLES.items():
        assert all(type(kernel) is KERNELS[name] for kernel, _ in pairs)


@every_example
def test_its_arguments_make_it_again(example):
    assert repr(type(example.kernel)(**example.kernel.get_params(deep=False))) == repr(example.kernel)


# ---------------------------------------------------------------------------------------------------- units
@every_example
def test_the_same_covariance_in_other_units(example):
    k, (X, Z) = example.kernel, example.random_inputs()
    factors = np.where(k.raw_columns(example.n_features), 1.0, [0.5, 3.0, 20.0][: example.n_features])
    change = Change(factors, np.zeros(example.n_features), y=7.0)
    other = k.with_columns(None, example.n_features).in_units(change)
    assert_allclose(other(factors * X, factors * Z), 49.0 * k(X, Z), rtol=1e-9, atol=1e-9)
    again = other.in_units(change.inverse())
    assert_allclose(again(X, Z), k(X, Z), rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------------------------------------- a covariance
@st.composite
def awkward_inputs(draw, n_features: int) -> np.ndarray:
    """Rows at tiny to large scales, some of them equal, perhaps a constant column, perhaps off the origin."""
    X = draw(arrays(float, (2 * N, n_features), elements=st.floats(-3, 3, width=32)))
    X = X * 10.0 ** draw(st.integers(-6, 4))
    rows = draw(arrays(int, 2 * N, elements=st.integers(0, 2 * N - 1)))
    X = X[rows]
    if draw(st.booleans()):
        X[:, draw(st.integers(0, n_features - 1))] = draw(st.floats(-5, 5))
    return X + draw(st.sampled_from([0.0, 0.0, 100.0]))


@every_example
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_covariance(example, data):
    k = example.kernel
    X = example.inputs(data.draw(awkward_inputs(example.n_features)))
    K, diagonal = k(X), k.diag(X)
    assert K.dtype == diagonal.dtype == np.float64
    assert K.shape == (2 * N, 2 * N)
    assert diagonal.shape == (2 * N,)
    assert np.isfinite(K).all()
    size = np.abs(K).max()
    rounding = 1e-7 * size  # that of x/ℓ, by a kernel with a cusp at zero
    assert_allclose(K, K.T, rtol=0, atol=rounding)
    assert_allclose(diagonal, np.diagonal(K), rtol=1e-9, atol=1e-12 * size)
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * np.trace(K)
    X, Z = X[:N], X[N:]
    assert_allclose(k(X, Z), K[:N, N:], rtol=0, atol=rounding)
    assert_allclose(k(Z, X), K[N:, :N], rtol=0, atol=rounding)


@pytest.mark.parametrize("name", KERNELS)
def test_output_is_float64_and_the_users_settings_stay(name):
    example = Example(*EXAMPLES[name][0])
    k = example.kernel
    X = example.inputs(np.arange(2 * N * example.n_features).reshape(2 * N, -1) % 3).astype(int)
    before = dict(jax.config.values)
    expected = k(X.astype(np.float64))
    for given_as in (X, X.astype(np.float32), X.tolist(), jnp.asarray(X, jnp.float32)):
        assert k(given_as).dtype == np.float64
        assert_array_equal(k(given_as), expected)
        assert k.diag(given_as).dtype == np.float64
    assert jax.config.values == before
    assert jnp.ones(1).dtype == jnp.float32


# ------------------------------------------------------------------------------------------------------- gradients
@jax.jit
@functools.partial(jax.value_and_grad, argnums=(1, 2, 3))
def _weighted(template, theta, X, Z, weights):
    """A number that depends on all of the matrix and of the diagonal, and its gradients."""
    k = unpack(template, theta)
    return jnp.vdot(weights[:, :N], k.gram(X, Z)) + jnp.vdot(weights[:, N], k.gram_diag(X))


def _central_difference(f, x, h=1e-5):
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = h
        gradient[i] = (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * h)
    return gradient


@every_example
def test_gradients_against_finite_differences(example, x64):
    k, theta = example.kernel, pack(example.kernel)
    assert len(theta) == len(vector_names(k)) == sum(np.size(e.value) for e in entries(k))
    X, Z = example.random_inputs()
    weights = np.random.default_rng(1).normal(size=(N, N + 1))

    def value(theta, X, Z):
        return float(_weighted(k, theta, X, Z, weights)[0])

    _, (theta_bar, X_bar, Z_bar) = _weighted(k, theta, X, Z, weights)
    assert_allclose(theta_bar, _central_difference(lambda t: value(t, X, Z), theta), rtol=1e-7, atol=1e-8)
    if not isinstance(k, Diffusion):  # nodes of a graph are labels
        assert_allclose(X_bar, _central_difference(lambda x: value(theta, x, Z), X), rtol=1e-7, atol=1e-8)
        assert_allclose(Z_bar, _central_difference(lambda z: value(theta, X, z), Z), rtol=1e-7, atol=1e-8)


@every_example
def test_gradients_are_finite_at_equal_rows_and_at_the_origin(example, x64):
    k, theta = example.kernel, pack(example.kernel)
    X, _ = example.random_inputs()
    X[1] = X[0]
    X[2] = 0.0
    for Z in (X, np.tile(X[:1], (N, 1)), np.zeros_like(X), X * (1 + 1e-15)):
        _, gradients = _weighted(k, theta, X, Z, np.ones((N, N + 1)))
        assert all(np.isfinite(g).all() for g in gradients)


# ---------------------------------------------------------------------------------------------------------- values
@every_example
def test_repr_names_the_kernel_and_its_values(example):
    text = repr(example.kernel)
    for e in entries(example.kernel):
        assert e.path[-1] in text
    leaves = [example.kernel, *example.kernel.children().values()]
    assert any(type(k).__name__ in text for k in leaves)
    assert "Array(" not in text
    assert "\n" not in text


@every_example
def test_is_a_pytree(example):
    leaves, structure = jax.tree.flatten(example.kernel)
    again = jax.tree.unflatten(structure, leaves)
    X, Z = example.random_inputs()
    assert jax.tree.structure(again) == structure
    assert_array_equal(again(X, Z), example.kernel(X, Z))
    assert repr(again) == repr(example.kernel)


@every_example
@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda k: pickle.loads(pickle.dumps(k))])
def test_copies(example, copied):
    again = copied(example.kernel)
    X, Z = example.random_inputs()
    assert type(again) is type(example.kernel)
    assert jax.tree.structure(again) == jax.tree.structure(example.kernel)
    assert_array_equal(again(X, Z), example.kernel(X, Z))


@every_example
def test_is_frozen(example):
    with pytest.raises(AttributeError):
        example.kernel.active_dims = (0,)


@every_example
def test_initialised_sets_every_value_inside_its_constraint(example):
    X = np.concatenate(example.random_inputs())
    for y_variance in (2.5, 1e-8):
        ready = example.bare().initialised(X, y_variance)
        assert all(isinstance(e.value, np.ndarray) and e.value.dtype == np.float64 for e in entries(ready))
        check(ready)
        assert 1e-2 < np.mean(ready.diag(X)) / y_variance < 1e2  # the prior is of the size of the targets
    constant = example.bare().initialised(np.zeros_like(X), 0.0)  # the worst data there are
    check(constant)
    assert np.isfinite(constant.diag(X)).all()
    assert (example.bare().diag(X) > 0).all()  # with values for unit data, so that a bare kernel can be tried


@every_example
def test_initialised_honours_what_is_given(example):
    X, _ = example.random_inputs()
    for e in entries(example.kernel):
        given = replace_values(example.bare(), {e.path: e.value})
        ready = {r.path: r.value for r in entries(given.initialised(X, 2.5))}
        assert_array_equal(ready[e.path], e.value)


def _wrap(kernel, path, parameter):
    def where(k):
        for name in path:
            k = getattr(k, name)
        return k

    return eqx.tree_at(where, kernel, parameter, is_leaf=lambda node: node is None)


@every_example
def test_initialised_keeps_parameter_wrappers(example):
    X, _ = example.random_inputs()
    held = {e.path for e in entries(example.bare().initialised(X, 2.5)) if e.fixed}  # unless something is said of them
    for e in entries(example.kernel):
        for value in (None, e.value):
            wrapped = _wrap(example.bare(), e.path, Parameter(value, fixed=True))
            ready = wrapped.initialised(X, 2.5)
            found = {r.path: r for r in entries(ready)}[e.path]
            assert found.fixed
            assert found.value is not None
            if value is not None:
                assert_array_equal(found.value, value)
            free = [r for r in entries(ready) if r.path not in {e.path, *held}]
            assert len(pack(ready)) == sum(np.size(r.value) for r in free)


@every_example
def test_values_are_no_part_of_the_compiled_code(example):
    X, _ = example.random_inputs()
    k, Z = example.kernel, X  # equal rows: some kernels are zero elsewhere, whatever their values
    before = k(X, Z)
    with double_precision():
        others = [jax.tree.map(np.asarray, unpack(k, pack(k) + shift)) for shift in (0.1, -0.2)]
        copied, compiled = copy.deepcopy(k), precision._programs
        assert compiled > 0
        for other in others:
            assert not np.allclose(compiled_gram(other, X, Z), before)
            other(X, Z)
        copied(X, Z)
        assert precision._programs == compiled


@every_example
def test_wrong_values_are_refused(example):
    X, _ = example.random_inputs()
    for e in entries(example.kernel):
        k = replace_values(example.kernel, {e.path: np.full_like(e.value, np.nan)})
        with pytest.raises(ValueError, match=e.path[-1]):
            k(X)
