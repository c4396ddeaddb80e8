"""Equations of Lázaro-Gredilla (2010) as they should read, against dense algebra and finite differences.

The errata of ``docs/theory/errata.md``, in NumPy: each corrected form holds, and the printed one does not. Those of the
windowed features, (4.12) to (4.16) and (E.20) to (E.37), are in ``tests/features/test_windows.py``.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

RNG = np.random.default_rng(0)
N, M, D, NOISE, SIGNAL = 12, 5, 2, 0.3, 1.7
X, Y = RNG.normal(size=(N, D)), RNG.normal(size=N)
ELL = np.array([0.8, 1.4])


def kernel(A, B, ell=ELL, signal=SIGNAL):
    return signal * np.exp(-0.5 * np.sum(((A[:, None] - B) / ell) ** 2, axis=2))


def negative_evidence(C):
    return -multivariate_normal(cov=C).logpdf(Y)


def slope(function, at, step=1e-6):
    return (function(at + step) - function(at - step)) / (2 * step)


def test_evidence_of_the_full_process():
    """(1.18), (D.1f): logarithms of the determinant, and + n/2 log 2π."""
    C = kernel(X, X) + NOISE * np.eye(N)
    R = np.linalg.cholesky(C).T
    alpha = np.linalg.solve(C, Y)
    right = 0.5 * Y @ alpha + np.sum(np.log(np.diag(R))) + 0.5 * N * np.log(2 * np.pi)
    printed = 0.5 * Y @ alpha + np.sum(np.diag(R)) - 0.5 * N * np.log(2 * np.pi)
    assert right == pytest.approx(negative_evidence(C))
    assert printed != pytest.approx(negative_evidence(C), rel=0.1)


def test_derivatives_of_the_full_process():
    """(E.67): σ²(tr C⁻¹ − ‖α‖²) in ½ log σ²; (E.68): a derivative of K has no Cholesky factor."""
    value = lambda t: negative_evidence(kernel(X, X) + np.exp(2 * t) * np.eye(N))  # noqa: E731
    C = kernel(X, X) + NOISE * np.eye(N)
    alpha = np.linalg.solve(C, Y)
    right = NOISE * (np.trace(np.linalg.inv(C)) - alpha @ alpha)
    assert right == pytest.approx(slope(value, 0.5 * np.log(NOISE)), rel=1e-6)
    assert -0.5 * right != pytest.approx(slope(value, 0.5 * np.log(NOISE)), rel=0.1)  # as printed
    moved = slope(lambda t: kernel(X, X, ell=np.exp(t)), np.log(0.8))
    assert np.linalg.eigvalsh(moved)[0] < -0.1


def test_spectral_density():
    """§3.1.2.1: frequencies s ~ N(0, (2πℓ)⁻²), not (2πℓ)⁻¹."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    tau, ell = 0.7, 0.8
    wave = lambda variance: weights @ np.cos(2 * np.pi * np.sqrt(variance) * nodes * tau) / weights.sum()  # noqa: E731
    assert wave((2 * np.pi * ell) ** -2) == pytest.approx(np.exp(-0.5 * (tau / ell) ** 2))
    assert wave((2 * np.pi * ell) ** -1) != pytest.approx(np.exp(-0.5 * (tau / ell) ** 2), rel=0.1)


# ------------------------------------------------------------------------------------------------------------ networks
OMEGA = RNG.normal(size=(M, D))


def pairs(ell=ELL, omega=OMEGA):
    """Φ (2h, n) of a sparse spectrum."""
    angles = X @ (omega / ell).T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).T


def spectrum_evidence(Phi):
    return negative_evidence(SIGNAL / M * Phi.T @ Phi + NOISE * np.eye(N))


