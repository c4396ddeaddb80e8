"""A stream of rows by ``partial_fit``: memory, accuracy against one pass over a sample, and a kill in the middle."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments, table, write_page

import errorband
from errorband import GPRegressor
from errorband.approximations import VFE

BATCH, NOISE = 10_000, 0.2


def rows(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Batch of this number: the same whenever it is asked for."""
    rng = np.random.default_rng(number)
    X = rng.uniform(0, 10, (BATCH, 2))
    return X, truth(X) + NOISE * rng.standard_normal(BATCH)


def truth(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) * np.cos(0.5 * X[:, 1])


def peak() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stream(batches: int, folder: Path | None = None) -> tuple[GPRegressor, list[list[object]]]:
    """Take in batches, saving after each if a folder is given; go on from the last model that is there.

    How many batches a model has seen is in the name of its file: what is written in one step cannot disagree.
    """
    model, first = GPRegressor(approximation=VFE(60), random_state=0), 0
    if folder is not None and (first := last_saved(folder)):
        model = errorband.load(folder / f"{first}.eb")
    new = np.random.default_rng(10**9).uniform(0, 10, (2000, 2))
    lines = []
    for number in range(first, batches):
        model.partial_fit(*rows(number))
        if folder is not None:
            model.save(folder / f"{number + 1}.eb")
            (folder / f"{number}.eb").unlink(missing_ok=True)
        if number + 1 in (1, 10, 50, 100) or number + 1 == batches:
            error = float(np.sqrt(np.mean((model.predict(new) - truth(new)) ** 2)))
            points = model.latents_["f"].features.size
            lines.append([f"{(number + 1) * BATCH:,}", points, f"{error:.5f}", f"{peak():.0f}"])
            print(*lines[-1], flush=True)
    return model, lines


def last_saved(folder: Path) -> int:
    """Batches that the newest model in the folder has seen; 0 without one."""
    return max((int(path.stem) for path in folder.glob("*.eb")), default=0)


def killed(batches: int) -> str:
    """Kill a stream that saves after each batch, run it again, and compare with one that was left alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, __file__, "--batches", str(batches), "--folder", name]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while last_saved(folder) < 3:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = last_saved(folder)
        again, _ = stream(batches, folder)
    alone, _ = stream(batches)
    same = np.max(np.abs(again.predict(rows(0)[0][:500]) - alone.predict(rows(0)[0][:500])))
    return f"killed after {kept} of {batches} batches and run again: predictions differ by at most {same:.1e}"


def main() -> None:
    if "--folder" in sys.argv:  # the process that is killed
        at = sys.argv.index
        stream(int(sys.argv[at("--batches") + 1]), Path(sys.argv[at("--folder") + 1]))
        return
    options = arguments(__doc__, batches=100)
    began = time.perf_counter()
    _, lines = stream(options.batches)
    told = killed(8)
    print(told)
    text = f"""# A stream of rows

Batches of {BATCH:,} rows of a function of two inputs with noise of standard deviation {NOISE:g}, taken in by
`partial_fit` of `GPRegressor(approximation=VFE(60))`. Hyperparameters are those of the first batch.

{table(["rows so far", "inducing points", "RMSE against the function", "peak memory (MiB)"], lines)}

A stream that saves after each batch, {told}.
"""
    write_page("stream", f"python benchmarks/reproduce/stream.py --batches {options.batches}", began, text)


if __name__ == "__main__":
    main()
