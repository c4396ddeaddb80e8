"""Kernels against independent NumPy and SciPy, combinations and columns, and the distance they share."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import interpolate, linalg, special, stats
from scipy.spatial.distance import cdist

from errorband import GPRegressor
from errorband.kernels import (
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
    Scaled,
    SquaredExponential,
    Unskewed,
    heat,
)
from errorband.kernels.base import by_rows, squared_distance
from errorband.kernels.halfspace import _cap_share
from errorband.parameters import Parameter, entries

RNG = np.random.default_rng(20)
X1, Z1 = RNG.normal(size=(7, 1)), np.concatenate([RNG.normal(size=(4, 1)), np.zeros((1, 1))])
X2, Z2 = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2))
X3, Z3 = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
for X, Z in ((X1, Z1), (X2, Z2), (X3, Z3)):
    Z[0] = X[0]  # one pair of equal rows each
LABELS = RNG.integers(0, 3, (8, 3)).astype(float)
ELL2, ELL3 = np.array([0.7, 1.5]), np.array([0.5, 1.0, 2.0])


# ------------------------------------------------------------------------------------------ independent formulas
def matern(X, Z, nu):
    s = np.sqrt(2 * nu) * cdist(X, Z)
    with np.errstate(invalid="ignore"):
        k = 2 ** (1 - nu) / special.gamma(nu) * s**nu * special.kv(nu, s)
    return np.where(s == 0, 1.0, k)


def bspline(X, Z, degree):
    basis = interpolate.BSpline.basis_element(np.arange(degree + 2) - (degree + 1) / 2, extrapolate=False)
    return np.prod(np.nan_to_num(basis(X[:, None] - Z[None]) / basis(0.0)), axis=2)


def periodic(X, Z, ell, period):
    return np.exp(-2 * np.sum((np.sin(np.pi * (X[:, None] - Z[None]) / period) / ell) ** 2, axis=2))


def arcsine(X, Z, ell, bias):
    Lambda = np.diag(np.concatenate([[bias**-2], np.broadcast_to(np.asarray(ell, float) ** -2, X.shape[1])]))
    X, Z = (np.concatenate([np.ones((len(A), 1)), A], axis=1) for A in (X, Z))
    x, z = (1 + 2 * np.einsum("ni,ij,nj->n", A, Lambda, A) for A in (X, Z))
    return 2 / np.pi * np.arcsin(2 * X @ Lambda @ Z.T / np.sqrt(np.outer(x, z)))


def drawn_in(x):
    """Two inputs by Yeo and Johnson's transforms of powers -0.4 and 2."""
    t = (x - [0.3, -0.2]) / [1.5, 0.8]
    return np.array([stats.yeojohnson(t[:1], -0.4)[0] / 0.9, stats.yeojohnson(t[1:], 2.0)[0] / 1.1])


def diffusion(X, Z, adjacency, time):
    K = linalg.expm(time * (adjacency - np.diag(adjacency.sum(axis=0))))
    return K[np.ix_(X[:, 0].astype(int), Z[:, 0].astype(int))]


def pairs(f):
    return lambda X, Z: np.array([[f(x, z) for z in Z] for x in X])


def separated_2d(x, z):
    """Area in which a foot point separates x from z: discs with diameters Ox and Oz, without their lens twice.

    The corrected closed form: the arcs of the lens are twice the angles of the triangle O, x, z at x and at z.
    """

    def segment(a, b):
        u, v = -a, b - a
        theta = 2 * np.arctan2(abs(u[0] * v[1] - u[1] * v[0]), u @ v)
        return a @ a * (np.pi - theta + np.sin(theta))

    return 0.0 if np.array_equal(x, z) else (segment(x, z) + segment(z, x)) / 4


def lens_3d(x, z):
    r, s, c = np.linalg.norm(x) / 2, np.linalg.norm(z) / 2, np.linalg.norm(x - z) / 2
    return np.pi * (r + s - c) ** 2 * (c**2 + 2 * c * (r + s) - 3 * (r - s) ** 2) / (12 * c)


def separated_3d(x, z):
    balls = np.pi / 6 * (np.linalg.norm(x) ** 3 + np.linalg.norm(z) ** 3)
    return 0.0 if np.array_equal(x, z) else balls - 2 * lens_3d(x, z)