@pytest.mark.parametrize("what", ["lengthscale", "frequency", "noise"])
def test_derivatives_of_a_sparse_spectrum(what):
    """(E.1): b = y/σ² − Hᵀβ; (E.8): no further 2π."""
    Phi = pairs()
    R = np.linalg.cholesky(Phi @ Phi.T + M * NOISE / SIGNAL * np.eye(2 * M)).T
    H = np.linalg.solve(R.T, Phi) / np.sqrt(NOISE)
    beta = H @ Y
    printed = np.vstack([H, Y / NOISE - H.T @ beta / np.sqrt(NOISE)])
    A = np.vstack([H, Y / NOISE - H.T @ beta])
    F, F_printed = ((Phi @ B.T) @ B - Phi / NOISE for B in (A, printed))
    waves = X @ (OMEGA / ELL).T
    turned = np.concatenate([-np.sin(waves), np.cos(waves)], axis=1).T
    if what == "noise":
        value = lambda t: negative_evidence(SIGNAL / M * Phi.T @ Phi + np.exp(2 * t) * np.eye(N))  # noqa: E731
        at, found = 0.5 * np.log(NOISE), NOISE * np.sum(1 / NOISE - np.sum(A**2, axis=0))
        wrong = NOISE * np.sum(1 / NOISE - np.sum(printed**2, axis=0))
    elif what == "lengthscale":
        value = lambda t: spectrum_evidence(pairs(ell=np.array([np.exp(t), ELL[1]])))  # noqa: E731
        moved = -turned * np.tile(OMEGA[:, 0] / ELL[0], 2)[:, None] * X[:, 0]
        at, found, wrong = np.log(ELL[0]), -SIGNAL / M * np.sum(F * moved), -SIGNAL / M * np.sum(F_printed * moved)
    else:
        value = lambda t: spectrum_evidence(pairs(omega=np.where(np.arange(M * D).reshape(M, D) == 0, t, OMEGA)))  # noqa: E731
        moved = turned * (np.arange(2 * M) % M == 0)[:, None] * X[:, 0] / ELL[0]
        at, found = OMEGA[0, 0], -SIGNAL / M * np.sum(F * moved)
        wrong = 2 * np.pi * found
    assert found == pytest.approx(slope(value, at), rel=1e-5)
    assert wrong != pytest.approx(slope(value, at), rel=0.01)


# ------------------------------------------------------------------------------------------------- features with FITC
def fitc(signal=SIGNAL):
    Z = X[:M] + 0.1
    K_uu, K_fu = kernel(Z, Z, signal=signal), kernel(X, Z, signal=signal)
    V = np.linalg.solve(np.linalg.cholesky(K_uu), K_fu.T)
    return V, signal - np.sum(V**2, axis=0)


def test_derivatives_with_features():
    """(E.12) to (E.16): V = R_uu⁻ᵀK_uf where Φ_s = VΛ^−½ is printed; §E.4.1: r = k − k_uᵀK_uu⁻¹k_u, minus."""
    V, r = fitc()
    assert np.all(r > 0)
    Lambda = (r + NOISE) / NOISE
    Phi, y = V / np.sqrt(Lambda), Y / np.sqrt(Lambda)
    R = np.linalg.cholesky(Phi @ Phi.T + NOISE * np.eye(M)).T
    H = np.linalg.solve(R.T, Phi)
    b = (y - H.T @ (H @ y)) / np.sqrt(NOISE)
    A = np.vstack([H, b]) / np.sqrt(Lambda)
    D_A = np.sum(A**2, axis=0)

    def derivative(V):
        rest = np.sum(D_A * np.sum(V**2, axis=0)) - np.sum((V @ A.T) ** 2)
        return (SIGNAL * np.sum(1 / Lambda - D_A) + rest) / NOISE

    def value(t):
        V, r = fitc(np.exp(2 * t))
        return negative_evidence(V.T @ V + np.diag(r + NOISE))

    expected = slope(value, 0.5 * np.log(SIGNAL))
    assert derivative(V) == pytest.approx(expected, rel=1e-5)
    assert derivative(Phi) != pytest.approx(expected, rel=0.01)


# ------------------------------------------------------------------------------------------------------------ sites
def sparse_prior():
    _, r = fitc()
    K_uu = kernel(X[:M] + 0.1, X[:M] + 0.1)
    R0 = np.linalg.cholesky(np.linalg.inv(K_uu)).T
    return r + 0.1, kernel(X, X[:M] + 0.1), R0


