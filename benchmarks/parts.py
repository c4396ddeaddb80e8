"""What evaluations of evidence and gradient are made of: why they are not several times faster than others'.

    python benchmarks/parts.py          # on an idle machine; writes docs/benchmarks/parts.md

The parts of an evaluation are timed one inside the other, each without those inside it: *programs* are compiled by XLA
(covariances and the way back through them), *products* the loops over rows with BLAS, *LAPACK* the factorisations and
inverses, *the rest* is Python and the passing of arrays. The last columns are for comparison: an evaluation with a
hundredth of the rows (as many as inducing inputs at least), which is what calling all of it costs whatever the size,
and the N·M² (or N³) operations at the speed of NumPy's matrix product.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from errorband import linalg
from errorband.conjugate import dense, low_rank
from peers.errorband import ExactGP, IndependentGP, VariationalGP
from problems import data, parameters, perturbed, with_inducing_inputs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "parts.md"
MODELS = {"exact": ExactGP, "vfe": VariationalGP, "fitc": IndependentGP}
CELLS = [("exact", 100, 0), ("exact", 300, 0)]
SIZES = (2000, 20), (2000, 50), (2000, 200), (10000, 20), (10000, 100), (10000, 500)
CELLS += [(kind, n, m) for kind in ("vfe", "fitc") for n, m in SIZES]
INPUTS, ROUNDS, FEWER, LARGE = 8, 200, 20, 1_000_000  # fewer rounds with so many entries of a covariance

# Operations of an evaluation: a Cholesky factorisation and an inverse, N³; products of N × M arrays with M × M ones.
OPERATIONS = {"exact": lambda n, m: n**3, "vfe": lambda n, m: 4 * n * m**2, "fitc": lambda n, m: 8 * n * m**2}
PARTS = {
    "programs": {
        dense: ("_covariance", "_small_covariance", "_pull_back", "_pull_small"),
        low_rank: ("_whole_covariances", "_pull_whole", "_covariances", "_pull_product", "_pull_scaled"),
    },
    "products": {low_rank: ("_first_chunk", "_adjoint", "_S_bar")},
    "LAPACK": {linalg: ("cholesky", "inverse_lower", "inverse_from_cholesky", "full_inverse", "solve_cholesky")},
}


class Clock:
    """Seconds of each part, without the parts inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inside = [0.0]

    def timed(self, part: str, function: Callable) -> Callable:
        def wrapped(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            self.inside.append(0.0)
            found = function(*args, **options)
            if part == "programs":
                jax.block_until_ready(found)
            passed = time.perf_counter() - began
            self.seconds[part] += passed - self.inside.pop()
            self.inside[-1] += passed
            return found

        return wrapped


def evaluations(kind: str, n: int, m: int) -> Callable[[int], Any]:
    """One evaluation as a function of its number."""
    X, y, _, _ = data(n, INPUTS)
    theta = parameters(INPUTS)
    theta = with_inducing_inputs(theta, X, m) if m else theta
    model = MODELS[kind](X, y, theta)
    return lambda i: model.value_and_gradient(perturbed(theta, i))


def median(call: Callable[[int], Any], rounds: int) -> float:
    """Milliseconds of one call."""
    times = []
    for i in range(rounds):
        began = time.perf_counter()
        call(i)
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times)


def measured(kind: str, n: int, m: int, speed: float) -> str:
    """A row of the table. ``speed`` is that of matrix products, in operations for each millisecond."""
    call, rounds = evaluations(kind, n, m), FEWER if n * m >= LARGE else ROUNDS
    for i in range(5):
        call(i)  # compiles
    whole, clock = median(call, rounds), Clock()
    undo = []
    for part, modules in PARTS.items():
        for module, names in modules.items():
            for name in names:
                undo.append((module, name, getattr(module, name)))
                setattr(module, name, clock.timed(part, getattr(module, name)))
    timed = median(call, rounds)
    for module, name, function in undo:
        setattr(module, name, function)
    share = [1e3 * clock.seconds[part] / rounds for part in PARTS]
    small = max(n // 100, m, 2)
    few = evaluations(kind, small, m)
    for i in range(5):
        few(i)
    rest = timed - sum(share)
    least = OPERATIONS[kind](n, m) / speed
    cells = [f"{x:.2f}" for x in (whole, *share, rest, median(few, rounds), least)]
    return f"| {kind} | {n} | {m or '–'} | {' | '.join(cells)} |"


def matrix_product() -> float:
    """Operations for each millisecond."""
    A = np.random.default_rng(0).normal(size=(1000, 1000))
    return 2e9 / statistics.median(median_of_one(A) for _ in range(9))


def median_of_one(A: np.ndarray) -> float:
    began = time.perf_counter()
    A @ A
    return 1e3 * (time.perf_counter() - began)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    load, speed, lines = os.getloadavg()[0], matrix_product(), []
    for cell in CELLS:
        lines.append(measured(*cell, speed))
        print(lines[-1], flush=True)
    columns = ["model", "N", "M", "evaluation", *PARTS, "the rest", "with N/100 rows", "at the speed of a product"]
    head = [f"| {' | '.join(columns)} |", "| --- | ---: | ---: |" + " ---: |" * (len(columns) - 3)]
    told = str(__doc__).split("\n\n", 2)[2].strip()
    PAGE.write_text(
        f"# The parts of evaluations\n\n`python benchmarks/parts.py`, on {os.cpu_count()} cores; load average "
        f"{load:.2f} before. {INPUTS} inputs, milliseconds.\n\n{told}\n\n" + "\n".join([*head, *lines]) + "\n"
    )


if __name__ == "__main__":
    main()