def ball(d):
    return np.pi ** (d / 2) / special.gamma(d / 2 + 1)


def separated_nd(x, z):
    """The two caps by the antiderivative with 2F1."""
    d = len(x)
    r, s, c = np.linalg.norm(x) / 2, np.linalg.norm(z) / 2, np.linalg.norm(x - z) / 2
    if c == 0:
        return 0.0
    t = (r**2 - s**2 + c**2) / (2 * c)

    def antiderivative(u, a):
        return u * a ** (d - 1) * special.hyp2f1(0.5, (1 - d) / 2, 1.5, (u / a) ** 2)

    caps = antiderivative(r, r) - antiderivative(t, r) + antiderivative(s, s) - antiderivative(c - t, s)
    return ball(d) * (r**d + s**d) - 2 * ball(d - 1) * caps


GRAPH = np.array([[0, 1, 0, 2], [1, 0, 1, 0], [0, 1, 0, 0.5], [2, 0, 0.5, 0]])
NODES = np.array([[0.0], [3.0], [1.0], [1.0], [2.0]])
X5, Z5 = (A / np.linalg.norm(A, axis=1).max() for A in (RNG.normal(size=(7, 5)), RNG.normal(size=(5, 5))))
SMALL2, SMALL3 = 0.4, 0.3  # into the ball of radius 1.5

