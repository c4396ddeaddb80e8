"""Two versions of the source, in turn: time, peak memory and value of an evaluation.

    python benchmarks/versions.py --other /path/to/other/checkout

Each version runs in processes of its own, one after the other and several times, on an idle machine. A ratio above one
says that this version is slower, or takes more memory.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1]
CASES = (
    *("exact 500", "exact 2000", "VFE 10000 500", "FITC 10000 500", "FITC 2000 50"),
    *("EP 500", "Laplace 500", "PIC 2000"),
)


def problem(case: str):
    """An objective, by what both versions have in common."""
    from errorband import GPClassifier, GPRegressor
    from errorband.approximations import FITC, PIC, VFE
    from errorband.kernels import SquaredExponential
    from errorband.likelihoods import Gaussian

    name, n, *m = case.split()
    n, rng = int(n), np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    kernel, common = SquaredExponential(np.full(8, 2.0), 1.0), {"normalize": False}
    if name in ("EP", "Laplace"):
        return GPClassifier(kernel, inference=name.lower(), **common).objective(X, y > 0)
    approximation = {"exact": lambda Z: "exact", "VFE": lambda Z: VFE(inducing_inputs=Z)}.get(name)
    if name == "FITC":
        approximation = lambda Z: FITC(inducing_inputs=Z)  # noqa: E731
    if name == "PIC":
        approximation = lambda Z: PIC(inducing_inputs=X[:50], block_size=100)  # noqa: E731
    Z = X[: int(m[0])] if m else None
    gp = GPRegressor(kernel, likelihood=Gaussian(0.01), approximation=approximation(Z), random_state=0, **common)
    return gp.objective(X, y)


def measure(case: str, repeats: int) -> dict[str, float]:
    """Median seconds of an evaluation, peak resident MB, and the value."""
    objective = problem(case)
    theta, seconds = objective.theta0, []
    value = objective.value_and_gradient(theta)[0]
    for _ in range(repeats):
        if hasattr(objective, "state"):  # a version that keeps where inference ended
            objective.state = None
        began = time.perf_counter()
        objective.value_and_gradient(theta)
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": statistics.median(seconds), "peak": peak, "value": float(value)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="checkout to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        n = int(options.measure.split()[1])
        print(json.dumps(measure(options.measure, 30 if n <= 500 else 9)))
        return
    print(f"{'case':16} {'this':>9} {'other':>9} {'ratio':>6} {'memory':>7}  difference of values")
    for case in options.cases:
        found: dict[Path, list[dict[str, float]]] = {HERE: [], options.other: []}
        for _ in range(options.rounds):
            for version, results in found.items():
                environment = os.environ | {"PYTHONPATH": str(version / "src")}
                command = [sys.executable, __file__, "--measure", case]
                told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
                results.append(json.loads(told))
        this, other = (min(r["seconds"] for r in results) for results in found.values())
        memory = [min(r["peak"] for r in results) for results in found.values()]
        values = [results[0]["value"] for results in found.values()]
        difference = abs(values[0] - values[1]) / abs(values[1])
        times = f"{this * 1e3:7.1f}ms {other * 1e3:7.1f}ms {this / other:6.2f}"
        print(f"{case:16} {times} {memory[0] / memory[1]:7.2f}  {difference:.1e}", flush=True)


if __name__ == "__main__":
    main()
