"""Sparse spectra and networks: limits, identities, what is read off them, and noise bounding."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import GPClassifier, GPRegressor
from errorband.approximations import FITC, VFE, WeightSpace
from errorband.cli.models import model_named
from errorband.features import Mixed, Network, Points, SparseSpectrum, TimeFrequency, WindowedFourier
from errorband.kernels import (
    ArcSine,
    Constant,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Projection,
    RationalQuadratic,
    SquaredExponential,
)
from errorband.likelihoods import DoubleExponential, Gaussian, OutlierMixture, StudentT
from errorband.networks import SupervisedReduction, export, fourier_transform
from errorband.parameters import Parameter, plain
from errorband.precision import double_precision
from errorband.training import LBFGS

X, Y, X_NEW = dense.formula_data()
SMOOTH = SquaredExponential([0.8, 1.3], 1.44)
BRIEF, SETTLED = LBFGS(max_iter=8), LBFGS(max_iter=60)  # the latter: nothing is doubted and searched for again


K_fu = eqx.filter_jit(lambda features, kernel, A: features.K_fu(kernel, A))


def prior(features, kernel, A=X, seed=0):
    """Covariance of the function at the rows A under features drawn from the seed."""
    with double_precision():
        phi = np.asarray(K_fu(plain(features.initialised(kernel, A, None, None, seed)), plain(kernel), A))
    return phi @ phi.T


def error(features, kernel, seed=0):
    return float(np.sqrt(np.mean((prior(features, kernel, seed=seed) - kernel(X)) ** 2)))


# ------------------------------------------------------------------------------------------------------------- limits
def test_random_frequencies_converge_to_the_kernel_as_one_over_their_root():
    few, many = (np.mean([error(SparseSpectrum(h), SMOOTH, seed) for seed in range(3)]) for h in (100, 10_000))
    assert 5 < few / many < 20


FIXED = {"fixed": True}
WITH_SPECTRA = {
    "sum": SquaredExponential(0.7, 1.0) + Matern(2.0, 0.5, nu=2.5),
    "sum of columns": SquaredExponential(0.7, 1.0, active_dims=[1]) + Laplacian(2.0, 0.5, active_dims=[0]),
    "product": SquaredExponential(1.5, 1.2) * Matern(0.8, 1.0, nu=1.5, active_dims=[0]),
    "product of sums": (SquaredExponential(1.0, 1.0) + Constant(0.5)) * Matern(2.0, 0.7),
    "scaled": 2.5 * SquaredExponential(1.0, 0.4),
    "projection": Projection(SquaredExponential(1.0, 1.0), rank=1, matrix=[[1.0], [-0.5]]),
    "periodic": Periodic(Parameter(0.9, **FIXED), 1.0, period=2.2),
    "rational": RationalQuadratic(1.0, 1.0, alpha=Parameter(0.7, **FIXED)),
}


@pytest.mark.parametrize("name", WITH_SPECTRA)
def test_spectra_of_sums_products_and_projections(name):
    kernel = WITH_SPECTRA[name]
    SparseSpectrum(10).check(kernel)
    assert error(SparseSpectrum(20_000), kernel) < 0.02
    assert error(Network(20_000, learn=False), kernel) < 0.03  # and cosines with random phases converge as well


def test_a_network_of_error_functions_converges_to_the_arc_sine_kernel():
    kernel = ArcSine([0.8, 1.3], 1.1, 1.44)
    assert error(Network(40_000, "erf"), kernel) < 0.02
    bias = float(np.hypot(0.8, 1.3))
    assert error(Network(100, "erf"), kernel) > 0.05
    found, limit = prior(Network(40_000, "erf"), SMOOTH), ArcSine([0.8, 1.3], bias, 1.44)(X)
    assert np.sqrt(np.mean((found - limit) ** 2)) < 0.02


def test_a_sparse_spectrum_is_a_network_of_pairs_of_cosines():
    W = np.random.default_rng(0).normal(size=(7, 2))
    pairs = np.vstack([np.c_[np.zeros(7), W], np.c_[np.full(7, -0.5 * np.pi), W]])
    assert_allclose(prior(SparseSpectrum(7, W), SMOOTH), prior(Network(14, weights=pairs), SMOOTH), atol=1e-12)


def test_bumps_and_functions_of_ones_own():
    centres = X[:5]
    narrow = 2 / np.sqrt(5) * np.array([0.8, 1.3])
    phi = np.exp(-0.5 * np.sum(((X[:, None] - centres) / narrow) ** 2, axis=2))
    found = prior(Network(5, "bumps", weights=centres), SMOOTH)
    assert_allclose(found, 1.44 / 5 / np.mean(phi**2) * phi @ phi.T, rtol=1e-10)  # of average variance 1.44
    weights = np.random.default_rng(1).normal(size=(6, 3))
    units = np.tanh(X @ (weights[:, 1:] / [0.8, 1.3]).T + weights[:, 0] / np.hypot(0.8, 1.3))
    found = prior(Network(6, jnp.tanh, weights=weights, power=0.3), SMOOTH)
    assert_allclose(found, 1.44 / 6 / 0.3 * units @ units.T, rtol=1e-10)


# ------------------------------------------------------------------------------------------------- what is read off
@pytest.mark.parametrize("basis", ["cosine", "erf", "bumps", np.abs], ids=str)
def test_a_plain_network_predicts_the_mean(basis):
    basis = jnp.abs if basis is np.abs else basis
    model = GPRegressor(approximation=Network(9, basis), random_state=0, optimizer=None).fit(3 * X + 7, Y)
    assert_allclose(export(model).predict(3 * X_NEW + 7), model.predict(3 * X_NEW + 7), rtol=1e-9, atol=1e-10)


def test_what_has_no_network_is_refused():
    with pytest.raises(ValueError, match="Network"):
        export(GPRegressor(optimizer=None).fit(X, Y))
    with pytest.raises(ValueError, match="mean='zero'"):
        export(GPRegressor(approximation=Network(5), mean="constant", optimizer=None).fit(X, Y))
    with pytest.raises(ValueError, match="SparseSpectrum"):
        fourier_transform(GPRegressor(approximation=Network(5), optimizer=None).fit(X, Y))
    with pytest.raises(ValueError, match=r"inputs of shape \(n, 2\); got \(2, 3\)"):
        export(GPRegressor(approximation=Network(9), random_state=0, optimizer=None).fit(X, Y)).predict(
            np.zeros((2, 3))
        )
    with pytest.raises(ValueError, match="retain='most'"):
        SupervisedReduction(retain="most").fit(X, Y)


def test_the_sparse_fourier_transform_of_an_uneven_series():
    """Two waves of known amplitude and phase, in the units of the data, and the mean function from the parts."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(100, 130, 160))
    y = (
        50
        + 4 * np.cos(2 * np.pi * 0.4 * t - 1.0)
        + 1.5 * np.cos(2 * np.pi * 1.1 * t + 2.0)
        + 0.2 * rng.normal(size=160)
    )
    grid = 2 * np.pi * np.arange(-0.1, 1.6, 0.1)[:, None]  # angular, where the length-scale is one
    kernel = SquaredExponential(Parameter(1.0, fixed=True), 9.0)
    model = GPRegressor(kernel, approximation=SparseSpectrum(len(grid), grid), optimizer=None,
                        likelihood=Gaussian(0.04)).fit(t[:, None], y)  # fmt: skip
    found = fourier_transform(model)
    first, second = found.order()[:2]
    assert_allclose(found.frequency[[first, second], 0], [0.4, 1.1])
    assert_allclose(found.amplitude[[first, second]], [4.0, 1.5], atol=0.3)
    assert_allclose(found.phase[[first, second]], [1.0, -2.0], atol=0.15)
    low, high = found.amplitude_interval(0.95)
    assert np.all(low <= high)
    assert np.all(found.phase_std[[first, second]] < 0.2)
    angles = 2 * np.pi * t[:, None] @ found.frequency.T
    mean = found.offset + np.cos(angles) @ found.cosine + np.sin(angles) @ found.sine
    assert_allclose(mean, model.predict(t[:, None]), rtol=1e-8)
    _, cov = model.predict(t[:3, None], return_cov=True, latent=True)
    waves = np.einsum("nr,srj->snj", np.cos(angles[:3]), found.draws[..., :1]) + np.einsum(
        "nr,srj->snj", np.sin(angles[:3]), found.draws[..., 1:]
    )
    assert_allclose(np.var(waves[..., 0], axis=0), np.diag(cov), rtol=0.1)