REFERENCES = {
    "SquaredExponential": (
        SquaredExponential(0.8, 1.5),
        X3,
        Z3,
        lambda X, Z: 1.5 * np.exp(-0.5 * cdist(X, Z) ** 2 / 0.64),
    ),
    "SquaredExponential ARD": (
        SquaredExponential(ELL3, 1.5),
        X3,
        Z3,
        lambda X, Z: 1.5 * np.exp(-0.5 * cdist(X / ELL3, Z / ELL3, "sqeuclidean")),
    ),
    **{
        f"Matern {nu}": (Matern(ELL2, 0.7, nu=nu), X2, Z2, lambda X, Z, nu=nu: 0.7 * matern(X / ELL2, Z / ELL2, nu))
        for nu in (0.5, 1.5, 2.5)
    },
    "RationalQuadratic": (
        RationalQuadratic(ELL2, 0.7, 1.3),
        X2,
        Z2,
        lambda X, Z: 0.7 * (1 + cdist(X / ELL2, Z / ELL2) ** 2 / 2.6) ** -1.3,
    ),
    **{
        f"PoweredExponential {p}": (
            PoweredExponential(ELL2, 0.7, p),
            X2,
            Z2,
            lambda X, Z, p=p: 0.7 * np.exp(-(cdist(X / ELL2, Z / ELL2) ** p)),
        )
        for p in (0.5, 1.0, 1.7, 2.0)
    },
    "Additive": (
        Additive(ELL3, 0.7, nu=1.5),
        X3,
        Z3,
        lambda X, Z: (
            0.7 * np.mean([matern(X[:, d:][:, :1] / ELL3[d], Z[:, d:][:, :1] / ELL3[d], 1.5) for d in range(3)], axis=0)
        ),
    ),
    "Laplacian": (Laplacian(ELL3, 0.7), X3, Z3, lambda X, Z: 0.7 * np.exp(-cdist(X / ELL3, Z / ELL3, "cityblock"))),
    **{
        f"BSpline {p}": (BSpline(ELL2, 0.7, degree=p), X2, Z2, lambda X, Z, p=p: 0.7 * bspline(X / ELL2, Z / ELL2, p))
        for p in (1, 3, 5, 7)
    },
    "Periodic": (
        Periodic(ELL2, 0.7, [1.3, 2.1]),
        X2,
        Z2,
        lambda X, Z: 0.7 * periodic(X, Z, ELL2, np.array([1.3, 2.1])),
    ),
    "Constant": (Constant(0.7), X2, Z2, lambda X, Z: np.full((len(X), len(Z)), 0.7)),
    "Linear": (Linear(0.7), X2, Z2, lambda X, Z: 0.7 * X @ Z.T),
    "Linear ARD": (Linear([0.7, 1.2]), X2, Z2, pairs(lambda x, z: 0.7 * x[0] * z[0] + 1.2 * x[1] * z[1])),
    **{
        f"Polynomial {p}": (
            Polynomial(0.7, 0.4, degree=p),
            X2,
            Z2,
            pairs(lambda x, z, p=p: 0.7 * (x @ z / 2 + 0.4) ** p),
        )
        for p in (1, 2, 3)
    },
    "Polynomial homogeneous": (Polynomial(0.7, 0.0, degree=3), X2, Z2, pairs(lambda x, z: 0.7 * (x @ z / 2) ** 3)),
    "ArcSine": (ArcSine(0.8, 1.2, 1.5), X1, Z1, lambda X, Z: 1.5 * arcsine(X, Z, 0.8, 1.2)),
    "ArcSine ARD": (ArcSine(ELL3, 1.2, 0.7), X3, Z3, lambda X, Z: 0.7 * arcsine(X, Z, ELL3, 1.2)),
    "HalfSpace 1-D": (HalfSpace(3.0, 0.7), X1, Z1, pairs(lambda x, z: 0.7 * (1 - 2 * abs(x - z)[0] / 6.0))),
    "HalfSpace 2-D": (
        HalfSpace(1.5, 0.7),
        SMALL2 * X2,
        SMALL2 * Z2,
        pairs(lambda x, z: 0.7 * (1 - 2 * separated_2d(x, z) / (np.pi * 1.5**2))),
    ),
    "HalfSpace 3-D": (
        HalfSpace(1.5, 0.7),
        SMALL3 * X3,
        SMALL3 * Z3,
        pairs(lambda x, z: 0.7 * (1 - 2 * separated_3d(x, z) / (ball(3) * 1.5**3))),
    ),
    "HalfSpace 5-D": (
        HalfSpace(1.0, 0.7),
        X5,
        Z5,
        pairs(lambda x, z: 0.7 * (1 - 2 * separated_nd(x, z) / ball(5))),
    ),
    "Categorical": (
        Categorical(0.6, 0.7),
        NODES,
        NODES[:3],
        pairs(lambda x, z: 0.7 * (1.0 if np.all(x == z) else np.exp(-1 / 0.6))),
    ),
    "Hamming": (
        Hamming(ELL3, 0.7),
        LABELS[:5],
        LABELS[3:],
        pairs(lambda x, z: 0.7 * np.exp(-0.5 * np.sum((x != z) / ELL3**2))),
    ),
    "Unskewed": (
        Unskewed(SquaredExponential(0.8, 1.2), *np.array([[-0.4, 2.0], [0.3, -0.2], [1.5, 0.8], [0.9, 1.1]])),
        X2,
        Z2,
        pairs(lambda x, z: 1.2 * np.exp(-0.5 * np.sum((drawn_in(x) - drawn_in(z)) ** 2) / 0.8**2)),
    ),
    "LowRankCategorical": (
        LowRankCategorical(2, X3[:4, :2], [0.3, 0.5, 0.7, 0.9]),
        np.eye(4)[[0, 3, 2, 2]],
        np.eye(4)[[2, 0, 1]],
        pairs(lambda x, z: (X3[:4, :2] @ X3[:4, :2].T + np.diag([0.3, 0.5, 0.7, 0.9]))[x.argmax(), z.argmax()]),
    ),
    "Diffusion": (Diffusion(GRAPH, 0.6, 0.7), NODES, NODES[:3], lambda X, Z: 0.7 * diffusion(X, Z, GRAPH, 0.6)),
    "Projection": (
        Projection(SquaredExponential(ELL2, 0.7), 2, X3[:3, :2]),
        X3,
        Z3,
        lambda X, Z: 0.7 * np.exp(-0.5 * cdist(X @ X3[:3, :2] / ELL2, Z @ X3[:3, :2] / ELL2) ** 2),
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_kernel_against_an_independent_implementation(name):
    k, X, Z, reference = REFERENCES[name]
    assert_allclose(k(X, Z), reference(X, Z), rtol=1e-10, atol=1e-13)
    assert_allclose(k.diag(X), np.diagonal(reference(X, X)), rtol=1e-10)


# ------------------------------------------------------------------------------------------------ particular cases
def test_matern_of_one_half_and_laplacian_agree_on_one_input():
    assert_allclose(Matern(0.7, 1.3, nu=0.5)(X1, Z1), Laplacian(0.7, 1.3)(X1, Z1), rtol=1e-12)


def test_powered_exponential_of_two_is_a_squared_exponential():
    narrower = SquaredExponential(0.7 / np.sqrt(2), 1.3)
    assert_allclose(PoweredExponential(0.7, 1.3, 2.0)(X2, Z2), narrower(X2, Z2), rtol=1e-12)


def test_low_rank_labels_say_which_are_alike():
    """Two of three labels have one function, the third its negative: the model finds the signs, and lends rows."""
    rng = np.random.default_rng(0)
    x, label = rng.uniform(-2, 2, 60), np.repeat([0, 1, 2], [28, 4, 28])
    y = np.array([1.0, 1.0, -1.0])[label] * np.sin(2 * x) + 0.05 * rng.normal(size=60)
    X = np.column_stack([x, np.eye(3)[label]])
    kernel = SquaredExponential(active_dims=[0]) * LowRankCategorical(active_dims=[1, 2, 3])
    model = GPRegressor(kernel).fit(X, y)
    B = LowRankCategorical(1, *(getattr(model.kernel_.right, name) for name in ("weights", "variance")))(np.eye(3))
    alike = B / np.sqrt(np.outer(np.diagonal(B), np.diagonal(B)))
    assert alike[0, 1] > 0.9
    assert alike[0, 2] < -0.9
    at = np.linspace(-2, 2, 9)
    rows = np.column_stack([at, np.tile(np.eye(3)[1], (9, 1))])  # the label with four rows
    assert np.max(np.abs(model.predict(rows) - np.sin(2 * at))) < 0.2
    none = np.column_stack([at, np.zeros((9, 3))])
    assert np.all(model.predict(none, return_std=True)[1] > 0.5)
    with pytest.raises(ValueError, match="reads 0/1 columns, one for each label"):
        LowRankCategorical()([[0.0, 2.0]])


def test_powers_near_zero_leave_the_variance_as_it_is():
    """r^p is zero at zero, however small the power."""
    kernel = PoweredExponential(0.7, 1.3, 1e-3)
    assert_allclose(np.diagonal(kernel(X2)), kernel.diag(X2), rtol=1e-12)


def test_heat_kernel_spreads_unit_mass_and_is_a_semigroup():
    step = 0.05
    grid = np.arange(-10, 10, step)[:, None]
    x, z = np.array([[0.4]]), np.array([[-0.5]])
    k = heat(0.3)
    assert k(grid, x).sum() * step == pytest.approx(1, rel=1e-12)
    assert k(x, grid) @ k(grid, z) * step == pytest.approx(heat(0.6)(x, z), rel=1e-12)
    assert heat(0.3, 2)([[0.4, 0.1]], [[0.0, -0.2]]) == pytest.approx(k([[0.4]], [[0.0]]) * k([[0.1]], [[-0.2]]))


def test_bspline_is_exactly_zero_beyond_its_support():
    k = BSpline(0.5, 1.0, degree=3)
    assert k([[0.0]], [[1.0], [1.5], [-7.0]]).max() == 0.0
    assert k([[0.0]], [[0.99]])[0, 0] > 0


def test_periodic_repeats_exactly():
    k = Periodic(0.6, 1.0, 1.7)
    assert_allclose(k(X1, Z1 + 5 * 1.7), k(X1, Z1), rtol=1e-12)


def test_diffusion_keeps_mass_and_composes():
    nodes = np.arange(4.0)[:, None]
    K = Diffusion(GRAPH, 0.4, 1.0)(nodes)
    assert_allclose(K.sum(axis=1), 1, rtol=1e-12)
    assert (K > 0).all()
    assert_allclose(K @ K, Diffusion(GRAPH, 0.8, 1.0)(nodes), rtol=1e-10)


def _half_space_by_simulation(x, z, radius, n=200_000):
    rng = np.random.default_rng(7)
    direction = rng.normal(size=(n, len(x)))
    foot = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    foot *= radius * rng.random((n, 1)) ** (1 / len(x))  # uniform in the ball
    side = [np.sign(foot @ point - np.sum(foot**2, axis=1)) for point in (x, z)]
    agreement = side[0] * side[1]
    return agreement.mean(), agreement.std() / np.sqrt(n)


@pytest.mark.parametrize("d", [2, 3])
def test_half_space_against_simulation(d):
    for x, z in [
        (X3[0, :d], Z3[1, :d]),
        (X3[1, :d], -X3[1, :d]),
        (X3[2, :d], 0.3 * X3[2, :d]),
        (X3[3, :d], 0 * X3[3, :d]),
    ]:
        mean, error = _half_space_by_simulation(x, z, 4.0)
        assert HalfSpace(4.0, 1.0)([x], [z])[0, 0] == pytest.approx(mean, abs=4 * error)


def test_half_space_on_right_angles_and_parallels():
    """Corners of a square: the lens is cut through a centre. Collinear points: balls are nested or touch."""
    corners = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    expected = pairs(lambda x, z: 1 - 2 * separated_2d(x, z) / (np.pi * 4))(corners[:5], corners[:5])
    K = HalfSpace(2.0, 1.0)(corners)
    assert_allclose(K[:5, :5], expected, rtol=1e-10, atol=1e-13)
    assert_allclose(K[5], 1 - 2 * np.sum(corners**2, axis=1) / 16, rtol=1e-12)  # separated from the origin


def test_half_space_moves_inputs_beyond_the_radius_to_the_sphere():
    k = HalfSpace(1.0, 1.0)
    assert_allclose(k(10 * X2, Z2), k(X2 / np.linalg.norm(X2, axis=1, keepdims=True), Z2), rtol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 30])
def test_cap_of_a_ball_and_its_derivative(d, x64):
    s = np.array([-1.0, -0.9, -1e-9, 0.0, 0.3, 0.999, 1.0])
    share = 0.5 - 0.5 * np.sign(s) * special.betainc(0.5, (d + 1) / 2, s**2)
    assert_allclose(_cap_share(s, d), share, rtol=1e-12, atol=1e-15)
    slope = jax.jit(jax.grad(lambda u: _cap_share(u, d).sum()))(s)
    assert_allclose(slope, -((1 - s**2) ** ((d - 1) / 2)) * ball(d - 1) / ball(d), rtol=1e-12)


def test_arcsine_against_a_network_of_erf_units():
    ell, bias, n = np.array([0.8, 1.4]), 1.2, 200_000
    u = np.random.default_rng(3).normal(size=(n, 3)) / np.array([bias, *ell])
    units = [special.erf(u[:, 0] + u[:, 1:] @ x) for x in (X2[1], Z2[2])]
    product = units[0] * units[1]
    exact = ArcSine(ell, bias, 1.0)(X2[1:2], Z2[2:3])[0, 0]
    assert exact == pytest.approx(product.mean(), abs=4 * product.std() / np.sqrt(n))


# -------------------------------------------------------------------------------------------- sums, products, columns
def test_algebra():
    a, b, c = SquaredExponential(0.7, 1.3), Linear(0.4), Periodic(0.9, 0.8, 1.5)
    A, B, C = a(X2), b(X2), c(X2)
    for kernel, expected in (
        (a + b, A + B),
        (2 * a, 2 * A),
        (a * np.float64(0.5), 0.5 * A),
        (np.float32(0.5) * a, 0.5 * A),
        (a + a, 2 * A),
        (a + b * c + 3 * (a * (b + c)), A + B * C + 3 * A * (B + C)),
    ):
        assert_allclose(kernel(X2), expected, rtol=1e-12)
        assert_allclose(kernel.diag(X2), np.diagonal(expected), rtol=1e-12)


def test_algebra_prints_as_it_was_written():
    a, b = Constant(2.0), Linear(3.0)
    assert repr(a + b * a) == "Constant(variance=2) + Linear(variance=3) * Constant(variance=2)"
    assert repr((a + b) * a) == "(Constant(variance=2) + Linear(variance=3)) * Constant(variance=2)"
    assert repr(0.5 * (a + b)) == "0.5 * (Constant(variance=2) + Linear(variance=3))"
    assert "active_dims=(1,)" in repr(type(a + b)(a, b, active_dims=[1]))
    assert repr(SquaredExponential(Parameter(bounds=(0.1, 2)))) == "SquaredExponential(lengthscale=None in (0.1, 2))"


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf])
def test_scaling_needs_a_positive_number(bad):
    with pytest.raises(ValueError, match="positive"):
        bad * Constant(1.0)


