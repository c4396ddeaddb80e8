"""A slow, plain NumPy Gaussian process to compare with: explicit inverses, nothing clever."""

import numpy as np


def evidence(K, noise, y, H=None):
    """Log marginal likelihood of y ~ N(0, K + noise), with a flat prior on coefficients of H if given."""
    A = K + np.diag(noise)
    n = len(y)
    if H is None:
        return -0.5 * y @ np.linalg.solve(A, y) - 0.5 * np.linalg.slogdet(A)[1] - 0.5 * n * np.log(2 * np.pi)
    inverse = np.linalg.inv(A)
    G = H.T @ inverse @ H
    P = inverse - inverse @ H @ np.linalg.solve(G, H.T @ inverse)
    terms = y @ P @ y + np.linalg.slogdet(A)[1] + np.linalg.slogdet(G)[1] + (n - H.shape[1]) * np.log(2 * np.pi)
    return -0.5 * terms


def predict(K, k_star, k_star_star, noise, y):
    """Latent mean and covariance at test points: k_star is (n, s)."""
    inverse = np.linalg.inv(K + np.diag(noise))
    return k_star.T @ inverse @ y, k_star_star - k_star.T @ inverse @ k_star


def leave_one_out(K, noise, y):
    """Mean and variance of each target given the others, by n refits."""
    means, variances = [], []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        m, v = predict(K[np.ix_(rest, rest)], K[rest, i : i + 1], K[i : i + 1, i : i + 1], noise[rest], y[rest])
        means.append(m[0])
        variances.append(v[0, 0] + noise[i])
    return np.array(means), np.array(variances)


def formula_data():
    """The 60 points of the GPML reference figures: inputs, targets, test inputs."""
    i = np.arange(1, 61)
    X = 4 * np.mod(np.outer(i, [0.61803398875, 0.7548776662]), 1.0) - 2
    y = np.sin(2 * X[:, 0]) + 0.5 * np.cos(3 * X[:, 1]) + 0.3 * np.sin(17 * i)
    return X, y, np.array([[0.0, 0], [1, -1], [-1.5, 0.5], [1.9, 1.9], [3, 3]])


def finite_differences(objective, theta, step):
    """Central differences of an objective's value in each coordinate."""
    return central_differences(objective, theta, step * np.eye(len(theta))) / step


def central_differences(objective, theta, moves):
    """Half of the difference of an objective's value across each of the moves."""
    value = lambda t: objective.value_and_gradient(t)[0]  # noqa: E731
    return np.array([0.5 * (value(theta + move) - value(theta - move)) for move in moves])


def precise_differences(objective, theta, directions, step=1e-4):
    """Central differences of fourth order: with so large a step the round-off of the values does no harm.

    Along some directions only. If these are random, a derivative that is wrong in any coordinate is seen in all.
    """
    value = lambda t: objective.value_and_gradient(t)[0]  # noqa: E731
    slope = lambda d, h: (value(theta + h * d) - value(theta - h * d)) / (2 * h)  # noqa: E731
    far, near = (np.array([slope(d, h) for d in directions]) for h in (2 * step, step))
    return (4 * near - far) / 3


def random_directions(theta, number):
    """Some directions, of about unit length in every coordinate."""
    return np.random.default_rng(0).normal(size=(number, len(theta)))
