"""Exact regression: evidence, gradient, predictions and leave-one-out against dense NumPy and against GPML."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
import errorband
import sparse_reference
from errorband import GPRegressor, means
from errorband.kernels import (
    ArcSine,
    BSpline,
    Constant,
    Diffusion,
    HalfSpace,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    PoweredExponential,
    Projection,
    RationalQuadratic,
    SquaredExponential,
)
from errorband.likelihoods import Gaussian
from errorband.parameters import Parameter
from errorband.priors import Gamma

RING = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
KERNELS = {
    "SquaredExponential": SquaredExponential([0.8, 1.3], 1.44),
    "isotropic": SquaredExponential(0.9, 1.1),
    "Matern12": Matern([0.8, 1.3], 1.2, nu=0.5),
    "Matern32": Matern([0.8, 1.3], 1.2, nu=1.5),
    "Matern52": Matern([0.8, 1.3], 1.2, nu=2.5),
    "RationalQuadratic": RationalQuadratic([0.8, 1.3], 1.2, 0.7),
    "PoweredExponential": PoweredExponential([0.8, 1.3], 1.2, 1.4),
    "Laplacian": Laplacian([0.8, 1.3], 1.2),
    "Periodic": Periodic([0.8, 1.3], 1.2, [2.5, 3.1]),
    "Linear": Linear([0.5, 0.8]),
    "Constant": Constant(0.7),
    "Polynomial": Polynomial(0.8, 1.2, degree=3),
    "ArcSine": ArcSine([0.8, 1.3], 1.1, 1.4),
    "BSpline": BSpline([0.8, 1.3], 1.2, degree=3),
    "HalfSpace": HalfSpace(4.0, 1.3),
    "Projection": Projection(SquaredExponential(0.8, 1.2), 1, [[0.6], [-0.4]]),
    "sum": SquaredExponential(0.8, 1.2) + Linear(0.4, active_dims=[0]),
    "product": SquaredExponential(0.8, 1.2, active_dims=[0]) * Matern(1.3, 0.9, active_dims=[1]),
    "scaled": 2.5 * (RationalQuadratic(0.8, 1.2, 0.7) + Constant(0.3)),
}
NOISE = 0.0625


@pytest.fixture(scope="module")
def data():
    X, y, X_test = dense.formula_data()
    return X[:40], y[:40], X_test


def fixed(kernel, noise=NOISE, **options):
    return sparse_reference.fixed("exact", kernel, Gaussian(noise), **options)


# Values of each kernel: tests/kernels. A closed form, one that is not stationary, one whose parts add up.
@pytest.mark.parametrize("name", ["SquaredExponential", "Polynomial", "scaled"])
def test_agrees_with_dense_numpy(name, data):
    (X, y, X_test), kernel = data, KERNELS[name]
    noise = np.full(len(y), NOISE)
    model = fixed(kernel).fit(X, y)
    K, k_star, k_star_star = kernel(X), kernel(X, X_test), kernel(X_test)
    assert_allclose(model.log_evidence_, dense.evidence(K, noise, y), rtol=1e-8)
    mean, cov = dense.predict(K, k_star, k_star_star, noise, y)
    got_mean, got_cov = model.predict(X_test, return_cov=True, latent=True)
    assert_allclose(got_mean, mean, rtol=1e-8, atol=1e-9)
    assert_allclose(got_cov, cov, rtol=1e-8, atol=1e-9 * kernel.diag(X_test).max())
    got_mean, std = model.predict(X_test, return_std=True)
    assert_allclose(got_mean, mean, rtol=1e-8, atol=1e-9)
    assert_allclose(std**2, np.diag(cov) + NOISE, rtol=1e-8)
    loo_mean, loo_variance = dense.leave_one_out(K, noise, y)
    loo = model.loo()
    assert_allclose(loo.predictive.mean, loo_mean, rtol=1e-8, atol=1e-9)
    assert_allclose(loo.predictive.variance, loo_variance, rtol=1e-8)


MEANS = {"zero": "zero", "learned": "linear", "flat": means.Linear(marginalize=True)}


@pytest.mark.parametrize(
    ("kernel", "mean"), [(k, "zero") for k in KERNELS] + [(k, m) for k in ("sum",) for m in ("learned", "flat")]
)
def test_gradient_against_finite_differences(kernel, mean, data):
    X, y, _ = data
    objective = fixed(KERNELS[kernel], mean=MEANS[mean]).objective(X, y)
    theta = objective.theta0 + 0.05 * np.sin(np.arange(len(objective.theta0)))
    _, gradient = objective.value_and_gradient(theta)
    numeric = dense.finite_differences(objective, theta, 1e-5)
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_gradient_of_what_stands_for_rounding_errors(data, monkeypatch):
    """Made a thousandth of the diagonal: at its true size no finite difference would see it."""
    monkeypatch.setattr(errorband.conjugate.dense, "_rounding", lambda n: 1e-3)
    X, y, _ = data
    objective = fixed(KERNELS["sum"], noise=1e-4).objective(X, y)
    _, gradient = objective.value_and_gradient(objective.theta0)
    numeric = dense.finite_differences(objective, objective.theta0, 1e-5)
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_adjoint_agrees_with_autodiff(data):
    """The hand-arranged derivative of the evidence against JAX's derivative of the textbook formula."""
    import jax
    import jax.numpy as jnp

    from errorband.parameters import unpack
    from errorband.precision import double_precision

    X, y, _ = data
    objective = fixed(KERNELS["sum"]).objective(X, y)

    def textbook(theta):
        model = unpack(objective.model, theta)
        A = model.latent.kernel.gram(X, X) + model.likelihood.noise_variance * jnp.eye(len(y))
        L = jnp.linalg.cholesky(A)
        z = jax.scipy.linalg.solve_triangular(L, y, lower=True)
        return -0.5 * z @ z - jnp.sum(jnp.log(jnp.diagonal(L))) - 0.5 * len(y) * jnp.log(2 * jnp.pi)

    theta = objective.theta0
    with double_precision():
        expected_value, expected = jax.jit(jax.value_and_grad(textbook))(theta)
    value, gradient = objective.value_and_gradient(theta)
    assert_allclose(value, expected_value, rtol=1e-12)
    assert_allclose(gradient, expected, rtol=1e-9)


