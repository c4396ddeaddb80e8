"""EP with two latent functions beside Laplace: processor time and sweeps along the same hyperparameters.

    python benchmarks/two_latents.py              # writes docs/benchmarks/two-latents.md
    python benchmarks/two_latents.py --n 100 200  # prints, and leaves the page alone

A twinned Gaussian process, evidence and all its derivatives at hyperparameters near one another as in a search, each
evaluation started where the one before ended. Processor time, which other work on the machine does not enter.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from errorband import GPRegressor
from errorband.inference import EP, Inference, Laplace
from errorband.kernels import SquaredExponential
from errorband.likelihoods import Twinned

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "two-latents.md"
SIZES, POINTS, SPREAD = (100, 200, 500), 8, 0.1
KERNEL = {"mean": SquaredExponential(1.5, 1.0), "gate": SquaredExponential(0.5, 1.5)}


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A sine wave with a burst of wrong targets, and some wrong ones elsewhere."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, (n, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    y[n // 3 : n // 3 + n // 15] = -2.0
    wrong = rng.choice(n, n // 20, replace=False)
    y[wrong] += 2.0 * rng.normal(size=len(wrong))
    return X, y


def measure(rule: Inference, n: int) -> tuple[float, float, int]:
    """Seconds of processor time and sweeps, or Newton steps, of an evaluation; how many of them converged."""
    model = GPRegressor(KERNEL, likelihood=Twinned(0.01, 100.0, 1.5), inference=rule, normalize=False)
    objective = model.objective(*draw(n))
    steps = np.random.default_rng(1).normal(0, SPREAD, (POINTS, len(objective.theta0)))
    point = objective.evaluate(objective.theta0)  # compiles
    began, statuses = time.process_time(), []
    for step in steps:
        point = objective.evaluate(objective.theta0 + step, point.warm)
        statuses.append(point.status)
    seconds = (time.process_time() - began) / POINTS
    return seconds, float(np.mean([s.sweeps for s in statuses])), sum(s.converged for s in statuses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+")
    options = parser.parse_args()
    lines = []
    for n in options.n or SIZES:
        (ep, sweeps, settled), (laplace, steps, found) = measure(EP(), n), measure(Laplace(), n)
        cells = [n, f"{1e3 * ep:.0f}", f"{sweeps:.1f}", f"{settled}/{POINTS}", f"{1e3 * laplace:.0f}", f"{steps:.1f}"]
        lines.append(f"| {' | '.join(map(str, [*cells, f'{found}/{POINTS}', f'{ep / laplace:.2f}']))} |")
        print(lines[-1], flush=True)
    if options.n:
        return
    head = ["rows", "EP (ms)", "sweeps", "settled", "Laplace (ms)", "Newton steps", "settled", "EP / Laplace"]
    table = "\n".join([f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}", *lines])
    PAGE.write_text(f"""# Two latent functions: EP beside Laplace

    python benchmarks/two_latents.py

A [twinned Gaussian process](../theory/robust.md): evidence and all its derivatives at {POINTS} vectors of
hyperparameters scattered (sd {SPREAD:g} in each logarithm) around given ones, each evaluation started where the one
before ended. Processor time of one evaluation, in milliseconds; sweeps and Newton steps are means.

{table}
""")


if __name__ == "__main__":
    main()
