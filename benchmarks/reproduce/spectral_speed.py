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

ROWS, D, H = (1000, 2000, 10_000), 8, 500


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


def evaluation(approximation, n: int) -> float:
    objective = GPRegressor(approximation=approximation, random_state=0).objective(*problem(n))
    return processor_time(lambda: objective.value_and_gradient(objective.theta0))


def cost(n: int) -> dict[str, float]:
    m = 2 * H
    A, B = np.ones((n, m)), np.ones((m, m))
    return {
        "unit": processor_time(lambda: A @ B),
        "learned": evaluation(SparseSpectrum(H, learn=True), n),
        "fixed": evaluation(SparseSpectrum(H), n),
        "FITC": evaluation(FITC(H, init="random"), n),
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
    results = Results("spectral-speed", options.seconds, kept=True)
    results.once("million", million)  # first: the peak of memory is that of the process
    for n in ROWS:
        results.once(f"cost/{n}", lambda: cost(n))  # noqa: B023
    big, rows = results.pieces["million"], []
    for n in ROWS:
        c = results.pieces[f"cost/{n}"]
        times = [
            (f"SSGP, {H} learned frequencies (m = {2 * H})", c["learned"]),
            (f"SSGP-fixed, {H} frequencies (m = {2 * H})", c["fixed"]),
            (f"FITC, {H} inducing inputs", c["FITC"]),
        ]
        if (peer := results.pieces.get(f"peer/{n}")) is not None:
            times.append((f"GPyTorch {peer['version']}, `SpectralDeltaKernel`, {H} frequencies", peer["gpytorch"]))
        rows += [[f"{n:,}", name, f"{took:.2f}", f"{took / c['unit']:.1f}"] for name, took in times]
    c = results.pieces[f"cost/{ROWS[-1]}"]
    faster = "Not so here" if c["learned"] > c["FITC"] else "So it is here"
    met = "at most 10, as was asked for" if c["learned"] <= 10 * c["unit"] else "more than the 10 that were asked for"
    peers = [f"{n:,}" for n in ROWS if f"peer/{n}" in results.pieces]
    text = f"""# Cost of a sparse spectrum

Value and gradient of the log evidence at N rows of {D} inputs; the unit is a product of N × m with m × m, m =
{2 * H}: {c["unit"]:.2f} s of processor time at N = {ROWS[-1]:,}. Processor time of one thread on a machine that was
busy with other work, least of two. At N = {ROWS[-1]:,} learned frequencies take {c["learned"] / c["unit"]:.1f} units,
{met}.

{table(["N", "", "processor s", "units of N·m²"], rows)}

The thesis claims (C18) that a sparse spectrum is faster than FITC even with one inducing input for each frequency, that
is, with twice the basis functions. {faster}. Counted in multiply-adds the sparse spectrum takes 1.5 units, ½ for
ΦᵀΦ and 1 for the gradient. FITC, with matrices half as wide, takes a quarter of 3: ½ each for two triangular solves,
VᵀEV and VᵀS̄V, and 1 for VB⁻¹. A program whose FITC takes more than six times N·M² would see the opposite.

GPyTorch was run at N = {" and ".join(peers) or "none of these"} by `PYTHON benchmarks/reproduce/spectral_peer.py` with
an interpreter of its own, one thread, least of two; it solves by iterations, which are not exact, from 800 rows on.
GPflow has no model of this kind.

A million rows of {D} inputs in a file, m = {int(big["m"])}: an evaluation takes {big["processor"]:.0f} s of
processor time, and the process {big["GB"]:.1f} GB at its peak.
"""
    write_page("spectral-speed", "python benchmarks/reproduce/spectral_speed.py", results.began, text)


if __name__ == "__main__":
    main()
