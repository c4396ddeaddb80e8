"""Every registered kind of features keeps the contract, seen through plain NumPy.

A newcomer adds an entry to :data:`CASES`: features with all values given, the kernel that goes with them, and its three
covariances in NumPy. What an approximation makes of them is in ``tests/approximations/test_contract.py``.
"""

import functools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import dense_reference as dense
import errorband
from errorband import GPRegressor
from errorband.approximations import DTC, FITC, VFE, PowerEP, SoR
from errorband.features import (
    FEATURES,
    Features,
    KernelColumns,
    KernelPCA,
    Mixed,
    MultiScale,
    Network,
    Points,
    SparseSpectrum,
    TimeFrequency,
    WindowedFourier,
)
from errorband.inference import EP, Laplace
from errorband.kernels import Linear, Matern, SquaredExponential
from errorband.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian
from errorband.linalg import INDUCING_JITTER
from errorband.parameters import Change, plain
from errorband.precision import double_precision

NOISE = 0.0625
DATA_X, DATA_Y, X_NEW = dense.formula_data()
X, Y = DATA_X[:20], DATA_Y[:20]  # padded to 24
Z = X[::4] + 0.05
KNOWN = 0.1 * np.abs(np.sin(np.arange(20.0)))
SMOOTH = SquaredExponential([0.8, 1.3], 1.44)


class Case(NamedTuple):
    """Features, a kernel for them, and K_uu (None: identity), K_fu and k_ff in NumPy."""

    features: Features
    kernel: Any
    K_uu: Callable[[], np.ndarray] | None
    K_fu: Callable[[np.ndarray], np.ndarray]
    fresh: Callable[[], Features]  # without values
    refused: Any = None  # a kernel without a closed form

    def Q(self, A, B):
        if self.K_uu is None:
            return self.K_fu(A) @ self.K_fu(B).T
        K_uu = self.K_uu()
        K_uu = K_uu + INDUCING_JITTER * np.mean(np.diag(K_uu)) * np.eye(len(K_uu))
        return self.K_fu(A) @ np.linalg.solve(K_uu, self.K_fu(B).T)

    def k_ff(self, A):
        return np.sum(self.K_fu(A) ** 2, axis=1) if self.K_uu is None else self.kernel.diag(A)

    def approximations(self):
        """What the features can be used with, and the share of K − Q that is kept on the diagonal."""
        if self.K_uu is None:
            return {"weight space": (self.features, 0.0)}
        share = {"FITC": (FITC(features=self.features), 1.0)}
        if self.refused is None:  # windows of any kind go through the same code as points
            share["SoR"] = (SoR(features=self.features), 0.0)
        return share


WAVES = np.random.default_rng(0).normal(size=(7, 2))  # frequencies at unit length-scale


def waves(A):
    angles = A / SMOOTH.lengthscale @ WAVES.T
    return np.sqrt(1.44 / 7) * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


WIDTHS = 0.2 + 0.1 * np.arange(10.0).reshape(5, 2)  # of windows, in length-scales


def windows(A, B, c2):
    """σ² ∏ (ℓ/c) exp(−½ Σ (a − b)²/c²) for all pairs, c² of shape (n or 1, m, D)."""
    ell2 = np.asarray(SMOOTH.lengthscale) ** 2
    return 1.44 * np.prod(np.sqrt(ell2 / c2) * np.exp(-((A[:, None] - B) ** 2) / (2 * c2)), axis=2)


def narrow():
    """c² − ℓ² of each window."""
    return (np.asarray(SMOOTH.lengthscale) * WIDTHS) ** 2


def windows_uu():
    return windows(Z, Z, np.asarray(SMOOTH.lengthscale) ** 2 + narrow()[:, None] + narrow()[None])


def windows_fu(A):
    return windows(A, Z, np.asarray(SMOOTH.lengthscale) ** 2 + narrow()[None])