@pytest.mark.parametrize("bad", ["2", None, [1.0], np.ones(2)])
def test_other_operands_are_refused(bad):
    with pytest.raises(TypeError):
        Constant(1.0) * bad
    with pytest.raises(TypeError):
        Constant(1.0) + bad


def test_active_dims_by_position_and_by_name():
    expected = SquaredExponential(0.7, 1.3)(X3[:, [2, 0]], Z3[:, [2, 0]])
    for dims in ([2, 0], (-1, 0), np.array([2, 0]), ["c", "a"], ["c", 0]):
        k = SquaredExponential(0.7, 1.3, active_dims=dims).with_columns(["a", "b", "c"], 3)
        assert k.active_dims == (2, 0)
        assert_allclose(k(X3, Z3), expected, rtol=1e-12)
    for frame in (pd.DataFrame, pl.DataFrame):
        named = SquaredExponential(0.7, 1.3, active_dims=["c", "a"])
        X, Z = (frame(dict(zip("abc", A.T, strict=True))) for A in (X3, Z3))
        assert_allclose(named(X, Z), expected, rtol=1e-12)


def test_active_dims_of_parts_count_within_those_of_the_whole():
    part = SquaredExponential(0.7, 1.3, active_dims="c") + Linear(0.5, active_dims=0)
    whole = type(part)(part.left, part.right, active_dims=["b", "c"]).with_columns(["a", "b", "c"], 3)
    expected = SquaredExponential(0.7, 1.3)(X3[:, 2:], Z3[:, 2:]) + Linear(0.5)(X3[:, 1:2], Z3[:, 1:2])
    assert_allclose(whole(X3, Z3), expected, rtol=1e-12)
    assert_allclose((2.0 * whole)(X3, Z3), 2 * expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("dims", "names", "message"),
    [
        ([3], None, "input 3, but X has 3 columns"),
        ([-4], None, "input -4, but X has 3 columns"),
        (["d"], ["a", "b", "c"], "'d'; X has 'a', 'b', 'c'"),
        (["a"], None, "no column names"),
    ],
)
def test_wrong_columns_are_refused(dims, names, message):
    k = SquaredExponential(0.7, 1.3, active_dims=dims)
    with pytest.raises(ValueError, match=message):
        k.with_columns(names, 3)
    if names is None:
        with pytest.raises(ValueError, match=message):
            k(X3)


