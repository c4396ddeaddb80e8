"""Robust regression: error to the clean function, beside a Gaussian process that is shown the clean rows only."""

import argparse
import time
import warnings

import numpy as np
from common import table, write_page

from errorband import GPRegressor
from errorband.likelihoods import DoubleExponential, Huber, OutlierMixture, StudentT

MODELS = {
    "Gaussian": {},
    "OutlierMixture": {"likelihood": OutlierMixture()},
    "StudentT": {"likelihood": StudentT()},
    "DoubleExponential": {"likelihood": DoubleExponential()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
}


def draw(seed: int, share: float, n: int, inputs: int) -> tuple[np.ndarray, ...]:
    """Targets with noise of sd 0.1; a ``share`` of them gets an error of sd 8."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + 1000, inputs))
    f = np.sin(2 * X[:, 0]) + 0.25 * X[:, 1] ** 2 + np.cos(X[:, 2] + X[:, 3])
    wrong = rng.uniform(size=len(f)) < share
    y = f + 0.1 * rng.normal(size=len(f)) + 8 * wrong * rng.normal(size=len(f))
    return X[:n], y[:n], wrong[:n], X[n:], f[n:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # statuses are counted below
    began, sections = time.perf_counter(), []
    for share in (0.1, 0.0):
        ratios = {name: [] for name in MODELS}
        seconds, settled = {name: [] for name in MODELS}, {name: 0 for name in MODELS}
        for seed in range(options.seeds):
            X, y, wrong, X_test, f_test = draw(seed, share, options.n, 4)
            error = lambda model: np.sqrt(np.mean((model.predict(X_test) - f_test) ** 2))  # noqa: B023, E731
            oracle = error(GPRegressor().fit(X[~wrong], y[~wrong]))
            for name, arguments in MODELS.items():
                start = time.perf_counter()
                model = GPRegressor(**arguments).fit(X, y)
                seconds[name].append(time.perf_counter() - start)
                ratios[name].append(error(model) / oracle)
                settled[name] += model.fit_result_.converged and model.inference_status_.converged
            print(
                f"share {share}, seed {seed}: " + ", ".join(f"{k} {v[-1]:.2f}" for k, v in ratios.items()), flush=True
            )
        rows = [
            [name, f"{np.median(r):.2f}", f"{np.mean(r):.2f}", f"{np.max(r):.2f}", f"{np.median(seconds[name]):.1f}",
             f"{settled[name]}/{options.seeds}"]
            for name, r in ratios.items()
        ]  # fmt: skip
        header = ["likelihood", "median", "mean", "largest", "seconds (median)", "converged"]
        title = f"{share:.0%} of the targets wrong" if share else "Clean targets"
        sections.append(f"## {title}\n\n{table(header, rows)}")
    text = f"""# Robust regression

n = {options.n}, D = 4, {options.seeds} draws; wrong targets have errors of sd 8, all have noise of sd 0.1. Root mean
squared error to the clean function at 1000 new inputs, divided by that of a Gaussian process fitted to the clean rows
only (the oracle).

{chr(10).join(sections)}
"""
    write_page("robust", f"python benchmarks/reproduce/robust.py --seeds {options.seeds} --n {options.n}", began, text)


if __name__ == "__main__":
    main()