def test_update_of_a_site():
    """(5.32): Δτ σ_j² under the downdate, −Δτ a_j, and no factor d_j in γ."""
    d, P, R = sparse_prior()
    Sigma = np.diag(d) + P @ R.T @ R @ P.T
    mean = np.zeros(N)
    a, gamma = np.zeros(N), np.zeros(M)
    change = RNG.uniform(0.5, 2.0, (2, 6))
    for j, tau, nu in zip(range(6), *change, strict=True):
        p, s2, mu = P[j].copy(), Sigma[j, j], mean[j]
        gain = Sigma[:, j] / (1 + tau * s2)
        mean = mean + gain * (nu - tau * mu)
        Sigma = Sigma - tau * np.outer(gain, Sigma[j])
        v = R.T @ (R @ p)
        R = np.linalg.cholesky(R.T @ R - tau / (1 + tau * s2) * np.outer(v, v)).T
        gamma = gamma + (nu - tau * mu) / (1 + tau * d[j]) * R.T @ (R @ p)
        a[j] = a[j] + (nu - tau * a[j]) * d[j] / (1 + tau * d[j])
        P[j], d[j] = p / (1 + tau * d[j]), d[j] / (1 + tau * d[j])
        np.testing.assert_allclose(np.diag(d) + P @ R.T @ R @ P.T, Sigma, atol=1e-10)
        np.testing.assert_allclose(a + P @ gamma, mean, atol=1e-10)


def test_evidence_of_sites():
    """(D.5c): ν̃ᵀμ without a logarithm, and τ̃ν/τ of the cavity: for sites of Gaussian noise it is the closed form."""
    d, P, R0 = sparse_prior()
    K = np.diag(d) + P @ R0.T @ R0 @ P.T
    tau, nu = np.full(N, 1 / NOISE), Y / NOISE
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    mean = Sigma @ nu
    A = np.eye(M) + R0 @ P.T @ np.diag(tau / (1 + d * tau)) @ P @ R0.T
    R_logs = 0.5 * np.linalg.slogdet(A)[1]  # Σ log R0 − Σ log R, with R = U⁻¹R0 and UUᵀ = A
    tau_c, nu_c = 1 / np.diag(Sigma) - tau, mean / np.diag(Sigma) - nu
    log_m0 = norm.logpdf(Y, nu_c / tau_c, np.sqrt(NOISE + 1 / tau_c))
    last = (nu_c * (tau * nu_c / tau_c - 2 * nu) - nu**2) / (tau + tau_c)
    value = R_logs + 0.5 * np.sum(np.log1p(tau * d)) - 0.5 * np.sum(np.log1p(tau / tau_c))
    value += -0.5 * nu @ mean - np.sum(log_m0) - 0.5 * np.sum(last)
    assert value == pytest.approx(negative_evidence(K + NOISE * np.eye(N)))


def test_derivatives_of_networks_with_sites():
    """(E.57) to (E.64): with Φ' = √(σ²/(mσ_p²)) Φ in all places, and no factor in front."""
    Phi = np.sqrt(SIGNAL / M) * pairs()
    inner = 0.2  # σ² in the prior of the function; the sites are those of further noise
    tau, nu = np.full(N, 1 / NOISE), Y / NOISE
    Lambda = tau / (1 + inner * tau)  # Λ̃⁻¹
    scaled = Phi * np.sqrt(Lambda)
    R = np.linalg.cholesky(np.eye(2 * M) + scaled @ scaled.T).T
    H = np.linalg.solve(R.T, scaled) * np.sqrt(Lambda)
    c = Phi.T @ (Phi @ nu) + inner * nu
    b = nu - (Lambda * c - H.T @ (H @ c))
    A = np.vstack([H, b])
    found = np.sum(np.sum(Phi**2, axis=0) * Lambda) - np.sum((Phi @ A.T) ** 2)

    def value(t):
        moved = np.exp(t) * Phi / np.sqrt(SIGNAL)
        return negative_evidence(moved.T @ moved + (inner + NOISE) * np.eye(N))

    expected = slope(value, 0.5 * np.log(SIGNAL))
    assert found == pytest.approx(expected, rel=1e-5)
    plain = pairs()  # as printed, unscaled
    assert SIGNAL / M * np.sum(np.sum(plain**2, axis=0) * Lambda) - np.sum((plain @ A.T) ** 2) != pytest.approx(
        expected
    )