def test_empty_active_dims_are_refused():
    with pytest.raises(ValueError, match="empty"):
        Constant(1.0, active_dims=[])


def test_raw_columns_are_those_with_labels():
    k = SquaredExponential(active_dims=[0, 1]) * Diffusion(GRAPH, active_dims=2) + Linear()
    assert_array_equal(k.raw_columns(3), [False, False, True])


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (SquaredExponential([1.0, 2.0, 3.0]), X1, "3 entries for 1 inputs; give one number for all"),
        (SquaredExponential([1.0, 2.0, 3.0]), X2, "3 entries for 2 inputs"),
        (2 * Linear([1.0, 2.0]) + Constant(), X3, "variance of Linear has 2 entries for 3 inputs"),
        (Projection(Linear(), 1, [[1.0], [2.0]]), X3, "2 rows for 3 inputs"),
        (Projection(Linear([1.0, 2.0]), 1), X3, "2 entries for 1 inputs"),
        (Diffusion(GRAPH), X2, "one column of node numbers; it was given 2"),
        (Diffusion(GRAPH), [[0.5]], "whole, from 0 to 3; got 0.5"),
        (Diffusion(GRAPH), [[4]], "whole, from 0 to 3; got 4"),
        (Diffusion(GRAPH), [[np.nan]], "whole"),
        (Constant(), X1[:, 0], "2-D array"),
    ],
)
def test_inputs_a_kernel_cannot_take_are_refused(kernel, X, message):
    with pytest.raises(ValueError, match=message):
        kernel(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SquaredExponential(variance=[1.0, 2.0]), "variance of SquaredExponential must be a number"),
        (lambda: Matern(lengthscale=np.ones((2, 2))), "a number or a vector"),
        (lambda: Constant(Parameter([1.0, 2.0])), "must be a number"),
        (lambda: Matern(nu=1.0), "nu=1.0"),
        (lambda: BSpline(degree=2), "odd"),
        (lambda: Polynomial(degree=0), r"Polynomial\(degree=0\): give a whole number, one or more"),
        (lambda: Polynomial(degree=1.5), "whole number"),
        (lambda: Diffusion([[0, 1], [2, 0]]), "symmetric"),
        (lambda: Diffusion([[0, -1], [-1, 0]]), "non-negative"),
        (lambda: Diffusion([[0, 1, 0], [1, 0, 0]]), "square"),
        (lambda: Projection(Linear(), 2, [[1.0], [2.0]]), r"shape \(inputs, 2\)"),
        (lambda: SquaredExponential("wide"), "number"),
    ],
)
def test_kernels_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_diffusion_warns_of_nothing(recwarn):
    Diffusion(GRAPH, 0.5, 1.0)(NODES)
    assert not recwarn.list


