"""Bands and log densities where rows are few: generated tables of 5 to 100 rows, many draws of each.

    python benchmarks/few_rows.py            # writes docs/benchmarks/few-rows.md

Each draw has 300 further rows to be judged on. Beside the plain default a constant (normal, with mean and variance of
the targets) and scikit-learn's Bayesian ridge regression.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

from errorband import GPRegressor

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "few-rows.md"
TEST_ROWS, LEVEL = 300, 0.95


def friedman(X, rng):
    """Friedman's first function, on [-2, 2]⁵."""
    U = (X + 2) / 4
    wave = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2
    return wave + 10 * U[:, 3] + rng.normal(size=len(X))


# Number of inputs, uniform between -2 and 2, and targets.
TABLES = {
    "sine of one": (1, lambda X, rng: np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=len(X))),
    "sine and line": (2, lambda X, rng: np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=len(X))),
    "no noise": (2, lambda X, rng: np.exp(-(X[:, 0] ** 2)) + 0.3 * X[:, 1] ** 2),
    "lines of three": (3, lambda X, rng: X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=len(X))),
    "nothing but noise": (3, lambda X, rng: rng.normal(size=len(X))),
    "kink, noise upwards": (4, lambda X, rng: np.abs(X[:, 0]) + 0.3 * rng.exponential(size=len(X))),
    "Friedman": (5, friedman),
    "lines, two of eight": (8, lambda X, rng: X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=len(X))),
}
MODELS = ("errorband", "constant", "Bayesian ridge")


def scores(n: int, name: str, seed: int) -> np.ndarray:
    """For each model the share of targets in 95 % bands, and the mean negative log density: (3, 2)."""
    D, function = TABLES[name]
    rng = np.random.default_rng(1000 * n + seed)
    X = rng.uniform(-2, 2, (n + TEST_ROWS, D))
    y = function(X, rng)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    predictive = GPRegressor(random_state=0).fit(X, y).predictive(X_test)
    lower, upper = predictive.interval(LEVEL)
    found = [((lower <= y_test) & (y_test <= upper), predictive.log_density(y_test))]
    ridge = BayesianRidge().fit(X, y).predict(X_test, return_std=True)
    for mean, std in ((np.mean(y), np.std(y)), ridge):
        inside = np.abs(y_test - mean) < norm.ppf((1 + LEVEL) / 2) * std
        found.append((inside, norm.logpdf(y_test, mean, std)))
    return np.array([[np.mean(inside), -np.mean(log_density)] for inside, log_density in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5, 10, 20, 50, 100])
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = []
    for n in options.rows:
        lines = []
        for name in TABLES:
            each = np.array([scores(n, name, seed) for seed in range(options.draws)])
            inside, density = np.mean(each[:, :, 0], axis=0), np.median(each[:, :, 1], axis=0)
            cells = [f"{100 * x:.1f} %" for x in inside] + [f"{x:.2f}" for x in density]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(n, lines[-1], flush=True)
        head = [f"{m}, inside" for m in MODELS] + [f"{m}, NLPD" for m in MODELS]
        table = [f"| table | {' | '.join(head)} |", "| --- |" + " ---: |" * len(head), *lines]
        parts.append("\n".join([f"## {n} rows\n", *table]))
    command = f"python benchmarks/few_rows.py --rows {' '.join(map(str, options.rows))} --draws {options.draws}"
    told = (
        f"{options.draws} draws of each table, judged on {TEST_ROWS} further rows. *Inside*: share of targets in 95 % "
        "bands, mean of the draws. *NLPD*: negative log predictive density, median of the draws (of few rows a mean is "
        "that of the worst draw). The functions are at the head of the script."
    )
    PAGE.write_text("\n\n".join(["# Few rows", f"`{command}`", told, *parts]) + "\n")


if __name__ == "__main__":
    main()