UNITS = np.random.default_rng(1).normal(size=(6, 3))  # a phase and two frequencies of each cosine
OMEGA = np.random.default_rng(2).normal(size=(5, 2))
PHASES, WIDTH, CENTRE = np.linspace(0.3, 5.0, 5), np.array([1.1, 0.6]), np.array([[0.1, -0.2]])


def cosines(A):
    return np.sqrt(2 * 1.44 / 6) * np.cos(A / SMOOTH.lengthscale @ UNITS[:, 1:].T + UNITS[:, 0])


def waves_fu(A, centres=CENTRE):
    """Covariance of the function at A with waves under a window, as printed in Lázaro-Gredilla (2010) but for ℓ²."""
    c2, ell2 = WIDTH**2, np.asarray(SMOOTH.lengthscale) ** 2
    s, d = c2 + ell2, A[:, None] - centres
    size = np.exp(-np.sum((d**2 + c2 * ell2 * OMEGA**2) / (2 * s), axis=2)) * np.prod(np.sqrt(ell2 / s))
    return 1.44 * size * np.cos(PHASES + np.sum(c2 * OMEGA * d / s, axis=2))


def waves_uu(centres=CENTRE):
    """Covariance among waves, as printed but for ½, ℓ² and the shift of the phase."""
    c2, ell2 = WIDTH**2, np.asarray(SMOOTH.lengthscale) ** 2
    q, total = 2 * c2 + ell2, 0.0
    centres = np.broadcast_to(centres, OMEGA.shape)
    delta, w, v = centres[:, None] - centres, OMEGA[:, None], OMEGA[None]
    for sign in (-1.0, 1.0):
        exponent = c2 * ell2 * (w**2 + v**2) + c2**2 * (w + sign * v) ** 2 + delta**2
        phase = PHASES[:, None] + sign * PHASES - np.sum(c2 * delta * (w - sign * v) / q, axis=2)
        total = total + np.exp(-np.sum(exponent / (2 * q), axis=2)) * np.cos(phase)
    return 0.5 * 1.44 * np.prod(np.sqrt(ell2 / q)) * total


def mixed_uu():
    """Two points and the waves."""
    cross = waves_fu(Z[:2])
    return np.block([[SMOOTH(Z[:2]), cross], [cross.T, waves_uu()]])


def mixed_fu(A):
    return np.hstack([SMOOTH(A, Z[:2]), waves_fu(A)])


def unit(fu, uu):
    """The two covariances where each feature is divided by its standard deviation, in units of σ."""
    return (
        lambda A: fu(A) * np.sqrt(1.44 / np.diag(uu())),
        lambda: uu() * 1.44 / np.sqrt(np.outer(np.diag(uu()), np.diag(uu()))),
    )


def windowed(features, fu, uu, fresh):
    K_fu, K_uu = unit(fu, uu)
    return Case(features, SMOOTH, K_uu, K_fu, fresh, ROUGH)


