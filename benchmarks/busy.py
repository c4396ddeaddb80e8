"""How much slower a fit and a prediction get on a busy machine, and how memory grows in a long process.

    python benchmarks/busy.py           # on an idle machine: it makes itself busy
    python benchmarks/busy.py memory    # tables of many sizes, one after the other
    python benchmarks/busy.py sizes     # what rounding up the number of rows costs and saves, in processor time

The first two also write their part of ``docs/benchmarks/busy.md``. Each task is timed alone and while other processes
compute, two for each core; the ratio is what counts. Two is what the scheduler takes from a task with one thread;
threads that wait for each other in a busy loop lose far more. GPy is timed beside if it is installed, here or by
``benchmarks/run.py`` in its own environment.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.approximations import FITC
from errorband.kernels import SquaredExponential

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "busy.md"
TEXTS = {
    "Beside busy processes": """
`python benchmarks/busy.py`, on {cores} cores that had nothing else to do. Programs are compiled before; fits are
searches of 20 steps (FITC and EP: 5). Twice as long and more is what the scheduler takes from a task; the rest goes to
threads that wait for each other.""",
    "Tables of many sizes": """
`python benchmarks/busy.py memory`: fits and predictions of tables of 10 to 2000 rows and two columns, one after the
other in one process, nearly all of different sizes.""",
}


def problem(n: int, D: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a smooth function of eight inputs with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n)


def tasks() -> dict[str, Callable[[], object]]:
    """What is timed, each with its programs compiled."""
    X, y = problem(900)
    many, targets = problem(10_000)
    brief = LBFGS(max_iter=20)
    model = GPRegressor(optimizer=None).fit(X, y)
    sparse = GPRegressor(approximation=FITC(200), optimizer=None, random_state=0).fit(many, targets)
    classes = GPClassifier(optimizer=None).fit(X[:300], y[:300] > 0)
    found: dict[str, Callable[[], object]] = {
        "exact fit, 900 × 8": lambda: GPRegressor(optimizer=brief).fit(X, y),
        "FITC(200) fit, 10,000 × 8": lambda: GPRegressor(
            approximation=FITC(200), optimizer=LBFGS(max_iter=5), random_state=0
        ).fit(many, targets),
        "EP fit of two classes, 300 × 8": lambda: GPClassifier(optimizer=LBFGS(max_iter=5)).fit(X[:300], y[:300] > 0),
        "exact prediction, 10,000 rows": lambda: model.predict(many, return_std=True),
        "FITC(200) prediction, 10,000 rows": lambda: sparse.predict(many, return_std=True),
        "EP prediction of two classes, 10,000 rows": lambda: classes.predict_proba(many),
    }
    theirs = Path(__file__).parent / ".venvs" / "gpy"
    sys.path += map(str, theirs.glob("lib/python*/site-packages"))  # behind ours, so that what both have is ours
    try:
        import GPy
    except ImportError:
        return found

    def peer() -> None:
        fitted = GPy.models.GPRegression(X, y[:, None], GPy.kern.RBF(8, ARD=True))
        fitted.optimize(max_iters=20)

    return found | {"GPy, exact fit, 900 × 8": peer}


def seconds(task: Callable[[], object], rounds: int) -> float:
    """Median wall time."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        task()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def compute_for_ever() -> None:
    """What another process does."""
    while True:
        sum(i * i for i in range(10_000))


def tell(heading: str, table: list[str]) -> None:
    """Print a table and put it below its heading on the page, which keeps what it has below the others."""
    before = PAGE.read_text().split("\n## ") if PAGE.exists() else []
    told = {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in before[1:]}
    told[heading] = "\n".join([TEXTS[heading].strip().format(cores=os.cpu_count()), "", *table])
    parts = [f"## {name}\n\n{told[name]}\n" for name in TEXTS if name in told]
    PAGE.write_text("\n".join(["# A busy machine and a long process\n", *parts]))
    print("\n".join(table))


def busy(rounds: int) -> None:
    """Times alone and in company."""
    others, load = 2 * (os.cpu_count() or 1), os.getloadavg()[0]
    lines = [f"| task | alone, s | with {others} busy processes, s | ratio |", "|---|---:|---:|---:|"]
    spawn = multiprocessing.get_context("spawn")
    for name, task in tasks().items():
        task()  # compile
        alone = seconds(task, rounds)
        crowd = [spawn.Process(target=compute_for_ever, daemon=True) for _ in range(others)]
        for process in crowd:
            process.start()
        time.sleep(1.0)
        try:
            together = seconds(task, rounds)
        finally:
            for process in crowd:
                process.terminate()
                process.join()
        lines.append(f"| {name} | {alone:.2f} | {together:.2f} | {together / alone:.1f} |")
    tell("Beside busy processes", [*lines, "", f"Load average before: {load:.2f}; medians of {rounds}."])


def memory(fits: int) -> None:
    """Memory and pieces of the address space while tables of 10 to 2000 rows are fitted, all sizes different."""
    rng = np.random.default_rng(0)
    lines = ["| fits | memory, MB | pieces of memory |", "|---:|---:|---:|"]
    for fit in range(fits):
        X, y = problem(int(rng.integers(10, 2000)), 2)
        GPRegressor(optimizer=LBFGS(max_iter=1)).fit(X, y).predict(X[:5], return_std=True)
        if fit % (fits // 10) == fits // 10 - 1:
            held = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            pieces = Path("/proc/self/maps").read_text().count("\n")
            lines.append(f"| {fit + 1} | {held:.0f} | {pieces} |")
    tell("Tables of many sizes", lines)


def sizes(rounds: int) -> None:
    """Print processor time of compiling for a new number of rows, and of evaluations at that number."""
    print("| rows | rule | first evaluation, ms | each further, ms |\n|---:|---|---:|---:|")
    kernel = SquaredExponential(1.0, 1.0)
    for n in (16, 32, 64, 128, 256, 288, 512):
        X, y = problem(n, 2)
        for rule in ("conjugate", "laplace", "ep"):
            cls: Any = GPRegressor if rule == "conjugate" else GPClassifier
            objective = cls(kernel, inference=rule).objective(X, y if rule == "conjugate" else y > 0)
            times = []
            for i in range(1 + 3 * rounds):
                began = time.process_time()
                objective.evaluate(objective.theta0 + 1e-3 * i)
                times.append(1e3 * (time.process_time() - began))
            print(f"| {n} | {rule} | {times[0]:.0f} | {statistics.median(times[1:]):.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("busy", "memory", "sizes"), default="busy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fits", type=int, default=500)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "memory":
        memory(given.fits)
    else:
        {"busy": busy, "sizes": sizes}[given.what](given.rounds)
