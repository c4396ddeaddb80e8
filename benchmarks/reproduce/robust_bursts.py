"""Robust regression when wrong targets are neighbours: error to the clean function, beside a model of clean rows."""

import time
import warnings
from typing import Any

import numpy as np
from common import Results, arguments, table, write_page

from errorband import GPRegressor
from errorband.likelihoods import DoubleExponential, Huber, OutlierMixture, StudentT, Twinned

MODELS: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "OutlierMixture": {"likelihood": OutlierMixture()},
    "StudentT": {"likelihood": StudentT()},
    "DoubleExponential": {"likelihood": DoubleExponential()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
    "Twinned": {"likelihood": Twinned()},
}
KINDS = {
    "scattered": "10% of the targets wrong, one by one, with errors of sd 8",
    "clustered": "10% of the targets wrong, in two bursts of neighbours with about the same wrong value",
    "clean": "Clean targets",
}
SUMMARIES = np.median, np.mean, np.max


def draw(kind: str, seed: int, n: int) -> tuple[np.ndarray, ...]:
    """Rows with noise of sd 0.1, some of them wrong; new inputs, the function there, and clean targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + 1000, 4))
    f = np.sin(2 * X[:, 0]) + 0.25 * X[:, 1] ** 2 + np.cos(X[:, 2] + X[:, 3])
    y = f + 0.1 * rng.normal(size=len(f))
    clean, wrong = y.copy(), np.zeros(len(f), bool)
    if kind == "scattered":
        wrong = rng.uniform(size=len(f)) < 0.1
        y += 8 * wrong * rng.normal(size=len(f))
    elif kind == "clustered":
        for centre, value in zip(rng.choice(n, 2, replace=False), (6.0, -6.0), strict=True):
            near = np.argsort(np.sum((X[:n] - X[centre]) ** 2, axis=1))[: n // 20]
            wrong[near] = True
            y[near] = value + 0.3 * rng.normal(size=len(near))
    return X[:n], y[:n], wrong[:n], X[n:], f[n:], clean[n:]


def error_of(arguments: dict[str, Any], kind: str, seed: int, n: int, clean: bool = False) -> dict[str, float]:
    """One model on one draw, or on its clean rows only."""
    X, y, wrong, X_test, f_test, y_test = draw(kind, seed, n)
    shown = ~wrong if clean else np.ones(n, bool)
    start = time.perf_counter()
    model = GPRegressor(**arguments).fit(X[shown], y[shown])
    seconds = time.perf_counter() - start
    predictive = model.predictive(X_test)
    found = {"error": float(np.sqrt(np.mean((predictive.mean - f_test) ** 2))), "took": seconds}
    found["nlpd"] = float(-np.mean(predictive.log_density(y_test)))
    found["converged"] = bool(model.fit_result_.converged and model.inference_status_.converged)
    if hasattr(model.likelihood_, "outlier_probability") and np.any(wrong):
        marked = model.outlier_probability_ > 0.5
        found |= {"found": float(np.mean(marked[wrong])), "false": float(np.mean(marked[~wrong]))}
    return found


def rows_of(draws: list[dict[str, Any]]) -> list[list[object]]:
    """A line for each model: error as a ratio to the oracle's, outliers found, false alarms, statuses."""
    lines = []
    for name in MODELS:
        ratios = [d[name]["error"] / d["oracle"]["error"] for d in draws]
        marked = [[d[name].get(k, np.nan) for d in draws] for k in ("found", "false")]
        shares = ["–" if np.all(np.isnan(m)) else f"{np.mean(m):.0%}" for m in marked]
        converged = f"{sum(d[name]['converged'] for d in draws)}/{len(draws)}"
        above = np.mean([d[name]["nlpd"] - d["oracle"]["nlpd"] for d in draws])
        lines.append([name, *(f"{of(ratios):.2f}" for of in SUMMARIES), f"{above:.2f}", *shares, converged])
    return lines


def main() -> None:
    options = arguments(__doc__, seeds=4, n=120)
    warnings.simplefilter("ignore")  # statuses are counted below
    results, sections = Results("robust_bursts", options.seconds), []
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for seed in range(options.seeds):
        for kind, draws in found.items():
            key, given = f"{kind} {options.n} {seed}", (kind, seed, options.n)
            results.once(f"{key} oracle", lambda given=given: error_of({}, *given, clean=True))
            for name, settings in MODELS.items():
                results.once(f"{key} {name}", lambda a=settings, given=given: error_of(a, *given))
            pieces = {name: results.pieces.get(f"{key} {name}") for name in ("oracle", *MODELS)}
            draws += [pieces] if all(pieces.values()) else []
    marks = ["outliers marked", "others marked", "converged"]
    header = ["likelihood", "error, median", "mean", "largest", "NLPD above the oracle's", *marks]
    for kind, title in KINDS.items():
        if found[kind]:
            sections.append(f"## {title}: {len(found[kind])} draws\n\n{table(header, rows_of(found[kind]))}\n")
    text = f"""# Robust regression with bursts of outliers

n = {options.n}, D = 4, noise of sd 0.1. Root mean squared error to the clean function at 1000 new inputs, divided by
that of a Gaussian process fitted to the clean rows only (the oracle); NLPD of clean targets there, and how much more
that is than the oracle's. A row is marked if its `outlier_probability_` is above one half. (The experiment was planned
with 20 draws of n = 500; [robust regression](robust.md) has those without bursts and twinned models.)

{chr(10).join(sections)}
`likelihood="robust"` and `--robust auto` are `Twinned`: the first two tables say which noise tells wrong targets from
the function, alone and in bursts, and the third that nothing is lost where no target is wrong.
"""
    command = f"python benchmarks/reproduce/robust_bursts.py --seeds {options.seeds} --n {options.n}"
    write_page("robust-bursts", command, results.began, text)


if __name__ == "__main__":
    main()