ROUGH = Matern([0.8, 1.3], 1.44, nu=1.5)
AXES = np.linalg.eigh(ROUGH(X[::2]))[1][:, -5:]
PRECISIONS = 0.5 + 0.3 * np.arange(5.0)
CASES: dict[str, Case] = {
    "Points": Case(Points(Z), ROUGH, lambda: ROUGH(Z), lambda A: ROUGH(A, Z), Points),
    "KernelPCA": Case(
        KernelPCA(X[::2], AXES),
        ROUGH,
        lambda: AXES.T @ ROUGH(X[::2]) @ AXES,
        lambda A: ROUGH(A, X[::2]) @ AXES,
        KernelPCA,
    ),
    "KernelColumns": Case(
        KernelColumns(Z, PRECISIONS), ROUGH, None, lambda A: ROUGH(A, Z) / np.sqrt(PRECISIONS), KernelColumns
    ),
    "SparseSpectrum": Case(
        SparseSpectrum(7, WAVES, learn=True), SMOOTH, None, waves, lambda: SparseSpectrum(7), Linear(1.0)
    ),
    "Network": Case(Network(6, weights=UNITS, power=0.5), SMOOTH, None, cosines, lambda: Network(6), Linear(1.0)),
    "MultiScale": windowed(MultiScale(Z, WIDTHS), windows_fu, windows_uu, MultiScale),
    "WindowedFourier": windowed(
        WindowedFourier(OMEGA * SMOOTH.lengthscale, PHASES, WIDTH[None], CENTRE, shares=[1.0]),
        waves_fu,
        waves_uu,
        WindowedFourier,
    ),
    "TimeFrequency": windowed(
        TimeFrequency(OMEGA * SMOOTH.lengthscale, PHASES, WIDTH, Z),
        lambda A: waves_fu(A, Z),
        lambda: waves_uu(Z),
        TimeFrequency,
    ),
    "Mixed": windowed(
        Mixed([Points(Z[:2]), WindowedFourier(OMEGA * SMOOTH.lengthscale, PHASES, WIDTH[None], CENTRE, shares=[1.0])]),
        mixed_fu,
        mixed_uu,
        lambda: Mixed([Points(), TimeFrequency()]),
    ),
}
every_case = pytest.mark.parametrize("name", CASES)
pairs = pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case.approximations()]
)


@functools.cache
def fitted(name, kind, likelihood="gaussian"):
    case = CASES[name]
    approximation, _ = case.approximations()[kind]
    settings = {"approximation": approximation, "optimizer": None, "normalize": False}
    if likelihood == "gaussian":
        return GPRegressor(case.kernel, likelihood=Gaussian(NOISE), **settings).fit(X, Y, KNOWN)
    if likelihood == "sites":
        rule = EP(tolerance=1e-10)
        return GPRegressor(case.kernel, likelihood=Gaussian(NOISE), inference=rule, **settings).fit(X, Y)
    settings["inference"] = EP(tolerance=1e-9)
    return GPRegressor(case.kernel, likelihood=Bernoulli(), **settings).fit(X, np.where(Y > 0.1, 1.0, -1.0))


def effective(name, kind, A):
    """Prior covariance of the function at the rows A under features and approximation."""
    case = CASES[name]
    Q = case.Q(A, A)
    return Q + case.approximations()[kind][1] * np.diag(case.k_ff(A) - np.diag(Q))


def test_every_registered_kind_has_a_case():
    assert set(CASES) == set(FEATURES), "add the new features and their covariances in NumPy to CASES"
    assert all(type(case.features) is FEATURES[name] for name, case in CASES.items())


@eqx.filter_jit
def basis(features, kernel, A):
    return features.whitened(kernel, features.factor(kernel), A)


@eqx.filter_jit
def covariances(features, kernel, A):
    """K_fu, k_ff and K_uu in one program: operations one by one would be as many programs."""
    return features.K_fu(kernel, A), features.k_ff(kernel, A), features.K_uu(kernel)


@every_case
def test_the_same_prior_in_other_units(name):
    case = CASES[name]
    change = Change(np.array([0.5, 3.0]), np.zeros(2), y=7.0)
    with double_precision():
        before = np.asarray(basis(case.features, case.kernel, X))
        after = np.asarray(basis(case.features.in_units(change), case.kernel.in_units(change), change.x * X))
    assert_allclose(after @ after.T, 49.0 * before @ before.T, rtol=1e-6, atol=1e-6)


@every_case
def test_covariances(name):
    case = CASES[name]
    features, kernel = case.features, case.kernel
    with double_precision():
        K_fu, k_ff, K_uu = covariances(features, kernel, X)
        assert features.size == case.K_fu(X).shape[1]
        assert_allclose(K_fu, case.K_fu(X), rtol=1e-9, atol=1e-12)
        assert_allclose(k_ff, case.k_ff(X), rtol=1e-9)
        assert (K_uu is None) == (case.K_uu is None) == features.weight_space
        if K_uu is not None:
            assert_allclose(K_uu, case.K_uu(), rtol=1e-9, atol=1e-12)
            left = kernel.diag(X) - np.diag(case.Q(X, X))
            assert np.all(left > -1e-9)  # u says something about f, and never more than there is


