"""Integrals under windows and waves: against quadrature, against points, and the printed formulas that are wrong."""

import equinox as eqx
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import GPRegressor
from errorband.approximations import FITC, PITC, VFE, PowerEP
from errorband.features import Mixed, MultiScale, Points, TimeFrequency, WindowedFourier
from errorband.features.windows import Windows, covariance, covariance_with_function
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Gaussian
from errorband.parameters import plain
from errorband.precision import double_precision

X, Y, X_NEW = dense.formula_data()
ELL, VARIANCE = np.array([0.7, 1.3]), 1.7
KERNEL = SquaredExponential(ELL, VARIANCE)
RNG = np.random.default_rng(5)
M, K, D = 4, 2, 2
MU, V = RNG.normal(size=(M, K, D)), RNG.uniform(0.05, 1.5, (M, K, D))
SHARES, OMEGA, THETA = RNG.uniform(0.2, 1.0, (M, K)), 1.5 * RNG.normal(size=(M, D)), RNG.uniform(0, 6, (M, K))
GRID = np.linspace(-14.0, 14.0, 1401)
STEP = GRID[1] - GRID[0]


with_function, among = eqx.filter_jit(covariance_with_function), eqx.filter_jit(covariance)
both = eqx.filter_jit(lambda features, kernel, A: (features.K_fu(kernel, A), features.K_uu(kernel)))


def window(m, k, d):
    """A window and its wave along one input, as complex numbers on the grid (length-scale one)."""
    away = GRID - MU[m, k, d]
    density = np.exp(-0.5 * away**2 / V[m, k, d]) / np.sqrt(2 * np.pi * V[m, k, d])
    return density * np.exp(1j * OMEGA[m, d] * away)


def by_quadrature(x):
    """Covariances with the function at x and among the features, by sums over a grid in each input."""
    kernel = np.exp(-0.5 * (GRID[:, None] - GRID) ** 2)
    fu, uu = np.zeros((len(x), M)), np.zeros((M, M))
    seen = {(m, k, d): STEP * kernel @ window(m, k, d) for m in range(M) for k in range(K) for d in range(D)}
    at_x = [STEP * np.exp(-0.5 * (x[:, d, None] - GRID) ** 2) for d in range(D)]
    for m in range(M):
        for k in range(K):
            whole = np.prod([at_x[d] @ window(m, k, d) for d in range(D)], axis=0)
            fu[:, m] += SHARES[m, k] * np.real(np.exp(1j * THETA[m, k]) * whole)
            for n in range(M):
                for l in range(K):
                    turns = np.exp(1j * THETA[m, k]), np.exp(1j * THETA[n, l])
                    ends = [(window(n, l, d), seen[m, k, d]) for d in range(D)]
                    both = np.prod([STEP * w @ s for w, s in ends]) * turns[0] * turns[1]
                    apart = np.prod([STEP * np.conj(w) @ s for w, s in ends]) * turns[0] / turns[1]
                    uu[m, n] += SHARES[m, k] * SHARES[n, l] * 0.5 * np.real(both + apart)
    return VARIANCE * fu, VARIANCE * uu


def test_integrals_are_those_of_quadrature():
    """Mixtures of windows of different widths, with waves. Features may be scaled: compare correlations."""
    x = X[:7]
    fu, uu = by_quadrature(x)
    with double_precision():
        windows = Windows(MU, V, SHARES, OMEGA, THETA)
        found_fu = np.asarray(with_function(KERNEL, x * ELL, windows))
        found_uu = np.asarray(among(KERNEL, windows))
    size, found_size = np.sqrt(np.diag(uu)), np.sqrt(np.diag(found_uu))
    assert_allclose(found_uu / np.outer(found_size, found_size), uu / np.outer(size, size), atol=1e-8)
    assert_allclose(found_fu / found_size, fu / size, atol=1e-8)