# ------------------------------------------------------------------------------------------------------ projection
def test_projection_starts_at_the_principal_directions():
    X = RNG.normal(size=(40, 3)) * [5.0, 0.1, 1.0] + 7.0
    k = Projection(SquaredExponential(), 2).initialised(X, 1.0)
    projected = X @ k.matrix
    assert_allclose(np.cov(projected.T, bias=True), np.eye(2), atol=1e-8)
    assert abs(k.matrix[0, 0]) > 5 * abs(k.matrix[1:, 0]).max()
    assert k.kernel.lengthscale.shape == (2,)
    wide = Projection(SquaredExponential(), 4).initialised(X[:, :1], 1.0)  # more directions than inputs
    assert np.isfinite(wide(X[:, :1])).all()
    assert (np.abs(wide.matrix).sum(axis=0) > 0).all()


def test_projection_gives_its_kernel_columns_of_its_own():
    k = Projection(SquaredExponential(0.7, 1.0, active_dims=[2]), 3, RNG.normal(size=(2, 3)), active_dims=["b", "a"])
    k = k.with_columns(["a", "b"], 2)
    P = np.asarray(k.matrix)
    assert_allclose(k(X2, Z2), SquaredExponential(0.7, 1.0)(X2[:, ::-1] @ P[:, 2:], Z2[:, ::-1] @ P[:, 2:]), rtol=1e-12)
    Projection(SquaredExponential(), 2).check(X3)  # before the matrix is known
    assert_array_equal(k.raw_columns(2), [False, False])


