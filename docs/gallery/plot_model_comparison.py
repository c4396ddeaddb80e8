"""Bayes' rule from two small numbers to the order of a polynomial, and what priors on functions believe."""

import numpy as np
from style import BLACK, BLUE, GREY, ORANGE, plt, save

from errorband import GPRegressor, compare_evidence
from errorband.features import KernelColumns
from errorband.kernels import Constant, Linear, Polynomial, SquaredExponential
from errorband.likelihoods import Gaussian


def posterior(prior, likelihoods):
    """P(hypothesis | observation) from prior probabilities and probabilities of the observation."""
    joint = np.asarray(prior) * np.asarray(likelihoods)
    return joint / joint.sum()


def cubic(seed=0, n=30):
    """A cubic, seen through noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-1.5, 1.5, n)
    return x[:, None], x**3 - x + 0.2 * rng.standard_normal(n)


def effective_kernel(x, z, m=200_000, seed=0):
    """Covariance of m^-1/2 Σ a_i k(u_i, ·) over random a and u ~ N(0, 1), k(u, x) = exp(−(u − x)²/2), by simulation."""
    u = np.random.default_rng(seed).standard_normal(m)
    return np.mean(np.exp(-0.5 * (u - x) ** 2 - 0.5 * (u - z) ** 2))


def main():
    ill = posterior([0.001, 0.999], [1.0, 0.01])[0]
    guilty = posterior([1 / 20, 19 / 20], [0.9, 0.1])[0]
    print(f"a test with 1 % false positives, one ill in a thousand: P(ill | positive) = {ill:.4f}")
    print(f"a witness who is 90 % sure, among twenty people: P(it was he | he says so) = {guilty:.4f}")

    X, y = cubic()
    given = {"likelihood": Gaussian(0.04), "optimizer": None, "normalize": False}
    models = {"0": GPRegressor(Constant(1.0), **given), "1": GPRegressor(Constant(1.0) + Linear(1.0), **given)}
    models |= {str(d): GPRegressor(Polynomial(degree=d, offset=1.0, variance=1.0), **given) for d in range(2, 7)}
    models["any (squared exponential)"] = GPRegressor(SquaredExponential(1.0, 1.0), **given)
    compared = compare_evidence(models, X, y)
    print("\nlog evidence and probability of each order of a polynomial; the data are a cubic")
    for name, row in compared.sort_index().iterrows():
        print(f"  {name:26s} {row.log_evidence:9.2f} {row.probability:8.4f}")

    print("\nlog evidence and probability of numbers of basis functions, bumps half a unit wide, for the same data")
    bumps = {
        str(m): GPRegressor(
            SquaredExponential(0.5, 1.0),
            approximation=KernelColumns(np.linspace(-1.5, 1.5, m)[:, None], np.full(m, 1.0)),
            **given,
        )
        for m in (2, 4, 6, 8, 12, 20)
    }
    for name, row in compare_evidence(bumps, X, y).sort_index(key=lambda names: names.astype(int)).iterrows():
        print(f"  {name:26s} {row.log_evidence:9.2f} {row.probability:8.4f}")

    x, z = 0.5, -0.7
    formula = np.exp(-((x - z) ** 2) / 3 - x * z / 3) / np.sqrt(3)
    print(f"\neffective kernel of a random expansion at ({x}, {z}): {effective_kernel(x, z):.4f} simulated,", end=" ")
    print(f"{formula:.4f} = exp(−d²/3 − xz/3)/√3")
    line = Linear(1.0)(np.linspace(-1, 1, 6)[:, None])
    print(f"rank of a linear covariance of six points on a line: {np.linalg.matrix_rank(line)}")

    grid, rng = np.linspace(-np.pi, np.pi, 200), np.random.default_rng(1)
    waves = np.stack([np.sin(grid), np.cos(grid), np.sin(2 * grid), np.cos(2 * grid)])
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9, 2.6))
    left.plot(grid, (rng.uniform(-1, 1, (4, 4)) @ waves).T, color=GREY, lw=1)
    left.set_title("uniform weights of four waves")
    band = sum(
        rng.standard_normal((4, 1)) * np.cos(k * grid) + rng.standard_normal((4, 1)) * np.sin(k * grid)
        for k in range(1, 9)
    )
    middle.plot(grid, (band / 4).T, color=BLUE, lw=1)
    middle.set_title("band-limited: nothing above eight waves")
    best = compared.iloc[0].model
    mean, std = best.predict(X, return_std=True)
    right.fill_between(X[:, 0], mean - 2 * std, mean + 2 * std, color=ORANGE, alpha=0.3, lw=0)
    right.plot(X[:, 0], y, ".", color=BLACK, ms=3)
    right.plot(X[:, 0], mean, color=ORANGE)
    right.set_title(f"the most probable order: {compared.index[0]}")
    save(figure, "model-comparison.png")


if __name__ == "__main__":
    main()