def test_diffusion_on_a_ring():
    rng = np.random.default_rng(0)
    nodes = rng.integers(0, 12, 30)[:, None].astype(float)
    y = np.cos(2 * np.pi * nodes[:, 0] / 12) + 0.1 * rng.normal(size=30)
    kernel = Diffusion(RING, 0.8, 2.0)
    model = fixed(kernel, 0.01).fit(nodes, y)
    assert_allclose(model.log_evidence_, dense.evidence(kernel(nodes), np.full(30, 0.01), y), rtol=1e-8)
    # Standardising would destroy node numbers: the column is left alone.
    learned = GPRegressor(Diffusion(RING)).fit(nodes, y)
    ring = np.cos(2 * np.pi * np.arange(12) / 12)
    assert np.abs(learned.predict(np.arange(12.0)[:, None]) - ring).max() < 0.25
    with pytest.raises(ValueError, match="whole, from 0 to 11"):
        learned.predict([[12.0]])


# ---------------------------------------------------------------------------------------------------- GPML 4.2
GPML = json.loads((Path(__file__).parents[1] / "references" / "gpml_formula.json").read_text())
L, S2 = 0.8, 1.44
GPML_CASES = {
    # name: kernel, and d(log ours)/d(log theirs) so that gradients compare: theirs are in log sd, ours in log variance
    "formula exact": (SquaredExponential([L, L], S2), [1, 1, 2]),
    "formula exact covSEiso ": (SquaredExponential(L, S2), [1, 2]),
    "formula exact covMaterniso 1": (Matern(L, S2, nu=0.5), [1, 2]),
    "formula exact covMaterniso 3": (Matern(L, S2, nu=1.5), [1, 2]),
    "formula exact covMaterniso 5": (Matern(L, S2, nu=2.5), [1, 2]),
    "formula exact covRQiso (l,s,alpha)": (RationalQuadratic(L, S2, 0.7), [1, 2, 1]),
    # Their (1, x)ᵀ(1, z) under one scale: our length-scales are √2·ℓ, our variance (π/2)·s².
    "formula exact covNNone (l,s)": (ArcSine(np.sqrt(2) * L, np.sqrt(2) * L, np.pi / 2 * S2), None),
    "formula exact covPeriodic on x1 (l,p,s)": (Periodic(L, S2, 2.5, active_dims=[0]), None),
    "formula-outliers exact": (SquaredExponential([L, L], S2), [1, 1, 2]),
}


