"""Inducing points with likelihoods that are not Gaussian: seconds and peak memory of evidence and gradient.

Every piece runs in a process of its own, which tells its highest resident memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import Results, table, write_page

INPUTS = 8
CASES = {
    "probit, EP": ("EP", 2, 100_000, 100),
    "softmax of 10 classes, Laplace": ("Laplace", 10, 20_000, 100),
}


def draw(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes of equal size by the level of a smooth function with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, INPUTS))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.3 * rng.standard_normal(n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))


def resident() -> float:
    """Highest resident memory so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def evaluate(rule: str, n_classes: int, n: int, inducing: int, repeats: int) -> dict[str, Any]:
    """Median time of evidence and gradient with sites from nothing, after a first evaluation, which compiles."""
    from errorband import GPClassifier, inference
    from errorband.approximations import FITC
    from errorband.kernels import SquaredExponential

    X, y = draw(n, n_classes)
    kernel = SquaredExponential(np.full(INPUTS, 2.0), 4.0)
    approximation: Any = FITC(inducing, init="random")
    model = GPClassifier(kernel, approximation=approximation, inference=getattr(inference, rule)(), random_state=0)
    objective = model.objective(X, y)
    before = resident()
    value, gradient = objective.value_and_gradient(objective.theta0)
    seconds, of_processors = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        objective.value_and_gradient(objective.theta0)
        seconds.append(time.perf_counter() - began)
        of_processors.append(time.process_time() - used)
    return {
        "evaluation": float(np.median(seconds)),
        "processors": float(np.median(of_processors)),
        "before": before,
        "peak": resident(),
        "evidence": value,
        "gradient": float(np.linalg.norm(gradient)),
    }


def in_own_process(case: str, repeats: int) -> dict[str, Any]:
    """:func:`evaluate`, elsewhere."""
    command = [sys.executable, __file__, "--case", case, "--repeats", str(repeats)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(evaluate(*CASES[options.case], options.repeats)))
        return
    results = Results("site-memory")
    for case in options.cases:
        results.once(case, lambda case=case: in_own_process(case, options.repeats))
    cells = []
    for case, found in results.pieces.items():
        *_, n, inducing = CASES[case]
        whole = found["peak"] - found["before"]
        array = 8 * n * inducing / 2**30
        cells.append(
            [
                case,
                n,
                inducing,
                f"{found['evaluation']:.1f}",
                f"{found['processors']:.1f}",
                f"{found['peak']:.2f}",
                f"{whole:.2f}",
                f"{array:.3f}",
                f"{whole / array:.1f}",
            ]
        )
    header = [
        "likelihood, rule",
        "rows N",
        "M",
        "seconds",
        "of processors",
        "peak GB",
        "of these for it",
        "an N × M array",
        "ratio",
    ]
    text = f"""# Memory and time of inducing points with other likelihoods

`FITC`, squared exponential with a length-scale for each of {INPUTS} inputs: log evidence and its gradient in all
hyperparameters and inducing inputs, the sites found from nothing. Seconds are the median of {options.repeats}, after a
first evaluation, which compiles; *of processors* counts those of all threads. Memory is the highest resident memory of
the process; *of these for it* is what came on top of the library and the data, the compiler's included. The load
average of the machine with {os.cpu_count()} processors was {os.getloadavg()[2]:.1f}: where it is above one, other work
took its share of the seconds, less so of those of processors.

{table(header, cells)}

With C classes there are as many arrays of NC² numbers as of NM, here of the same size, and (CM)² for the posterior of
the weights.
"""
    write_page("site-memory", "python benchmarks/reproduce/site_memory.py", results.began, text)


if __name__ == "__main__":
    main()
