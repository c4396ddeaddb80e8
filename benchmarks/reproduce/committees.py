"""Committees of sixteen beside inducing points, gradient boosting and GPyTorch's SVGP on tables up to 100,000 rows."""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Results, arguments, load, table, write_page

from errorband import BayesianCommittee, GPRegressor, ProductOfExperts
from errorband.approximations import FITC
from errorband.training import LBFGS

sys.path.insert(0, str(Path(__file__).parents[1]))

TITLES = {"bike": "Bike", "kin40k": "Kin-40k", "protein": "Protein", "generated": "Generated"}
MEMBERS, INDUCING, STEPS, ITERATIONS, NOISE = 16, 500, 1000, 25, 0.2
PEERS = Path(__file__).parents[1] / "peers"


# ------------------------------------------------------------------------------------------------------------ tables
def split(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, X_test, y_test, standardised by the training rows."""
    if name == "generated":
        X, y = generated(102_000)
        test = np.arange(len(y)) >= 100_000
    else:
        data = load(name, "With uci10_fold: the fold, of ten, in which a row is a test row.")
        if name == "kin40k":
            X, y = np.vstack([data["X_train"], data["X_test"]]), np.append(data["y_train"], data["y_test"])
        else:
            X, y = data["X"], data["y"].ravel()
        X = X[:, data["clean_cols"]] if name == "bike" else X  # two columns add up to the target, two are copies
        test = data["uci10_fold"] == 0
    X, y = X.astype(float), y.astype(float)
    centre, spread = X[~test].mean(axis=0), X[~test].std(axis=0)
    shift, scale = y[~test].mean(), y[~test].std()
    X, y = (X - centre) / spread, (y - shift) / scale
    return X[~test], y[~test], X[test], y[test]


def generated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Forty waves over six inputs, of which the last two matter little, and noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 6))
    frequencies = rng.normal(size=(40, 6)) * np.array([4.0, 3.0, 2.0, 1.0, 0.3, 0.3])
    f = np.cos(X @ frequencies.T + rng.uniform(0, 2 * np.pi, 40)) @ rng.normal(size=40) * np.sqrt(2 / 40)
    return X, f + NOISE * rng.normal(size=n)


# ------------------------------------------------------------------------------------------------------------ models
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def ours(model: Any, rows: Rows) -> dict[str, float]:
    X, y, new, y_new = rows
    began = time.process_time()
    model.fit(X, y)
    fitted = time.process_time() - began
    there = model.predictive(new)
    error = np.asarray(there.mean) - y_new
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "nlpd": float(-np.mean(there.log_density(y_new))),
        "processor": fitted,
        "predicting": time.process_time() - began - fitted,
    }


def committee(make: Any, **options: Any) -> Callable[[Rows], dict[str, float]]:
    return lambda rows: ours(make(GPRegressor(random_state=0), n_members=MEMBERS, random_state=0, **options), rows)


def fitc(rows: Rows) -> dict[str, float]:
    search = LBFGS(max_iter=ITERATIONS)
    return ours(GPRegressor(approximation=FITC(INDUCING), optimizer=search, random_state=0), rows)


def boosting(rows: Rows) -> dict[str, float]:
    """One variance for all rows, that of the errors on a tenth of the training rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y, new, y_new = rows
    began = time.process_time()
    held = np.random.default_rng(0).permutation(len(y)) < len(y) // 10
    first = HistGradientBoostingRegressor(max_iter=500, early_stopping=True, random_state=0).fit(X[~held], y[~held])
    variance = np.mean((first.predict(X[held]) - y[held]) ** 2)
    model = HistGradientBoostingRegressor(max_iter=500, early_stopping=True, random_state=0).fit(X, y)
    fitted = time.process_time() - began
    error = model.predict(new) - y_new
    nlpd = 0.5 * np.mean(np.log(2 * np.pi * variance) + error**2 / variance)
    return {"rmse": float(np.sqrt(np.mean(error**2))), "nlpd": float(nlpd), "processor": fitted}


def svgp(rows: Rows) -> dict[str, float]:
    from harness import environment

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, **dict(zip(("X", "y", "X_test", "y_test"), rows, strict=True)))
        # -P: the folder of the script has a gpytorch.py of its own.
        command = [environment("gpytorch"), "-P", str(PEERS / "svgp.py"), str(path), str(STEPS)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(told.strip().splitlines()[-1])


# How it is asked for: its name on the page, and how it is fitted and scored.
MODELS: dict[str, tuple[str, Callable[[Rows], dict[str, float]]]] = {
    "committee": (f"BayesianCommittee, {MEMBERS} members", committee(BayesianCommittee)),
    "communication": (
        f"BayesianCommittee, {MEMBERS} members, 500 rows in common",
        committee(BayesianCommittee, communication=500),
    ),
    "product": (f"ProductOfExperts, {MEMBERS} members", committee(ProductOfExperts)),
    "boosting": ("HistGradientBoosting", boosting),
    "svgp": (f"GPyTorch SVGP({INDUCING}), {STEPS} steps", svgp),
    "fitc": (f"FITC({INDUCING})", fitc),
}
LABELS = [label for label, _ in MODELS.values()]


# -------------------------------------------------------------------------------------------------------------- page
def main() -> None:
    options = arguments(__doc__, sets=list(TITLES), models=list(MODELS))
    warnings.simplefilter("ignore")
    results = Results("committees", options.seconds)
    sizes = {}
    for name in options.sets:
        rows = split(name)
        sizes[name] = len(rows[1]), len(rows[3]), rows[0].shape[1]
        for label, run in (MODELS[key] for key in options.models):
            results.once(f"{name}: {label}", lambda run=run, rows=rows: run(rows))
    command = f"python benchmarks/reproduce/committees.py --sets {' '.join(options.sets)}"  # in pieces, if need be
    write_page("committees", command, results.began, page(results, sizes))


def page(results: Results, sizes: dict[str, tuple[int, int, int]]) -> str:
    sections = []
    for name, (n, n_test, D) in sizes.items():
        found = {label: results.pieces.get(f"{name}: {label}") for label in LABELS}
        lines = [
            [
                label + " †" * p.get("earlier", 0),
                f"{p['rmse']:.4f}",
                f"{p['nlpd']:.3f}",
                f"{p['processor']:.0f}",
                _or_dash(p.get("predicting")),
            ]
            for label, p in found.items()
            if p is not None
        ]
        if lines:
            head = ["model", "RMSE", "NLPD", "processor seconds to fit", "to predict"]
            sections.append(
                f"## {TITLES[name]}: {n:,} rows, {D} inputs, {n_test:,} to test\n\n{table(head, lines)}\n\n"
                f"{_verdict({k: v for k, v in found.items() if v is not None})}"
            )
    missing = [f"{TITLES[s]}: {label}" for s in sizes for label in LABELS if f"{s}: {label}" not in results.pieces]
    told = f"\nNot run: {'; '.join(missing)}.\n" if missing else ""
    if any(p.get("earlier") for p in results.pieces.values()):
        told += "\n† of an earlier state of the code; rows that were run again came out the same, but for seconds.\n"
    body = "\n\n".join(sections)
    return f"""# Committees of sixteen

Targets and inputs are standardised by the training rows, so that an RMSE of 1 is that of the mean. Committees learn
hyperparameters from as many rows as a member has, 2000 at most, and are the default `GPRegressor` otherwise; `FITC` has
at most {ITERATIONS} iterations of L-BFGS; SVGP takes steps of Adam on 1024 rows each, in single precision; boosting has
one variance for all rows, from errors on a tenth of them. The split is the same for all: fold 0 of ten; bike without
the columns that add up to its target. The generated table has {NOISE:g} as standard deviation of its noise. Seconds are
those of one processor, on a machine with other work: they add up what cores did. One run each.

{body}
{told}"""


def _verdict(found: dict[str, dict[str, Any]]) -> str:
    best = {k: min(found, key=lambda label: found[label][k]) for k in ("rmse", "nlpd")}
    if best["rmse"] == best["nlpd"]:
        return f"Best in both: {best['rmse']}."
    return f"Best RMSE: {best['rmse']}. Best NLPD: {best['nlpd']}."


def _or_dash(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.0f}"


if __name__ == "__main__":
    main()
