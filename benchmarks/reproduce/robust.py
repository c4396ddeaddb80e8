"""Robust regression: error to the clean function, beside a Gaussian process that is shown the clean rows only."""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import Results, table, write_page

from errorband import GPRegressor
from errorband.likelihoods import DoubleExponential, Huber, OutlierMixture, StudentT

MODELS = {
    "Gaussian": {},
    "OutlierMixture": {"likelihood": OutlierMixture()},
    "StudentT": {"likelihood": StudentT()},
    "DoubleExponential": {"likelihood": DoubleExponential()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
}
SUMMARIES = np.median, np.mean, np.max


def draw(seed: int, share: float, n: int, inputs: int) -> tuple[np.ndarray, ...]:
    """Targets with noise of sd 0.1; a ``share`` of them gets an error of sd 8."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + 1000, inputs))
    f = np.sin(2 * X[:, 0]) + 0.25 * X[:, 1] ** 2 + np.cos(X[:, 2] + X[:, 3])
    wrong = rng.uniform(size=len(f)) < share
    y = f + 0.1 * rng.normal(size=len(f)) + 8 * wrong * rng.normal(size=len(f))
    return X[:n], y[:n], wrong[:n], X[n:], f[n:]


def error_of(arguments: dict[str, Any], seed: int, share: float, n: int, clean: bool = False) -> dict[str, float]:
    """One model on one draw, or on its clean rows only: its error, its time, and whether it converged."""
    X, y, wrong, X_test, f_test = draw(seed, share, n, 4)
    shown = ~wrong if clean else slice(None)
    start = time.perf_counter()
    model = GPRegressor(**arguments).fit(X[shown], y[shown])
    seconds = time.perf_counter() - start
    converged = bool(model.fit_result_.converged and model.inference_status_.converged)
    error = float(np.sqrt(np.mean((model.predict(X_test) - f_test) ** 2)))
    return {"error": error, "took": seconds, "converged": converged}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no further fit after this time")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # statuses are counted below
    results, sections = Results("robust", options.seconds), []
    for share in (0.1, 0.0):
        draws = []
        for seed in range(options.seeds):
            key, given = f"{share} {options.n} {seed}", (seed, share, options.n)
            results.once(f"{key} oracle", lambda given=given: error_of({}, *given, clean=True))
            for name, arguments in MODELS.items():
                results.once(f"{key} {name}", lambda a=arguments, given=given: error_of(a, *given))
            found = {name: results.pieces.get(f"{key} {name}") for name in ("oracle", *MODELS)}
            draws += [found] if all(found.values()) else []
        if not draws:
            continue
        rows = [
            [name, *(f"{of([d[name]['error'] / d['oracle']['error'] for d in draws]):.2f}" for of in SUMMARIES),
             f"{np.median([d[name]['took'] for d in draws]):.1f}",
             f"{sum(d[name]['converged'] for d in draws)}/{len(draws)}"]
            for name in MODELS
        ]  # fmt: skip
        header = ["likelihood", "median", "mean", "largest", "seconds (median)", "converged"]
        title = f"{share:.0%} of the targets wrong" if share else "Clean targets"
        sections.append(f"## {title}: {len(draws)} draws\n\n{table(header, rows)}\n")
    text = f"""# Robust regression

n = {options.n}, D = 4; wrong targets have errors of sd 8, all have noise of sd 0.1. Root mean squared error to the
clean function at 1000 new inputs, divided by that of a Gaussian process fitted to the clean rows only (the oracle).
Times are wall times on a machine that had other work.

{chr(10).join(sections)}"""
    command = f"python benchmarks/reproduce/robust.py --seeds {options.seeds} --n {options.n}"
    write_page("robust", command, results.began, text)


if __name__ == "__main__":
    main()