@pytest.mark.parametrize("case", GPML_CASES)
def test_agrees_with_gpml(case):
    X, y, X_test = dense.formula_data()
    if "outliers" in case:
        y = y + 3.0 * (np.arange(1, 61) % 10 == 0)
    kernel, chain = GPML_CASES[case]
    expected = GPML[case]
    model = fixed(kernel).fit(X, y)
    assert_allclose(model.log_evidence_, -expected["nlZ"], rtol=1e-6)
    mean, std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(mean, expected["fmu"], rtol=1e-6, atol=1e-9)
    assert_allclose(std**2, expected["fs2"], rtol=1e-6, atol=1e-9)
    assert_allclose(model.predictive(X_test).log_density(np.ones(5)), expected["lp1"], rtol=1e-6)
    objective = model.objective(X, y)
    _, gradient = objective.value_and_gradient(objective.theta0)
    if case.endswith("(l,s)"):  # two length-scales of ours move with their one
        theirs = [gradient[0] + gradient[1], 2 * gradient[2]]
    elif "Periodic" in case:  # their order is ℓ, p, s
        theirs = [gradient[0], gradient[2], 2 * gradient[1]]
    else:
        theirs = np.array(chain) * gradient[:-1]
    assert_allclose(theirs, -np.array(expected["dcov"]), rtol=1e-6)
    assert_allclose(2 * gradient[-1], -expected["dlik"][0], rtol=1e-6)


@pytest.mark.skipif("ERRORBAND_DATA" not in os.environ, reason="set ERRORBAND_DATA to the folder with the data sets")
@pytest.mark.parametrize("case", ["snelson1d", "mcycle", "boston"])
def test_agrees_with_gpml_on_real_data(case):
    folder = Path(os.environ["ERRORBAND_DATA"])
    references = json.loads((folder.parent / "references" / "gpml-4.2.json").read_text())
    expected = references[{"mcycle": "mcycle(x/10,y/50)"}.get(case, case) + " exact"]
    raw = np.load(folder / f"{case}.npz")
    X, y = (raw["X"], raw["y"]) if "X" in raw else (raw["X_train"], raw["y_train"])
    X = X.reshape(len(X), -1).astype(float)
    if case == "mcycle":
        X, y = X / 10, y / 50
    if case == "boston":
        X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
        X_test, X, y = X[300:305], X[:300], y[:300]
    else:
        X_test = np.array({"snelson1d": [0.5, 2, 3.3, 5, 7], "mcycle": [0.5, 1.5, 2.5, 3.5, 5]}[case])[:, None]
    scale = {"snelson1d": 0.6, "mcycle": 0.5, "boston": 3.0}[case]
    model = fixed(SquaredExponential(np.full(X.shape[1], scale), S2)).fit(X, y)
    assert_allclose(model.log_evidence_, -expected["nlZ"], rtol=1e-6)
    mean, std = model.predict(X_test, return_std=True, latent=True)
    assert_allclose(mean, expected["fmu"], rtol=1e-6, atol=1e-8)
    assert_allclose(std**2, expected["fs2"], rtol=1e-6, atol=1e-8)
    objective = model.objective(X, y)
    _, gradient = objective.value_and_gradient(objective.theta0)
    assert_allclose(gradient[:-1] * [*[1] * X.shape[1], 2], -np.array(expected["dcov"]), rtol=1e-5, atol=1e-5)
    assert_allclose(2 * gradient[-1], -expected["dlik"][0], rtol=1e-6)