@pairs
def test_gaussian_noise_is_the_dense_model(name, kind):
    """With known noise on top of the learned one: evidence, predictions, leave-one-out."""
    found, S = fitted(name, kind), effective(name, kind, X) + np.diag(NOISE + KNOWN)
    assert_allclose(found.log_evidence_, multivariate_normal(cov=S).logpdf(Y), rtol=1e-8)
    cross = CASES[name].Q(X_NEW, X)
    mean = cross @ np.linalg.solve(S, Y)
    assert_allclose(found.predict(X_NEW), mean, rtol=1e-6, atol=1e-8)
    W = np.linalg.inv(S)
    assert_allclose(found.loo().predictive.mean, Y - (W @ Y) / np.diag(W), rtol=1e-6, atol=1e-8)
    new = CASES[name].Q(X_NEW, X_NEW) if kind != "FITC" else CASES[name].kernel(X_NEW)
    _, cov = found.predict(X_NEW, return_cov=True, latent=True)
    assert_allclose(cov, new - cross @ np.linalg.solve(S, cross.T), rtol=1e-6, atol=1e-7)


@pairs
def test_sites_give_the_closed_form(name, kind):
    found, S = fitted(name, kind, "sites"), effective(name, kind, X) + NOISE * np.eye(20)
    assert_allclose(found.log_evidence_, multivariate_normal(cov=S).logpdf(Y), rtol=1e-7)
    assert_allclose(found.predict(X_NEW), CASES[name].Q(X_NEW, X) @ np.linalg.solve(S, Y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("likelihood", ["gaussian", "classes"])
@pairs
def test_gradients_in_every_parameter(name, kind, likelihood):
    found = fitted(name, kind, likelihood)
    objective = found.objective(X, Y if likelihood == "gaussian" else np.where(Y > 0.1, 1.0, -1.0))
    _, gradient = objective.value_and_gradient(objective.theta0)
    along = dense.random_directions(objective.theta0, 2)
    expected = dense.precise_differences(objective, objective.theta0, along)
    assert_allclose(along @ gradient, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(gradient)))


@pairs
def test_chunks_of_rows_do_not_matter(name, kind, monkeypatch):
    found = fitted(name, kind)
    objective = found.objective(X, Y, KNOWN)
    value, gradient = objective.value_and_gradient(objective.theta0)
    monkeypatch.setattr("errorband.conjugate.low_rank.chunk_rows", lambda n, M: 16)
    monkeypatch.setattr("errorband.rows.MEMORY_BUDGET", 0)  # and V is made again in the second pass
    again, in_chunks = objective.value_and_gradient(objective.theta0)
    assert_allclose(again, value, rtol=1e-10)
    assert_allclose(in_chunks, gradient, rtol=1e-8, atol=1e-9 * np.max(np.abs(gradient)))


@every_case
def test_rows_of_a_file_are_read_in_chunks(name, tmp_path, monkeypatch):
    """The same model from a memory-mapped file, of which a few rows at a time are read, and never all."""
    case = CASES[name]
    kind, (approximation, _) = next(iter(case.approximations().items()))
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=float, shape=X.shape)
    mapped[:] = X
    monkeypatch.setattr("errorband.conjugate.low_rank.chunk_rows", lambda n, M: 16)
    read = []
    monkeypatch.setattr("errorband.estimators.scaling.ScaledRows.__array__", lambda *_: read.append("all"))
    given = {"approximation": approximation, "optimizer": None, "normalize": False}
    found = GPRegressor(case.kernel, likelihood=Gaussian(NOISE), **given).fit(mapped, Y, KNOWN)
    assert_allclose(found.log_evidence_, fitted(name, kind).log_evidence_, rtol=1e-9)
    assert_allclose(found.predict(X_NEW), fitted(name, kind).predict(X_NEW), rtol=1e-7)
    assert read == []


