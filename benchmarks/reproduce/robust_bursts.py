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
    start = time.process_time()
    model = baseline(name, seed).fit(X, y)
    seconds = time.process_time() - start
    return {"error": float(np.sqrt(np.mean((model.predict(X_test) - f_test) ** 2))), "took": seconds}


def error_of(arguments: dict[str, Any], kind: str, seed: int, n: int, clean: bool = False) -> dict[str, float]:
    """One model on one draw, or on its clean rows only."""
    X, y, wrong, X_test, f_test, y_test = draw(kind, seed, n)
    shown = ~wrong if clean else np.ones(n, bool)
    start = time.process_time()
    model = GPRegressor(random_state=0, **arguments).fit(X[shown], y[shown])
    seconds = time.process_time() - start
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
    seconds = f"{np.mean([own['took'] for own, _ in draws]):.0f}"
    if name in BASELINES:
        return [name, len(draws), *errors, "–", *shares, "–", seconds]
    above = np.mean([own["nlpd"] - oracle["nlpd"] for own, oracle in draws])
    converged = f"{sum(own['converged'] for own, _ in draws)}/{len(draws)}"
    return [name, len(draws), *errors, f"{above:.2f}", *shares, converged, seconds]


IID = "OutlierMixture", "StudentT", "DoubleExponential", "Huber"
LIMITS = {"scattered": 1.1, "clustered": 1.3, "clean": 1.05}


def verdicts(pieces: dict[str, dict[str, Any]], n: int, seeds: int) -> str:
    """What was asked for, and what the draws say; of each model on the draws it was run on."""

    def errors(kind: str, name: str) -> dict[int, float]:
        keys = {seed: [f"{kind} {n} {seed} {m}" for m in (name, "oracle")] for seed in range(seeds)}
        return {i: pieces[k[0]]["error"] / pieces[k[1]]["error"] for i, k in keys.items() if set(k) <= set(pieces)}

    lines = []
    for kind, limit in LIMITS.items():
        found = {name: list(errors(kind, name).values()) for name in MODELS if name != "Gaussian"}
        found = {name: ratios for name, ratios in found.items() if len(ratios) > 2}
        if not found:
            continue
        if kind == "clean":
            said = ", ".join(f"{name} {max(ratios):.3f} ({len(ratios)} draws)" for name, ratios in found.items())
            held = max(max(ratios) for ratios in found.values()) <= limit
            lines.append(
                f"- Clean targets, never above {limit} times the Gaussian's error: {_held(held)}. Largest: {said}."
            )
            continue
        best = min(found, key=lambda name: np.median(found[name]))
        of = [f"{name} {np.median(r):.3f} (largest {max(r):.2f}, {len(r)} draws)" for name, r in found.items()]
        held = np.median(found[best]) <= limit
        lines.append(
            f"- {kind.capitalize()} outliers, the best model at most {limit} times the oracle's error: {_held(held)}, "
            f"{best}. Medians: {', '.join(of)}."
        )
    own, beaten = errors("clustered", "Twinned"), []
    for name in IID:
        other = errors("clustered", name)
        both = sorted(set(own) & set(other))
        if len(both) > 2:
            gain = np.array([other[i] - own[i] for i in both])
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            said = f"{name} on {np.sum(gain > 0)} of {len(both)} draws, ratios lower by {gain.mean():.3f} ± {error:.3f}"
            beaten.append((gain.mean() > 2 * error, said))
    if beaten:
        held = "holds" if all(won for won, _ in beaten) else "not shown"
        lines.append(
            f"- Bursts, twinned better than every noise that is independent from row to row: {held}. Less error "
            f"than {'; than '.join(said for _, said in beaten)}."
        )
    return f"## What was asked for; n = {n}\n\n" + "\n".join(lines) + "\n"


def _held(held: Any) -> str:
    return "holds" if held else "does not hold"


def main() -> None:
    options = arguments(__doc__, seeds=20, rows=(200, 500), models=("oracle", *MODELS, *BASELINES))
    warnings.simplefilter("ignore")  # statuses are counted below
    results, sections = Results("robust_bursts", options.seconds, kept=True), []
    for seed in range(options.seeds):
        for kind, n in itertools.product(KINDS, options.rows):
            given = kind, seed, n
            for name in options.models:
                if name in BASELINES:
                    compute = functools.partial(baseline_error, name, *given)
                else:
                    compute = functools.partial(error_of, MODELS.get(name, {}), *given, clean=name == "oracle")
                results.once(f"{kind} {n} {seed} {name}", compute)
    marks = ["outliers marked", "others marked", "converged", "processor seconds"]
    header = ["model", "draws", "error, median", "mean", "largest", "NLPD above the oracle's", *marks]
    for (kind, title), n in itertools.product(KINDS.items(), options.rows):
        rows = []
        for name in (*MODELS, *BASELINES):
            keys = [[f"{kind} {n} {seed} {m}" for m in (name, "oracle")] for seed in range(options.seeds)]
            draws = [tuple(map(results.pieces.get, k)) for k in keys if set(k) <= set(results.pieces)]
            rows += [row_of(name, draws)] if draws else []
        sections.append(f"## {title}; n = {n}\n\n{table(header, rows)}\n")
    asked = [verdicts(results.pieces, n, options.seeds) for n in options.rows]
    text = f"""# Robust regression with bursts of outliers

D = 4, noise of sd 0.1. Root mean squared error to the clean function at 1000 new inputs, divided by that of a Gaussian
process fitted to the clean rows only (the oracle); NLPD of clean targets there, and how much more that is than the
oracle's. A row is marked if its `outlier_probability_` is above one half. {options.seeds} draws were planned; the
second column says how many there are, the last what a fit takes of the processor. RANSAC (on kernel ridge) and the
M-estimator (Huber's loss on random Fourier features) are scikit-learn's, with settings chosen by the median error of
five folds; they have no bands. A model without a row was not run.

{chr(10).join(asked)}
{chr(10).join(sections)}
`likelihood="robust"` and `--robust auto` are `Twinned`. These tables do not decide that: a mixture that is independent
from row to row does as well here, bursts included, in a fraction of the time. We think that is since both begin with a
function too smooth to follow a burst, from which the best evidence leaves it alone; the older tables of this page, in
which the mixture was behind, were of other starts. What speaks for `Twinned` is
[Friedman's function](friedman.md) with clusters, where the mixture follows them on some sets.
"""
    rows = " ".join(map(str, options.rows))
    command = f"python benchmarks/reproduce/robust_bursts.py --seeds {options.seeds} --rows {rows}"
    write_page("robust-bursts", command, results.began, text)


if __name__ == "__main__":
    main()
