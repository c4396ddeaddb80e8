"""Millions of rows on one machine: time of a pass over the data, peak memory, and how good the model is.

Every piece runs in a process of its own, which tells its highest resident memory; pages of a mapped file count.
"""

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import Results, table, write_page

INPUTS, CHUNK = 8, 1_000_000
MAPPED = 2_000_000  # from more rows on, the data stay in their files
NOISE = 0.3


def truth(X: np.ndarray) -> np.ndarray:
    """A smooth function of some of the inputs."""
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(X[:, 3] + X[:, 4]) + 0.2 * X[:, 5]


def generate(folder: Path, n: int) -> None:
    """Write X.npy and y.npy, a million rows at a time."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n, INPUTS))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.float64, shape=(n,))
    rng = np.random.default_rng(0)
    for start in range(0, n, CHUNK):
        rows = rng.uniform(-2, 2, (min(CHUNK, n - start), INPUTS))
        X[start : start + CHUNK] = rows
        y[start : start + CHUNK] = truth(rows) + NOISE * rng.standard_normal(len(rows))


def fit(options: argparse.Namespace) -> dict[str, Any]:
    """Fit to the files of a folder, and predict rows that were not there."""
    from errorband import GPRegressor, approximations, metrics
    from errorband.training import LBFGS

    mode = "r" if options.mapped else None
    X, y = (np.load(options.folder / name, mmap_mode=mode) for name in ("X.npy", "y.npy"))
    rng = np.random.default_rng(1)
    X_new = rng.uniform(-2, 2, (options.predict, INPUTS))
    y_new = truth(X_new) + NOISE * rng.standard_normal(len(X_new))
    approximation = getattr(approximations, options.model)(options.inducing)
    model: Any = GPRegressor(approximation=approximation, optimizer=LBFGS(max_seconds=options.seconds), random_state=0)
    warnings.simplefilter("ignore")  # the time is limited
    began = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    mean, std = model.predict(X_new, return_std=True)
    predicted = time.perf_counter()
    return {
        "fit": fitted - began,
        "pass": model.fit_result_.seconds / model.fit_result_.evaluations,
        "evaluations": model.fit_result_.evaluations,
        "predict": predicted - fitted,
        "rmse": metrics.rmse(y_new, mean),
        "nlpd": metrics.gaussian_nlpd(y_new, mean, std),
        "coverage": metrics.coverage(y_new, mean - 1.96 * std, mean + 1.96 * std),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def in_own_process(model: str, rows: int, inducing: int, predict: int, seconds: float, mapped: bool) -> dict[str, Any]:
    """Generate the data and run :func:`fit` on them elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), rows)
        arguments = [f"--model={model}", f"--inducing={inducing}", f"--predict={predict}", f"--seconds={seconds}"]
        command = [sys.executable, __file__, "--folder", folder, *arguments, *(["--mapped"] if mapped else [])]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--models", nargs="+", default=["FITC", "VFE"])
    parser.add_argument("--inducing", type=int, default=256)
    parser.add_argument("--predict", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600, help="for each search: half of them on a sample")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--mapped", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(fit(options)))
        return
    results = Results("millions")
    pieces = [(m, n, options.inducing, options.seconds) for n in options.rows for m in options.models]
    for model, n, inducing, seconds in [*pieces, ("VFE", 100_000, 500, options.seconds / 10)]:
        results.once(
            f"{model} {n} {inducing} {seconds:.0f}",
            lambda m=model, r=n, i=inducing, s=seconds: in_own_process(m, r, i, options.predict, s, r > MAPPED),
        )
    cells = [
        [
            *key.split(),
            "mapped" if int(key.split()[1]) > MAPPED else "in memory",
            f"{found['fit']:.0f}",
            found["evaluations"],
            f"{found['pass']:.1f}",
            f"{found['predict']:.1f}",
            f"{found['gigabytes']:.2f}",
            f"{found['rmse']:.4f}",
            f"{found['nlpd']:.4f}",
            f"{100 * found['coverage']:.1f} %",
        ]
        for key, found in results.pieces.items()
    ]
    header = ["model", "rows", "M", "search (s)", "X", "fit (s)", "passes", "s per pass", "predict (s)", "peak GB"]
    header += ["RMSE", "NLPD", "in 95 % band"]
    text = f"""# Millions of rows

Made-up data with {INPUTS} inputs and noise of standard deviation {NOISE}. The search may take the seconds given, half
of them on a sample of the rows (`LBFGS(max_seconds=…)`). A *pass* is an evaluation of the evidence and its whole
gradient, inducing inputs included; *fit* includes what comes before and after the search. *predict* is the mean and the
standard deviation of {options.predict:,} new rows. *peak GB* is the highest resident memory of the process, mapped
pages of the file included.

{table(header, cells)}
"""
    command = shlex.join(["python", "benchmarks/reproduce/millions.py", *sys.argv[1:]])
    write_page("millions", command, results.began, text)


if __name__ == "__main__":
    main()