# --------------------------------------------------------------------------------------------------- starting values
def test_starting_values_come_from_the_data():
    X = np.array([[0.0, 1.0], [4.0, 1.0], [2.0, 1.0]])
    k = SquaredExponential().initialised(X, 2.5)
    assert_array_equal(k.lengthscale, [2.0, 1.0])  # half the range; 1 for a constant column
    assert k.variance == 2.5
    assert SquaredExponential(ard=False).initialised(X, 2.5).lengthscale == 1.5
    assert_array_equal(Periodic().initialised(X, 2.5).period, [1.0, 0.5])
    assert Periodic(ard=False).initialised(X, 2.5).period == 0.75
    assert SquaredExponential(active_dims=[0]).initialised(X, 2.5).lengthscale == 2.0
    assert HalfSpace().initialised(X, 2.5).radius == 1.5 * np.sqrt(17)


def test_the_variance_of_a_product_is_that_of_the_targets():
    k = (SquaredExponential() * Matern() * Periodic() + Constant()).initialised(X2, 50.0)
    assert_allclose(k.diag(X2), 100.0)


def test_starting_values_respect_bounds():
    X = np.array([[0.0], [100.0]])
    for bounds in ((1e-3, 0.1), (60.0, 80.0), (200.0, None), (None, None), (1.0, np.inf)):
        k = SquaredExponential(lengthscale=Parameter(bounds=bounds)).initialised(X, 1.0)
        lower, upper = (b if b is not None else s * np.inf for b, s in zip(bounds, (-1, 1), strict=True))
        assert lower < k.lengthscale.value < upper
        if lower < 50.0 < upper:
            assert k.lengthscale.value == 50.0


# -------------------------------------------------------------------------------------------- distances and memory
@pytest.mark.parametrize("d", [1, 3, 4, 5, 40, 3000])
def test_equal_rows_are_at_distance_zero(d, x64):
    scale = np.random.default_rng(d).lognormal(size=d)
    X = np.random.default_rng(d).normal(size=(20, d)) * scale + 1e3
    for ell in (1.0, 0.7 * scale):
        distance = np.asarray(jax.jit(lambda X, Z, ell: squared_distance(X / ell, Z / ell))(X, X[::-1], ell))
        assert np.diagonal(distance[:, ::-1]).max() == 0.0
        assert (distance >= 0).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distance_is_accurate_far_from_the_origin(d, offset, x64):
    X, Z = (RNG.integers(-(2**20), 2**20, (9, d)) / 2**18 for _ in range(2))  # exact at either offset
    exact = cdist(X, Z, "sqeuclidean")
    assert_allclose(
        jax.jit(squared_distance)(X + offset, Z + offset), exact, rtol=1e-12 if d <= 4 or not offset else 1e-9
    )


