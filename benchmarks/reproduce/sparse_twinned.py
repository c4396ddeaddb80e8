"""A sparse twinned Gaussian process on 20,000 rows with bursts of outliers."""

import functools
import time
import warnings
from typing import Any

import numpy as np
from common import Results, arguments, table, write_page

from errorband import GPRegressor
from errorband.approximations import FITC
from errorband.likelihoods import OutlierMixture, Twinned
from errorband.training import LBFGS

MODELS: dict[str, dict[str, Any]] = {
    "oracle": {},
    "Gaussian": {},
    "OutlierMixture": {"likelihood": OutlierMixture()},
    "Twinned": {"likelihood": Twinned()},
}
BURSTS = 20


def draw(seed: int, n: int) -> tuple[np.ndarray, ...]:
    """Rows with noise of sd 0.1, a tenth of them in bursts of neighbours with one wrong value each; new inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + 2000, 4))
    f = np.sin(2 * X[:, 0]) + 0.25 * X[:, 1] ** 2 + np.cos(X[:, 2] + X[:, 3])
    y = f + 0.1 * rng.normal(size=len(f))
    clean, wrong = y.copy(), np.zeros(len(f), bool)
    for k, centre in enumerate(rng.choice(n, BURSTS, replace=False)):
        near = np.argsort(np.sum((X[:n] - X[centre]) ** 2, axis=1))[: n // (10 * BURSTS)]
        wrong[near] = True
        y[near] = (6.0 if k % 2 else -6.0) + 0.3 * rng.normal(size=len(near))
    return X[:n], y[:n], wrong[:n], X[n:], f[n:], clean[n:]


def scores(name: str, seed: int, n: int, inducing: int, iterations: int) -> dict[str, Any]:
    X, y, wrong, X_test, f_test, y_test = draw(seed, n)
    shown = ~wrong if name == "oracle" else np.ones(n, bool)
    began = time.process_time()
    settings: dict[str, Any] = {"approximation": FITC(inducing), "optimizer": LBFGS(max_iter=iterations)}
    model = GPRegressor(random_state=0, **settings, **MODELS[name]).fit(X[shown], y[shown])
    took = time.process_time() - began
    predictive = model.predictive(X_test)
    found = {
        "error": float(np.sqrt(np.mean((predictive.mean - f_test) ** 2))),
        "nlpd": float(-np.mean(predictive.log_density(y_test))),
        "took": took,
        "evaluations": int(model.fit_result_.evaluations),
        "converged": bool(model.fit_result_.converged and model.inference_status_.converged),
    }
    if "likelihood" in MODELS[name]:
        marked = model.outlier_probability_ > 0.5
        found |= {"found": float(np.mean(marked[wrong])), "false": float(np.mean(marked[~wrong]))}
    return found


def main() -> None:
    options = arguments(__doc__, rows=20_000, inducing=100, iterations=25, models=MODELS)
    warnings.simplefilter("ignore")
    results, lines = Results("sparse_twinned", options.seconds, kept=True), []
    given = 0, options.rows, options.inducing, options.iterations
    for name in options.models:
        results.once(f"{given} {name}", functools.partial(scores, name, *given))
    for name in MODELS:
        if (piece := results.pieces.get(f"{given} {name}")) is None:
            continue
        ratio = piece["error"] / results.pieces[f"{given} oracle"]["error"]
        marked = [f"{piece[k]:.1%}" if k in piece else "–" for k in ("found", "false")]
        lines.append([name, f"{piece['error']:.4f}", f"{ratio:.2f}", f"{piece['nlpd']:.2f}", *marked,
                      f"{piece['took']:.0f}", piece["evaluations"], "yes" if piece["converged"] else "no"])  # fmt: skip
    header = ["model", "error", "ratio to the oracle", "NLPD", "outliers marked", "others marked",
              "processor seconds of the fit", "evaluations", "converged"]  # fmt: skip
    text = f"""# Sparse twinned Gaussian processes

{options.rows} rows of four inputs with noise of sd 0.1, a tenth of them in {BURSTS} bursts of neighbours that have the
same wrong value; `approximation=FITC({options.inducing})`, searches of {options.iterations} iterations at most
(`LBFGS(max_iter={options.iterations})`: "converged" says whether fewer were enough), all else as the defaults
are. Root mean squared error to the clean function at 2000 new inputs, NLPD of clean targets there. The oracle is the
Gaussian model of the clean rows.

{table(header, lines)}
"""
    command = "python benchmarks/reproduce/sparse_twinned.py "
    command += f"--rows {options.rows} --inducing {options.inducing} --iterations {options.iterations}"
    write_page("sparse-twinned", command, results.began, text)


if __name__ == "__main__":
    main()
