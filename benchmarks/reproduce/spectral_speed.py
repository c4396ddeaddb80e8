"""Cost of one evaluation of a sparse spectrum's evidence and gradient, in units of N·m² multiply-adds.

A unit is the processor time of the product of an N × m matrix with an m × m one, measured in the same process, so that
figures hold on a busy machine too. Beside it FITC with half as many inducing inputs, one for each frequency, and the
peak memory of evaluations at a million rows that are read from a file.
"""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from common import Results, arguments, table, write_page

from errorband import GPRegressor
from errorband.approximations import FITC
from errorband.features import SparseSpectrum

N, D, H = 10_000, 8, 500


def processor_time(function, repeats: int = 2) -> float:
    """Least processor time of some calls, after one that compiles."""
    function()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    return X, np.sin(X @ np.arange(D)) + 0.1 * rng.standard_normal(n)


def evaluation(approximation) -> float:
    objective = GPRegressor(approximation=approximation, random_state=0).objective(*problem(N))
    return processor_time(lambda: objective.value_and_gradient(objective.theta0))


def cost() -> dict[str, float]:
    m = 2 * H
    A, B = np.ones((N, m)), np.ones((m, m))
    return {
        "unit": processor_time(lambda: A @ B),
        "learned": evaluation(SparseSpectrum(H, learn=True)),
        "fixed": evaluation(SparseSpectrum(H)),
        "FITC": evaluation(FITC(H, init="random")),
    }


def million(h: int = 25) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", mode="w+", dtype=float, shape=(1_000_000, D))
        y = np.empty(len(X))
        for start in range(0, len(X), 100_000):
            X[start : start + 100_000], y[start : start + 100_000] = problem(100_000)
        X.flush()
        objective = GPRegressor(approximation=SparseSpectrum(h, learn=True), random_state=0).objective(X, y)
        took = processor_time(lambda: objective.value_and_gradient(objective.theta0), 1)
        return {"processor": took, "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "m": 2 * h}


def main() -> None:
    options = arguments(__doc__)
    results = Results("spectral-speed", options.seconds)
    results.once("million", million)  # first: the peak of memory is that of the process
    results.once("cost", cost)
    c, big = results.pieces["cost"], results.pieces["million"]
    rows = [
        [name, f"{c[key]:.2f}", f"{c[key] / c['unit']:.1f}"]
        for name, key in (
            (f"SSGP, {H} learned frequencies (m = {2 * H})", "learned"),
            (f"SSGP-fixed, {H} frequencies (m = {2 * H})", "fixed"),
            (f"FITC, {H} inducing inputs", "FITC"),
        )
    ]
    if (peer := results.pieces.get("peer")) is not None:
        name = f"GPyTorch {peer['version']}, `SpectralDeltaKernel`, {H} frequencies"
        rows.append([name, f"{peer['gpytorch']:.2f}", f"{peer['gpytorch'] / c['unit']:.1f}"])
    faster = "Not so here" if c["learned"] > c["FITC"] else "So it is here"
    text = f"""# Cost of a sparse spectrum

Value and gradient of the log evidence at N = {N:,} rows of {D} inputs; the unit is a product of N × m with m × m, m =
{2 * H}: {c["unit"]:.2f} s of processor time. Processor time on a machine that was busy with other work, least of two.

{table(["", "processor s", "units of N·m²"], rows)}

The thesis claims (C18) that a sparse spectrum is faster than FITC even with one inducing input for each frequency, that
is, with twice the basis functions. {faster}. Counted in multiply-adds the sparse spectrum takes 1.5 units, ½ for
ΦᵀΦ and 1 for the gradient. FITC, with matrices half as wide, takes a quarter of 3: ½ each for two triangular solves,
VᵀEV and VᵀS̄V, and 1 for VB⁻¹. A program whose FITC takes more than six times N·M² would see the opposite.

GPyTorch, where it is in the table, was run by `PYTHON benchmarks/reproduce/spectral_peer.py` with an interpreter of its
own, one thread, least of two. GPflow has no model of this kind.

A million rows of {D} inputs in a file, m = {int(big["m"])}: an evaluation takes {big["processor"]:.0f} s of
processor time, and the process {big["GB"]:.1f} GB at its peak.
"""
    write_page("spectral-speed", "python benchmarks/reproduce/spectral_speed.py", results.began, text)


if __name__ == "__main__":
    main()
