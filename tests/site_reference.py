"""Laplace, EP and KL in plain NumPy on a dense prior: fixed points by many damped steps, integrals by sums over a grid.

A prior is ``S`` (n, n), the covariance of what the sites act on, a mean ``m`` (n,), and ``r`` (n,), variance of the
latent values that the likelihood sees and the sites do not. Targets are -1 or 1 under the logistic likelihood, or
classes under the softmax.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

GRID = np.linspace(-10.0, 10.0, 801)


class Found(NamedTuple):
    """Log evidence, and the sites exp(b f - ½ Π f²)."""

    log_evidence: float
    shift: np.ndarray
    precision: np.ndarray


def log_logistic(y, f):
    return -np.logaddexp(0.0, -y * f)


def marginals(S, shift, precision):
    """Mean and covariance of f ~ N(0, S) under the sites, and the log partition function."""
    system = np.eye(len(S)) + precision[:, None] * S
    A = S @ np.linalg.inv(system)
    return A @ shift, A, 0.5 * shift @ A @ shift - 0.5 * np.linalg.slogdet(system)[1]


def expectation(function, mean, variance):
    """E function(f), f ~ N(mean, variance), row by row."""
    weights = np.exp(-0.5 * GRID**2)
    f = mean + np.sqrt(variance) * GRID[:, None]
    return np.sum(weights[:, None] * function(f), axis=0) / weights.sum()


def tilted_moments(y, mean, variance, power):
    """Normaliser, mean and variance of p(y | f)^power N(f; mean, variance)."""
    likelihood = lambda f: np.exp(power * log_logistic(y, f))  # noqa: E731
    Z = expectation(likelihood, mean, variance)
    first = expectation(lambda f: likelihood(f) * f, mean, variance) / Z
    return Z, first, expectation(lambda f: likelihood(f) * (f - first) ** 2, mean, variance) / Z


def laplace(S, m, r, y):
    """Sites from gradient and curvature at the mode (Rasmussen & Williams 2006, §3.4)."""
    a = np.zeros(len(y))
    for _ in range(200):
        f = S @ a
        p = expit(m + f)
        gradient, W = 0.5 * (y + 1.0) - p, p * (1.0 - p)
        a = np.linalg.solve(np.eye(len(y)) + W[:, None] * S, W * f + gradient)
    f = S @ a
    log_det = np.linalg.slogdet(np.eye(len(y)) + W[:, None] * S)[1]
    return Found(np.sum(log_logistic(y, m + f)) - 0.5 * a @ f - 0.5 * log_det, W * f + gradient, W)


def ep(S, m, r, y, power=1.0):
    """Power EP (Bui, Yan & Turner 2017)."""
    shift, precision = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(200):
        h, A, log_partition = marginals(S, shift, precision)
        v = np.diagonal(A)
        cavity_v = 1.0 / (1.0 / v - power * precision)
        cavity_m = cavity_v * (h / v - power * shift)
        wide, centre = cavity_v + r, m + cavity_m
        Z, first, second = tilted_moments(y, centre, wide, power)
        g, nu = (first - centre) / wide, (1.0 - second / wide) / wide  # of log Z: derivative and -second derivative
        left = 1.0 - cavity_v * nu
        shift = 0.5 * shift + 0.5 * (g + nu * cavity_m) / left / power
        precision = 0.5 * precision + 0.5 * nu / left / power
    normaliser = lambda mean, variance: 0.5 * mean**2 / variance + 0.5 * np.log(variance)  # noqa: E731
    each = np.log(Z) + normaliser(cavity_m, cavity_v) - normaliser(h, v)
    return Found(log_partition + np.sum(each) / power, shift, precision)


def kl(S, m, r, y):
    """The Gaussian of least KL(q || p), a lower bound of the evidence."""
    shift, precision = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(200):
        h, A, log_partition = marginals(S, shift, precision)
        v = np.diagonal(A)
        gradient = expectation(lambda f: 0.5 * (y + 1.0) - expit(f), m + h, v + r)
        W = expectation(lambda f: expit(f) * expit(-f), m + h, v + r)
        expected = np.sum(expectation(lambda f: log_logistic(y, f), m + h, v + r))
        divergence = np.sum(shift * h - 0.5 * precision * (h**2 + v)) - log_partition
        shift, precision = 0.5 * shift + 0.5 * (gradient + W * h), 0.5 * precision + 0.5 * W
    return Found(expected - divergence, shift, precision)


def predict(S, cross, new, shift, precision):
    """Mean and covariance at new inputs, less the prior mean; ``cross`` is (n, s)."""
    system = np.eye(len(S)) + precision[:, None] * S
    return cross.T @ np.linalg.solve(system, shift), new - cross.T @ np.linalg.solve(system, precision[:, None] * cross)


def softmax_laplace(S, m, y, n_classes):
    """Log evidence, and shift and precision (n, L), (n, L, L), of L latent functions; the first has the mean m."""
    n, L = len(y), n_classes
    K, prior_mean = np.kron(S, np.eye(L)), np.zeros((n, L))
    prior_mean[:, 0] = m
    a = np.zeros(n * L)
    for _ in range(200):
        f = (K @ a).reshape(n, L)
        p = softmax(prior_mean + f, axis=1)
        gradient = np.eye(L)[y.astype(int)] - p
        W = p[:, :, None] * np.eye(L) - p[:, :, None] * p[:, None, :]
        whole = np.einsum("nij,nm->nimj", W, np.eye(n)).reshape(n * L, n * L)
        a = np.linalg.solve(np.eye(n * L) + whole @ K, whole @ f.ravel() + gradient.ravel())
    f = (K @ a).reshape(n, L)
    total = prior_mean + f
    log_p = np.sum(total[np.arange(n), y.astype(int)] - logsumexp(total, axis=1))
    log_det = np.linalg.slogdet(np.eye(n * L) + whole @ K)[1]
    return log_p - 0.5 * a @ f.ravel() - 0.5 * log_det, np.einsum("nij,nj->ni", W, f) + gradient, W


def predict_latents(S, cross, new, shift, precision):
    """Means (s, L) and covariances (s, L, L) at each new input, less the prior mean."""
    (n, L), s = shift.shape, len(new)
    Pi = np.einsum("nij,nm->nimj", precision, np.eye(n)).reshape(n * L, n * L)
    K, k = np.kron(S, np.eye(L)), np.kron(cross, np.eye(L))
    system = np.eye(n * L) + Pi @ K
    mean = (k.T @ np.linalg.solve(system, shift.ravel())).reshape(s, L)
    cov = np.kron(new, np.eye(L)) - k.T @ np.linalg.solve(system, Pi @ k)
    return mean, np.einsum("slsk->slk", cov.reshape(s, L, s, L))