@pytest.mark.filterwarnings("ignore:The search for hyper")
def test_directions_that_matter():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 4))
    target = np.sin(2 * A[:, 0]) + 0.05 * rng.normal(size=150)
    model = GPRegressor(approximation=Network(8), random_state=0, optimizer=LBFGS(max_iter=40)).fit(A, target)
    found = SupervisedReduction(model, n_components=1, prefit=True).fit(A, target)
    assert abs(np.corrcoef(found.transform(A)[:, 0], A[:, 0])[0, 1]) > 0.97
    assert np.all(np.diff(found.retained_information_) >= 0)
    assert found.retained_information_[-1] == pytest.approx(1.0)
    assert list(found.get_feature_names_out()) == ["direction0"]
    whole = SupervisedReduction(model, n_components=4, prefit=True).fit(A, target)  # nothing is lost with all
    W = export(model).W
    assert_allclose(W, W @ np.linalg.pinv(whole.components_) @ whole.components_, atol=1e-10)


# ------------------------------------------------------------------------------------------------------ noise bounding
@functools.cache
def bounded(kind):
    approximation, likelihood = {
        "cosines": (WeightSpace(Network(12), bound_noise=True), Gaussian()),
        "points": (FITC(5, bound_noise=True), Gaussian()),
        "Laplacian noise": (WeightSpace(SparseSpectrum(6, learn=True), bound_noise=True), DoubleExponential()),
    }[kind]
    search = {"random_state": 0, "optimizer": SETTLED if kind == "cosines" else BRIEF}
    return GPRegressor(approximation=approximation, likelihood=likelihood, **search).fit(X, Y)