# ---------------------------------------------------------------------------------------- means, noise, priors, units
def test_marginalised_mean_is_the_limit_of_a_wide_prior(data):
    """A flat prior on the intercept against a constant kernel of huge variance; evidences differ by its log width."""
    X, y, X_test = data
    width = 1e7
    flat = fixed(SquaredExponential(0.8, 1.2), mean=means.Constant(marginalize=True)).fit(X, y)
    wide = fixed(SquaredExponential(0.8, 1.2) + Constant(width)).fit(X, y)
    assert_allclose(flat.predict(X_test), wide.predict(X_test), rtol=1e-5)
    assert_allclose(flat.predict(X_test, return_std=True)[1], wide.predict(X_test, return_std=True)[1], rtol=1e-5)
    assert_allclose(flat.predict(X_test, return_cov=True)[1], wide.predict(X_test, return_cov=True)[1], rtol=1e-4)
    assert_allclose(flat.log_evidence_, wide.log_evidence_ + 0.5 * np.log(2 * np.pi * width), atol=1e-4)
    assert_allclose(flat.loo().predictive.mean, wide.loo().predictive.mean, rtol=1e-4)


@pytest.mark.parametrize("mean", ["constant", "linear", means.Linear(marginalize=True)])
def test_mean_functions_find_a_trend(mean):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 2))
    y = 5 + 3 * X[:, 0] - 2 * X[:, 1] + 0.01 * rng.normal(size=60)
    model = GPRegressor(SquaredExponential(1.0, 0.1), likelihood=Gaussian(0.01), mean=mean, normalize=False).fit(X, y)
    if mean != "constant":  # a linear mean extrapolates the trend
        assert_allclose(model.predict([[4.0, 4.0]]), [9.0], atol=0.3)
    if mean == "linear":
        assert_allclose(model.mean_.coefficients, [5, 3, -2], atol=0.1)
    assert_allclose(model.predict([[0.0, 0.0]]), [5.0], atol=0.05)


def test_noise_variance_per_row_adds_to_the_learned_one(data):
    X, y, X_test = data
    extra = np.linspace(0.01, 0.5, len(y))
    kernel = SquaredExponential(0.8, 1.2)
    model = fixed(kernel).fit(X, y, noise_variance=extra)
    assert_allclose(model.log_evidence_, dense.evidence(kernel(X), NOISE + extra, y), rtol=1e-8)
    mean, _ = dense.predict(kernel(X), kernel(X, X_test), kernel(X_test), NOISE + extra, y)
    assert_allclose(model.predict(X_test), mean, rtol=1e-8, atol=1e-10)
    # In data units whatever the standardisation: one noisy row among twins is all but ignored.
    X2, y2 = np.repeat(np.linspace(0, 1, 20), 2)[:, None], np.tile([0.0, 1000.0], 20) + 1e5
    known = np.tile([1e-2, 1e8], 20)
    assert_allclose(GPRegressor().fit(X2, y2, noise_variance=known).predict([[0.5]]), 1e5, atol=10)