@pytest.mark.parametrize("d", [3, 8])
def test_rows_of_a_group_keep_their_distances_however_far_groups_are_apart(d, x64):
    """A length-scale that is tiny beside the range of its input, as searches find for numbers of groups."""
    X = RNG.normal(size=(60, d))
    X[:, 0] = 1e6 * RNG.integers(0, 5, 60)
    found = np.asarray(jax.jit(squared_distance)(X, X))
    assert_allclose(found, cdist(X, X, "sqeuclidean"), rtol=1e-12, atol=1e-18)
    assert np.linalg.eigvalsh(np.exp(-0.005 * found)).min() > -1e-13  # products of inputs leave -1e-5


@pytest.mark.parametrize("d", [1, 3, 6])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distance_gradient_is_that_of_the_naive_formula(d, offset, x64):
    X, Z = RNG.normal(size=(7, d)), RNG.normal(size=(4, d))
    weights = RNG.normal(size=(7, 4))

    def naive(X, Z):
        return jnp.vdot(weights, jnp.sum((X[:, None] - Z[None]) ** 2, axis=2))

    def ours(X, Z):
        return jnp.vdot(weights, squared_distance(X, Z))

    found, expected = (jax.jit(jax.grad(f, (0, 1)))(X + offset, Z + offset) for f in (ours, naive))
    for bar, naive_bar in zip(found, expected, strict=True):
        assert_allclose(bar, naive_bar, rtol=1e-9, atol=1e-8 if offset else 1e-12)


def test_by_rows_is_the_broadcast_formula(x64):
    for n in (1, 130):
        X, Z = RNG.normal(size=(n, 3)), RNG.normal(size=(5, 3))
        assert_allclose(
            by_rows(lambda x, Z: jnp.sum(jnp.abs(x - Z), axis=1), X, Z), cdist(X, Z, "cityblock"), rtol=1e-12
        )


def _largest_array(jaxpr) -> int:
    """Elements of the largest array anywhere in a computation."""
    sizes = [0]
    for equation in jaxpr.eqns:
        sizes += [int(np.prod(v.aval.shape)) for v in equation.outvars]
        sizes += [_largest_array(inner) for inner in jax.tree.leaves(list(map(_inner, equation.params.values())))]
    return max(sizes)


def _inner(parameter):
    """The computations inside a parameter of an equation, hidden from the tree's leaves by nothing but themselves."""
    items = parameter if isinstance(parameter, (tuple, list)) else [parameter]
    return [getattr(i, "jaxpr", i) for i in items if hasattr(getattr(i, "jaxpr", i), "eqns")]


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(np.ones(7), 1.0),
        Matern(np.ones(7), 1.0),
        Laplacian(np.ones(7), 1.0),
        BSpline(np.ones(7), 1.0),
    ],
)
def test_no_array_has_pairs_times_inputs_elements(kernel, x64):
    n, d = 300, 7
    X, bar = np.zeros((n, d)), np.ones((n, n))

    def pull_back(k, X):
        value, pull = jax.vjp(lambda k, X: k.gram(X, X), k, X)
        return value, pull(bar)

    jaxpr = jax.make_jaxpr(pull_back)(kernel, X).jaxpr
    assert n * n <= _largest_array(jaxpr) < n * n * d
    naive = jax.make_jaxpr(lambda X: jnp.sum((X[:, None] - X[None]) ** 2, axis=2))(X).jaxpr
    assert _largest_array(naive) == n * n * d  # the measure sees it where it is


def test_values_are_copied_in():
    scale = np.array([1.0, 2.0])
    k = SquaredExponential(scale, 1.0)
    scale[0] = 50.0
    assert_array_equal(k.lengthscale, [1.0, 2.0])
    assert [e.name for e in entries(Scaled(k, 2.0))] == ["kernel.lengthscale", "kernel.variance"]