def test_a_single_window_has_the_variance_of_the_function():
    with double_precision():
        windows = Windows(MU[:, :1], V[:, :1], np.ones((M, 1)), 9 * OMEGA, THETA[:, :1])
        assert_allclose(np.diag(among(KERNEL, windows)), VARIANCE, rtol=1e-12)


def printed(x, centres, omega, phase, c2, ell2):
    """(4.12) to (4.16) as printed: no ½, no ℓ² beside ω², no shift of the phase."""
    s, q, d = c2 + ell2, 2 * c2 + ell2, x[:, None] - centres
    size = np.prod(np.sqrt(ell2 / s)) * np.exp(-np.sum((d**2 + c2 * omega**2) / (2 * s), axis=2))
    fu = size * np.cos(phase + np.sum(c2 * omega * d / s, axis=2))
    delta, uu = centres[:, None] - centres, 0.0
    for sign in (-1.0, 1.0):
        w = omega[:, None] + sign * omega[None]
        exponent = c2 * (omega[:, None] ** 2 + omega[None] ** 2) + c2**2 * w**2 + delta**2
        uu = uu + np.exp(-np.sum(exponent / (2 * q), axis=2)) * np.cos(phase[:, None] + sign * phase)
    return fu, np.prod(np.sqrt(ell2 / q)) * uu


def joint_eigenvalues(K_ff, K_fu, K_uu):
    whole = np.block([[K_ff, K_fu], [K_fu.T, K_uu]])
    return np.linalg.eigvalsh(whole)[0] / np.linalg.eigvalsh(whole)[-1]


@pytest.mark.parametrize("own_centres", [False, True], ids=["FIFGP", "TFIFGP"])
def test_the_joint_covariance_is_positive_where_the_printed_one_is_not(own_centres):
    worst, worst_printed, left = [], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, m = rng.normal(size=(60, 2)), 25
        ell, c = rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5, 2)
        omega, phase = rng.normal(size=(m, 2)) / ell, rng.uniform(0, 2 * np.pi, m)
        centres = rng.normal(size=(m, 2)) if own_centres else np.zeros((m, 2))
        kernel = SquaredExponential(ell, 1.0)
        with double_precision():
            features = TimeFrequency(omega * ell, phase, c, centres)
            K_fu, K_uu = map(np.asarray, both(features, kernel, x))
        worst.append(joint_eigenvalues(kernel(x), K_fu, K_uu))
        fu, uu = printed(x, centres, omega, phase, c**2, ell**2)
        worst_printed.append(joint_eigenvalues(kernel(x), fu, uu))
        left.append(np.min(1.0 - np.sum(fu * np.linalg.solve(uu + 1e-6 * np.eye(m), fu.T).T, axis=1)))
    assert min(worst) > -1e-12
    assert min(worst_printed) < -1e-9  # for one window the printed one is wrong in some trials,
    if own_centres:
        assert max(worst_printed) < -1e-6  # for centres of their own in every one of them,
        assert max(left) < -0.1  # with variances far below zero


def fit(approximation, kernel=KERNEL):
    given = {"likelihood": Gaussian(0.1), "optimizer": None, "normalize": False, "random_state": 0}
    return GPRegressor(kernel, approximation=approximation, **given).fit(X, Y)


def test_windows_of_no_width_are_points():
    """δ features of every kind are FITC (waves under them have no effect but their phase)."""
    Z = X[::6]
    few = fit(FITC(inducing_inputs=Z))
    tiny, still = np.full(2, 1e-5), np.zeros_like(Z)
    for features in (
        MultiScale(Z, np.full(Z.shape, 1e-5)),
        TimeFrequency(still, np.zeros(len(Z)), tiny, Z),
        TimeFrequency(still + 2.0, np.full(len(Z), 0.4), tiny, Z),
        Mixed([Points(Z[:4]), MultiScale(Z[4:], np.full(Z[4:].shape, 1e-5))]),
    ):
        same = fit(FITC(features=features))
        assert_allclose(same.log_evidence_, few.log_evidence_, rtol=1e-6)
        assert_allclose(same.predict(X_NEW), few.predict(X_NEW), rtol=1e-4, atol=1e-5)


