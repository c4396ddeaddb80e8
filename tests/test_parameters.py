"""Hyperparameters: constraints, wrappers, and the vector the optimiser sees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from errorband.approximations import FITC
from errorband.kernels import Constant, Linear, Projection, SquaredExponential
from errorband.likelihoods import Gaussian, Ordinal
from errorband.parameters import (
    POSITIVE,
    REAL,
    GreaterThan,
    Interval,
    Module,
    Ordered,
    Packing,
    Parameter,
    check,
    entries,
    fill,
    format_value,
    hyperparameter,
    log_prior,
    pack,
    plain,
    replace_values,
    units,
    unpack,
    vector_names,
)
from errorband.parameters.constraints import BESIDE
from errorband.precision import double_precision
from errorband.priors import Gamma, LogNormal, Normal

CONSTRAINTS = [
    REAL,
    POSITIVE,
    GreaterThan(0.01),
    GreaterThan(-3.0, strict=False),
    Interval(0.0, 1.0),
    Interval(-2.0, 5.0, strict=False),
    Ordered(),
]


class Thresholds(Module):
    """A module with hyperparameters of every kind, and one inside a tuple."""

    cuts: object = hyperparameter(Ordered())
    slope: object = hyperparameter(POSITIVE, ndim=0)
    level: object = hyperparameter(REAL)
    parts: tuple = ()


# ----------------------------------------------------------------------------------------------------- constraints
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@settings(max_examples=30, deadline=None)
@given(raw=arrays(float, 3, elements=st.floats(-12, 12)))
def test_constraints_round_trip(constraint, raw):
    with double_precision():
        value = np.asarray(constraint.forward(raw))
        assert constraint.valid(value)
        assert_allclose(constraint.inverse(value), raw, rtol=1e-6, atol=1e-6)
        assert_allclose(constraint.forward(constraint.inverse(value)), value, rtol=1e-12, atol=1e-12)
        assert_array_equal(constraint.inside(value), value)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_numpy_does_what_jax_does_and_differentiates(constraint, x64):
    raw, bar = np.array([-1.3, 0.4, 2.0]), np.array([0.7, -0.2, 1.1])
    value, pull = jax.vjp(constraint.forward, jnp.asarray(raw))
    assert_allclose(constraint.forward(raw), value, rtol=1e-14)
    assert_allclose(constraint.pull_back(raw, bar), pull(jnp.asarray(bar))[0], rtol=1e-13)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_the_ends_of_the_range_are_harmless(constraint, x64):
    for raw in (np.full(3, BESIDE), np.full(3, -BESIDE), np.full(3, -1e3)):
        value, tangent = jax.jvp(constraint.forward, (raw,), (np.ones(3),))
        assert np.isfinite(value).all()
        assert np.isfinite(tangent).all()


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (REAL, [0.0, -1e300], [np.nan, np.inf]),
        (POSITIVE, [1e-300, 5.0], [0.0, -1.0, np.inf, np.nan]),
        (GreaterThan(2.0), [2.1], [2.0, 1.0]),
        (GreaterThan(2.0, strict=False), [2.0], [1.9]),
        (Interval(0.0, 1.0), [0.5], [0.0, 1.0, -1.0, np.nan]),
        (Interval(0.0, 1.0, strict=False), [0.0, 1.0], [1.1, -0.1, np.nan]),
        (Ordered(), [[1.0, 2.0], [-1.0]], [[1.0, 1.0], [2.0, 1.0], 3.0, [0.0, np.nan]]),
    ],
)
def test_valid(constraint, good, bad):
    assert all(constraint.valid(v) for v in good)
    assert not any(constraint.valid(v) for v in bad)
    assert not isinstance(constraint, Ordered) or not constraint.valid([[1.0, 2.0]])


def test_a_value_on_its_bound_comes_back(x64):
    for constraint, value in (
        (Interval(0.0, 2.0, strict=False), 2.0),
        (Interval(-1.0, 2.0, strict=False), -1.0),
        (GreaterThan(1e-3, strict=False), 1e-3),
    ):
        raw = constraint.inverse(np.asarray(value))
        assert abs(raw) <= abs(BESIDE) + 1.2  # the logarithm of the width
        assert constraint.forward(raw) == pytest.approx(value, rel=1e-15)


@given(st.floats(-10, 10), st.floats(1e-3, 10), st.floats(-100, 100))
def test_inside_moves_a_value_only_if_it_must(lower, width, value):
    for constraint in (GreaterThan(lower), Interval(lower, lower + width)):
        moved = constraint.inside(value)
        assert constraint.valid(moved)
        if constraint.valid(value):
            assert moved == value


# -------------------------------------------------------------------------------------------------------- wrappers
@pytest.mark.parametrize(
    ("bounds", "constraint"),
    [
        (None, POSITIVE),
        ((None, None), REAL),
        ((-np.inf, np.inf), REAL),
        ((0.5, None), GreaterThan(0.5, strict=False)),
        ((0.5, np.inf), GreaterThan(0.5, strict=False)),
        ((1, 3), Interval(1.0, 3.0, strict=False)),
    ],
)
def test_bounds_replace_the_constraint(bounds, constraint):
    (entry,) = entries(Constant(Parameter(2.0, bounds=bounds)))
    assert entry.constraint == constraint


@pytest.mark.parametrize(
    ("bounds", "message"), [((None, 3.0), "lower bound too"), ((3.0, 1.0), "below"), ((2, 2), "below")]
)
def test_impossible_bounds_are_refused(bounds, message):
    with pytest.raises(ValueError, match=message):
        list(entries(Constant(Parameter(2.0, bounds=bounds))))


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3), np.array(3), jnp.asarray(3.0)])
def test_numbers_become_float64_arrays(value):
    held = Constant(value).variance
    assert isinstance(held, np.ndarray)
    assert held.dtype == np.float64
    assert held == 3.0


@pytest.mark.parametrize("value", ["3", True, [1.0, "a"], [[1.0], [1.0, 2.0]], object(), {"a": 1}, [Parameter(1.0)]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="number"):
        Linear(value)


def test_a_module_can_be_made_under_a_trace(x64):
    assert jax.grad(lambda v: Constant(v).gram(np.zeros((2, 1)), np.zeros((2, 1))).sum())(2.0) == 4.0
    texts = []
    jax.jit(lambda v: texts.append(repr(Constant(v))))(2.0)
    assert texts[0].startswith("Constant(variance=")


def test_parameters_print_what_they_say():
    assert repr(Parameter(2.0, fixed=True)) == "2 (fixed)"
    assert repr(Parameter()) == "None"
    text = repr(Parameter([1.0, 2.5], prior=LogNormal(0, 1), bounds=(0.1, 9)))
    assert text == "[1. , 2.5] in (0.1, 9) ~ LogNormal(location=0, scale=1)"


def test_format_value():
    assert format_value(np.pi) == "3.14159"
    assert format_value(np.arange(3.0)) == "[0., 1., 2.]"
    assert "..." in format_value(np.arange(100.0))
    assert format_value(np.eye(2)) == "[[1., 0.], [0., 1.]]"
    assert format_value(np.zeros((20, 30))) == "<20×30 array>"


# ---------------------------------------------------------------------------------------------------------- vector
def _tree():
    return SquaredExponential(
        lengthscale=Parameter([0.5, 2.0], prior=LogNormal(0.0, 1.0)), variance=Parameter(3.0, fixed=True)
    ) * Projection(Linear(0.7), 2, [[1.0, 2.0], [3.0, 4.0]]) + Constant(Parameter(1.5, prior=Gamma(2.0, 3.0)))


def test_the_vector_has_the_free_values_in_the_order_of_the_fields():
    tree = _tree()
    assert vector_names(tree) == [
        "left.left.lengthscale[0]",
        "left.left.lengthscale[1]",
        "left.right.kernel.variance",
        "left.right.matrix[0, 0]",
        "left.right.matrix[0, 1]",
        "left.right.matrix[1, 0]",
        "left.right.matrix[1, 1]",
        "right.variance",
    ]
    assert_allclose(pack(tree), [np.log(0.5), np.log(2), np.log(0.7), 1, 2, 3, 4, np.log(1.5)])


def test_unpack_is_the_inverse_of_pack_and_plain(x64):
    tree = _tree()
    again = unpack(tree, pack(tree))
    assert jax.tree.structure(again) == jax.tree.structure(plain(tree))
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(plain(tree)), strict=True):
        assert_allclose(a, b, rtol=1e-14)
    moved = unpack(tree, pack(tree) + 1.0)
    assert_allclose(moved.left.left.lengthscale, [0.5 * np.e, 2 * np.e])
    assert moved.left.left.variance == 3.0  # fixed
    assert_allclose(moved.left.right.matrix, [[2, 3], [4, 5]])


def test_derivatives_in_the_module_become_derivatives_in_the_vector(x64):
    """With a value of which a part is fixed."""
    module = SquaredExponential(Parameter([0.5, 2.0, 3.0], fixed=[False, True, False]), 1.5)
    theta, bar = pack(module), SquaredExponential(np.array([1.0, 2.0, 3.0]), np.array(4.0))
    assert_allclose(Packing(module).pull_back(theta, bar), [0.5 * 1.0, 3.0 * 3.0, 1.5 * 4.0])
    assert_allclose(unpack(module, theta + 1.0).lengthscale, [0.5 * np.e, 2.0, 3.0 * np.e])


def test_real_values_of_any_size_survive_the_vector(x64):
    k = Projection(Linear(1.0), 1, [[1e5], [-300.0]])
    assert_array_equal(unpack(k, pack(k)).matrix, k.matrix)
    module = Thresholds(cuts=[-500.0, 0.0, 900.0], slope=1.0, level=1e4)
    again = unpack(module, pack(module))
    assert_allclose(again.cuts, module.cuts, atol=1e-12)
    assert again.level == 1e4


def test_unpack_is_traceable_and_differentiable(x64):
    module = Thresholds(cuts=[0.0, 1.0, 3.0], slope=2.0, level=-1.0)

    def f(theta):
        m = unpack(module, theta)
        return m.cuts[2] + m.slope * m.level

    theta = pack(module)
    assert_allclose(theta, [0.0, 0.0, np.log(2), np.log(2), -1.0])
    # cuts[2] = t0 + e^t1 + e^t2; slope = e^t3
    assert_allclose(jax.jit(jax.grad(f))(theta), [1.0, 1.0, 2.0, -2.0, 2.0], rtol=1e-12)


def test_ordered_values_stay_ordered_whatever_the_vector(x64):
    module = Thresholds(cuts=[0.0, 1.0, 3.0], slope=1.0, level=0.0)
    for seed in range(5):
        cuts = unpack(module, 3 * np.random.default_rng(seed).normal(size=5)).cuts
        assert (np.diff(cuts) > 0).all()


def test_hyperparameters_inside_tuples_are_found(x64):
    parts = Constant(2.0), Constant(Parameter(5.0, fixed=True))
    module = Thresholds(cuts=[0.0, 1.0], slope=1.0, level=0.0, parts=parts)
    assert vector_names(module) == ["cuts[0]", "cuts[1]", "slope", "level", "parts.0.variance"]
    moved = unpack(module, pack(module) + np.log(2))
    assert moved.parts[0].variance == pytest.approx(4.0)
    assert moved.parts[1].variance == 5.0


def test_a_tree_with_nothing_free_has_an_empty_vector(x64):
    k = Constant(Parameter(2.0, fixed=True))
    assert pack(k).shape == (0,)
    assert vector_names(k) == []
    assert unpack(k, np.zeros(0)).variance == 2.0
    assert log_prior(k, np.zeros(0)) == 0.0


def test_log_prior_sums_over_the_free_values_that_have_one(x64):
    tree = _tree()
    length, variance = LogNormal(0.0, 1.0), Gamma(2.0, 3.0)
    expected = length.log_density(0.5) + length.log_density(2.0) + variance.log_density(1.5)
    value, gradient = jax.jit(jax.value_and_grad(lambda t: log_prior(tree, t)))(pack(tree))
    assert value == pytest.approx(float(expected), rel=1e-12)
    assert_array_equal(np.asarray(gradient) != 0, [True, True, False, False, False, False, False, True])
    fixed = Constant(Parameter(1.5, prior=Normal(0, 1), fixed=True))
    assert log_prior(fixed, pack(fixed)) == 0.0


# ------------------------------------------------------------------------------------------- replacing and checking
def test_replace_values_keeps_what_a_wrapper_says():
    tree = replace_values(_tree(), {("left", "left", "lengthscale"): np.array([1.0, 1.0]), ("right", "variance"): None})
    assert tree.left.left.lengthscale.prior == LogNormal(0.0, 1.0)
    assert_array_equal(tree.left.left.lengthscale.value, [1.0, 1.0])
    assert tree.left.left.variance.fixed
    assert tree.right.variance.value is None
    assert tree.left.right.matrix is not None


def test_fill_sets_only_what_is_missing():
    k = fill(SquaredExponential(variance=Parameter(prior=Gamma(1.0, 1.0))), {"lengthscale": 0.3, "variance": 0.0})
    assert k.lengthscale == 0.3
    assert k.variance.value == 1.0  # zero is no variance
    assert k.variance.prior == Gamma(1.0, 1.0)
    assert fill(k, {"lengthscale": 9.0}).lengthscale == 0.3


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Constant(-1.0), r"variance=-1 of Constant must be greater than 0\."),
        (
            Constant(1.0) + SquaredExponential([1.0, 0.0]),
            r"right\.lengthscale=\[1., 0.\] of Sum must be greater than 0",
        ),
        (Constant(Parameter(5.0, bounds=(0.1, 2))), "variance=5 of Constant must be between 0.1 and 2"),
        (Constant(Parameter(5.0, bounds=(6, None))), "must be at least 6"),
        (Thresholds(cuts=[1.0, 0.0]), "strictly increasing"),
        (Thresholds(cuts=[0.0], level=np.nan), "level=nan of Thresholds must be finite"),
    ],
)
def test_check_says_what_is_wrong(tree, message):
    with pytest.raises(ValueError, match=message):
        check(tree)


def test_check_accepts_what_is_right_or_missing():
    check(_tree())
    check(Constant())
    check(Constant(Parameter(2.0, bounds=(0.1, 2.0))))
    check(Thresholds(cuts=[0.0, 1.0], level=-4.0))


def test_declared_axes_are_enforced():
    with pytest.raises(ValueError, match=r"slope of Thresholds must be a number; got shape \(2,\)"):
        Thresholds(slope=[1.0, 2.0])
    with pytest.raises(ValueError, match="slope of Thresholds"):
        Thresholds(slope=Parameter([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"noise_variance of Gaussian must be a number; got shape \(2,\)"):
        Gaussian([0.1, 0.2])
    with pytest.raises(ValueError, match=r"inducing_inputs of Points must be a matrix; got shape \(1, 2, 3\)"):
        FITC(inducing_inputs=np.ones((1, 2, 3)))


def test_a_part_of_a_value_can_be_fixed(x64):
    kernel = SquaredExponential(Parameter([1.0, 2.0, 3.0], fixed=[False, True, False]), 1.5)
    vector = pack(kernel)
    assert_allclose(vector, np.log([1.0, 3.0, 1.5]))
    assert len(units(kernel)) == 3
    assert vector_names(kernel) == ["lengthscale[0]", "lengthscale[2]", "variance"]
    changed = jax.jit(unpack)(kernel, vector + 1.0)
    assert_allclose(changed.lengthscale, [np.e, 2.0, 3 * np.e])
    gradient = jax.grad(lambda v: jnp.sum(unpack(kernel, v).lengthscale ** 2))(vector)
    assert_allclose(gradient, [2.0, 18.0, 0.0])
    kept = replace_values(kernel, {("lengthscale",): np.array([4.0, 5.0, 6.0])})
    assert_allclose(pack(kept), np.log([4.0, 6.0, 1.5]))
    assert "fixed in part" in repr(kernel)


def test_flags_that_all_agree_are_one():
    assert Parameter([1.0, 2.0], fixed=np.array([True, True])).fixed is True
    assert Parameter([1.0, 2.0], fixed=[False, False]).fixed is False
    assert Parameter([1.0, 2.0], fixed=[True, False]) == Parameter([1.0, 2.0], fixed=(True, False))
    with pytest.raises(ValueError, match="True, False or an array"):
        Parameter(1.0, fixed="yes")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (SquaredExponential(Parameter([1.0, 2.0], fixed=[True, False, True]), 1.0), "does not broadcast"),
        (Ordinal(3, thresholds=Parameter([0.0, 1.0], fixed=[True, False])), "fix all of it or nothing"),
    ],
)
def test_parts_that_cannot_be_fixed(tree, message):
    with pytest.raises(ValueError, match=message):
        check(tree)


def test_numbers_of_numpy_are_shown_as_numbers():
    assert repr(SquaredExponential(2.0, np.float64(1.25))) == "SquaredExponential(lengthscale=2, variance=1.25)"