def test_noise_variance_is_checked(data):
    X, y, _ = data
    n, negative, missing = len(y), np.ones(len(y)), np.ones(len(y))
    negative[[2, 5]], missing[7] = -0.5, np.nan
    for bad, told in (
        (np.ones(3), rf"one number per row, shape \({n},\); got shape \(3,\)"),
        (0.1, r"got shape \(\)"),
        (negative, rf"not negative; 2 of {n} are not, the first -0.5 in row 2"),
        (missing, rf"finite and not negative; 1 of {n} are not, the first nan in row 7"),
    ):
        with pytest.raises(ValueError, match=told):
            GPRegressor().fit(X, y, noise_variance=bad)


def test_lower_bound_on_the_noise_holds():
    X = np.linspace(0, 1, 30)[:, None]
    y = np.sin(6 * X[:, 0])  # no noise at all: the search would go far below the bound
    model = GPRegressor(likelihood=Gaussian(min_noise_variance=0.01), normalize=False).fit(X, y)
    assert model.likelihood_.noise_variance >= 0.01
    assert model.likelihood_.noise_variance < 0.011
    with pytest.raises(ValueError, match=r"noise_variance=0.001 of Gaussian must be greater than 0.01"):
        GPRegressor(likelihood=Gaussian(0.001, min_noise_variance=0.01)).fit(X, y)


def test_priors_pull_and_fixed_values_stay(data):
    X, y, _ = data
    free = GPRegressor(SquaredExponential(1.0, 1.0)).fit(X, y)
    kernel = SquaredExponential(Parameter(1.0, prior=Gamma(400.0, 100.0)), Parameter(2.0, fixed=True))
    pulled = GPRegressor(kernel).fit(X, y)
    assert pulled.kernel_.variance == pytest.approx(2.0, rel=1e-12)
    assert abs(pulled.kernel_.lengthscale - 4) < abs(free.kernel_.lengthscale - 4)
    # The evidence reported is the evidence, without the prior.
    again = GPRegressor(pulled.kernel_, likelihood=pulled.likelihood_, optimizer=None).fit(X, y)
    assert_allclose(again.log_evidence_, pulled.log_evidence_, rtol=1e-10)
    assert pulled.fit_result_.value != pytest.approx(pulled.log_evidence_)


def test_map_gradient_includes_the_prior(data):
    X, y, _ = data
    kernel = SquaredExponential(Parameter(1.2, prior=Gamma(3.0, 2.0)), 0.8)
    objective = GPRegressor(kernel).objective(X, y)
    theta = objective.theta0
    _, gradient = objective.value_and_gradient(theta)
    assert_allclose(gradient, dense.finite_differences(objective, theta, 1e-5), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1e-40, 0.0), (1e40, 1e42), (-3.0, 100.0)])
def test_units_do_not_matter(a, b, data):
    """An affine change of targets changes predictions in the same way, and the evidence by its Jacobian."""
    X, y, X_test = data
    plain = GPRegressor().fit(X, y)
    moved = GPRegressor().fit(X * 1e-20 + 3e-20, a * y + b)
    mean, std = plain.predict(X_test, return_std=True)
    moved_mean, moved_std = moved.predict(X_test * 1e-20 + 3e-20, return_std=True)
    assert_allclose((moved_mean - b) / a, mean, rtol=1e-4, atol=1e-4)
    assert_allclose(moved_std / abs(a), std, rtol=1e-4)
    assert_allclose(moved.log_evidence_, plain.log_evidence_ - len(y) * np.log(abs(a)), atol=1e-3)


def test_marginalised_means_that_cannot_be_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="more than 3 rows; there are 3"):
        fixed(SquaredExponential(1.0, 1.0), mean=means.Linear(marginalize=True)).fit(X[:3], y[:3])
    constant = np.column_stack([X[:, 0], np.ones(len(y))])
    with pytest.raises(np.linalg.LinAlgError, match="repeat one another"):
        GPRegressor(mean=means.Linear(marginalize=True)).fit(constant, y)
    with pytest.raises(ValueError, match="needs 3 coefficients"):
        GPRegressor(mean=means.Linear([1.0, 2.0])).fit(X, y)
