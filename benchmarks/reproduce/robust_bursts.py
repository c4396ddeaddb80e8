"""Robust regression when wrong targets are neighbours: error to the clean function, beside a model of clean rows."""

import functools
import itertools
import time
import warnings
from typing import Any

import numpy as np
from common import Results, arguments, table, write_page
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import HuberRegressor, RANSACRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from errorband import GPRegressor
from errorband.likelihoods import DoubleExponential, Huber, OutlierMixture, StudentT, Twinned

MODELS: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "Twinned": {"likelihood": Twinned()},
    "OutlierMixture": {"likelihood": OutlierMixture()},
    "StudentT": {"likelihood": StudentT()},
    "DoubleExponential": {"likelihood": DoubleExponential()},
    "Huber": {"likelihood": Huber(), "inference": "laplace"},
}
BASELINES = ("RANSAC", "M-estimator")
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


def baseline(name: str, seed: int) -> GridSearchCV:
    """What scikit-learn has against outliers, with width and ridge chosen by the median error of five folds."""
    width = [0.01, 0.03, 0.1, 0.3]
    if name == "RANSAC":  # fits to random halves of the rows; the one most rows agree with is kept
        ridge = RANSACRegressor(KernelRidge(kernel="rbf"), min_samples=0.5, max_trials=30, random_state=seed)
        grid = {"fit__estimator__gamma": width, "fit__estimator__alpha": [1e-3, 1e-2]}
        steps = [("scale", StandardScaler()), ("fit", ridge)]
    else:  # Huber's loss on random Fourier features
        grid = {"features__gamma": width, "fit__alpha": [1e-3, 1e-1]}
        features = RBFSampler(n_components=200, random_state=seed)
        steps = [("scale", StandardScaler()), ("features", features), ("fit", HuberRegressor(max_iter=200))]
    return GridSearchCV(Pipeline(steps), grid, scoring="neg_median_absolute_error", cv=5)


def baseline_error(name: str, kind: str, seed: int, n: int) -> dict[str, float]:
    """A baseline on one draw; it has no bands."""
    X, y, _, X_test, f_test, _ = draw(kind, seed, n)
    start = time.perf_counter()
    model = baseline(name, seed).fit(X, y)
    seconds = time.perf_counter() - start
    return {"error": float(np.sqrt(np.mean((model.predict(X_test) - f_test) ** 2))), "took": seconds}


def error_of(arguments: dict[str, Any], kind: str, seed: int, n: int, clean: bool = False) -> dict[str, float]:
    """One model on one draw, or on its clean rows only."""
    X, y, wrong, X_test, f_test, y_test = draw(kind, seed, n)
    shown = ~wrong if clean else np.ones(n, bool)
    start = time.perf_counter()
    model = GPRegressor(random_state=0, **arguments).fit(X[shown], y[shown])
    seconds = time.perf_counter() - start
    predictive = model.predictive(X_test)
    found = {"error": float(np.sqrt(np.mean((predictive.mean - f_test) ** 2))), "took": seconds}
    found["nlpd"] = float(-np.mean(predictive.log_density(y_test)))
    found["converged"] = bool(model.fit_result_.converged and model.inference_status_.converged)
    if hasattr(model.likelihood_, "outlier_probability") and np.any(wrong):
        marked = model.outlier_probability_ > 0.5
        found |= {"found": float(np.mean(marked[wrong])), "false": float(np.mean(marked[~wrong]))}
    return found


def row_of(name: str, draws: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[object]:
    """Of a model and the oracle: errors as ratios, NLPD, outliers found, false alarms, statuses."""
    ratios = [own["error"] / oracle["error"] for own, oracle in draws]
    marked = [[own.get(k, np.nan) for own, _ in draws] for k in ("found", "false")]
    shares = ["–" if np.all(np.isnan(m)) else f"{np.mean(m):.0%}" for m in marked]
    errors = [f"{of(ratios):.2f}" for of in SUMMARIES]
    if name in BASELINES:
        return [name, len(draws), *errors, "–", *shares, "–"]
    above = np.mean([own["nlpd"] - oracle["nlpd"] for own, oracle in draws])
    converged = f"{sum(own['converged'] for own, _ in draws)}/{len(draws)}"
    return [name, len(draws), *errors, f"{above:.2f}", *shares, converged]


def main() -> None:
    options = arguments(__doc__, seeds=20, rows=(200, 500), models=("oracle", *MODELS, *BASELINES))
    warnings.simplefilter("ignore")  # statuses are counted below
    results, sections = Results("robust_bursts", options.seconds), []
    for seed in range(options.seeds):
        for kind, n in itertools.product(KINDS, options.rows):
            given = kind, seed, n
            for name in options.models:
                if name in BASELINES:
                    compute = functools.partial(baseline_error, name, *given)
                else:
                    compute = functools.partial(error_of, MODELS.get(name, {}), *given, clean=name == "oracle")
                results.once(f"{kind} {n} {seed} {name}", compute)
    marks = ["outliers marked", "others marked", "converged"]
    header = ["model", "draws", "error, median", "mean", "largest", "NLPD above the oracle's", *marks]
    for (kind, title), n in itertools.product(KINDS.items(), options.rows):
        rows = []
        for name in (*MODELS, *BASELINES):
            keys = [[f"{kind} {n} {seed} {m}" for m in (name, "oracle")] for seed in range(options.seeds)]
            draws = [tuple(map(results.pieces.get, k)) for k in keys if set(k) <= set(results.pieces)]
            rows += [row_of(name, draws)] if draws else []
        sections.append(f"## {title}; n = {n}\n\n{table(header, rows)}\n")
    text = f"""# Robust regression with bursts of outliers

D = 4, noise of sd 0.1. Root mean squared error to the clean function at 1000 new inputs, divided by
that of a Gaussian process fitted to the clean rows only (the oracle); NLPD of clean targets there, and how much more
that is than the oracle's. A row is marked if its `outlier_probability_` is above one half. 20 draws were planned; the
second column says how many there are. RANSAC (on kernel ridge) and the M-estimator (Huber's loss on random Fourier
features) are scikit-learn's, with settings chosen by the median error of five folds; they have no bands. The tables of
n = 200 are older than today's starts of robust searches ([search](../theory/robust.md#twinned-gaussian-processes)),
those of n = 500 have them.

{chr(10).join(sections)}
`likelihood="robust"` and `--robust auto` are `Twinned`: the tables with wrong targets say which noise tells them from
the function, alone and in bursts, and those of clean targets that nothing is lost there. A model without a row was not
run. Asked were at most 1.1 times the oracle's error on scattered outliers, 1.3 times on bursts and 1.05 times the
Gaussian's on clean targets.
"""
    command = f"python benchmarks/reproduce/robust_bursts.py --seeds {options.seeds}"
    write_page("robust-bursts", command, results.began, text)


if __name__ == "__main__":
    main()