@pytest.mark.filterwarnings("ignore:The search for hyper")
@pytest.mark.parametrize("kind", ["cosines", "points", "Laplacian noise"])
def test_the_noise_is_no_less_than_that_of_held_features(kind):
    found = bounded(kind)
    level = found.likelihood_.scale if kind == "Laplacian noise" else found.likelihood_.noise_variance
    assert level > found.noise_bound_ > 0
    if kind == "cosines":
        held = GPRegressor(approximation=Network(12, learn=False), random_state=0, optimizer=SETTLED).fit(X, Y)
        assert float(held.likelihood_.noise_variance) == pytest.approx(found.noise_bound_)
        free = found._model.latent.features.weights
        drawn = held._model.latent.features.weights
        assert not np.allclose(free[:, 1:], drawn[:, 1:])  # learned in the second search


@pytest.mark.filterwarnings("ignore:The search for hyper")
def test_a_trapped_search_with_held_features_is_no_bound():
    """Held error functions ended where noise explains all of the targets, and their variance was the bound."""
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (300, 32))[:, :20]
    target = np.sin(2 * A[:, 3] + A[:, 4]) * (1 + A[:, 14]) + np.cos(3 * A[:, 15]) * A[:, 3]
    target += 0.2 * rng.standard_normal(300)
    approximation = WeightSpace(Network(20, "erf"), bound_noise=True)
    model = GPRegressor(ArcSine(), approximation=approximation, random_state=0, optimizer=LBFGS(max_iter=30))
    assert model.fit(A, target).noise_bound_ < 0.5 * np.var(target)