def test_pairs_of_phases_integrate_them_out():
    """A cosine and a sine say the same as any two other phases of the wave."""
    omega = 1.2 * RNG.normal(size=(5, 2))
    pair = fit(FITC(features=WindowedFourier(omega, phase="integrated")))
    turned = WindowedFourier(np.tile(omega, (2, 1)), np.repeat([0.7, 2.0], 5))
    assert_allclose(fit(FITC(features=turned)).log_evidence_, pair.log_evidence_, rtol=1e-5)
    assert pair.latents_["f"].features.size == 10


class Scaled(TimeFrequency):
    """Each feature times a number of its own."""

    def K_fu(self, kernel, X):
        return super().K_fu(kernel, X) * TIMES

    def K_uu(self, kernel):
        return TIMES[:, None] * super().K_uu(kernel) * TIMES


TIMES = np.array([0.5, 2.0, 1.0, -1.5, 0.8])  # of one order, as K_uu gets a little noise in units of its diagonal


def test_a_multiple_of_a_feature_says_the_same():
    given = RNG.normal(size=(5, 2)), np.zeros(5), np.full(2, 0.5), X[:5]
    once, scaled = (fit(FITC(features=kind(*given))) for kind in (TimeFrequency, Scaled))
    assert_allclose(scaled.log_evidence_, once.log_evidence_, rtol=1e-6)
    assert_allclose(scaled.predict(X_NEW), once.predict(X_NEW), rtol=1e-5)


def test_waves_bound_the_evidence_and_more_of_them_help():
    """VFE with any features is a lower bound, and adding features never lowers it."""
    exact = fit("exact").log_evidence_
    omega, phases = RNG.normal(size=(20, 2)), RNG.uniform(0, 6, 20)
    found = [fit(VFE(features=WindowedFourier(omega[:m], phases[:m]))).log_evidence_ for m in (5, 20)]
    assert found[0] < found[1] < exact
    assert fit(PowerEP(power=1.0, features=WindowedFourier(omega, phases))).log_evidence_ == pytest.approx(
        fit(FITC(features=WindowedFourier(omega, phases))).log_evidence_
    )


def test_columns_and_starting_values():
    """Kernels of some columns; windows at the data wherever they are; blocks; mixtures of windows."""
    far = np.hstack([X + 100.0, np.ones((len(X), 1))])
    kernel = SquaredExponential(ELL, VARIANCE, active_dims=[0, 1])
    for features in (WindowedFourier(), WindowedFourier(n_windows=2, learn_centres=True), TimeFrequency()):
        ready = features.initialised(kernel, far, 9, None, 0)
        assert ready.size == 9
        with double_precision():
            K_fu = np.asarray(both(plain(ready), kernel, far)[0])
        assert np.max(np.abs(K_fu)) > 0.1
    given = {"likelihood": Gaussian(0.1), "optimizer": None, "random_state": 0}
    blocks = PITC(9, features=WindowedFourier(n_windows=2), block_size=20)
    assert np.all(np.isfinite(GPRegressor(approximation=blocks, **given).fit(far, Y).predict(far)))


def test_what_is_refused():
    with pytest.raises(ValueError, match="'free' or 'integrated'"):
        WindowedFourier(phase="none")
    with pytest.raises(ValueError, match="Mixed takes Points"):
        Mixed([SquaredExponential()])
    with pytest.raises(ValueError, match="at least as many"):
        fit(FITC(1, features=Mixed([Points(), TimeFrequency()])))
    with pytest.raises(ValueError, match=r"frequencies of WindowedFourier must have shape \(M, 2\)"):
        fit(FITC(features=WindowedFourier(np.ones((3, 1)))))
    with pytest.raises(ValueError, match=r"FITC\(n, features=TimeFrequency"):
        TimeFrequency().initialised(KERNEL, X)
