"""FITC with EP and the probit likelihood: time of evidence and gradient against the number of rows, and of a fit."""

import argparse
import time
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import picture, table, write_page

from errorband import GPClassifier
from errorband.approximations import FITC
from errorband.inference import EP
from errorband.kernels import SquaredExponential

INPUTS = 8


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes by the sign of a smooth function with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, INPUTS))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.3 * rng.standard_normal(n)
    return X, np.where(f > 0, 1, -1)


def evaluate(n: int, inducing: int, repeats: int) -> dict[str, Any]:
    """Median time with sites from nothing, and of steps of a search, whose sites begin where the last ended."""
    X, y = draw(n)
    kernel = SquaredExponential(np.full(INPUTS, 2.0), 4.0)
    model = GPClassifier(kernel, approximation=FITC(inducing, init="random"), inference=EP(), random_state=0)
    objective = model.objective(X, y)
    theta = objective.theta0
    objective.value_and_gradient(theta)  # compiles
    rng = np.random.default_rng(1)
    cold, warm = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        found = objective.evaluate(theta)
        middle = time.perf_counter()
        objective.evaluate(theta + 0.03 * rng.standard_normal(len(theta)), found.warm)
        cold.append(middle - began)
        warm.append(time.perf_counter() - middle)
    return {"n": n, "cold": float(np.median(cold)), "warm": float(np.median(warm))}


def fit(n: int, inducing: int) -> dict[str, Any]:
    """A whole fit with the library's defaults for everything else, compilation included."""
    X, y = draw(n + 10_000)
    model = GPClassifier(approximation=FITC(inducing), inference=EP(), random_state=0)
    began = time.perf_counter()
    model.fit(X[:n], y[:n])
    seconds = time.perf_counter() - began
    result: Any = model.fit_result_
    return {"seconds": seconds, "iterations": result.iterations, "evaluations": result.evaluations,
            "message": result.message, "evidence": model.log_evidence_,
            "error": float(np.mean(model.predict(X[n:]) != y[n:]))}  # fmt: skip


def exponent(found: list[dict[str, Any]], key: str) -> float:
    """Slope of log time over log rows."""
    return float(np.polyfit(np.log([f["n"] for f in found]), np.log([f[key] for f in found]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 20_000, 40_000, 70_000, 100_000])
    parser.add_argument("--inducing", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-page", action="store_true", help="print only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began, found = time.perf_counter(), []
    whole = fit(options.rows[0], options.inducing)
    print(whole, flush=True)
    for n in options.rows:
        found.append(evaluate(n, options.inducing, options.repeats))
        print(found[-1], flush=True)
    slopes = {key: exponent(found, key) for key in ("cold", "warm")}
    print("exponents", slopes)
    if options.no_page:
        return
    figure, axis = plt.subplots(figsize=(6, 4))
    rows = np.array(options.rows)
    for key, label in (("cold", "sites from nothing"), ("warm", "a step of a search")):
        seconds = np.array([f[key] for f in found])
        (line,) = axis.loglog(rows, seconds, "o", label=label)
        axis.loglog(rows, rows * np.median(seconds / rows), "--", color=line.get_color(), lw=0.8)
    axis.set(xlabel="rows", ylabel="seconds for evidence and gradient")
    axis.legend()
    cells = [[f["n"], f"{f['cold']:.3g}", f"{1e6 * f['cold'] / f['n']:.1f}", f"{f['warm']:.3g}",
              f"{1e6 * f['warm'] / f['n']:.1f}"] for f in found]  # fmt: skip
    text = f"""# Time of FITC with EP against the number of rows

Probit, squared exponential with a length-scale for each of {INPUTS} inputs, {options.inducing} inducing inputs: log
evidence and its gradient in all hyperparameters and inducing inputs. Median of {options.repeats}: with the sites from
nothing, and after a small step of all parameters, the sites beginning where the last evaluation ended.

{table(["rows", "from nothing, s", "µs a row", "a step, s", "µs a row"], cells)}

Time grows as rows to the power {slopes["cold"]:.2f} from nothing and {slopes["warm"]:.2f} for a step; dashed lines are
linear growth.

{picture(figure, "ep-scaling")}

A whole fit to {options.rows[0]:,} rows, `GPClassifier(approximation=FITC({options.inducing}), inference=EP())` with
everything else as it is by default, took {whole["seconds"]:.0f} s: {whole["iterations"]} iterations,
{whole["evaluations"]} evaluations, log evidence {whole["evidence"]:.1f}, {100 * whole["error"]:.1f} % errors on 10,000
new rows. {whole["message"]}
"""
    write_page("ep-scaling", "python benchmarks/reproduce/ep_scaling.py", began, text)


if __name__ == "__main__":
    main()