def test_noise_bounding_needs_noise():
    with pytest.raises(ValueError, match="bound_noise=True needs a likelihood with a noise level"):
        GPClassifier(approximation=WeightSpace(Network(4), bound_noise=True), optimizer=BRIEF).fit(X, Y > 0)


@pytest.mark.filterwarnings("ignore:The search for hyper")
def test_with_many_inputs_an_exact_search_on_some_rows_comes_first(monkeypatch):
    monkeypatch.setattr("errorband.training.exact_first.INPUTS", 2)
    settings = {"approximation": SparseSpectrum(5), "random_state": 0}
    plain_start = GPRegressor(**settings).objective(X, Y)
    monkeypatch.setattr("errorband.training.exact_first.ROWS", 30)
    warm = GPRegressor(**settings).objective(X, Y)
    assert len(warm.data.y) == len(Y)
    assert not np.allclose(warm.theta0, plain_start.theta0)
    fixed = plain(warm.model).latent.features.frequencies  # drawn as before
    assert_allclose(fixed, plain(plain_start.model).latent.features.frequencies)


@pytest.mark.slow
# ---------------------------------------------------------------------------------------------------- other likelihoods
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("likelihood", [StudentT(), OutlierMixture()], ids=lambda l: type(l).__name__)
def test_robust_networks(likelihood):
    """Nothing special is needed: a search, and a prediction that gross errors do not move."""
    wrong = Y.copy()
    wrong[::15] += 20.0
    model = GPRegressor(SMOOTH, approximation=Network(20), likelihood=likelihood, random_state=0, optimizer=BRIEF)
    assert np.sqrt(np.mean((model.fit(X, wrong).predict(X) - Y) ** 2)) < 1.0


@pytest.mark.filterwarnings("ignore")
def test_network_classifiers():
    labels = np.where(Y > 0.1, "up", "down")
    model = GPClassifier(approximation=Network(20, "erf"), random_state=0, optimizer=BRIEF).fit(X, labels)
    assert model.score(X, labels) > 0.8
    assert_allclose(export(model).predict(X), model.predict_latent(X)[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("ssgp(20)", SparseSpectrum(20, learn=True)),
        ("ssgp-fixed", SparseSpectrum()),
        ("mcn(30)", Network(30)),
        ("mmlp", Network(basis="erf")),
        ("fifgp(9)", FITC(9, features=WindowedFourier())),
        ("tfifgp", FITC(features=TimeFrequency())),
        ("bounded(mcn(7))", WeightSpace(Network(7), bound_noise=True)),
        (
            "vfe(8, features=mixed([points(), windowed-fourier()]))",
            VFE(8, features=Mixed([Points(), WindowedFourier()])),
        ),
    ],
)
def test_short_names(name, stands_for):
    assert repr(model_named(name)) == repr(stands_for)
    if name == "fifgp(9)":
        assert repr(model_named("fifgp", "9")) == repr(stands_for)


def test_arguments():
    with pytest.raises(ValueError, match="'cosine', 'erf', 'bumps'"):
        Network(5, "sine")
    with pytest.raises(ValueError, match="above zero"):
        Network(5, power=-1.0)
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        GPRegressor(approximation=Network(5, weights=np.ones((5, 2)))).fit(X, Y)
    with pytest.raises(ValueError, match="at least as many frequencies"):
        GPRegressor(WITH_SPECTRA["sum"], approximation=SparseSpectrum(1)).fit(X, Y)
    with pytest.raises(ValueError, match="alpha of RationalQuadratic cannot be learned"):
        GPRegressor(RationalQuadratic() + SquaredExponential(), approximation=SparseSpectrum(4)).fit(X, Y)
    with pytest.raises(ValueError, match="got Linear"):
        GPRegressor(Linear() + SquaredExponential(), approximation=SparseSpectrum(4)).fit(X, Y)
    with pytest.raises(ValueError, match="lengthscale and a variance"):
        GPRegressor(Linear(), approximation=Network(4, "erf")).fit(X, Y)