class Elsewhere:
    """Runs chunks as a cluster would: function, state and rows arrive as bytes."""

    def map(self, function, items):
        for item in items:
            yield pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item)))


@pairs
def test_chunks_can_be_sent_elsewhere(name, kind, monkeypatch):
    objective = fitted(name, kind).objective(X, Y, KNOWN)
    value, gradient = objective.value_and_gradient(objective.theta0)
    monkeypatch.setattr("errorband.conjugate.low_rank.chunk_rows", lambda n, M: 16)
    monkeypatch.setattr("errorband.rows.Threads.map", Elsewhere.map)
    again, found = objective.value_and_gradient(objective.theta0)
    assert_allclose(again, value, rtol=1e-10)
    assert_allclose(found, gradient, rtol=1e-8, atol=1e-9 * np.max(np.abs(gradient)))


@every_case
def test_files_and_pickles(name, tmp_path):
    found = fitted(name, next(iter(CASES[name].approximations())))
    found.save(tmp_path / "model.eb")
    for again in (errorband.load(tmp_path / "model.eb"), pickle.loads(pickle.dumps(found))):
        assert np.array_equal(again.predict(X_NEW, return_std=True), found.predict(X_NEW, return_std=True))


@every_case
def test_starting_values_come_from_the_data_and_the_seed(name):
    case = CASES[name]
    n = None if case.features.weight_space else 6
    one, two, other = (case.fresh().initialised(case.kernel, X, n, None, seed) for seed in (0, 0, 1))
    with double_precision():
        first, second, third = (np.asarray(covariances(plain(f), case.kernel, X)[0]) for f in (one, two, other))
    assert np.array_equal(first, second)
    assert first.shape == third.shape
    assert np.all(np.isfinite(first))


@every_case
def test_a_kernel_without_a_closed_form_is_refused(name):
    case = CASES[name]
    if case.refused is None:
        case.features.check(Linear(1.0))  # any kernel will do
        return
    approximation = case.features if case.features.weight_space else FITC(features=case.features)
    with pytest.raises(ValueError, match=f"{name} needs .*SquaredExponential"):
        GPRegressor(case.refused, approximation=approximation, optimizer=None).fit(X, Y)


@every_case
def test_two_latents_with_kernels_of_their_own(name):
    case = CASES[name]
    approximation = case.features if case.features.weight_space else FITC(features=case.features)
    kernels = {"mean": case.kernel, "log_noise": type(case.kernel)(2.0, 0.3)}
    settings = {"approximation": approximation, "inference": Laplace(), "optimizer": None, "normalize": False}
    found = GPRegressor(kernels, likelihood=HeteroscedasticGaussian(NOISE), **settings).fit(X, Y)
    for latent, variance in (("mean", 1.44), ("log_noise", 0.3)):
        mean, std = found.predict([[1e3, 1e3]], return_std=True, latent=latent)
        assert np.all(np.isfinite(mean))
        if not case.features.weight_space:  # far away the prior is back: each latent its own
            assert_allclose(std, np.sqrt(variance), rtol=1e-9)
    assert found.latents_["log_noise"].features.size == case.features.size


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="give them to features"):
        FITC(features=Points(Z), inducing_inputs=Z)
    with pytest.raises(TypeError, match=r"errorband\.features"):
        VFE(features="points")
    with pytest.raises(ValueError, match=r"FITC\(features=Points"):
        GPRegressor(approximation=Points(Z)).fit(X, Y)
    for approximation in (DTC, PowerEP):
        with pytest.raises(ValueError, match=r"shape"):
            GPRegressor(approximation=approximation(features=Points(Z[:, :1]))).fit(X, Y)
